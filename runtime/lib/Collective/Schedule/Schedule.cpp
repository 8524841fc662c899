//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Collective/Schedule.h"
#include "Algorithms.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <set>

namespace braid::runtime {

static constexpr const char *kAlgorithms[] = {"direct", "one_shot",    "ring", "recursive_doubling",
                                              "tree",   "hierarchical"};
static_assert(std::size(kAlgorithms) == static_cast<size_t>(ScheduleAlgorithm::hierarchical) + 1);

const char *name(ScheduleAlgorithm algorithm) {
  return kAlgorithms[static_cast<size_t>(algorithm)];
}

Result<ScheduleAlgorithm> scheduleAlgorithm(const std::string &name) {
  std::string all;
  for (size_t i = 0; i < std::size(kAlgorithms); ++i) {
    if (name == kAlgorithms[i])
      return static_cast<ScheduleAlgorithm>(i);
    all += (i ? ", " : "") + std::string(kAlgorithms[i]);
  }
  return Status::error("there is no algorithm ", inQuotes(name), ", there are ", all);
}

const char *name(StepKind kind) {
  constexpr const char *kNames[] = {"send", "receive", "reduce", "copy", "clear"};
  return kNames[static_cast<size_t>(kind)];
}

bool ScheduleRequest::operator==(const ScheduleRequest &o) const {
  return kind == o.kind && algorithm == o.algorithm && values == o.values && ranks == o.ranks &&
         root == o.root && pairs == o.pairs && topology == o.topology && chunkBytes == o.chunkBytes;
}

int64_t ScheduleRequest::inputParts() const {
  return kind == CollectiveKind::reduceScatter || kind == CollectiveKind::allToAll ||
                 kind == CollectiveKind::allToAllV
             ? ranks
             : 1;
}

int64_t ScheduleRequest::outputParts() const {
  return kind == CollectiveKind::allGather || kind == CollectiveKind::allToAll ||
                 kind == CollectiveKind::allToAllV
             ? ranks
             : 1;
}

int64_t Schedule::bytesSent() const {
  int64_t bytes = 0;
  for (const ScheduleStep &step : steps)
    if (step.kind == StepKind::send)
      bytes += step.piece.bytes;
  return bytes;
}

bool keepsRankOrder(ScheduleAlgorithm algorithm, CollectiveKind kind, int64_t ranks) {
  // Two terms have one sum.
  return !hasReduction(kind) || ranks <= 2 || algorithm == ScheduleAlgorithm::direct ||
         algorithm == ScheduleAlgorithm::oneShot;
}

Status checkAlgorithm(ScheduleAlgorithm algorithm, CollectiveKind kind, int64_t ranks) {
  const bool isPower = (ranks & (ranks - 1)) == 0;
  auto applies = [&] {
    switch (algorithm) {
    case ScheduleAlgorithm::direct:
      return true;
    case ScheduleAlgorithm::oneShot:
      return kind == CollectiveKind::allReduce;
    case ScheduleAlgorithm::ring:
    case ScheduleAlgorithm::hierarchical:
      return hasReduction(kind) || kind == CollectiveKind::allGather ||
             kind == CollectiveKind::broadcast;
    case ScheduleAlgorithm::recursiveDoubling:
      return kind == CollectiveKind::allReduce || (kind == CollectiveKind::allGather && isPower);
    case ScheduleAlgorithm::tree:
      return kind == CollectiveKind::allReduce || kind == CollectiveKind::reduce ||
             kind == CollectiveKind::broadcast;
    }
    return false;
  };
  if (applies())
    return {};
  if (algorithm == ScheduleAlgorithm::recursiveDoubling && kind == CollectiveKind::allGather)
    return Status::error("all_gather by recursive_doubling expects a power of two of ranks, got ",
                         ranks);
  return Status::error("there is no schedule of ", name(kind), " by ", name(algorithm));
}

static Status checkPairs(const ScheduleRequest &request) {
  std::set<int64_t> sources, targets;
  for (auto [from, to] : request.pairs) {
    if (from < 0 || to < 0 || from >= request.ranks || to >= request.ranks)
      return Status::error("a pair expects positions below ", request.ranks, ", got ", from, " -> ",
                           to);
    if (!sources.insert(from).second || !targets.insert(to).second)
      return Status::error("a position is in two pairs as the same side, as of ", from, " -> ", to);
    if (from == to && request.kind != CollectiveKind::permute)
      return Status::error("a ", name(request.kind), " expects two ranks, got ", from, " -> ", to);
  }
  return {};
}

Status checkRequest(const ScheduleRequest &request) {
  // Steps are numbered in 32 bits, and must fit in memory.
  constexpr int64_t kMostPieces = int64_t(1) << 22;
  const int64_t n = request.ranks;
  if (n < 1)
    return Status::error("a schedule expects at least 1 rank, got ", n);
  if (!request.topology.places.empty() && static_cast<int64_t>(request.topology.places.size()) != n)
    return Status::error("a topology expects a place for each of ", n, " ranks, got ",
                         request.topology.places.size());
  if (request.root < 0 || request.root >= n)
    return Status::error("a root expects a position below ", n, ", got ", request.root);
  if (request.values.empty())
    return Status::error("a schedule expects a value");
  if (request.kind == CollectiveKind::allToAllV && request.values.size() < 2)
    return Status::error("a schedule of all_to_all_v expects counts after its values");
  std::optional<int64_t> pieces = 0;
  for (const ScheduleValue &value : request.values) {
    if (value.elementBytes < 1 || value.partBytes < 0 || value.partBytes % value.elementBytes != 0)
      return Status::error("a part expects whole elements, got ", value.partBytes, " bytes of ",
                           value.elementBytes);
    if (value.elementBytes > request.chunkBytes)
      return Status::error("a chunk expects room for an element of ", value.elementBytes,
                           " bytes, got ", request.chunkBytes, " bytes");
    if (!checkedMul(value.partBytes, n))
      return Status::error("a value of ", n, " parts of ", value.partBytes, " bytes is too long");
    if (value.inPlace && request.kind != CollectiveKind::allReduce && n > 1)
      return Status::error("only an all_reduce works in place, not ", name(request.kind));
    const int64_t chunks = value.partBytes / chunkLength(request, value) + 1;
    const std::optional<int64_t> ofAll = checkedMul(chunks, n);
    pieces = ofAll ? checkedAdd(*pieces, *ofAll) : std::nullopt;
    if (!pieces || *pieces > kMostPieces)
      return Status::error("chunks of ", request.chunkBytes, " bytes make more than ", kMostPieces,
                           " pieces");
  }
  RETURN_IF_ERROR(checkPairs(request));
  return checkAlgorithm(request.algorithm, request.kind, n);
}

namespace {

/// Calls visit(value, begin, bytes) for the chunks of a part of each value.
template <typename Visit> void forEachChunk(const ScheduleRequest &request, Visit visit) {
  // The counts of an all_to_all_v come first, as they tell what the other messages hold.
  const auto count = static_cast<uint32_t>(request.values.size());
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t v = request.kind == CollectiveKind::allToAllV ? (i + count - 1) % count : i;
    const int64_t part = request.values[v].partBytes;
    const int64_t length = chunkLength(request, request.values[v]);
    for (int64_t begin = 0; begin < part; begin += length)
      visit(v, begin, std::min(length, part - begin));
  }
}

/// All that is to be done in a group of one rank.
void copyValues(const ScheduleRequest &request, ScheduleBuilder &builder) {
  for (uint32_t v = 0; v < request.values.size(); ++v) {
    const Piece input{Space::input, v, 0, request.values[v].partBytes};
    Piece output = input;
    output.space = Space::output;
    builder.copy(0, input, output,
                 request.kind == CollectiveKind::allToAllV && v + 1 < request.values.size());
  }
}

void exchangeParts(const ScheduleRequest &request, ScheduleBuilder &builder) {
  const int64_t n = request.ranks;
  forEachChunk(request, [&](uint32_t v, int64_t begin, int64_t size) {
    const bool counted = request.kind == CollectiveKind::allToAllV && v + 1 < request.values.size();
    auto piece = [&](Space space, int64_t part) {
      return Piece{space, v, part * request.values[v].partBytes + begin, size};
    };
    std::vector<ScheduleBuilder::Transfer> transfers;
    for (int64_t step = 1; step < n; ++step)
      for (int64_t rank = 0; rank < n; ++rank) {
        const int64_t to = (rank + step) % n;
        transfers.push_back(
            {rank, piece(Space::input, to), to, piece(Space::output, rank), counted});
      }
    builder.transferAll(transfers);
    for (int64_t rank = 0; rank < n; ++rank)
      builder.copy(rank, piece(Space::input, rank), piece(Space::output, rank), counted);
  });
}

void movePairs(const ScheduleRequest &request, ScheduleBuilder &builder) {
  const bool receives = request.kind != CollectiveKind::send;
  forEachChunk(request, [&](uint32_t v, int64_t begin, int64_t size) {
    const Piece input{Space::input, v, begin, size}, output{Space::output, v, begin, size};
    std::vector<bool> hasSource(static_cast<size_t>(request.ranks), false);
    std::vector<ScheduleBuilder::Transfer> transfers;
    for (auto [from, to] : request.pairs) {
      hasSource[static_cast<size_t>(to)] = true;
      if (from == to) {
        builder.copy(from, input, output);
        continue;
      }
      // The other side of a message is a collective of its own.
      if (request.kind == CollectiveKind::send)
        builder.send(from, to, input);
      else if (request.kind == CollectiveKind::recv)
        builder.receive(to, builder.expect(from, to, input), output);
      else
        transfers.push_back({from, input, to, output});
    }
    builder.transferAll(transfers);
    for (int64_t rank = 0; rank < request.ranks && receives; ++rank)
      if (!hasSource[static_cast<size_t>(rank)])
        builder.clear(rank, output);
  });
}

/// The two halves of a collective, by its algorithm.
class Halves {
public:
  Halves(const ScheduleRequest &request, ScheduleBuilder &builder)
      : request(request), bytes(request), hierarchy(request, bytes.owners),
        partials(bytes, builder), builder(builder) {}

  void run() {
    const bool reduces = hasReduction(request.kind);
    const bool gathers = !reduces || request.kind == CollectiveKind::allReduce;
    // The results of a chunk are sent behind the inputs of the next one.
    for (size_t r = 0; r < bytes.rounds.size(); ++r) {
      if (reduces)
        reduce(bytes.rounds[r]);
      if (gathers && (!reduces || r > 0))
        gather(bytes.rounds[reduces ? r - 1 : r]);
    }
    if (reduces && gathers && !bytes.rounds.empty())
      gather(bytes.rounds.back());
    if (request.kind == CollectiveKind::reduce)
      clearOthers();
  }

private:
  void reduce(Round round) {
    switch (request.algorithm) {
    case ScheduleAlgorithm::ring:
      return reduceInRing(bytes, round, partials, builder);
    case ScheduleAlgorithm::tree:
      return reduceInTree(bytes, round, partials, builder);
    case ScheduleAlgorithm::hierarchical:
      return reduceByHosts(bytes, round, hierarchy, partials, builder);
    default:
      return reduceDirect(bytes, round, builder);
    }
  }

  void gather(Round round) {
    if (request.algorithm == ScheduleAlgorithm::ring)
      gatherInRing(bytes, round, builder);
    else if (request.algorithm == ScheduleAlgorithm::tree)
      gatherInTree(bytes, round, builder);
    else if (request.algorithm == ScheduleAlgorithm::hierarchical)
      gatherByHosts(bytes, round, hierarchy, builder);
    else if (request.algorithm == ScheduleAlgorithm::recursiveDoubling)
      gatherByDoubling(bytes, round, builder);
    else
      gatherDirect(bytes, round, builder);
    // An all_reduce has its sums in the output. Others are given first, and kept last.
    if (!bytes.partialsInOutput())
      for (int64_t owner : bytes.owners)
        builder.copy(owner, bytes.given(round, owner), bytes.gathered(round, owner));
  }

  void clearOthers() {
    for (uint32_t v = 0; v < request.values.size(); ++v)
      for (int64_t rank = 0; rank < request.ranks; ++rank)
        if (rank != request.root)
          builder.clear(rank, {Space::output, v, 0, request.values[v].partBytes});
  }

  const ScheduleRequest &request;
  const OwnedBytes bytes;
  const Hierarchy hierarchy;
  Partials partials;
  ScheduleBuilder &builder;
};

} // namespace

Result<Schedule> makeSchedule(const ScheduleRequest &request, int64_t position) {
  RETURN_IF_ERROR(checkRequest(request));
  if (position < 0 || position >= request.ranks)
    return Status::error("a schedule expects a position below ", request.ranks, ", got ", position);
  ScheduleBuilder builder(request, position);
  const bool hasPairs = request.kind == CollectiveKind::permute || isPointToPoint(request.kind);
  if (request.ranks == 1 && !hasPairs) {
    copyValues(request, builder);
    return builder.finish();
  }
  switch (request.kind) {
  case CollectiveKind::allReduce:
    if (request.algorithm == ScheduleAlgorithm::oneShot)
      allReduceAtOnce(request, builder);
    else if (request.algorithm == ScheduleAlgorithm::recursiveDoubling)
      allReduceByDoubling(request, builder);
    else
      Halves(request, builder).run();
    break;
  case CollectiveKind::reduceScatter:
  case CollectiveKind::allGather:
  case CollectiveKind::reduce:
  case CollectiveKind::broadcast:
    Halves(request, builder).run();
    break;
  case CollectiveKind::allToAll:
  case CollectiveKind::allToAllV:
    exchangeParts(request, builder);
    break;
  case CollectiveKind::permute:
  case CollectiveKind::send:
  case CollectiveKind::recv:
    movePairs(request, builder);
    break;
  }
  return builder.finish();
}

namespace {

std::string text(const Piece &piece) {
  constexpr const char *kSpaces[] = {"input", "output", "scratch"};
  return std::string(kSpaces[static_cast<size_t>(piece.space)]) +
         (piece.space == Space::scratch ? "" : " " + std::to_string(piece.value)) + " [" +
         std::to_string(piece.offset) + ", " + std::to_string(piece.end()) + ")";
}

} // namespace

std::string stepText(const Schedule &schedule, const ScheduleStep &step,
                     const std::vector<int64_t> &ranks) {
  auto rankText = [&](int64_t position) {
    return std::to_string(ranks.empty() ? position : ranks[static_cast<size_t>(position)]);
  };
  char start[24];
  std::snprintf(start, sizeof start, "%-8s ", name(step.kind));
  std::string all = start + text(step.piece);
  if (step.kind == StepKind::send)
    all += " to " + rankText(step.peer) + " as message " + std::to_string(step.message);
  const char *between = " = ";
  for (const StepSource &source : schedule.sourcesOf(step)) {
    all += between + (source.isMessage() ? "message " + std::to_string(source.message) + " of " +
                                               rankText(source.peer)
                                         : text(source.piece));
    between = " + ";
  }
  if (step.counted)
    all += ", its counted rows";
  const char *before = ", after ";
  for (uint32_t other : schedule.dependenciesOf(step)) {
    all += before + std::to_string(other);
    before = " ";
  }
  return all;
}

std::string scheduleText(const Schedule &schedule, const std::vector<int64_t> &ranks) {
  std::string all;
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    char start[24];
    std::snprintf(start, sizeof start, "  %5zu  ", i);
    all += start + stepText(schedule, schedule.steps[i], ranks) + "\n";
  }
  return schedule.steps.empty() ? "  nothing\n" : all;
}

} // namespace braid::runtime
