//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The side of the other ranks at a start.
//
//===----------------------------------------------------------------------===//
#include "Channel.h"
#include "Port.h"
#include "Starters.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>

namespace braid::runtime::net {

namespace {

constexpr int64_t kRetryNs = 50000000;
/// How long an address has to answer before the next one of the name is tried: packets to one that
/// cannot be reached may be lost without a word.
constexpr int64_t kAnswerNs = 5000000000;

class Client {
public:
  Client(const JobOptions &options, Hello own)
      : options(options), rendezvous(options.rendezvous), own(std::move(own)),
        end(nowNs() + static_cast<int64_t>(options.timeLimitSeconds * 1e9)) {}

  Result<Job> run() {
    Status status = join();
    port.close(nowNs() + 1000000000);
    RETURN_IF_ERROR(status);
    job.rank = options.rank;
    return job;
  }

private:
  /// Rank 0 and the place where it is expected.
  std::string rankZero() const { return "rank 0 at " + rendezvous.text(); }
  std::string self() const { return "rank " + std::to_string(options.rank); }

  Status join() {
    Status reason;
    for (size_t attempt = 0;; ++attempt) {
      Channel channel(options.secret, false);
      bool isMember = false;
      Result<SocketAddress> address = find(attempt);
      Status status = address.ok() ? talk(*address, channel, isMember) : address.status();
      if (status.ok() || isFinal)
        return status;
      // That the time is over says less than what ended an attempt before.
      if (reason.ok() || nowNs() < end)
        reason = status;
      if (nowNs() >= end)
        return Status::error(self(), " cannot reach ", rankZero(), " within ",
                             seconds(static_cast<int64_t>(options.timeLimitSeconds * 1e9)), ": ",
                             reason.message(), Code::rankFailed);
      RETURN_IF_ERROR(pause());
    }
  }

  /// An error that another attempt would not change.
  Status fail(const Status &status) {
    isFinal = true;
    return Status::error(status.message(), Code::rankFailed);
  }

  Status pause() {
    for (const int64_t until = std::min(end, nowNs() + kRetryNs); nowNs() < until;)
      RETURN_IF_ERROR(port.wait(until));
    return {};
  }

  Result<SocketAddress> find(size_t attempt) {
    if (!rendezvous.file.empty())
      return readAddress(rendezvous.file, options.job);
    Result<std::vector<SocketAddress>> addresses = resolve(rendezvous.host, rendezvous.port);
    if (!addresses.ok())
      return fail(addresses.status().within(self() + " cannot reach " + rankZero()));
    return (*addresses)[attempt % addresses->size()];
  }

  Status talk(const SocketAddress &address, Channel &channel, bool &isMember) {
    Port::Endpoint endpoint = 0;
    RETURN_IF_ERROR(port.connect(address, endpoint));
    ASSIGN_OR_RETURN(channel.clientNonce, randomBlock());
    port.send(endpoint, encode(Introduction{options.version, channel.clientNonce}));
    Status status = converse(endpoint, channel, isMember);
    if (!status.ok() && !isMember)
      port.end(endpoint);
    return status;
  }

  Status converse(Port::Endpoint endpoint, Channel &channel, bool &isMember) {
    bool isChallenged = false;
    for (const int64_t begin = nowNs();;) {
      // Rank 0 tells who is missing when its own time is over, which may be a little later.
      const int64_t until = isMember ? end + 1000000000 : std::min(end, begin + kAnswerNs);
      RETURN_IF_ERROR(port.wait(until));
      for (const Port::Arrival &arrival : port.takeArrivals()) {
        if (arrival.from != endpoint)
          continue;
        if (!isChallenged) {
          RETURN_IF_ERROR(answer(endpoint, channel, arrival.bytes));
          isChallenged = isMember = true;
          continue;
        }
        bool isOver = false;
        RETURN_IF_ERROR(handle(endpoint, channel, arrival.bytes, isOver));
        if (isOver)
          return {};
      }
      for (const Port::Loss &loss : port.takeLosses())
        if (loss.endpoint == endpoint) {
          const Status lost = Status::error(loss.why);
          return isMember ? fail(lost.within(rankZero() + " is gone before the job has started"))
                          : lost;
        }
      if (nowNs() >= until)
        return isMember ? fail(Status::error(rankZero(), " has not started the job within ",
                                             seconds(until - end + limitNs())))
                        : Status::error("it does not answer");
    }
  }

  int64_t limitNs() const { return static_cast<int64_t>(options.timeLimitSeconds * 1e9); }

  /// Says hello.
  Status answer(Port::Endpoint endpoint, Channel &channel, const FrameBytes &bytes) {
    Result<Frame> plain = parseFrame(bytes.data(), bytes.size());
    if (plain.ok())
      if (const auto *refusal = std::get_if<Refusal>(&*plain))
        return fail(Status::error(self(), " is refused by ", rankZero(), ": ", refusal->text));
    Result<Sealed> sealed = parseSealed(bytes.data(), bytes.size());
    Result<Frame> frame =
        sealed.ok() ? parseFrame(bytes.data(), sealed->bytes) : Result<Frame>(sealed.status());
    const auto *challenge = frame.ok() ? std::get_if<Challenge>(&*frame) : nullptr;
    if (!challenge)
      return fail(Status::error(rankZero(), " sent bytes that are no challenge"));
    channel.serverNonce = challenge->nonce;
    if (!channel.isGenuine(bytes.data(), *sealed)) {
      port.send(endpoint, encode(Refusal{"another secret"}));
      awaitAnswer(endpoint);
      return fail(Status::error(self(), " and ", rankZero(), " have different job secrets"));
    }
    channel.accept();
    own.challenge = challenge->nonce;
    atSchedulePoint("before its hello");
    port.send(endpoint, channel.seal(own));
    return {};
  }

  /// Returns when rank 0 has answered, or has ended the connection. Whoever leaves before may end
  /// the connection before what it said last is read.
  void awaitAnswer(Port::Endpoint endpoint) {
    for (const int64_t until = nowNs() + kGoodbyeNs; nowNs() < until && port.wait(until).ok();) {
      for (const Port::Arrival &arrival : port.takeArrivals())
        if (arrival.from == endpoint)
          return;
      for (const Port::Loss &loss : port.takeLosses())
        if (loss.endpoint == endpoint)
          return;
    }
  }

  Status handle(Port::Endpoint endpoint, Channel &channel, const FrameBytes &bytes, bool &isOver) {
    Result<Sealed> sealed = parseSealed(bytes.data(), bytes.size());
    if (!sealed.ok() || !channel.isGenuine(bytes.data(), *sealed))
      return fail(Status::error(rankZero(), " sent a frame without a right HMAC"));
    channel.accept();
    Result<Frame> frame = parseFrame(bytes.data(), sealed->bytes);
    if (!frame.ok())
      return fail(frame.status().within(rankZero() + " sent"));
    if (const auto *refusal = std::get_if<Refusal>(&*frame))
      return fail(Status::error(refusal->text));
    if (const auto *table = std::get_if<Table>(&*frame)) {
      if (table->size != options.size || job.members.size() != static_cast<size_t>(table->first) ||
          job.members.size() + table->members.size() > static_cast<size_t>(options.size))
        return fail(Status::error(rankZero(), " sent a table of other ranks"));
      job.members.insert(job.members.end(), table->members.begin(), table->members.end());
      if (job.members.size() < static_cast<size_t>(options.size))
        return {};
      job.key = sessionKey(options.secret, table->session);
      atSchedulePoint("has the table");
      port.send(endpoint, channel.seal(Ready()));
      return {};
    }
    if (!std::holds_alternative<Go>(*frame) || job.key.empty())
      return fail(Status::error(rankZero(), " sent a frame out of turn"));
    isOver = true;
    return {};
  }

  const JobOptions &options;
  const Rendezvous &rendezvous;
  Hello own;
  int64_t end;
  Port port;
  bool isFinal = false;
  Job job;
};

} // namespace

Result<Job> joinStart(const JobOptions &options, Hello own) {
  return Client(options, std::move(own)).run();
}

} // namespace braid::runtime::net
