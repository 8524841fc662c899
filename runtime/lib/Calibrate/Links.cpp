//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the links between hosts by the processes of a job, one on each host. Rank 0 says what is
// next, and has the clock.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Calibrate.h"

#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Lateness.h"
#include "runtime/lib/Net/Link.h"
#include "runtime/lib/Net/Networks.h"
#include "runtime/lib/Sync/Cores.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <thread>

namespace braid::runtime {

using net::Link;
using net::Transfer;

namespace {

/// As long as those of the transport.
constexpr size_t kChunk = size_t(256) << 10;
constexpr size_t kLargest = size_t(64) << 20;
/// Of messages by size, those up to kShort take less than the system needs to move a process.
constexpr size_t kShortest = size_t(1) << 10, kShort = size_t(64) << 10;
constexpr int kExchanges = 200, kRounds = 20;
constexpr size_t kExchanged = 8; ///< bytes, which no link holds up
/// Bytes that a rank uses between exchanges: what the caches of a core have, what they have not,
/// and what no cache has.
constexpr int64_t kBetween[] = {int64_t(1) << 19, int64_t(1) << 21, int64_t(1) << 23,
                                int64_t(1) << 26};

/// What all ranks do next.
struct Order {
  enum What : uint64_t {
    pingPong,
    exchanges,
    stream,
    bothWays,
    toAll,
    copies,         ///< memory, without a message
    bothWaysBeside, ///< bothWays while memory is copied
    rounds,         ///< memory is copied, then messages go both ways, again and again
    end
  } what = end;
  uint64_t bytes = 0;       ///< of each message
  uint64_t sleeps = 0;      ///< whether who waits sleeps, so that processor time is that of moving
  uint64_t nanoseconds = 0; ///< of copies
  uint64_t copied = 0;      ///< in each of the rounds
};
enum Tag : uint64_t { orderTag, readyTag, doneTag, chunkTag };

double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Durations of one order. What else the machine does only makes it longer, so the shortest counts
/// once another one was about as short.
class Durations {
public:
  void add(double took) {
    seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), took), took);
  }
  bool areEnough() const {
    constexpr size_t kFewest = 3, kMost = 9;
    constexpr double kAlike = 1.01;
    return seconds.size() >= kMost ||
           (seconds.size() >= kFewest && seconds[1] <= kAlike * seconds[0]);
  }
  double shortest() const { return seconds.front(); }

private:
  std::vector<double> seconds; ///< the shortest first
};

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

class LinkMeter {
public:
  LinkMeter(Link &link, double limitSeconds)
      : link(link), limitNs(static_cast<int64_t>(limitSeconds * 1e9)), sent(kLargest),
        received(kLargest) {}

  /// Rank 0: the figures of the link.
  Result<cost::Link> lead(bool quick);
  /// The others: does as rank 0 says until the end.
  Status follow();

private:
  /// A message, in chunks that are posted at once.
  struct Message {
    std::vector<std::unique_ptr<Transfer>> chunks;
    int64_t bytes = 0;
  };
  void post(Message &message, bool sends, int64_t peer, size_t bytes, uint64_t tag = chunkTag) {
    std::byte *memory = (sends ? sent : received).data();
    message.bytes = static_cast<int64_t>(bytes);
    for (size_t at = 0; at < bytes; at += kChunk) {
      message.chunks.push_back(std::make_unique<Transfer>());
      const size_t size = std::min(kChunk, bytes - at);
      if (sends)
        link.send(*message.chunks.back(), peer, tag, memory + at, size);
      else
        link.receive(*message.chunks.back(), peer, tag, memory + at, size);
    }
  }
  Status wait(const Message &message) {
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
  /// A value to a rank, or from it.
  template <typename T> Status give(int64_t peer, uint64_t tag, T value) {
    Transfer transfer;
    link.send(transfer, peer, tag, &value, sizeof value);
    return finish(transfer);
  }
  template <typename T> Result<T> take(int64_t peer, uint64_t tag) {
    T value{};
    Transfer transfer;
    link.receive(transfer, peer, tag, &value, sizeof value);
    RETURN_IF_ERROR(finish(transfer));
    return value;
  }
  Status finish(Transfer &transfer) {
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

  bool takesPart(const Order &order) const { return order.what == Order::toAll || link.rank() < 2; }
  static bool isBothWays(const Order &order) {
    return order.what == Order::bothWays || order.what == Order::bothWaysBeside;
  }
  /// The longest of what the first `count` ranks have, on rank 0; the others give theirs.
  Result<double> longest(double own, int64_t count) {
    if (link.rank() > 0 && link.rank() < count)
      RETURN_IF_ERROR(give<double>(0, doneTag, own));
    for (int64_t r = 1; link.rank() == 0 && r < count; ++r) {
      ASSIGN_OR_RETURN(const double theirs, take<double>(r, doneTag));
      own = std::max(own, theirs);
    }
    return own;
  }
  std::byte *memoryToCopy() {
    if (copied.empty())
      copied.assign(Copier::kPieceBytes * Copier::kPieces, std::byte(1));
    return copied.data();
  }
  /// Begins together, and returns the seconds until all that take part are done: of rank 0.
  Result<double> perform(const Order &order);
  /// Seconds of each of many exchanges between the first two ranks.
  Result<double> exchange(const Order &order);
  /// Seconds of a copy of memory on the first two ranks at once.
  Result<double> copy(const Order &order);
  /// Rank 0: seconds of the exchange of a round, the median.
  Result<double> rounds(const Order &order);
  /// A message of each of the first two ranks to the other one.
  Status swap(size_t bytes);
  /// Rank 0: how much longer exchanges take behind other work.
  Status measureCold(bool quick);
  std::vector<cost::ColdPoint> coldPoints() const;
  /// Rank 0: latency, exchanges, short messages, and exchanges behind other work.
  Status measureShort(bool quick);
  /// Rank 0: how much longer messages and copies of memory take beside each other.
  Status measureBeside(bool quick, size_t bytes, cost::Link &result);
  /// Rank 0: has all ranks perform it.
  Result<double> order(Order order);
  /// Bytes per second of long streams, by what more bytes take longer.
  Result<double> rate(Order::What what, size_t bytes);

  Link &link;
  const int64_t limitNs;
  std::vector<std::byte> sent, received, copied;
  Durations latencies, exchanges;
  std::map<size_t, Durations> messages; ///< one way, by bytes
  /// By the bytes used between, how much longer exchanges took than next to each other.
  std::map<int64_t, std::vector<double>> longer;
  double processorOfMoves = 0; ///< of rank 0 or 1, the longer, in the last order
  double secondsOfCopies = 0;  ///< the same of a copy
};

Result<double> LinkMeter::exchange(const Order &order) {
  if (link.rank() > 1)
    return 0;
  // One that is not measured lets both begin together.
  int64_t begin = 0;
  for (int i = 0; i <= kExchanges; ++i) {
    RETURN_IF_ERROR(swap(order.bytes));
    if (i == 0)
      begin = nowNs();
  }
  return static_cast<double>(nowNs() - begin) * 1e-9 / kExchanges;
}

Status LinkMeter::swap(size_t bytes) {
  const int64_t peer = 1 - link.rank();
  Message in, out;
  post(in, false, peer, bytes);
  post(out, true, peer, bytes);
  RETURN_IF_ERROR(wait(in));
  return wait(out);
}

Result<double> LinkMeter::rounds(const Order &order) {
  if (link.rank() > 1)
    return 0;
  std::byte *const memory = memoryToCopy();
  constexpr size_t kHalf = Copier::kPieceBytes * Copier::kPieces / 2;
  std::array<int64_t, kRounds> took{}, theirs{};
  size_t at = 0;
  RETURN_IF_ERROR(swap(order.bytes)); // both begin together
  for (int64_t &of : took) {
    for (size_t left = order.copied; left > 0;) {
      const size_t bytes = std::min(left, kHalf - at);
      std::memcpy(memory + kHalf + at, memory + at, bytes);
      at = (at + bytes) % kHalf;
      left -= bytes;
    }
    const int64_t begin = nowNs();
    RETURN_IF_ERROR(swap(order.bytes));
    of = nowNs() - begin;
  }
  if (link.rank() == 1) {
    RETURN_IF_ERROR(give(0, doneTag, took));
    return 0;
  }
  ASSIGN_OR_RETURN(theirs, take<decltype(took)>(1, doneTag));
  // The one that comes later waits for none.
  std::vector<double> seconds;
  for (size_t i = 0; i < took.size(); ++i)
    seconds.push_back(static_cast<double>(std::min(took[i], theirs[i])) * 1e-9);
  return median(seconds);
}

Result<double> LinkMeter::perform(const Order &order) {
  const int64_t self = link.rank(), ranks = link.ranks();
  const bool leads = self == 0;
  const bool isBeside = order.what == Order::bothWaysBeside;
  link.setSpin(order.sleeps ? SpinLimit{} : isBeside ? spinOnOwnCores(2) : spinFor(1));
  if (order.what == Order::exchanges)
    return exchange(order);
  if (order.what == Order::copies)
    return copy(order);
  if (order.what == Order::rounds)
    return rounds(order);
  Message in, out;
  const bool receives = isBothWays(order)               ? self < 2
                        : order.what == Order::pingPong ? self < 2
                                                        : !leads && takesPart(order);
  const int64_t peer = self == 1 || !leads ? 0 : 1;
  if (receives)
    post(in, false, peer, order.bytes);
  if (!leads) {
    RETURN_IF_ERROR(give<uint8_t>(0, readyTag, 1));
  } else {
    for (int64_t r = 1; r < ranks; ++r)
      RETURN_IF_ERROR(take<uint8_t>(r, readyTag).status());
  }
  std::optional<Copier> copier;
  if (isBeside && self < 2)
    copier.emplace(memoryToCopy());
  const double processor = processorSeconds();
  const int64_t begin = nowNs();
  if (leads && order.what == Order::toAll) {
    for (int64_t r = 1; r < ranks; ++r)
      post(out, true, r, order.bytes);
  } else if (leads || (self == 1 && isBothWays(order))) {
    post(out, true, peer, order.bytes);
  }
  RETURN_IF_ERROR(wait(in));
  if (self == 1 && order.what == Order::pingPong)
    post(out, true, 0, order.bytes);
  double took = static_cast<double>(nowNs() - begin) * 1e-9;
  if (order.what != Order::pingPong) {
    RETURN_IF_ERROR(wait(out));
    const int64_t count = order.what == Order::toAll ? ranks : 2;
    ASSIGN_OR_RETURN(processorOfMoves, longest(processorSeconds() - processor, count));
    took = static_cast<double>(nowNs() - begin) * 1e-9;
    if (isBeside) {
      ASSIGN_OR_RETURN(secondsOfCopies, longest(copier ? copier->stop() : 0, count));
    }
  }
  RETURN_IF_ERROR(wait(out));
  return took;
}

Result<double> LinkMeter::copy(const Order &order) {
  if (link.rank() > 1)
    return 0;
  std::byte *const memory = memoryToCopy(); // not while the other one copies
  if (link.rank() == 0)
    RETURN_IF_ERROR(take<uint8_t>(1, readyTag).status());
  else
    RETURN_IF_ERROR(give<uint8_t>(0, readyTag, 1));
  Copier copier(memory);
  std::this_thread::sleep_for(std::chrono::nanoseconds(order.nanoseconds));
  ASSIGN_OR_RETURN(secondsOfCopies, longest(copier.stop(), 2));
  return secondsOfCopies;
}

Result<double> LinkMeter::order(Order order) {
  for (int64_t r = 1; r < link.ranks(); ++r)
    RETURN_IF_ERROR(give(r, orderTag, order));
  return perform(order);
}

Result<double> LinkMeter::rate(Order::What what, size_t bytes) {
  const size_t quarter = bytes / 4;
  Durations few, many;
  while (!few.areEnough() || !many.areEnough()) {
    ASSIGN_OR_RETURN(const double shorter, order({what, quarter, 0}));
    few.add(shorter);
    ASSIGN_OR_RETURN(const double longer, order({what, bytes, 0}));
    many.add(longer);
  }
  return static_cast<double>(bytes - quarter) / std::max(many.shortest() - few.shortest(), 1e-9);
}

Status LinkMeter::follow() {
  while (true) {
    ASSIGN_OR_RETURN(const Order order, take<Order>(0, orderTag));
    if (order.what == Order::end)
      return {};
    if (order.bytes > kLargest)
      return Status::error("rank 0 asks for a message of ", order.bytes, " bytes, more than ",
                           kLargest);
    if (order.copied > kLargest)
      return Status::error("rank 0 asks for copies of ", order.copied, " bytes, more than ",
                           kLargest);
    constexpr uint64_t kLongest = 1000000000;
    if (order.nanoseconds > kLongest)
      return Status::error("rank 0 asks for ", order.nanoseconds, " ns of copies, more than ",
                           kLongest);
    RETURN_IF_ERROR(perform(order).status());
  }
}

Status LinkMeter::measureShort(bool quick) {
  std::vector<double> thereAndBack;
  // The first message of each size makes connections and touches memory.
  for (int i = 0; i <= (quick ? 3 : 200); ++i) {
    ASSIGN_OR_RETURN(const double took, order({Order::pingPong, 8, 0}));
    if (i > 0)
      thereAndBack.push_back(took);
  }
  latencies.add(median(thereAndBack) / 2);
  ASSIGN_OR_RETURN(const double each, order({Order::exchanges, kExchanged, 0}));
  exchanges.add(each);
  for (size_t bytes = kShortest; bytes <= kShort; bytes *= 4)
    for (int i = 0; i <= (quick ? 1 : 10); ++i) {
      ASSIGN_OR_RETURN(const double took, order({Order::pingPong, bytes, 0}));
      if (i > 0)
        messages[bytes].add(took / 2);
    }
  return measureCold(quick);
}

Status LinkMeter::measureBeside(bool quick, size_t bytes, cost::Link &result) {
  // What a host is given differs from one moment to the next, so each is compared with those next
  // to it, and the median counts.
  std::vector<double> ofCopies, ofMessages;
  for (int i = 0; i < (quick ? 1 : 5); ++i) {
    ASSIGN_OR_RETURN(const double copyAlone,
                     order({Order::copies, 0, 0, quick ? 1000000u : 100000000u}));
    ASSIGN_OR_RETURN(const double messageAlone, order({Order::bothWays, bytes, 0}));
    ASSIGN_OR_RETURN(const double messageBeside, order({Order::bothWaysBeside, bytes, 0}));
    ofCopies.push_back(secondsOfCopies / copyAlone);
    ofMessages.push_back(messageBeside / messageAlone);
  }
  result.computeSlowdown = std::clamp(median(ofCopies), 1.0, 100.0);
  result.communicationSlowdown = std::clamp(median(ofMessages), 1.0, 100.0);
  return {};
}

Status LinkMeter::measureCold(bool quick) {
  for (const int64_t between : kBetween)
    for (int i = 0; i < (quick ? 1 : 4); ++i) {
      // Next to each other, as what a host is given differs from one moment to the next.
      ASSIGN_OR_RETURN(const double warm, order({Order::rounds, kExchanged, 0, 0, 0}));
      // What is copied is read and written.
      ASSIGN_OR_RETURN(const double cold, order({Order::rounds, kExchanged, 0, 0,
                                                 static_cast<uint64_t>(between / 2)}));
      longer[between].push_back(cold - warm);
    }
  return {};
}

std::vector<cost::ColdPoint> LinkMeter::coldPoints() const {
  std::vector<cost::ColdPoint> points;
  for (const auto &[between, seconds] : longer)
    points.push_back({between, kExchanged, std::max(0.0, median(seconds))});
  // What else the machine does only makes it longer.
  for (size_t i = points.size() - 1; i > 0; --i)
    points[i - 1].seconds = std::min(points[i - 1].seconds, points[i].seconds);
  return points;
}

Result<cost::Link> LinkMeter::lead(bool quick) {
  cost::Link result;
  // Short messages at three times: the system may have both ends on one core for a moment.
  RETURN_IF_ERROR(measureShort(quick));
  // Messages of all sizes there and back, until one takes a quarter of a second.
  size_t largest = kShort;
  const double enough = quick ? 0.005 : 0.25;
  for (size_t bytes = 4 * kShort; bytes <= kLargest && messages[largest].shortest() <= enough;
       bytes *= 4) {
    const Order thereAndBack{Order::pingPong, bytes, 0};
    RETURN_IF_ERROR(order(thereAndBack).status());
    Durations &ofSize = messages[bytes];
    do {
      ASSIGN_OR_RETURN(const double took, order(thereAndBack));
      ofSize.add(took / 2);
    } while (!quick && !ofSize.areEnough());
    largest = bytes;
  }
  RETURN_IF_ERROR(measureShort(quick));
  ASSIGN_OR_RETURN(result.bytesPerSecond, rate(Order::stream, largest));
  ASSIGN_OR_RETURN(result.bothWaysBytesPerSecond, rate(Order::bothWays, largest));
  RETURN_IF_ERROR(measureBeside(quick, largest, result));
  if (link.ranks() > 2) {
    ASSIGN_OR_RETURN(const double each, rate(Order::toAll, largest));
    result.hostBytesPerSecond = each * static_cast<double>(link.ranks() - 1);
  }
  RETURN_IF_ERROR(order({Order::stream, largest, 1}).status());
  if (processorOfMoves > 0)
    result.processorBytesPerSecond = static_cast<double>(largest) / processorOfMoves;
  RETURN_IF_ERROR(measureShort(quick));
  result.latencySeconds = latencies.shortest();
  result.exchangeSeconds = std::max(exchanges.shortest(), result.latencySeconds);
  result.cold = coldPoints();
  for (int64_t r = 1; r < link.ranks(); ++r)
    RETURN_IF_ERROR(give(r, orderTag, Order{}));
  for (const auto &[bytes, ofSize] : messages) {
    const double shorter = result.messages.empty() ? 0 : result.messages.back().seconds;
    result.messages.push_back({static_cast<int64_t>(bytes), std::max(ofSize.shortest(), shorter)});
  }
  return result;
}

} // namespace

Result<std::optional<cost::Link>> measureLinks(const LaunchInfo &launch,
                                               const LinkCalibration &options) {
  if (launch.size < 2)
    return Status::error("links expect processes on at least 2 hosts, got 1");
  net::NetOptions networks;
  networks.transports = options.transports;
  networks.devices = options.devices;
  ASSIGN_OR_RETURN(std::shared_ptr<const net::UcxContext> context, net::openNetworks(networks));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(context, launch.rank, launch.size));
  ASSIGN_OR_RETURN(const std::string address, link->address());
  ASSIGN_OR_RETURN(net::JobOptions job, net::jobOptionsOf(launch));
  job.bundle = "links";
  job.device = options.devices;
  job.timeLimitSeconds = options.limitSeconds;
  ASSIGN_OR_RETURN(const net::Job started, net::startJob(job, {address}));
  const std::vector<int64_t> hosts = net::hostNumbers(started.members);
  for (size_t rank = 1; rank < hosts.size(); ++rank)
    if (const auto other = std::find(hosts.begin(), hosts.end(), hosts[rank]) - hosts.begin();
        other != static_cast<std::ptrdiff_t>(rank))
      return Status::error("expects one process on each host: ranks ", other, " and ", rank,
                           " are both on host '", started.members[rank].host, "'");
  for (int64_t peer = 0; peer < launch.size; ++peer)
    if (const net::Member &member = started.members[static_cast<size_t>(peer)]; peer != launch.rank)
      RETURN_IF_ERROR(link->connect(peer, member.addresses[0], member.host));
  LinkMeter meter(*link, options.limitSeconds);
  std::optional<cost::Link> measured;
  if (launch.rank == 0) {
    ASSIGN_OR_RETURN(measured, meter.lead(options.quick));
    measured->name = "UCX";
    for (const std::string &transport : net::transportNames(*context))
      measured->name += (measured->name == "UCX" ? " " : ",") + transport;
  } else {
    RETURN_IF_ERROR(meter.follow());
  }
  RETURN_IF_ERROR(link->close(nowNs() + 2000000000));
  return measured;
}

} // namespace braid::runtime
