//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures the links between hosts by the processes of a job, one on each host. Rank 0 says what is
// next (LinkOrders.h), and has the clock.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Calibrate.h"

#include "LinkOrders.h"
#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/LinkBurst.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Link.h"
#include "runtime/lib/Net/Networks.h"
#include "runtime/lib/Sync/Counter.h"

#include <algorithm>
#include <map>
#include <optional>

namespace braid::runtime {

using net::Link;

namespace {

/// Of messages by size, those up to kShort take less than the system needs to move a process.
constexpr size_t kShortest = size_t(1) << 10, kShort = size_t(64) << 10;
/// Of exchanges. The first is what no link holds up, the others are those of short collectives:
/// what a packet of Ethernet has, what needs two, and more.
constexpr size_t kExchanged[] = {8, size_t(1) << 10, size_t(2) << 10, size_t(4) << 10,
                                 size_t(16) << 10};
/// The same of exchanges behind other work.
constexpr size_t kExchangedCold[] = {kExchanged[0], kExchanged[4]};
/// Bytes that a rank uses between exchanges: what the caches of a core have, what they have not,
/// and what no cache has.
constexpr int64_t kBetween[] = {int64_t(1) << 19, int64_t(1) << 21, int64_t(1) << 23,
                                int64_t(1) << 26};

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

class LinkMeter {
public:
  explicit LinkMeter(LinkOrders &orders) : orders(orders) {}

  Result<cost::Link> measure(bool quick);

private:
  Result<double> order(LinkOrder next) { return orders.give(next); }
  /// An order of so many bytes that a link has been idle for long enough to pass at once.
  LinkOrder unhindered(LinkOrder::What what, size_t bytes) const;
  /// Exchanges by size, and behind other work.
  Status measureExchanges(bool quick);
  /// How much longer exchanges take behind other work.
  Status measureCold(bool quick);
  std::vector<cost::MessagePoint> messagePoints() const;
  std::vector<cost::ColdPoint> coldPoints() const;
  /// Latency and short messages.
  Status measureShort(bool quick);
  /// How much longer messages and copies of memory take beside each other.
  Status measureBeside(bool quick, size_t bytes, cost::Link &result);
  /// Bytes per second of long streams, by what more bytes take longer.
  Result<double> rate(LinkOrder::What what, size_t bytes);

  LinkOrders &orders;
  Durations latencies;
  std::map<size_t, Durations> messages;            ///< one way, by bytes
  std::map<size_t, std::vector<double>> exchanges; ///< by bytes
  /// By the bytes used between, and those of an exchange: how much longer it took than next to
  /// another.
  std::map<std::pair<int64_t, size_t>, std::vector<double>> longer;
  cost::Link soFar; ///< its latency, rate and messages, once they are known
};

Result<double> LinkMeter::rate(LinkOrder::What what, size_t bytes) {
  const size_t quarter = bytes / 4;
  Durations few, many;
  while (!few.areEnough() || !many.areEnough()) {
    ASSIGN_OR_RETURN(const double shorter, order({what, quarter}));
    few.add(shorter);
    ASSIGN_OR_RETURN(const double longer, order({what, bytes}));
    many.add(longer);
  }
  return static_cast<double>(bytes - quarter) / std::max(many.shortest() - few.shortest(), 1e-9);
}

Status LinkMeter::measureShort(bool quick) {
  std::vector<double> thereAndBack;
  // The first message of each size makes connections and touches memory.
  for (int i = 0; i <= (quick ? 3 : 200); ++i) {
    ASSIGN_OR_RETURN(const double took, order({LinkOrder::pingPong, 8}));
    if (i > 0)
      thereAndBack.push_back(took);
  }
  latencies.add(median(thereAndBack) / 2);
  for (size_t bytes = kShortest; bytes <= kShort; bytes *= 4)
    for (int i = 0; i <= (quick ? 1 : 10); ++i) {
      ASSIGN_OR_RETURN(const double took, order({LinkOrder::pingPong, bytes}));
      if (i > 0)
        messages[bytes].add(took / 2);
    }
  return {};
}

LinkOrder LinkMeter::unhindered(LinkOrder::What what, size_t bytes) const {
  LinkOrder order{what, bytes};
  order.count = LinkOrder::kMostExchanges;
  const double burst = cost::burstBytes(soFar);
  if (burst == 0)
    return order;
  constexpr double kHeaders = 128; // more than a message and its packet have
  const double each = static_cast<double>(bytes) + kHeaders;
  const double atOnce = burst / 2 / each; // the order itself goes the same way
  double toIdleFor = 0;
  if (what == LinkOrder::exchanges) {
    // One that is not measured is before them.
    order.count =
        static_cast<uint64_t>(std::clamp(atOnce - 1, 1.0, 1.0 * LinkOrder::kMostExchanges));
    toIdleFor = static_cast<double>(order.count + 1) * each;
  } else if (atOnce < LinkOrder::kRounds + 1) {
    toIdleFor = each;
  }
  order.nanoseconds = static_cast<uint64_t>(1e9 * toIdleFor / soFar.bytesPerSecond);
  return order;
}

Status LinkMeter::measureExchanges(bool quick) {
  // In turn, as the system has both ends on one core for a moment behind long messages.
  for (int i = 0; i < (quick ? 1 : 10); ++i)
    for (const size_t bytes : kExchanged) {
      ASSIGN_OR_RETURN(const double each, order(unhindered(LinkOrder::exchanges, bytes)));
      exchanges[bytes].push_back(each);
    }
  return measureCold(quick);
}

Status LinkMeter::measureBeside(bool quick, size_t bytes, cost::Link &result) {
  // What a host is given differs from one moment to the next, so each is compared with those next
  // to it, and the median counts.
  std::vector<double> ofCopies, ofMessages;
  for (int i = 0; i < (quick ? 1 : 5); ++i) {
    ASSIGN_OR_RETURN(const double copyAlone,
                     order({LinkOrder::copies, 0, 0, quick ? 1000000u : 100000000u}));
    ASSIGN_OR_RETURN(const double messageAlone, order({LinkOrder::bothWays, bytes}));
    ASSIGN_OR_RETURN(const double messageBeside, order({LinkOrder::bothWaysBeside, bytes}));
    ofCopies.push_back(orders.copySeconds() / copyAlone);
    ofMessages.push_back(messageBeside / messageAlone);
  }
  result.computeSlowdown = std::clamp(median(ofCopies), 1.0, 100.0);
  result.communicationSlowdown = std::clamp(median(ofMessages), 1.0, 100.0);
  return {};
}

Status LinkMeter::measureCold(bool quick) {
  for (const int64_t between : kBetween)
    for (const size_t bytes : kExchangedCold)
      for (int i = 0; i < (quick ? 1 : 4); ++i) {
        // Next to each other, as what a host is given differs from one moment to the next.
        LinkOrder next = unhindered(LinkOrder::rounds, bytes);
        ASSIGN_OR_RETURN(const double warm, order(next));
        next.copied = static_cast<uint64_t>(between / 2); // what is copied is read and written
        ASSIGN_OR_RETURN(const double cold, order(next));
        longer[{between, bytes}].push_back(cold - warm);
      }
  return {};
}

std::vector<cost::MessagePoint> LinkMeter::messagePoints() const {
  std::vector<cost::MessagePoint> points;
  for (const auto &[bytes, ofSize] : messages) {
    const double shorter = points.empty() ? 0 : points.back().seconds;
    points.push_back({static_cast<int64_t>(bytes), std::max(ofSize.shortest(), shorter)});
  }
  return points;
}

std::vector<cost::ColdPoint> LinkMeter::coldPoints() const {
  std::vector<cost::ColdPoint> points;
  for (const auto &[of, seconds] : longer)
    points.push_back({of.first, static_cast<int64_t>(of.second), std::max(0.0, median(seconds))});
  // What else the machine does only makes it longer: neither do fewer bytes between take longer,
  // nor do fewer bytes of an exchange.
  constexpr size_t kSizes = std::size(kExchangedCold);
  for (size_t i = points.size(); i-- > 0;) {
    if (i + kSizes < points.size())
      points[i].seconds = std::min(points[i].seconds, points[i + kSizes].seconds);
    if (i % kSizes + 1 < kSizes)
      points[i].seconds = std::min(points[i].seconds, points[i + 1].seconds);
  }
  return points;
}

Result<cost::Link> LinkMeter::measure(bool quick) {
  cost::Link result;
  // Short messages at three times: the system may have both ends on one core for a moment.
  RETURN_IF_ERROR(measureShort(quick));
  // Messages of all sizes there and back, until one takes a quarter of a second.
  size_t largest = kShort;
  const double enough = quick ? 0.005 : 0.25;
  for (size_t bytes = 4 * kShort;
       bytes <= LinkOrder::kMostBytes && messages[largest].shortest() <= enough; bytes *= 4) {
    const LinkOrder thereAndBack{LinkOrder::pingPong, bytes};
    RETURN_IF_ERROR(order(thereAndBack).status());
    Durations &ofSize = messages[bytes];
    do {
      ASSIGN_OR_RETURN(const double took, order(thereAndBack));
      ofSize.add(took / 2);
    } while (!quick && !ofSize.areEnough());
    largest = bytes;
  }
  RETURN_IF_ERROR(measureShort(quick));
  ASSIGN_OR_RETURN(result.bytesPerSecond, rate(LinkOrder::stream, largest));
  soFar = result;
  soFar.latencySeconds = latencies.shortest();
  soFar.messages = messagePoints();
  RETURN_IF_ERROR(measureExchanges(quick));
  ASSIGN_OR_RETURN(result.bothWaysBytesPerSecond, rate(LinkOrder::bothWays, largest));
  RETURN_IF_ERROR(measureBeside(quick, largest, result));
  RETURN_IF_ERROR(measureExchanges(quick));
  if (orders.ranks() > 2) {
    ASSIGN_OR_RETURN(const double each, rate(LinkOrder::toAll, largest));
    result.hostBytesPerSecond = each * static_cast<double>(orders.ranks() - 1);
  }
  RETURN_IF_ERROR(order({LinkOrder::stream, largest, 1}).status());
  if (orders.processorSeconds() > 0)
    result.processorBytesPerSecond = static_cast<double>(largest) / orders.processorSeconds();
  RETURN_IF_ERROR(measureShort(quick));
  RETURN_IF_ERROR(measureExchanges(quick));
  result.latencySeconds = latencies.shortest();
  for (const auto &[bytes, seconds] : exchanges) {
    const double shorter =
        result.exchanges.empty() ? result.latencySeconds : result.exchanges.back().seconds;
    result.exchanges.push_back({static_cast<int64_t>(bytes), std::max(median(seconds), shorter)});
  }
  result.cold = coldPoints();
  RETURN_IF_ERROR(orders.end());
  result.messages = messagePoints();
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
  LinkOrders orders(*link, options.limitSeconds);
  std::optional<cost::Link> measured;
  if (launch.rank == 0) {
    ASSIGN_OR_RETURN(measured, LinkMeter(orders).measure(options.quick));
    measured->name = "UCX";
    for (const std::string &transport : net::transportNames(*context))
      measured->name += (measured->name == "UCX" ? " " : ",") + transport;
  } else {
    RETURN_IF_ERROR(orders.follow());
  }
  RETURN_IF_ERROR(link->close(nowNs() + 2000000000));
  return measured;
}

} // namespace braid::runtime
