//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes of one rank each that talk over UCX.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/Machine.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/Bundle.h"
#include "braid/Runtime/Model.h"
#include "runtime/lib/Collective/MessageTransport.h"
#include "runtime/lib/Data/Digest.h"
#include "runtime/lib/Net/ArenaExchange.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Host.h"
#include "runtime/lib/Net/ProcessExchange.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace braid::runtime {

namespace {

double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Of what all ranks must have alike: the program, and the module that kernels are compiled from,
/// each host for its processor, by the same compiler; the kernels themselves where it was left out.
std::string sha256OfRun(const Bundle &bundle) {
  const Manifest &manifest = bundle.manifest();
  std::string text = manifest.producer;
  for (const auto &[name, bytes] : bundle.members())
    if (manifest.moduleMember.empty() || name == manifest.moduleMember ||
        name == manifest.programMember)
      text += " " + name + " " + sha256(bytes.data(), bytes.size());
  return sha256(text.data(), text.size());
}

class UcxCommunicator : public Communicator {
public:
  static Result<std::shared_ptr<Communicator>> create(const Bundle &bundle,
                                                      const UcxOptions &options) {
    const LaunchInfo &launch = options.launch;
    const int64_t beginNs = nowNs();
    atSchedulePoint("before its links");
    if (const int64_t ranks = bundle.manifest().mesh.numRanks(); ranks != launch.size)
      return Status::error("the bundle has a mesh of ", ranks, ranks == 1 ? " rank" : " ranks",
                           ", this process is rank ", launch.rank, " of ", launch.size);
    const std::vector<std::byte> &program = bundle.program();
    const size_t numQueues = program::GetProgram(program.data())->queues()->size() - 1;
    auto own = std::shared_ptr<UcxCommunicator>(new UcxCommunicator(launch));
    own->machineFile = options.machine;
    net::NetOptions networks;
    networks.transports = options.transports;
    networks.devices = options.devices;
    ASSIGN_OR_RETURN(std::shared_ptr<const net::UcxContext> context, net::openNetworks(networks));
    // One for control, one for the exchange, one for sends and recvs, and one for each queue.
    std::vector<std::unique_ptr<net::Link>> links;
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kFixedLinks + numQueues; ++i) {
      ASSIGN_OR_RETURN(std::unique_ptr<net::Link> link,
                       net::Link::create(context, launch.rank, launch.size));
      ASSIGN_OR_RETURN(std::string address, link->address());
      addresses.push_back(std::move(address));
      links.push_back(std::move(link));
    }
    ASSIGN_OR_RETURN(net::JobOptions job, net::jobOptionsOf(launch));
    job.bundle = sha256OfRun(bundle);
    job.mesh = meshString(bundle.manifest().mesh);
    if (options.machine) {
      const std::string text = cost::machineToJson(*options.machine);
      job.machine = sha256(text.data(), text.size());
    }
    if (options.allGather)
      job.allGather = [&options](const void *send, size_t bytes, void *receive) -> Status {
        if (const int code = options.allGather(send, bytes, receive); code != 0)
          return Status::error("the caller's all_gather of ", bytes, " bytes failed with ", code,
                               Code::rankFailed);
        return {};
      };
    job.device = options.devices;
    job.timeLimitSeconds = options.timeLimitSeconds > 0 ? options.timeLimitSeconds : 1e6;
    atSchedulePoint("before it meets the others");
    ASSIGN_OR_RETURN(net::Job started, net::startJob(job, addresses));
    atSchedulePoint("knows the others");
    for (size_t i = 0; i < links.size(); ++i)
      for (int64_t peer = 0; peer < launch.size; ++peer)
        if (const net::Member &member = started.members[static_cast<size_t>(peer)];
            peer != launch.rank)
          links[i]->connectLater(peer, member.addresses[i], member.host);
    net::ControlOptions limits;
    limits.timeLimitSeconds = options.timeLimitSeconds;
    ASSIGN_OR_RETURN(own->control, net::Control::start(std::move(links[0]), started, limits));
    own->findHosts(started, options);
    own->exchange = std::make_unique<net::ProcessExchange>(std::move(links[1]), *own->control,
                                                           options.timeLimitSeconds);
    links.erase(links.begin(), links.begin() + 2);
    own->links = std::move(links);
    // So that what clocks drift apart while models run is known.
    RETURN_IF_ERROR(own->exchange->measureClock().status());
    own->started = {static_cast<double>(nowNs() - beginNs) * 1e-9, processorSeconds()};
    return std::shared_ptr<Communicator>(std::move(own));
  }

  int64_t numRanks() const override { return launch.size; }
  RankRange local() const override { return {launch.rank, 1}; }
  std::string transportName() const override { return "ucx"; }
  std::string host() const override { return net::hostName(); }
  StartCost startCost() const override { return started; }
  int64_t ranksOfHost() const override {
    return std::count(hosts.begin(), hosts.end(), hosts[static_cast<size_t>(launch.rank)]);
  }
  std::shared_ptr<const cost::Machine> machine() const override { return machineFile; }

  Result<std::unique_ptr<Transport>> createTransport(int64_t messagesInFlight) override {
    MessageLinks given;
    given.pointToPoint = links[kPointToPoint].get();
    for (size_t i = kQueues; i < links.size(); ++i)
      given.queues.push_back(links[i].get());
    given.model = nextModel++;
    given.places = places;
    given.machine = machineFile;
    given.timeLimitSeconds = timeLimitSeconds;
    if (sharesArenas)
      given.shareArenas = [this, model = given.model](size_t bytes, size_t needed) {
        net::ArenaOptions options;
        options.key = key + "/model " + std::to_string(model);
        options.rank = launch.rank;
        for (size_t rank = 0; rank < hosts.size(); ++rank)
          if (hosts[rank] == hosts[static_cast<size_t>(launch.rank)])
            options.ranks.push_back(static_cast<int64_t>(rank));
        options.timeLimitSeconds = timeLimitSeconds > 0 ? timeLimitSeconds : 1e6;
        options.neededBytes = needed;
        options.state = [this] { return control->state(); };
        options.remark = [this] { return control->silence(); };
        return net::exchangeArenas(options, bytes);
      };
    given.beginRun = [this, isFirst = true](RunControl &run) mutable {
      control->begin(run, ++runs, std::exchange(isFirst, false));
    };
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
    return exchange->gather(std::move(mine), bytes);
  }
  Result<std::vector<std::byte>> scatter(const MakePart &make,
                                         const std::vector<size_t> &bytes) override {
    return exchange->scatter(make, bytes);
  }
  Status broadcast(void *data, size_t bytes) override { return exchange->broadcast(data, bytes); }
  Status collect(const NextPiece &next, const TakePiece &take) override {
    return exchange->collect(next, take);
  }
  Result<ClockMap> measureClock() override { return exchange->measureClock(); }

  ~UcxCommunicator() override {
    if (!exchange)
      return;
    atSchedulePoint("before it leaves");
    if (!isBroken && !exchange->isBroken() && control->state().ok()) {
      exchange->leave();
      return;
    }
    // A peer that is lost would be waited for on each link.
    exchange->giveUp();
    for (auto &link : links)
      link->giveUp();
  }

private:
  explicit UcxCommunicator(const LaunchInfo &launch) : launch(launch) {}

  void findHosts(const net::Job &job, const UcxOptions &options) {
    hosts = net::hostNumbers(job.members);
    for (size_t rank = 0; rank < hosts.size(); ++rank)
      places.push_back({hosts[rank], job.members[rank].numaNode});
    key = job.key;
    timeLimitSeconds = options.timeLimitSeconds;
    // Whoever names transports of UCX wants messages to go over them.
    const char *named = std::getenv("UCX_TLS");
    sharesArenas = options.transports.empty() && (!named || !*named);
  }

  static constexpr size_t kFixedLinks = 3;
  /// In `links`, from which those of control and exchange are gone.
  static constexpr size_t kPointToPoint = 0, kQueues = 1;

  const LaunchInfo launch;
  std::vector<int64_t> hosts;    ///< by rank: the number of its host
  std::vector<RankPlace> places; ///< and its NUMA node there
  std::string key;               ///< of the job
  std::shared_ptr<const cost::Machine> machineFile;
  double timeLimitSeconds = 0;
  bool sharesArenas = false; ///< ranks of a host see each other's memory
  StartCost started;
  std::vector<std::unique_ptr<net::Link>> links;
  std::unique_ptr<net::ProcessExchange> exchange;
  std::unique_ptr<net::Control> control; ///< after what it tells of, so that it ends first
  uint64_t runs = 0;
  uint8_t nextModel = 0;
  bool isBroken = false;
};

} // namespace

Result<std::shared_ptr<Communicator>> createUcxCommunicator(const Bundle &bundle,
                                                            const UcxOptions &options) {
  return UcxCommunicator::create(bundle, options);
}

} // namespace braid::runtime
