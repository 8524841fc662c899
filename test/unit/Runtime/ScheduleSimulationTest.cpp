//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the schedules of groups on data, in random legal orders, and compares the outputs with plain
// loops. It shares nothing with the check of schedules. Messages are read where they lie when they
// are taken, or copied when they are sent.
//
//===----------------------------------------------------------------------===//
#include "ScheduleTesting.h"

#include <map>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

using Floats = std::vector<float>;

/// The memories of one rank; all values are f32, and counts are numbers of rows as f32.
struct RankMemory {
  std::vector<Floats> inputs, outputs;
  Floats scratch;
};

class Simulation {
public:
  Simulation(const ScheduleRequest &request, uint32_t seed)
      : request(request), schedules(schedulesOf(request)), random(seed),
        copiesMessages(random() % 2 == 0), inFlight(1 + random() % 3) {
    std::uniform_real_distribution<float> values(-1, 1);
    for (int64_t rank = 0; rank < request.ranks; ++rank) {
      RankMemory memory;
      for (size_t v = 0; v < request.values.size(); ++v) {
        Floats input(elements(v) * static_cast<size_t>(request.inputParts()));
        for (float &x : input)
          // Where sums have no order, they are exact.
          x = isCounts(v) ? static_cast<float>(random() % (rows() + 1))
              : keepsRankOrder(request.algorithm, request.kind, request.ranks)
                  ? values(random)
                  : static_cast<float>(static_cast<int>(random() % 2000) - 1000);
        memory.inputs.push_back(input);
        memory.outputs.emplace_back(elements(v) * static_cast<size_t>(request.outputParts()),
                                    -12345.0F);
      }
      memory.scratch.assign(
          static_cast<size_t>(schedules[static_cast<size_t>(rank)].scratchBytes) / 4, -54321.0F);
      memories.push_back(memory);
    }
    given = memories;
  }

  /// "" or what is wrong.
  std::string run() {
    struct Place {
      size_t rank, step;
    };
    std::vector<Place> open;
    for (size_t rank = 0; rank < schedules.size(); ++rank) {
      states.emplace_back(schedules[rank].steps.size(), State::waits);
      for (size_t step = 0; step < schedules[rank].steps.size(); ++step)
        open.push_back({rank, step});
    }
    while (!open.empty()) {
      std::shuffle(open.begin(), open.end(), random);
      const auto next = std::find_if(open.begin(), open.end(), [&](const Place &place) {
        return isReady(place.rank, place.step);
      });
      if (next == open.end())
        return std::to_string(open.size()) + " steps wait for ever";
      perform(next->rank, next->step);
      open.erase(next);
    }
    for (const auto &[key, message] : messages)
      if (!message.taken)
        return "a message is not taken";
    return compare();
  }

private:
  enum class State { waits, began, ended };
  struct Message {
    size_t sender, step;
    Floats copy;
    bool taken = false;
  };
  /// Sender, receiver, number.
  using Key = std::tuple<int64_t, int64_t, uint32_t>;

  size_t elements(size_t v) const { return static_cast<size_t>(request.values[v].partBytes) / 4; }
  bool isCounts(size_t v) const {
    return request.kind == CollectiveKind::allToAllV && v + 1 == request.values.size();
  }
  /// A part of an all_to_all_v has rows of one element.
  size_t rows() const { return elements(0); }

  float *at(size_t rank, const Piece &piece) {
    RankMemory &memory = memories[rank];
    const bool shared = request.values[piece.value].inPlace && piece.space == Space::output;
    Floats &floats = piece.space == Space::scratch           ? memory.scratch
                     : piece.space == Space::input || shared ? memory.inputs[piece.value]
                                                             : memory.outputs[piece.value];
    EXPECT_LE(static_cast<size_t>(piece.end()) / 4, floats.size());
    return floats.data() + piece.offset / 4;
  }

  bool isReady(size_t rank, size_t number) {
    const Schedule &schedule = schedules[rank];
    const ScheduleStep &step = schedule.steps[number];
    for (uint32_t other : schedule.dependenciesOf(step))
      if (states[rank][other] != State::ended)
        return false;
    const auto self = static_cast<int64_t>(rank);
    if (step.kind == StepKind::send) {
      if (step.message > 0 && !messages.count({self, step.peer, step.message - 1}))
        return false;
      return step.message < inFlight ||
             messages.at({self, step.peer, step.message - static_cast<uint32_t>(inFlight)}).taken;
    }
    for (const StepSource &source : schedule.sourcesOf(step))
      if (source.isMessage() && !messages.count({source.peer, self, source.message}))
        return false;
    return true;
  }

  void perform(size_t rank, size_t number) {
    const Schedule &schedule = schedules[rank];
    const ScheduleStep &step = schedule.steps[number];
    const auto self = static_cast<int64_t>(rank);
    const auto count = static_cast<size_t>(step.piece.bytes) / 4;
    float *piece = at(rank, step.piece);
    if (step.kind == StepKind::send) {
      states[rank][number] = State::began;
      messages[{self, step.peer, step.message}] = {rank, number, Floats(piece, piece + count)};
      return;
    }
    std::vector<Floats> sources;
    for (const StepSource &source : schedule.sourcesOf(step)) {
      const float *from = nullptr;
      if (source.isMessage()) {
        Message &message = messages.at({source.peer, self, source.message});
        EXPECT_FALSE(message.taken);
        message.taken = true;
        states[message.sender][message.step] = State::ended;
        from = copiesMessages
                   ? message.copy.data()
                   : at(message.sender, schedules[message.sender].steps[message.step].piece);
      } else {
        from = at(rank, source.piece);
      }
      sources.emplace_back(from, from + count);
    }
    for (size_t i = 0; i < count; ++i) {
      float result = step.kind == StepKind::clear ? 0 : sources[0][i];
      for (size_t s = 1; s < sources.size(); ++s)
        result += sources[s][i];
      piece[i] = result;
    }
    if (step.counted)
      clearUncounted(rank, step, schedule.sourcesOf(step)[0], piece, count);
    states[rank][number] = State::ended;
  }

  /// The counts of a part tell how many of its rows are kept.
  void clearUncounted(size_t rank, const ScheduleStep &step, const StepSource &source, float *piece,
                      size_t count) {
    const size_t last = request.values.size() - 1;
    const bool local = !source.isMessage();
    const size_t part =
        static_cast<size_t>((local ? source.piece : step.piece).offset / 4) / rows();
    const float kept = (local ? memories[rank].inputs : memories[rank].outputs)[last][part];
    const size_t first = static_cast<size_t>(step.piece.offset / 4) % rows();
    for (size_t i = 0; i < count; ++i)
      if (static_cast<float>(first + i) >= kept)
        piece[i] = 0;
  }

  /// What the collective gives for element i of a part of the output of a rank, from the inputs.
  float expected(size_t rank, size_t v, size_t part, size_t i) const {
    const size_t mine = rank * elements(v) + i;
    auto sum = [&](size_t element) {
      float total = given[0].inputs[v][element];
      for (size_t other = 1; other < given.size(); ++other)
        total += given[other].inputs[v][element];
      return total;
    };
    switch (request.kind) {
    case CollectiveKind::allReduce:
      return sum(i);
    case CollectiveKind::reduceScatter:
      return sum(mine);
    case CollectiveKind::allGather:
      return given[part].inputs[v][i];
    case CollectiveKind::allToAllV:
      if (!isCounts(v) && static_cast<float>(i) >= given[part].inputs.back()[rank])
        return 0;
      [[fallthrough]];
    case CollectiveKind::allToAll:
      return given[part].inputs[v][mine];
    case CollectiveKind::reduce:
      return static_cast<int64_t>(rank) == request.root ? sum(i) : 0;
    case CollectiveKind::broadcast:
      return given[static_cast<size_t>(request.root)].inputs[v][i];
    default:
      for (auto [from, to] : request.pairs)
        if (to == static_cast<int64_t>(rank))
          return given[static_cast<size_t>(from)].inputs[v][i];
      return 0;
    }
  }

  std::string compare() {
    for (size_t rank = 0; rank < memories.size(); ++rank)
      for (size_t v = 0; v < request.values.size(); ++v)
        for (size_t part = 0; part < static_cast<size_t>(request.outputParts()); ++part)
          for (size_t i = 0; i < elements(v); ++i) {
            const float got = *at(rank, {Space::output, static_cast<uint32_t>(v),
                                         static_cast<int64_t>(part * elements(v) + i) * 4, 4});
            const float want = expected(rank, v, part, i);
            if (got != want)
              return "rank " + std::to_string(rank) + " has " + std::to_string(got) +
                     " at element " + std::to_string(i) + " of part " + std::to_string(part) +
                     " of value " + std::to_string(v) + ", not " + std::to_string(want);
          }
    return {};
  }

  const ScheduleRequest &request;
  const std::vector<Schedule> schedules;
  std::mt19937 random;
  const bool copiesMessages;
  const size_t inFlight;
  std::vector<RankMemory> memories, given;
  std::vector<std::vector<State>> states;
  std::map<Key, Message> messages;
};

class ScheduleSimulation : public ::testing::TestWithParam<CollectiveKind> {};

TEST_P(ScheduleSimulation, GivesThePlainResultInAnyOrder) {
  const uint32_t first = std::random_device()();
  RecordProperty("seed", std::to_string(first));
  uint32_t seed = first;
  for (int64_t ranks : {1, 2, 3, 4, 5, 8, 9})
    forEachRequest(GetParam(), ranks, {1, 127, 129, 700}, [&](const ScheduleRequest &request) {
      for (int order = 0; order < 3; ++order) {
        const std::string wrong = Simulation(request, ++seed).run();
        EXPECT_EQ(wrong, "") << requestText(request) << ", seed " << seed;
      }
    });
}

INSTANTIATE_TEST_SUITE_P(Of, ScheduleSimulation,
                         ::testing::Values(CollectiveKind::allReduce, CollectiveKind::reduceScatter,
                                           CollectiveKind::allGather, CollectiveKind::allToAll,
                                           CollectiveKind::allToAllV, CollectiveKind::broadcast,
                                           CollectiveKind::reduce, CollectiveKind::permute),
                         [](const auto &info) { return std::string(name(info.param)); });

} // namespace
