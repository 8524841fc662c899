//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The messages and copies that measure links.
//
//===----------------------------------------------------------------------===//
#include "LinkOrders.h"

#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Lateness.h"
#include "runtime/lib/Sync/Cores.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <optional>
#include <thread>

namespace braid::runtime {

using net::Transfer;

namespace {

/// As long as those of the transport.
constexpr size_t kChunk = size_t(256) << 10;

enum Tag : uint64_t { orderTag, readyTag, doneTag, chunkTag };

void spinUntil(int64_t time) {
  while (nowNs() < time) {
  }
}

double processorTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool takesPart(const LinkOrder &order, int64_t rank) {
  return order.what == LinkOrder::toAll || rank < 2;
}

bool isBothWays(const LinkOrder &order) {
  return order.what == LinkOrder::bothWays || order.what == LinkOrder::bothWaysBeside;
}

/// Copies memory in a thread of its own, as what memory bounds does, until it is told to stop.
class Copier {
public:
  explicit Copier(std::byte *pool) : thread([this, pool] { copy(pool); }) {}
  ~Copier() { (void)stop(); }
  /// The seconds of a copy.
  double stop() {
    stopping.store(true, std::memory_order_relaxed);
    if (thread.joinable())
      thread.join();
    return seconds;
  }

  /// Of many, which no cache has.
  static constexpr size_t kPieceBytes = size_t(1) << 20, kPieces = 64;

private:
  void copy(std::byte *pool) {
    const int64_t begin = nowNs();
    int64_t count = 0;
    do {
      const size_t from = static_cast<size_t>(count) % kPieces, to = (from + 1) % kPieces;
      std::memcpy(pool + to * kPieceBytes, pool + from * kPieceBytes, kPieceBytes);
      ++count;
    } while (!stopping.load(std::memory_order_relaxed));
    seconds = static_cast<double>(nowNs() - begin) * 1e-9 / static_cast<double>(count);
  }

  std::atomic<bool> stopping{false};
  double seconds = 0;
  std::thread thread; // last: it uses the others
};

} // namespace

void LinkOrders::post(Message &message, bool sends, int64_t peer, size_t bytes) {
  std::byte *memory = (sends ? sent : received).data();
  message.bytes = static_cast<int64_t>(bytes);
  for (size_t at = 0; at < bytes; at += kChunk) {
    message.chunks.push_back(std::make_unique<Transfer>());
    const size_t size = std::min(kChunk, bytes - at);
    if (sends)
      link.send(*message.chunks.back(), peer, chunkTag, memory + at, size);
    else
      link.receive(*message.chunks.back(), peer, chunkTag, memory + at, size);
  }
}

Status LinkOrders::wait(const Message &message) {
  const int64_t until = nowNs() + limitNs;
  net::Lateness lateness; // as collectives have it
  for (const std::unique_ptr<Transfer> &chunk : message.chunks) {
    while (!chunk->done()) {
      RETURN_IF_ERROR(link.progress(until, lateness.latenessNs(message.bytes)));
      if (!chunk->done() && nowNs() >= until)
        return Status::error("a message between hosts has not come within the limit");
    }
    RETURN_IF_ERROR(chunk->status());
    lateness.note(std::min<int64_t>(kChunk, message.bytes));
  }
  return {};
}

template <typename T> Status LinkOrders::giveValue(int64_t peer, uint64_t tag, T value) {
  Transfer transfer;
  link.send(transfer, peer, tag, &value, sizeof value);
  return finish(transfer);
}

template <typename T> Result<T> LinkOrders::takeValue(int64_t peer, uint64_t tag) {
  T value{};
  Transfer transfer;
  link.receive(transfer, peer, tag, &value, sizeof value);
  RETURN_IF_ERROR(finish(transfer));
  return value;
}

Status LinkOrders::finish(Transfer &transfer) {
  const int64_t until = nowNs() + limitNs;
  while (!transfer.done() && nowNs() < until)
    RETURN_IF_ERROR(link.progress(until));
  if (!transfer.done()) {
    link.cancel(transfer);
    RETURN_IF_ERROR(link.close(nowNs() + 1000000000));
    return Status::error("a rank has not answered within the limit");
  }
  return transfer.status();
}

Result<double> LinkOrders::longest(double own, int64_t count) {
  if (link.rank() > 0 && link.rank() < count)
    RETURN_IF_ERROR(giveValue<double>(0, doneTag, own));
  for (int64_t r = 1; link.rank() == 0 && r < count; ++r) {
    ASSIGN_OR_RETURN(const double theirs, takeValue<double>(r, doneTag));
    own = std::max(own, theirs);
  }
  return own;
}

std::byte *LinkOrders::memoryToCopy() {
  if (copied.empty())
    copied.assign(Copier::kPieceBytes * Copier::kPieces, std::byte(1));
  return copied.data();
}

Result<double> LinkOrders::exchange(const LinkOrder &order) {
  if (link.rank() > 1)
    return 0;
  spinUntil(nowNs() + static_cast<int64_t>(order.nanoseconds));
  RETURN_IF_ERROR(swap(order.bytes)); // both begin together
  const int64_t begin = nowNs();
  for (uint64_t i = 0; i < order.count; ++i)
    RETURN_IF_ERROR(swap(order.bytes));
  return static_cast<double>(nowNs() - begin) * 1e-9 / static_cast<double>(order.count);
}

Status LinkOrders::swap(size_t bytes) {
  const int64_t peer = 1 - link.rank();
  Message in, out;
  post(in, false, peer, bytes);
  post(out, true, peer, bytes);
  RETURN_IF_ERROR(wait(in));
  return wait(out);
}

Result<double> LinkOrders::rounds(const LinkOrder &order) {
  if (link.rank() > 1)
    return 0;
  std::byte *const memory = memoryToCopy();
  constexpr size_t kHalf = Copier::kPieceBytes * Copier::kPieces / 2;
  std::array<int64_t, LinkOrder::kRounds> took{}, theirs{};
  size_t at = 0;
  RETURN_IF_ERROR(swap(order.bytes)); // both begin together
  for (int64_t &of : took) {
    const int64_t idleUntil = nowNs() + static_cast<int64_t>(order.nanoseconds);
    for (size_t left = order.copied; left > 0;) {
      const size_t bytes = std::min(left, kHalf - at);
      std::memcpy(memory + kHalf + at, memory + at, bytes);
      at = (at + bytes) % kHalf;
      left -= bytes;
    }
    spinUntil(idleUntil);
    const int64_t begin = nowNs();
    RETURN_IF_ERROR(swap(order.bytes));
    of = nowNs() - begin;
  }
  if (link.rank() == 1) {
    RETURN_IF_ERROR(giveValue(0, doneTag, took));
    return 0;
  }
  ASSIGN_OR_RETURN(theirs, takeValue<decltype(took)>(1, doneTag));
  // The one that comes later waits for none.
  std::vector<double> seconds;
  for (size_t i = 0; i < took.size(); ++i)
    seconds.push_back(static_cast<double>(std::min(took[i], theirs[i])) * 1e-9);
  return median(seconds);
}

Result<double> LinkOrders::perform(const LinkOrder &order) {
  const int64_t self = link.rank(), ranks = link.ranks();
  const bool leads = self == 0;
  const bool isBeside = order.what == LinkOrder::bothWaysBeside;
  link.setSpin(order.sleeps ? SpinLimit{} : isBeside ? spinOnOwnCores(2) : spinFor(1));
  if (order.what == LinkOrder::exchanges)
    return exchange(order);
  if (order.what == LinkOrder::copies)
    return copy(order);
  if (order.what == LinkOrder::rounds)
    return rounds(order);
  Message in, out;
  const bool receives = isBothWays(order)                   ? self < 2
                        : order.what == LinkOrder::pingPong ? self < 2
                                                            : !leads && takesPart(order, self);
  const int64_t peer = self == 1 || !leads ? 0 : 1;
  if (receives)
    post(in, false, peer, order.bytes);
  if (!leads) {
    RETURN_IF_ERROR(giveValue<uint8_t>(0, readyTag, 1));
  } else {
    for (int64_t r = 1; r < ranks; ++r)
      RETURN_IF_ERROR(takeValue<uint8_t>(r, readyTag).status());
  }
  std::optional<Copier> copier;
  if (isBeside && self < 2)
    copier.emplace(memoryToCopy());
  const double processor = processorTime();
  const int64_t begin = nowNs();
  if (leads && order.what == LinkOrder::toAll) {
    for (int64_t r = 1; r < ranks; ++r)
      post(out, true, r, order.bytes);
  } else if (leads || (self == 1 && isBothWays(order))) {
    post(out, true, peer, order.bytes);
  }
  RETURN_IF_ERROR(wait(in));
  if (self == 1 && order.what == LinkOrder::pingPong)
    post(out, true, 0, order.bytes);
  double took = static_cast<double>(nowNs() - begin) * 1e-9;
  if (order.what != LinkOrder::pingPong) {
    RETURN_IF_ERROR(wait(out));
    const int64_t count = order.what == LinkOrder::toAll ? ranks : 2;
    ASSIGN_OR_RETURN(processorOfMoves, longest(processorTime() - processor, count));
    took = static_cast<double>(nowNs() - begin) * 1e-9;
    if (isBeside) {
      ASSIGN_OR_RETURN(secondsOfCopies, longest(copier ? copier->stop() : 0, count));
    }
  }
  RETURN_IF_ERROR(wait(out));
  return took;
}

Result<double> LinkOrders::copy(const LinkOrder &order) {
  if (link.rank() > 1)
    return 0;
  std::byte *const memory = memoryToCopy(); // not while the other one copies
  if (link.rank() == 0)
    RETURN_IF_ERROR(takeValue<uint8_t>(1, readyTag).status());
  else
    RETURN_IF_ERROR(giveValue<uint8_t>(0, readyTag, 1));
  Copier copier(memory);
  std::this_thread::sleep_for(std::chrono::nanoseconds(order.nanoseconds));
  ASSIGN_OR_RETURN(secondsOfCopies, longest(copier.stop(), 2));
  return secondsOfCopies;
}

Result<double> LinkOrders::give(LinkOrder order) {
  for (int64_t r = 1; r < link.ranks(); ++r)
    RETURN_IF_ERROR(giveValue(r, orderTag, order));
  return perform(order);
}

Status LinkOrders::end() {
  for (int64_t r = 1; r < link.ranks(); ++r)
    RETURN_IF_ERROR(giveValue(r, orderTag, LinkOrder{}));
  return {};
}

Status LinkOrders::follow() {
  while (true) {
    ASSIGN_OR_RETURN(const LinkOrder order, takeValue<LinkOrder>(0, orderTag));
    if (order.what == LinkOrder::end)
      return {};
    if (order.bytes > LinkOrder::kMostBytes)
      return Status::error("rank 0 asks for a message of ", order.bytes, " bytes, more than ",
                           LinkOrder::kMostBytes);
    if (order.copied > LinkOrder::kMostBytes)
      return Status::error("rank 0 asks for copies of ", order.copied, " bytes, more than ",
                           LinkOrder::kMostBytes);
    constexpr uint64_t kLongest = 1000000000;
    if (order.nanoseconds > kLongest)
      return Status::error("rank 0 asks for a pause or copies of ", order.nanoseconds,
                           " ns, more than ", kLongest);
    if (order.what == LinkOrder::exchanges &&
        (order.count < 1 || order.count > LinkOrder::kMostExchanges))
      return Status::error("rank 0 asks for ", order.count, " exchanges, expects 1 to ",
                           LinkOrder::kMostExchanges);
    RETURN_IF_ERROR(perform(order).status());
  }
}

} // namespace braid::runtime
