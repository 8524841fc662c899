//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes of one rank each that talk over UCX.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Communicator.h"
#include "runtime/lib/Collective/MessageTransport.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Control.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>

namespace braid::runtime {

namespace {

class UcxCommunicator : public Communicator {
public:
  static Result<std::shared_ptr<Communicator>> create(const UcxOptions &options) {
    const LaunchInfo &launch = options.launch;
    auto own = std::shared_ptr<UcxCommunicator>(new UcxCommunicator(launch, options));
    net::NetOptions networks;
    networks.transports = options.transports;
    networks.devices = options.devices;
    ASSIGN_OR_RETURN(std::shared_ptr<const net::UcxContext> context, net::openNetworks(networks));
    // One for control, one for results, one for sends and recvs, and one for each queue.
    std::vector<std::unique_ptr<net::Link>> links;
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kFixedLinks + options.numQueues; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<net::Link> link,
                       net::Link::create(context, launch.rank, launch.size));
      ASSIGN_OR_RETURN(std::string address, link->address());
      addresses.push_back(std::move(address));
      links.push_back(std::move(link));
    }
    net::JobOptions job;
    if (launch.rendezvous)
      job.rendezvous = *launch.rendezvous;
    // A launcher that has no name for it runs one job here.
    job.job = launch.jobId.empty() ? "unnamed" : launch.jobId;
    job.rank = launch.rank;
    job.size = launch.size;
    job.bundle = options.bundle;
    job.mesh = options.mesh;
    if (!launch.secret.empty()) {
      ASSIGN_OR_RETURN(job.secret, net::JobSecret::fromText(launch.secret));
    }
    job.device = options.devices;
    job.timeLimitSeconds = options.timeLimitSeconds > 0 ? options.timeLimitSeconds : 1e6;
    ASSIGN_OR_RETURN(net::Job started, net::startJob(context, job, addresses));
    for (size_t i = 0; i < links.size(); ++i)
      for (int64_t peer = 0; peer < launch.size; ++peer) {
        const net::Member &member = started.members[static_cast<size_t>(peer)];
        if (peer != launch.rank)
          RETURN_IF_ERROR(links[i]->connect(peer, member.addresses[i], member.host));
      }
    net::ControlOptions limits;
    limits.timeLimitSeconds = options.timeLimitSeconds;
    ASSIGN_OR_RETURN(own->control, net::Control::start(std::move(links[0]), started, limits));
    links.erase(links.begin());
    own->links = std::move(links);
    return std::shared_ptr<Communicator>(std::move(own));
  }

  int64_t numRanks() const override { return launch.size; }
  RankRange local() const override { return {launch.rank, 1}; }
  std::string transportName() const override { return "ucx"; }

  Result<std::unique_ptr<Transport>> createTransport(int64_t messagesInFlight) override {
    MessageLinks given;
    given.pointToPoint = links[kPointToPoint].get();
    for (size_t i = kQueues; i < links.size(); ++i)
      given.queues.push_back(links[i].get());
    given.model = nextModel++;
    given.beginRun = [this](RunControl &run) { control->begin(run, ++runs); };
    given.endRun = [this](bool failed) {
      isBroken = isBroken || failed;
      control->end();
    };
    given.describeLoss = [this](int64_t peer, const Status &error) {
      return control->describeLoss(peer, error);
    };
    return createMessageTransport(std::move(given), messagesInFlight);
  }

  Result<std::vector<Contribution>> gather(std::vector<std::byte> mine,
                                           const std::vector<size_t> &bytes) override {
    const uint64_t tag = ++gathered;
    std::vector<Contribution> all;
    Transfers transfers;
    if (!hasRankZero()) {
      send(transfers, 0, tag, mine);
    } else {
      all.push_back({local(), std::move(mine)});
      for (int64_t rank = 1; rank < launch.size; ++rank)
        all.push_back({{rank, 1}, std::vector<std::byte>(bytes[static_cast<size_t>(rank)])});
      for (int64_t rank = 1; rank < launch.size; ++rank)
        receive(transfers, rank, tag, all[static_cast<size_t>(rank)].bytes);
    }
    RETURN_IF_ERROR(complete(transfers, limitSeconds));
    return all;
  }

  /// Waits for the others, as what was sent to a process that has not taken it is lost when its
  /// sender ends. Of processes that are lost, Control tells.
  ~UcxCommunicator() override {
    if (!control || !control->state().ok() || isBroken)
      return;
    std::vector<std::byte> nothing(1);
    std::vector<std::vector<std::byte>> from(static_cast<size_t>(launch.size), nothing);
    Transfers arrivals, leaves;
    for (int64_t rank = 1; rank < launch.size; ++rank)
      if (hasRankZero())
        receive(arrivals, rank, kLeave, from[static_cast<size_t>(rank)]);
      else if (rank == launch.rank)
        send(arrivals, 0, kLeave, nothing);
    if (!complete(arrivals, kLeaveSeconds).ok())
      return;
    for (int64_t rank = 1; rank < launch.size; ++rank)
      if (hasRankZero())
        send(leaves, rank, kLeave, nothing);
      else if (rank == launch.rank)
        receive(leaves, 0, kLeave, nothing);
    (void)complete(leaves, kLeaveSeconds);
  }

private:
  /// Messages under way, with the peers.
  struct Transfer {
    net::Transfer transfer;
    int64_t peer = 0;
    bool isSend = false;
  };
  using Transfers = std::vector<std::unique_ptr<Transfer>>;

  void send(Transfers &transfers, int64_t to, uint64_t tag, const std::vector<std::byte> &bytes) {
    transfers.push_back(std::make_unique<Transfer>());
    transfers.back()->peer = to;
    transfers.back()->isSend = true;
    links[kResults]->send(transfers.back()->transfer, to, tag, bytes.data(), bytes.size());
  }
  void receive(Transfers &transfers, int64_t from, uint64_t tag, std::vector<std::byte> &bytes) {
    transfers.push_back(std::make_unique<Transfer>());
    transfers.back()->peer = from;
    links[kResults]->receive(transfers.back()->transfer, from, tag, bytes.data(), bytes.size());
  }

  /// Waits until all are done; 0: without a limit. Afterwards none uses its memory.
  Status complete(Transfers &transfers, double seconds) {
    net::Link &link = *links[kResults];
    const int64_t until = seconds > 0 ? nowNs() + static_cast<int64_t>(seconds * 1e9) : INT64_MAX;
    auto isUnderWay = [](const auto &one) { return !one->transfer.done(); };
    Status failure;
    for (;;) {
      const auto late = std::find_if(transfers.begin(), transfers.end(), isUnderWay);
      if (late == transfers.end() || !failure.ok())
        break;
      constexpr int64_t kSliceNs = 100000000;
      failure = link.progress(std::min(until, nowNs() + kSliceNs));
      if (failure.ok())
        failure = control->state();
      if (failure.ok() && nowNs() >= until && isUnderWay(*late))
        failure = Status::error(
            "results are not put together after ", seconds, " s: ", link.describe((*late)->peer),
            (*late)->isSend ? " has not taken this rank's part" : " has not given its part",
            Code::rankFailed);
    }
    for (auto &one : transfers) {
      if (!isUnderWay(one))
        continue;
      link.cancel(one->transfer);
      for (const int64_t end = nowNs() + kCancelNs; isUnderWay(one) && nowNs() < end;)
        if (!link.progress(end).ok())
          break;
      if (isUnderWay(one))
        (void)link.close(nowNs() + kCancelNs);
    }
    for (const auto &one : transfers)
      if (failure.ok() && !one->transfer.status().ok())
        failure = control->describeLoss(one->peer, one->transfer.status());
    isBroken = isBroken || !failure.ok();
    return failure;
  }

  UcxCommunicator(const LaunchInfo &launch, const UcxOptions &options)
      : launch(launch), limitSeconds(options.timeLimitSeconds) {}

  static constexpr size_t kFixedLinks = 3;
  /// In `links`, from which that of control is gone.
  static constexpr size_t kResults = 0, kPointToPoint = 1, kQueues = 2;
  static constexpr int64_t kCancelNs = 200000000;
  static constexpr uint64_t kLeave = uint64_t(1) << 63;
  static constexpr double kLeaveSeconds = 10;

  const LaunchInfo launch;
  const double limitSeconds;
  std::vector<std::unique_ptr<net::Link>> links;
  std::unique_ptr<net::Control> control;
  uint64_t gathered = 0, runs = 0;
  uint8_t nextModel = 0;
  bool isBroken = false;
};

} // namespace

Result<std::shared_ptr<Communicator>> createUcxCommunicator(const UcxOptions &options) {
  return UcxCommunicator::create(options);
}

} // namespace braid::runtime
