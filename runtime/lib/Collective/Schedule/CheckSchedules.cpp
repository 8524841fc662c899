//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "StepOrder.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace braid::runtime {

namespace {

std::string text(const Piece &piece) {
  constexpr const char *kSpaces[] = {"the input", "the output", "the scratch memory"};
  return "bytes [" + std::to_string(piece.offset) + ", " + std::to_string(piece.end()) + ") of " +
         kSpaces[static_cast<size_t>(piece.space)] + " of value " + std::to_string(piece.value);
}

/// What a byte holds: a sum of the inputs of ranks at one place.
struct Content {
  size_t sum;        ///< in Sums
  int64_t inputByte; ///< of the value
  uint32_t value;
};

/// Sums of values of ranks, each kept once.
class Sums {
public:
  explicit Sums(int64_t ranks) : ranks(static_cast<size_t>(ranks)) {
    for (size_t rank = 0; rank < this->ranks; ++rank)
      add({}, {static_cast<int64_t>(rank)});
    add({}, {}); // zero
  }
  size_t zero() const { return ranks; }
  static size_t of(int64_t rank) { return static_cast<size_t>(rank); }
  size_t of(const std::vector<size_t> &terms) {
    auto found = numbers.find(terms);
    if (found != numbers.end())
      return found->second;
    std::vector<int64_t> all;
    for (size_t term : terms)
      all.insert(all.end(), members[term].begin(), members[term].end());
    return add(terms, all);
  }
  /// The ranks whose values were added, in the order of the terms.
  const std::vector<int64_t> &of(size_t sum) const { return members[sum]; }
  /// Whether it is one sum of the values of all ranks in their order.
  bool isInRankOrder(size_t sum) const {
    if (ranks == 1)
      return sum == 0;
    if (terms[sum].size() != ranks)
      return false;
    for (size_t i = 0; i < ranks; ++i)
      if (terms[sum][i] != i)
        return false;
    return true;
  }

private:
  size_t add(const std::vector<size_t> &itsTerms, const std::vector<int64_t> &all) {
    members.push_back(all);
    terms.push_back(itsTerms);
    if (!itsTerms.empty())
      numbers[itsTerms] = members.size() - 1;
    return members.size() - 1;
  }

  const size_t ranks;
  std::vector<std::vector<int64_t>> members;
  std::vector<std::vector<size_t>> terms;
  std::map<std::vector<size_t>, size_t> numbers;
};

/// The contents of one memory of a rank.
class Memory {
public:
  /// What a run of bytes holds from its first byte on.
  struct Run {
    int64_t begin, end;
    Content content;
  };
  /// The runs of [begin, end); a run that is missing was not written.
  std::vector<Run> read(int64_t begin, int64_t end) const {
    std::vector<Run> all;
    auto at = runs.upper_bound(begin);
    if (at != runs.begin())
      --at;
    for (; at != runs.end() && at->first < end; ++at) {
      if (at->second.end <= begin)
        continue;
      Run run{std::max(begin, at->first), std::min(end, at->second.end), at->second.content};
      run.content.inputByte += run.begin - at->first;
      all.push_back(run);
    }
    return all;
  }
  void write(const Run &run) {
    const std::vector<Run> inside = read(run.begin, run.end);
    std::vector<Run> kept;
    for (auto at = runs.begin(); at != runs.end();) {
      if (at->second.end <= run.begin || at->first >= run.end) {
        ++at;
        continue;
      }
      for (const Run &rest : {Run{at->first, std::min(at->second.end, run.begin), {}},
                              Run{std::max(at->first, run.end), at->second.end, {}}})
        if (rest.begin < rest.end) {
          kept.push_back(rest);
          kept.back().content = at->second.content;
          kept.back().content.inputByte += rest.begin - at->first;
        }
      at = runs.erase(at);
    }
    for (const Run &rest : kept)
      runs[rest.begin] = rest;
    runs[run.begin] = run;
  }

private:
  std::map<int64_t, Run> runs;
};

class Check {
public:
  Check(const ScheduleRequest &request, const std::vector<Schedule> &schedules)
      : request(request), schedules(schedules), sums(request.ranks) {}

  Status run(int64_t messagesInFlight) {
    for (const Schedule &schedule : schedules)
      RETURN_IF_ERROR(pieces(schedule));
    RETURN_IF_ERROR(order.build(schedules, messagesInFlight, /*inTurn=*/false));
    RETURN_IF_ERROR(StepOrder().build(schedules, messagesInFlight, /*inTurn=*/true));
    for (const Schedule &schedule : schedules)
      RETURN_IF_ERROR(races(schedule));
    RETURN_IF_ERROR(execute());
    return results();
  }

private:
  //===--- pieces ---------------------------------------------------------===//

  Status piece(const std::string &where, const Schedule &schedule, const Piece &piece) const {
    if (piece.value >= request.values.size())
      return Status::error("pieces: ", where, " names value ", piece.value, " of ",
                           request.values.size());
    const ScheduleValue &value = request.values[piece.value];
    const int64_t bytes = piece.space == Space::scratch ? schedule.scratchBytes
                          : piece.space == Space::input ? value.partBytes * request.inputParts()
                                                        : value.partBytes * request.outputParts();
    if (piece.bytes < 1 || piece.offset < 0 || piece.offset > bytes ||
        piece.bytes > bytes - piece.offset)
      return Status::error("pieces: ", where, " names ", text(piece), ", which has ", bytes);
    if (piece.bytes % value.elementBytes != 0 || piece.offset % value.elementBytes != 0)
      return Status::error("pieces: ", where, " splits an element of ", value.elementBytes,
                           " bytes: ", text(piece));
    return {};
  }

  Status pieces(const Schedule &schedule) const {
    for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const ScheduleStep &step = schedule.steps[i];
      const std::string where = braid::runtime::text(schedules, {schedule.position, i});
      if (uint64_t(step.firstSource) + step.numSources > schedule.sources.size() ||
          uint64_t(step.firstDependency) + step.numDependencies > schedule.dependencies.size())
        return Status::error("pieces: ", where, " names sources that are not there");
      RETURN_IF_ERROR(piece(where, schedule, step.piece));
      const bool sends = step.kind == StepKind::send;
      const uint32_t fewest = sends || step.kind == StepKind::clear ? 0 : 1;
      if (step.numSources < fewest || (step.numSources > fewest && step.kind != StepKind::reduce))
        return Status::error("pieces: ", where, " has ", step.numSources, " sources");
      if (!sends && step.piece.space == Space::input)
        return Status::error("pieces: ", where, " writes ", text(step.piece));
      if (sends && (step.peer < 0 || step.peer >= request.ranks || step.peer == schedule.position))
        return Status::error("pieces: ", where, " is to position ", step.peer);
      bool message = sends;
      for (const StepSource &source : schedule.sourcesOf(step)) {
        message |= source.isMessage();
        if (source.isMessage() ? step.kind == StepKind::copy : step.kind == StepKind::receive)
          return Status::error("pieces: ", where, " has a source of the other kind");
        if (!source.isMessage())
          RETURN_IF_ERROR(piece(where, schedule, source.piece));
        if (source.piece.bytes != step.piece.bytes)
          return Status::error("pieces: ", where, " writes ", step.piece.bytes,
                               " bytes from a source of ", source.piece.bytes);
      }
      if (message && step.piece.bytes > request.chunkBytes)
        return Status::error("pieces: ", where, " has a message of ", step.piece.bytes,
                             " bytes, a chunk has ", request.chunkBytes);
      for (uint32_t other : schedule.dependenciesOf(step))
        if (other >= i)
          return Status::error("pieces: ", where, " is after step ", other);
    }
    return {};
  }

  //===--- races ----------------------------------------------------------===//

  /// Memories of a rank: scratch memory, and the inputs and outputs of values.
  using MemoryKey = std::pair<Space, uint32_t>;
  MemoryKey memoryOf(const Piece &piece) const {
    if (piece.space == Space::scratch)
      return {Space::scratch, 0};
    const bool shared = piece.space == Space::input && request.values[piece.value].inPlace;
    return {shared ? Space::output : piece.space, piece.value};
  }

  struct Use {
    Piece piece;
    uint32_t step;
    bool writes;
  };

  Status races(const Schedule &schedule) const {
    std::map<MemoryKey, std::vector<Use>> uses;
    auto add = [&](const Piece &piece, uint32_t step, bool writes) {
      uses[memoryOf(piece)].push_back({piece, step, writes});
    };
    for (uint32_t i = 0; i < schedule.steps.size(); ++i) {
      const ScheduleStep &step = schedule.steps[i];
      add(step.piece, i, step.kind != StepKind::send);
      const Piece *first = step.kind == StepKind::send ? &step.piece : nullptr;
      for (const StepSource &source : schedule.sourcesOf(step))
        if (!source.isMessage()) {
          add(source.piece, i, false);
          first = &source.piece;
        }
      // A receive reads the counts that it has got, others those of the input.
      if (step.counted) {
        const Piece &counted = first ? *first : step.piece;
        const auto last = static_cast<uint32_t>(request.values.size() - 1);
        const int64_t part = counted.offset / request.values[counted.value].partBytes;
        const int64_t bytes = request.values[last].partBytes;
        add({counted.space, last, part * bytes, bytes}, i, false);
      }
    }
    for (auto &[key, ofMemory] : uses) {
      std::sort(ofMemory.begin(), ofMemory.end(),
                [](const Use &a, const Use &b) { return a.piece.offset < b.piece.offset; });
      for (size_t i = 0; i < ofMemory.size(); ++i)
        for (size_t j = i + 1;
             j < ofMemory.size() && ofMemory[j].piece.offset < ofMemory[i].piece.end(); ++j)
          RETURN_IF_ERROR(race(schedule.position, ofMemory[i], ofMemory[j]));
    }
    return {};
  }

  Status race(int64_t rank, const Use &a, const Use &b) const {
    const StepAt first{rank, std::min(a.step, b.step)}, second{rank, std::max(a.step, b.step)};
    if (a.step == b.step || (!a.writes && !b.writes) || order.isBefore(first, second))
      return {};
    return Status::error("races: ", braid::runtime::text(schedules, first), " and ",
                         braid::runtime::text(schedules, second), " use ", text(a.piece),
                         " in any order");
  }

  //===--- written, once --------------------------------------------------===//

  Memory &memory(int64_t rank, const Piece &piece) {
    const MemoryKey key = memoryOf(piece);
    auto [found, isNew] = memories.try_emplace({rank, key});
    // An input is there from the beginning.
    if (isNew && key.first != Space::scratch) {
      const ScheduleValue &value = request.values[key.second];
      const int64_t bytes = value.partBytes * request.inputParts();
      if (bytes > 0 && (key.first == Space::input || value.inPlace))
        found->second.write({0, bytes, {Sums::of(rank), 0, key.second}});
    }
    return found->second;
  }

  Result<std::vector<Memory::Run>> read(StepAt at, int64_t rank, const Piece &piece) {
    std::vector<Memory::Run> runs = memory(rank, piece).read(piece.offset, piece.end());
    int64_t next = piece.offset;
    for (const Memory::Run &run : runs)
      next = run.begin == next ? run.end : next;
    if (next != piece.end())
      return Status::error("written: ", braid::runtime::text(schedules, at), " reads ", text(piece),
                           ", of which byte ", next, " is not written");
    for (Memory::Run &run : runs) {
      run.begin -= piece.offset;
      run.end -= piece.offset;
    }
    return runs;
  }

  Status write(StepAt at, Memory::Run run) {
    const Piece &into = stepAt(at).piece;
    run.begin += into.offset;
    run.end += into.offset;
    Memory &target = memory(at.rank, into);
    if (into.space == Space::output)
      for (const Memory::Run &old : target.read(run.begin, run.end))
        if (isResult(at.rank, old))
          return Status::error("once: ", braid::runtime::text(schedules, at),
                               " writes over the result at byte ", old.begin,
                               " of the output of value ", into.value);
    target.write(run);
    return {};
  }

  const ScheduleStep &stepAt(StepAt at) const {
    return schedules[static_cast<size_t>(at.rank)].steps[at.step];
  }

  Status execute() {
    for (const StepOrder::Moment &moment : order.moments()) {
      const ScheduleStep &step = stepAt(moment.at);
      if (step.kind == StepKind::send) {
        // Nothing writes the piece until the message is taken.
        if (!moment.isEnd) {
          ASSIGN_OR_RETURN(sent[moment.at], read(moment.at, moment.at.rank, step.piece));
        }
        continue;
      }
      if (!moment.isEnd)
        continue;
      if (step.kind == StepKind::clear) {
        RETURN_IF_ERROR(
            write(moment.at, {0, step.piece.bytes, {sums.zero(), 0, step.piece.value}}));
        continue;
      }
      std::vector<std::vector<Memory::Run>> sources;
      for (const StepSource &source :
           schedules[static_cast<size_t>(moment.at.rank)].sourcesOf(step)) {
        if (source.isMessage()) {
          sources.push_back(sent[order.senderOf(moment.at, source)]);
          continue;
        }
        ASSIGN_OR_RETURN(std::vector<Memory::Run> runs,
                         read(moment.at, moment.at.rank, source.piece));
        sources.push_back(std::move(runs));
      }
      RETURN_IF_ERROR(combine(moment.at, sources));
    }
    return {};
  }

  /// Writes the sums of the runs of the sources, from boundary to boundary.
  Status combine(StepAt at, const std::vector<std::vector<Memory::Run>> &sources) {
    std::set<int64_t> boundaries;
    for (const auto &runs : sources)
      for (const Memory::Run &run : runs) {
        boundaries.insert(run.begin);
        boundaries.insert(run.end);
      }
    for (auto from = boundaries.begin(); std::next(from) != boundaries.end(); ++from) {
      std::vector<size_t> terms;
      std::optional<Content> content;
      for (const auto &runs : sources)
        for (const Memory::Run &run : runs) {
          if (run.begin > *from || run.end <= *from)
            continue;
          Content here = run.content;
          here.inputByte += *from - run.begin;
          terms.push_back(here.sum);
          if (content && (content->inputByte != here.inputByte || content->value != here.value))
            return Status::error("result: ", braid::runtime::text(schedules, at), " adds byte ",
                                 here.inputByte, " of value ", here.value, " to byte ",
                                 content->inputByte, " of value ", content->value);
          content = here;
        }
      content->sum = terms.size() == 1 ? terms[0] : sums.of(terms);
      RETURN_IF_ERROR(write(at, {*from, *std::next(from), *content}));
    }
    return {};
  }

  //===--- result ---------------------------------------------------------===//

  /// What the bytes of a part of a rank's output should hold: the sum over all ranks, or the input
  /// of one, or zeros.
  struct Expected {
    int64_t source; ///< kAll: the sum; kZero: zeros
    int64_t inputByte;
  };
  static constexpr int64_t kAll = -1, kZero = -2;
  Expected expected(int64_t rank, uint32_t value, int64_t part) const {
    const int64_t mine = rank * request.values[value].partBytes;
    switch (request.kind) {
    case CollectiveKind::allReduce:
      return {kAll, 0};
    case CollectiveKind::reduceScatter:
      return {kAll, mine};
    case CollectiveKind::reduce:
      return {rank == request.root ? kAll : kZero, 0};
    case CollectiveKind::allGather:
      return {part, 0};
    case CollectiveKind::allToAll:
    case CollectiveKind::allToAllV:
      return {part, mine};
    case CollectiveKind::broadcast:
      return {request.root, 0};
    case CollectiveKind::permute:
    case CollectiveKind::send:
    case CollectiveKind::recv:
      for (auto [from, to] : request.pairs)
        if (to == rank)
          return {from, 0};
      return {kZero, 0};
    }
    return {kZero, 0};
  }

  /// Whether a run within one part of an output is as expected; all ranks but not in their order
  /// counts where that is not promised.
  bool isResult(int64_t rank, const Memory::Run &run) const {
    const int64_t partBytes = request.values[run.content.value].partBytes;
    const int64_t part = run.begin / partBytes;
    const Expected want = expected(rank, run.content.value, part);
    if (want.source == kZero)
      return run.content.sum == sums.zero();
    if (run.content.inputByte != want.inputByte + run.begin - part * partBytes)
      return false;
    if (want.source >= 0)
      return run.content.sum == Sums::of(want.source);
    if (keepsRankOrder(request.algorithm, request.kind, request.ranks))
      return sums.isInRankOrder(run.content.sum);
    std::vector<int64_t> members = sums.of(run.content.sum);
    std::sort(members.begin(), members.end());
    for (int64_t i = 0; i < static_cast<int64_t>(members.size()); ++i)
      if (members[static_cast<size_t>(i)] != i)
        return false;
    return static_cast<int64_t>(members.size()) == request.ranks;
  }

  std::string contentText(const Content &content) const {
    if (content.sum == sums.zero())
      return "zeros";
    std::string ranks;
    for (int64_t rank : sums.of(content.sum))
      ranks += (ranks.empty() ? "" : " + ") + std::to_string(rank);
    return "byte " + std::to_string(content.inputByte) + " of the inputs of value " +
           std::to_string(content.value) + " at positions " + ranks;
  }

  Status results() {
    for (int64_t rank = 0; rank < request.ranks; ++rank)
      for (uint32_t v = 0; v < request.values.size(); ++v) {
        const int64_t partBytes = request.values[v].partBytes;
        for (int64_t part = 0; part < request.outputParts() && partBytes > 0; ++part) {
          const std::string where = " of the output of value " + std::to_string(v) +
                                    " at position " + std::to_string(rank);
          int64_t next = part * partBytes;
          const Piece output{Space::output, v, next, partBytes};
          for (const Memory::Run &run : memory(rank, output).read(next, output.end())) {
            if (run.begin != next)
              break;
            if (run.content.value != v || !isResult(rank, run))
              return Status::error("result: byte ", run.begin, where, " holds ",
                                   contentText(run.content));
            next = run.end;
          }
          if (next != output.end())
            return Status::error("result: byte ", next, where, " is not written");
        }
      }
    return {};
  }

  const ScheduleRequest &request;
  const std::vector<Schedule> &schedules;
  StepOrder order;
  Sums sums;
  std::map<std::pair<int64_t, MemoryKey>, Memory> memories;
  std::map<StepAt, std::vector<Memory::Run>> sent;
};

/// The steps of both, with nothing between them.
Schedule together(const Schedule &a, const Schedule &b) {
  Schedule both = a;
  both.scratchBytes += b.scratchBytes;
  for (ScheduleStep step : b.steps) {
    step.firstSource += static_cast<uint32_t>(a.sources.size());
    step.firstDependency += static_cast<uint32_t>(a.dependencies.size());
    both.steps.push_back(step);
  }
  both.sources.insert(both.sources.end(), b.sources.begin(), b.sources.end());
  for (uint32_t other : b.dependencies)
    both.dependencies.push_back(other + static_cast<uint32_t>(a.steps.size()));
  return both;
}

} // namespace

Status checkSchedules(const ScheduleRequest &request, const std::vector<Schedule> &schedules,
                      int64_t messagesInFlight) {
  RETURN_IF_ERROR(checkRequest(request));
  if (messagesInFlight < 1)
    return Status::error("a check expects at least 1 message in flight, got ", messagesInFlight);
  if (static_cast<int64_t>(schedules.size()) != request.ranks)
    return Status::error("a check expects the schedules of ", request.ranks, " ranks, got ",
                         schedules.size());
  for (size_t i = 0; i < schedules.size(); ++i)
    if (schedules[i].position != static_cast<int64_t>(i))
      return Status::error("a check expects schedules in the order of positions, got that of ",
                           schedules[i].position, " at ", i);
  if (!isPointToPoint(request.kind))
    return Check(request, schedules).run(messagesInFlight);
  ScheduleRequest other = request;
  const bool sends = request.kind == CollectiveKind::send;
  other.kind = sends ? CollectiveKind::recv : CollectiveKind::send;
  std::vector<Schedule> all;
  for (const Schedule &schedule : schedules) {
    ASSIGN_OR_RETURN(const Schedule rest, makeSchedule(other, schedule.position));
    all.push_back(sends ? together(schedule, rest) : together(rest, schedule));
  }
  return Check(request, all).run(messagesInFlight);
}

} // namespace braid::runtime
