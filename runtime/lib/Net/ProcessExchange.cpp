//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcessExchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace braid::runtime::net {

namespace {

constexpr int64_t kCancelNs = 200000000, kSliceNs = 100000000;
constexpr uint64_t kLeave = uint64_t(1) << 63;
constexpr double kLeaveSeconds = 10;
/// How many processes are served at a time, where each needs memory.
constexpr int64_t kAtOnce = 8;

/// What a process says before a piece of collect, or instead of one.
struct PieceHeader {
  enum : uint64_t { piece, end, failure };
  uint64_t kind = end;
  uint64_t bytes = 0; ///< of the piece, or of the failure's text
};
/// What rank 0 asks for.
enum class Ask : uint64_t { next, stop };

} // namespace

struct ProcessExchange::Message {
  Transfer transfer;
  int64_t peer = 0;
  bool isSend = false;
};

/// Messages under way, with the peers. Whoever posts them completes them, so that afterwards none
/// uses its memory.
class ProcessExchange::Messages {
public:
  explicit Messages(ProcessExchange &own) : own(own) {}

  const Transfer &send(int64_t to, uint64_t tag, const void *data, size_t bytes) {
    Transfer &transfer = add(to, true);
    own.link->send(transfer, to, tag, data, bytes);
    return transfer;
  }
  const Transfer &receive(int64_t from, uint64_t tag, void *data, size_t bytes) {
    Transfer &transfer = add(from, false);
    own.link->receive(transfer, from, tag, data, bytes);
    return transfer;
  }

  /// Waits until all are done, for so many seconds; 0: without a limit. Whenever something may have
  /// happened, it calls `step`, which may post more.
  Status complete(double limit, const std::function<void()> &step = {}) {
    Link &link = *own.link;
    const int64_t until = limit > 0 ? nowNs() + static_cast<int64_t>(limit * 1e9) : INT64_MAX;
    Status failure;
    atSchedulePoint("before an exchange");
    while (failure.ok()) {
      if (step)
        step();
      const auto late = std::find_if(messages.begin(), messages.end(), isUnderWay);
      if (late == messages.end())
        break;
      if (nowNs() >= until)
        failure = Status::error(
            "processes have not exchanged what they have within ",
            runtime::seconds(static_cast<int64_t>(limit * 1e9)), ": ", link.describe((*late)->peer),
            (*late)->isSend ? " has not taken this rank's part" : " has not given its part",
            own.control.silence(), Code::rankFailed);
      if (failure.ok())
        failure = link.progress(std::min(until, nowNs() + kSliceNs));
      if (failure.ok())
        failure = own.control.state();
    }
    for (auto &one : messages) {
      if (!isUnderWay(one))
        continue;
      link.cancel(one->transfer);
      for (const int64_t end = nowNs() + kCancelNs; isUnderWay(one) && nowNs() < end;)
        if (!link.progress(end).ok())
          break;
      if (isUnderWay(one))
        (void)link.close(nowNs() + kCancelNs);
    }
    for (const auto &one : messages)
      if (failure.ok() && !one->transfer.status().ok())
        failure = own.control.describeLoss(one->peer, one->transfer.status());
    own.broken = own.broken || !failure.ok();
    messages.clear();
    atSchedulePoint("after an exchange");
    return failure;
  }
  Status complete() { return complete(own.limitSeconds); }

private:
  static bool isUnderWay(const std::unique_ptr<Message> &one) { return !one->transfer.done(); }
  Transfer &add(int64_t peer, bool isSend) {
    messages.push_back(std::make_unique<Message>());
    messages.back()->peer = peer;
    messages.back()->isSend = isSend;
    return messages.back()->transfer;
  }
  ProcessExchange &own;
  std::vector<std::unique_ptr<Message>> messages;
};

ProcessExchange::ProcessExchange(std::unique_ptr<Link> link, const Control &control,
                                 double limitSeconds)
    : link(std::move(link)), control(control), limitSeconds(limitSeconds) {}
ProcessExchange::~ProcessExchange() = default;

Result<std::vector<Contribution>> ProcessExchange::gather(std::vector<std::byte> mine,
                                                          const std::vector<size_t> &bytes) {
  const uint64_t tag = nextTag();
  std::vector<Contribution> all;
  Messages messages(*this);
  if (!isFirst()) {
    messages.send(0, tag, mine.data(), mine.size());
  } else {
    all.push_back({{0, 1}, std::move(mine)});
    for (int64_t rank = 1; rank < size(); ++rank)
      all.push_back({{rank, 1}, std::vector<std::byte>(bytes[static_cast<size_t>(rank)])});
    for (int64_t rank = 1; rank < size(); ++rank) {
      std::vector<std::byte> &its = all[static_cast<size_t>(rank)].bytes;
      messages.receive(rank, tag, its.data(), its.size());
    }
  }
  RETURN_IF_ERROR(messages.complete());
  return all;
}

Result<std::vector<std::byte>> ProcessExchange::scatter(const Communicator::MakePart &make,
                                                        const std::vector<size_t> &bytes) {
  const uint64_t tag = nextTag();
  Messages messages(*this);
  if (!isFirst()) {
    PieceHeader header;
    messages.receive(0, tag, &header, sizeof header);
    RETURN_IF_ERROR(messages.complete());
    const bool failed = header.kind != PieceHeader::piece;
    const size_t expected = bytes[static_cast<size_t>(link->rank())];
    if (failed ? header.bytes > kMaxTextBytes : header.bytes != expected)
      return Status::error(link->describe(0), " gives ", header.bytes, " bytes where rank ",
                           link->rank(), " expects ", expected, Code::rankFailed);
    std::vector<std::byte> mine(header.bytes);
    messages.receive(0, tag + 1, mine.data(), mine.size());
    RETURN_IF_ERROR(messages.complete());
    if (failed)
      return Status::error(std::string(reinterpret_cast<const char *>(mine.data()), mine.size()));
    return mine;
  }
  Result<std::vector<std::byte>> mine = make({0, 1});
  Status failure = mine.status();
  for (int64_t first = 1; first < size(); first += kAtOnce) {
    std::vector<PieceHeader> headers(kAtOnce);
    std::vector<std::vector<std::byte>> parts(kAtOnce);
    for (int64_t rank = first; rank < std::min(size(), first + kAtOnce); ++rank) {
      const auto slot = static_cast<size_t>(rank - first);
      if (failure.ok()) {
        Result<std::vector<std::byte>> made = make({rank, 1});
        failure = made.status();
        if (made.ok())
          parts[slot] = std::move(*made);
      }
      if (!failure.ok()) {
        const std::string text = failure.message().substr(0, kMaxTextBytes);
        const auto *begin = reinterpret_cast<const std::byte *>(text.data());
        parts[slot].assign(begin, begin + text.size());
      }
      headers[slot] = {failure.ok() ? PieceHeader::piece : PieceHeader::failure,
                       parts[slot].size()};
      messages.send(rank, tag, &headers[slot], sizeof(PieceHeader));
      messages.send(rank, tag + 1, parts[slot].data(), parts[slot].size());
    }
    RETURN_IF_ERROR(messages.complete());
  }
  RETURN_IF_ERROR(failure);
  return mine;
}

Status ProcessExchange::broadcast(void *data, size_t bytes) {
  const uint64_t tag = nextTag();
  if (bytes > Communicator::kMaxBroadcastBytes)
    return Status::error("a broadcast expects at most ", Communicator::kMaxBroadcastBytes,
                         " bytes, got ", bytes);
  Messages messages(*this);
  if (!isFirst())
    messages.receive(0, tag, data, bytes);
  else
    for (int64_t rank = 1; rank < size(); ++rank)
      messages.send(rank, tag, data, bytes);
  return messages.complete();
}

//===----------------------------------------------------------------------===//
// Pieces for rank 0
//===----------------------------------------------------------------------===//

/// Of some ranks, one piece of each that has more.
Status ProcessExchange::takePieces(uint64_t tag, int64_t first, int64_t last,
                                   std::vector<bool> &ended, const Communicator::TakePiece &take,
                                   Status &failure) {
  Messages messages(*this);
  std::vector<int64_t> asked;
  for (int64_t rank = first; rank < last; ++rank)
    if (!ended[static_cast<size_t>(rank)])
      asked.push_back(rank);
  std::vector<PieceHeader> headers(asked.size());
  const Ask ask = failure.ok() ? Ask::next : Ask::stop;
  for (size_t i = 0; i < asked.size(); ++i) {
    messages.send(asked[i], tag, &ask, sizeof ask);
    if (ask == Ask::next)
      messages.receive(asked[i], tag + 1, &headers[i], sizeof(PieceHeader));
  }
  RETURN_IF_ERROR(messages.complete());
  std::vector<std::string> pieces(asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    if (headers[i].bytes > Communicator::kMaxPieceBytes || headers[i].kind > PieceHeader::failure) {
      broken = true;
      return Status::error(link->describe(asked[i]), " announces a piece of ", headers[i].bytes,
                           " bytes, at most ", Communicator::kMaxPieceBytes, " are expected",
                           Code::rankFailed);
    }
    pieces[i].resize(headers[i].bytes);
    if (headers[i].bytes > 0)
      messages.receive(asked[i], tag + 2, pieces[i].data(), pieces[i].size());
  }
  RETURN_IF_ERROR(messages.complete());
  for (size_t i = 0; i < asked.size(); ++i) {
    ended[static_cast<size_t>(asked[i])] = headers[i].kind != PieceHeader::piece;
    if (failure.ok() && headers[i].kind == PieceHeader::failure)
      failure = Status::error(link->describe(asked[i]), ": ", pieces[i]);
    else if (failure.ok() && headers[i].kind == PieceHeader::piece)
      failure = take({asked[i], 1}, pieces[i]);
  }
  return {};
}

Status ProcessExchange::givePieces(uint64_t tag, const Communicator::NextPiece &next) {
  Messages messages(*this);
  for (;;) {
    Ask ask = Ask::stop;
    messages.receive(0, tag, &ask, sizeof ask);
    RETURN_IF_ERROR(messages.complete());
    if (ask != Ask::next)
      return {};
    Result<std::string> made = next();
    if (made.ok() && made->size() > Communicator::kMaxPieceBytes)
      made = Status::error("a piece of ", made->size(), " bytes, at most ",
                           Communicator::kMaxPieceBytes, " are expected");
    const std::string piece = made.ok() ? *made : made.status().message().substr(0, kMaxTextBytes);
    const PieceHeader header{!made.ok()      ? PieceHeader::failure
                             : piece.empty() ? PieceHeader::end
                                             : PieceHeader::piece,
                             piece.size()};
    messages.send(0, tag + 1, &header, sizeof header);
    if (!piece.empty())
      messages.send(0, tag + 2, piece.data(), piece.size());
    RETURN_IF_ERROR(messages.complete());
    if (header.kind != PieceHeader::piece)
      return made.status();
  }
}

Status ProcessExchange::collect(const Communicator::NextPiece &next,
                                const Communicator::TakePiece &take) {
  const uint64_t tag = nextTag();
  if (!isFirst())
    return givePieces(tag, next);
  Status failure;
  std::vector<bool> ended(static_cast<size_t>(size()), false);
  while (std::find(ended.begin(), ended.end(), false) != ended.end()) {
    if (!ended[0]) {
      Result<std::string> mine = failure.ok() ? next() : Result<std::string>(failure);
      ended[0] = !mine.ok() || mine->empty();
      if (failure.ok())
        failure = mine.ok() && !mine->empty() ? take({0, 1}, *mine) : mine.status();
    }
    for (int64_t first = 1; first < size(); first += kAtOnce) {
      const bool stops = !failure.ok();
      RETURN_IF_ERROR(
          takePieces(tag, first, std::min(size(), first + kAtOnce), ended, take, failure));
      if (stops)
        std::fill(ended.begin() + first, ended.begin() + std::min(size(), first + kAtOnce), true);
    }
  }
  return failure;
}

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

namespace {

/// The shortest of several tells most.
constexpr int kRoundTrips = 8;
/// Sleeps make round trips longer than the network does.
constexpr SpinLimit kSpin = {30000, false};

struct ClockAnswer {
  int64_t cameNs = 0, wentNs = 0; ///< of rank 0's clock
};

} // namespace

/// Rank 0 answers whatever comes, so that processes connect and ask at the same time.
Status ProcessExchange::serveClock(uint64_t tag) {
  struct Peer {
    const Transfer *ask = nullptr;
    uint64_t number = 0;
    int answered = 0;
    std::array<ClockAnswer, kRoundTrips> answers;
  };
  std::vector<Peer> peers(static_cast<size_t>(size()));
  Messages messages(*this);
  auto receive = [&](int64_t rank) {
    Peer &peer = peers[static_cast<size_t>(rank)];
    peer.ask = &messages.receive(rank, tag, &peer.number, sizeof peer.number);
  };
  for (int64_t rank = 1; rank < size(); ++rank)
    receive(rank);
  return messages.complete(limitSeconds, [&] {
    for (int64_t rank = 1; rank < size(); ++rank) {
      Peer &peer = peers[static_cast<size_t>(rank)];
      if (!peer.ask || !peer.ask->done())
        continue;
      const bool isLost = !std::exchange(peer.ask, nullptr)->status().ok();
      if (isLost)
        continue;
      ClockAnswer &answer = peer.answers[static_cast<size_t>(peer.answered)];
      answer.cameNs = answer.wentNs = nowNs();
      messages.send(rank, tag + 1, &answer, sizeof answer);
      if (++peer.answered < kRoundTrips)
        receive(rank);
    }
  });
}

Result<ClockMap::Reading> ProcessExchange::readClock(uint64_t tag) {
  Messages messages(*this);
  ClockMap::Reading best;
  for (uint64_t i = 0; i < kRoundTrips; ++i) {
    ClockAnswer answer;
    messages.receive(0, tag + 1, &answer, sizeof answer);
    const int64_t went = nowNs();
    messages.send(0, tag, &i, sizeof i);
    RETURN_IF_ERROR(messages.complete());
    const ClockMap::Reading reading = readingOf(went, answer.cameNs, answer.wentNs, nowNs());
    if (i == 0 || reading.errorNs < best.errorNs)
      best = reading;
  }
  return best;
}

ClockMap::Reading readingOf(int64_t wentNs, int64_t cameThereNs, int64_t wentThereNs,
                            int64_t backNs) {
  // The message was there for the time from `cameThereNs` to `wentThereNs`, and on its way for the
  // rest; how the rest divides into there and back is not known.
  const int64_t onItsWay = (backNs - wentNs) - (wentThereNs - cameThereNs);
  return {backNs, ((cameThereNs - wentNs) + (wentThereNs - backNs)) / 2, (onItsWay + 1) / 2};
}

Result<ClockMap> ProcessExchange::measureClock() {
  const uint64_t tag = nextTag();
  link->setSpin(kSpin);
  if (isFirst()) {
    Status status = serveClock(tag);
    link->setSpin({});
    RETURN_IF_ERROR(status);
    return clock;
  }
  Result<ClockMap::Reading> reading = readClock(tag);
  link->setSpin({});
  RETURN_IF_ERROR(reading.status());
  clock.last = *reading;
  if (clock.first.atNs == 0)
    clock.first = clock.last;
  return clock;
}

void ProcessExchange::leave() {
  if (broken || !control.state().ok())
    return;
  std::vector<std::byte> nothing(1), from(static_cast<size_t>(size()));
  Messages messages(*this);
  for (int64_t rank = 1; rank < size(); ++rank)
    if (isFirst())
      messages.receive(rank, kLeave, &from[static_cast<size_t>(rank)], 1);
    else if (rank == link->rank())
      messages.send(0, kLeave, nothing.data(), 1);
  if (!messages.complete(kLeaveSeconds).ok())
    return;
  for (int64_t rank = 1; rank < size(); ++rank)
    if (isFirst())
      messages.send(rank, kLeave, nothing.data(), 1);
    else if (rank == link->rank())
      messages.receive(0, kLeave, nothing.data(), 1);
  (void)messages.complete(kLeaveSeconds);
}

} // namespace braid::runtime::net

namespace braid::runtime {

int64_t ClockMap::offsetAt(int64_t ns) const {
  const int64_t between = last.atNs - first.atNs;
  if (between <= 0)
    return last.offsetNs;
  const double share = static_cast<double>(ns - first.atNs) / static_cast<double>(between);
  return first.offsetNs + std::llround(share * static_cast<double>(last.offsetNs - first.offsetNs));
}

} // namespace braid::runtime
