//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a group starts and ends, and what others ask of it.
//
//===----------------------------------------------------------------------===//
#include "Group.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/ArenaExchange.h"
#include "runtime/lib/Net/Host.h"
#include "runtime/lib/Net/Networks.h"
#include "runtime/lib/Sync/Cores.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <unistd.h>

namespace braid::runtime {

/// Of introductions; processes of different versions do not form a group.
static constexpr const char *kVersion = "braid group 1";
/// Messages of one rank that may wait for their receives.
static constexpr size_t kMostEarly = size_t(1) << 20;

Group::Group(const GroupOptions &itsOptions)
    : options(itsOptions), peers(static_cast<size_t>(itsOptions.size)) {}

Result<std::unique_ptr<Group>> Group::create(const GroupOptions &options) {
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
    return Status::error("a group of ", options.size, " ranks has no rank ", options.rank);
  std::unique_ptr<Group> group(new Group(options));
  net::NetOptions networks;
  networks.transports = options.transports.empty() ? "all" : options.transports;
  networks.devices = options.devices;
  ASSIGN_OR_RETURN(auto context, net::openNetworks(networks));
  ASSIGN_OR_RETURN(group->link, net::Link::create(context, options.rank, options.size, kMostEarly));
  RETURN_IF_ERROR(group->introduce());
  return group;
}

/// A hello, and the HMAC that shows that its sender knows the secret.
Status Group::introduce() {
  ASSIGN_OR_RETURN(nonce, net::randomBlock());
  net::Hello hello;
  hello.challenge = nonce;
  hello.job = options.name;
  hello.rank = options.rank;
  hello.size = options.size;
  hello.bundle = kVersion;
  hello.hostId = net::hostId();
  hello.host = net::hostName();
  hello.process = getpid();
  ASSIGN_OR_RETURN(std::string address, link->address());
  if (address.size() > net::kMaxTextBytes)
    return Status::error("UCX's address of rank ", options.rank, " has ", address.size(),
                         " bytes, at most ", net::kMaxTextBytes, " are expected");
  hello.addresses = {std::move(address)};
  // Whoever names transports of UCX wants messages to go over them.
  if (options.transports.empty() && net::canShareArenas() && net::ProcessWatch::isSupported())
    hello.addresses.push_back(net::memoryId());
  const net::FrameBytes frame = net::encode(hello);
  const net::Block mac = net::Mac(options.secret.text(), kVersion).add(frame).value();
  ownIntroduction.assign(reinterpret_cast<const char *>(frame.data()), frame.size());
  ownIntroduction.append(reinterpret_cast<const char *>(mac.data()), mac.size());
  return {};
}

/// The hello of this rank's introduction.
static Result<net::Hello> parseIntroduction(const std::string &text, int64_t rank,
                                            const GroupOptions &options) {
  const std::string who = "the introduction of rank " + std::to_string(rank) + " of the group " +
                          inQuotes(options.name);
  const auto *data = reinterpret_cast<const std::byte *>(text.data());
  Result<net::Sealed> sealed = net::parseSealed(data, text.size());
  if (!sealed.ok())
    return sealed.status().within(who);
  const net::FrameBytes frame(data, data + sealed->bytes);
  if (!net::areEqual(net::Mac(options.secret.text(), kVersion).add(frame).value(), sealed->mac))
    return Status::error(who, " is not of a process with this job's secret");
  Result<net::Frame> parsed = net::parseFrame(frame.data(), frame.size());
  if (!parsed.ok())
    return parsed.status().within(who);
  const auto *hello = std::get_if<net::Hello>(&*parsed);
  if (!hello || hello->addresses.empty() || hello->addresses.size() > 2)
    return Status::error(who, " is another frame than expected");
  auto differs = [&](const std::string &what, const std::string &expected, const std::string &got) {
    return Status::error(who, " (", hello->host, "): ", what, " ", expected, " is expected, got ",
                         got);
  };
  if (hello->bundle != kVersion)
    return differs("version", inQuotes(kVersion), inQuotes(hello->bundle));
  if (hello->job != options.name)
    return differs("group", inQuotes(options.name), inQuotes(hello->job));
  if (hello->rank != rank)
    return differs("rank", std::to_string(rank), std::to_string(hello->rank));
  if (hello->size != options.size)
    return differs("a size of", std::to_string(options.size), std::to_string(hello->size));
  return *hello;
}

Status Group::connect(const std::vector<std::string> &introductions) {
  if (static_cast<int64_t>(introductions.size()) != options.size)
    return Status::error("a group of ", options.size, " ranks expects as many introductions, got ",
                         introductions.size());
  names.clear();
  net::Mac session(options.secret.text(), "braid group key");
  int64_t onHost = 0;
  std::vector<std::string> places; // of memory that can be shared; empty: none
  std::vector<int64_t> processes;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    ASSIGN_OR_RETURN(const net::Hello hello,
                     parseIntroduction(introductions[static_cast<size_t>(rank)], rank, options));
    session.add(hello.challenge);
    onHost += hello.hostId == net::hostId() ? 1 : 0;
    places.push_back(hello.addresses.size() > 1 ? hello.addresses[1] : "");
    processes.push_back(hello.process);
    // By its name in the job, which is what its logs say.
    std::string host = hello.host;
    const auto at = static_cast<size_t>(rank);
    if (at < options.jobRanks.size() && options.jobRanks[at] != rank)
      host += ", rank " + std::to_string(options.jobRanks[at]) + " of the job";
    names.push_back("rank " + std::to_string(rank) + " (" + host + ")");
    if (rank == options.rank) {
      if (hello.challenge != nonce)
        return Status::error("rank ", rank, " of the group ", inQuotes(options.name),
                             " exists twice: process ", hello.process, " of ", hello.host,
                             " has it, too");
      continue;
    }
    RETURN_IF_ERROR(link->connect(rank, hello.addresses[0], host));
  }
  const std::string key = net::keyOf(session.value());
  frames = std::make_unique<net::SealedFrames>(
      *link, key, "braid group",
      [this](int64_t sender, const net::Frame &frame) { onFrame(sender, frame); });
  engine = std::make_unique<GroupEngine>(*link);
  RETURN_IF_ERROR(
      shareMemory(places, processes, key).within("the group " + inQuotes(options.name)));
  // Also when there is nothing to do: one collective follows another, and wake-ups take time.
  const SpinLimit limit = spinFor(2 * onHost);
  link->setSpin(limit);
  spin = Spin(limit);
  thread = std::thread([this] { loop(); });
  return {};
}

Status Group::shareMemory(const std::vector<std::string> &places,
                          const std::vector<int64_t> &processes, const std::string &key) {
  std::vector<int64_t> hostRanks;
  bool anyShares = false;
  for (int64_t rank = 0; rank < options.size; ++rank) {
    const std::string &place = places[static_cast<size_t>(rank)];
    anyShares |= !place.empty() && std::count(places.begin(), places.end(), place) > 1;
    if (rank == options.rank ||
        (!place.empty() && place == places[static_cast<size_t>(options.rank)]))
      hostRanks.push_back(rank);
  }
  if (!anyShares)
    return {};
  const bool isMixed =
      places[0].empty() || std::count(places.begin(), places.end(), places[0]) != options.size;
  for (const int64_t rank : hostRanks)
    if (rank != options.rank)
      watch.add(rank, processes[static_cast<size_t>(rank)]);
  auto exchange = [&](size_t bytes, size_t needed) {
    net::ArenaOptions arenas;
    arenas.key = key + "/memory";
    arenas.rank = options.rank;
    arenas.ranks = hostRanks;
    arenas.timeLimitSeconds = options.timeLimitSeconds;
    arenas.neededBytes = needed;
    return net::exchangeArenas(arenas, bytes);
  };
  return engine->share(exchange, hostRanks, isMixed, options.timeLimitSeconds);
}

Group::~Group() {
  if (!thread.joinable())
    return;
  end("rank " + std::to_string(options.rank) + " has ended it");
  close(0);
}

std::string Group::describe(int64_t rank) const { return names[static_cast<size_t>(rank)]; }

Status Group::state() const {
  const std::lock_guard<std::mutex> lock(mutex);
  return failure.ok() ? endAsked : failure;
}

void Group::run(std::string signature, GroupCollective collective, int64_t limitNs, Done done) {
  Operation operation;
  operation.signature = std::move(signature);
  operation.limitNs = limitNs;
  operation.done = std::move(done);
  for (const GroupValue &value : collective.values)
    operation.bytes += value.elements * byteSize(value.dtype);
  operation.collective = std::move(collective);
  ask(std::move(operation));
}

void Group::exchange(std::string signature, std::vector<GroupMessage> itsMessages, int64_t limitNs,
                     Done done) {
  Operation operation;
  operation.signature = std::move(signature);
  operation.limitNs = limitNs;
  operation.done = std::move(done);
  operation.messages = std::move(itsMessages);
  ask(std::move(operation));
}

void Group::ask(Operation operation) {
  Status status;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    status = failure.ok() ? endAsked : failure;
    if (status.ok()) {
      asked.push_back(std::move(operation));
      link->signal();
      return;
    }
  }
  operation.done(status);
}

void Group::ask(std::unique_ptr<PointToPoint> message) {
  Status status;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    status = failure.ok() ? endAsked : failure;
    if (status.ok()) {
      askedMessages.push_back(std::move(message));
      link->signal();
      engine->ring();
      return;
    }
  }
  message->done(status, -1);
}

void Group::send(int64_t to, uint32_t tag, const void *data, int64_t bytes, int64_t limitNs,
                 Done done) {
  auto message = std::make_unique<PointToPoint>();
  message->isSend = true;
  message->peer = to;
  message->tag = tag;
  message->data = const_cast<void *>(data); // which a send only reads
  message->bytes = bytes;
  message->limitNs = limitNs;
  message->done = [done = std::move(done)](const Status &status, int64_t) { done(status); };
  ask(std::move(message));
}

void Group::receive(int64_t from, uint32_t tag, void *data, int64_t bytes, int64_t limitNs,
                    Received done) {
  auto message = std::make_unique<PointToPoint>();
  message->peer = from;
  message->tag = tag;
  message->data = data;
  message->bytes = bytes;
  message->limitNs = limitNs;
  message->done = std::move(done);
  ask(std::move(message));
}

void Group::close(int64_t limitNs) {
  if (!thread.joinable())
    return;
  closeNs.store(nowNs() + limitNs);
  isClosing.store(true);
  {
    // A link that has failed is gone.
    const std::lock_guard<std::mutex> lock(mutex);
    if (failure.ok())
      link->signal();
  }
  thread.join();
}

void Group::end(const std::string &why) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (!failure.ok() || !endAsked.ok())
    return;
  endAsked =
      Status::error("the group ", inQuotes(options.name), " has ended: ", why, Code::rankFailed);
  link->signal();
}

} // namespace braid::runtime
