//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Group/Group.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/Staging.h"

#include <csignal>
#include <fstream>
#include <future>
#include <numeric>
#include <set>
#include <sstream>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

namespace {

constexpr int64_t kLimit = 20 * kSecond;

GroupOptions optionsOf(int64_t rank, int64_t size) {
  GroupOptions options;
  options.rank = rank;
  options.size = size;
  options.name = "g";
  options.secret = *net::JobSecret::fromText("a secret of the job");
  options.transports = "tcp";
  return options;
}

/// Asks, and waits for the callback.
class Asked {
public:
  Group::Done done() {
    return [this](const Status &status) { result.set_value(status); };
  }
  Status wait() { return result.get_future().get(); }

private:
  std::promise<Status> result;
};

Status run(Group &group, const std::string &signature, GroupCollective collective,
           int64_t limit = kLimit) {
  Asked asked;
  group.run(signature, std::move(collective), limit, asked.done());
  return asked.wait();
}

GroupCollective sumOf(std::vector<int32_t> &values) {
  return {CollectiveKind::allReduce,
          ReduceKind::sum,
          0,
          {{DType::i32, values.data(), values.data(), static_cast<int64_t>(values.size())}}};
}

using Work = std::function<Status(Group &)>;

Status inGroup(const Board &board, const GroupOptions &options, const Work &work) {
  ASSIGN_OR_RETURN(std::unique_ptr<Group> group, Group::create(options));
  board.write("introduction" + std::to_string(options.rank), group->introduction());
  std::vector<std::string> introductions;
  for (int64_t rank = 0; rank < options.size; ++rank)
    introductions.push_back(board.read("introduction" + std::to_string(rank)));
  RETURN_IF_ERROR(group->connect(introductions));
  RETURN_IF_ERROR(work(*group));
  group->close(5 * kSecond);
  return {};
}

std::string text(const Status &status) { return status.ok() ? "done" : status.message(); }

/// What came of each rank.
std::vector<std::string> resultsOf(int64_t ranks,
                                   const std::function<Status(Group &, int64_t rank)> &work,
                                   const std::function<void(GroupOptions &)> &change = {}) {
  Board board;
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    GroupOptions options = optionsOf(rank, ranks);
    if (change)
      change(options);
    return text(inGroup(board, options, [&](Group &group) { return work(group, rank); }));
  });
  std::vector<std::string> results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    results.push_back(processes.result(rank));
  return results;
}

/// How messages go between the ranks of a host.
enum class Over { links, memory, both };
void PrintTo(Over over, std::ostream *os) {
  *os << (over == Over::links ? "links" : over == Over::memory ? "memory" : "both");
}

class GroupOver : public ::testing::TestWithParam<Over> {
protected:
  static std::vector<std::string>
  resultsOf(int64_t ranks, const std::function<Status(Group &, int64_t rank)> &work) {
    return ::resultsOf(ranks, work, [&](GroupOptions &options) {
      if (GetParam() != Over::links)
        options.transports.clear();
      // A rank that does not share its memory.
      if (GetParam() == Over::both && options.rank == 1)
        options.transports = "all";
    });
  }
  static void expectDone(int64_t ranks, const std::function<Status(Group &, int64_t rank)> &work) {
    for (const std::string &result : resultsOf(ranks, work))
      EXPECT_EQ(result, "done");
  }
};
INSTANTIATE_TEST_SUITE_P(Of, GroupOver, ::testing::Values(Over::links, Over::memory, Over::both));

Status expectEqual(const std::vector<int32_t> &got, const std::vector<int32_t> &expected,
                   const std::string &what) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (got.size() != expected.size() || got[i] != expected[i])
      return Status::error(what, ": element ", i, " is ", got[i], ", expected ", expected[i]);
  return {};
}

/// The number of an element of a rank.
int32_t valueOf(int64_t rank, size_t i) {
  return static_cast<int32_t>(100 * rank + static_cast<int64_t>(i));
}
std::vector<int32_t> valuesOf(int64_t rank, size_t count) {
  std::vector<int32_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = valueOf(rank, i);
  return values;
}

TEST_P(GroupOver, RunsEveryKindOnMemoryOfItsCallers) {
  expectDone(3, [](Group &group, int64_t rank) -> Status {
    // The last ones fill the slots of staging but for one element, and exceed them by one.
    const size_t slots = static_cast<size_t>(Staging::shapeFor(3).slotBytes) *
                         Staging::shapeFor(3).depth / sizeof(int32_t);
    for (const size_t count :
         {size_t(0), size_t(1), size_t(77), size_t(200000), slots - 1, slots, slots + 1}) {
      const auto n = static_cast<int64_t>(count);
      std::vector<int32_t> sum(count), all, mine = valuesOf(rank, count);
      for (int64_t r = 0; r < 3; ++r) {
        const std::vector<int32_t> one = valuesOf(r, count);
        all.insert(all.end(), one.begin(), one.end());
        for (size_t i = 0; i < count; ++i)
          sum[i] += one[i];
      }
      std::vector<int32_t> out = mine;
      RETURN_IF_ERROR(run(group, "all_reduce", sumOf(out)));
      RETURN_IF_ERROR(expectEqual(out, sum, "all_reduce in place"));
      // Two values of different memory.
      std::vector<int32_t> other(count), least(count);
      RETURN_IF_ERROR(run(group, "all_reduce of two",
                          {CollectiveKind::allReduce,
                           ReduceKind::max,
                           0,
                           {{DType::i32, mine.data(), other.data(), n},
                            {DType::i32, mine.data(), least.data(), n}}}));
      RETURN_IF_ERROR(expectEqual(other, valuesOf(2, count), "all_reduce (max)"));
      RETURN_IF_ERROR(expectEqual(least, valuesOf(2, count), "all_reduce of the second value"));
      RETURN_IF_ERROR(expectEqual(mine, valuesOf(rank, count), "the input"));
      // Only the root has an output.
      std::vector<int32_t> root(count);
      RETURN_IF_ERROR(run(group, "reduce",
                          {CollectiveKind::reduce,
                           ReduceKind::sum,
                           1,
                           {{DType::i32, mine.data(), rank == 1 ? root.data() : nullptr, n}}}));
      RETURN_IF_ERROR(expectEqual(root, rank == 1 ? sum : std::vector<int32_t>(count), "reduce"));
      std::vector<int32_t> sent = mine;
      RETURN_IF_ERROR(run(group, "broadcast",
                          {CollectiveKind::broadcast,
                           ReduceKind::sum,
                           2,
                           {{DType::i32, sent.data(), sent.data(), n}}}));
      RETURN_IF_ERROR(expectEqual(sent, valuesOf(2, count), "broadcast"));
      std::vector<int32_t> gathered(3 * count);
      RETURN_IF_ERROR(run(group, "all_gather",
                          {CollectiveKind::allGather,
                           ReduceKind::sum,
                           0,
                           {{DType::i32, mine.data(), gathered.data(), n}}}));
      RETURN_IF_ERROR(expectEqual(gathered, all, "all_gather"));
      // All ranks have the same three parts, so each part is three times itself.
      std::vector<int32_t> part(count), expected = valuesOf(rank, count);
      for (int32_t &value : expected)
        value *= 3;
      RETURN_IF_ERROR(run(group, "reduce_scatter",
                          {CollectiveKind::reduceScatter,
                           ReduceKind::sum,
                           0,
                           {{DType::i32, all.data(), part.data(), n}}}));
      RETURN_IF_ERROR(expectEqual(part, expected, "reduce_scatter"));
      std::vector<int32_t> exchanged(3 * count), mineThrice;
      for (int64_t r = 0; r < 3; ++r)
        mineThrice.insert(mineThrice.end(), mine.begin(), mine.end());
      RETURN_IF_ERROR(run(group, "all_to_all",
                          {CollectiveKind::allToAll,
                           ReduceKind::sum,
                           0,
                           {{DType::i32, mineThrice.data(), exchanged.data(), n}}}));
      RETURN_IF_ERROR(expectEqual(exchanged, all, "all_to_all"));
    }
    return {};
  });
}

/// Memory files of ranks that are mapped here.
size_t mappedArenas() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:braid-arena") != std::string::npos) {
      // Addresses, access, offset and device come before the number of the file.
      std::istringstream fields(line);
      std::string field;
      for (int i = 0; i < 5; ++i)
        fields >> field;
      files.insert(field);
    }
  return files.size();
}

TEST_P(GroupOver, RanksThatDoShareMemory) {
  expectDone(3, [](Group &, int64_t rank) -> Status {
    size_t expected = 0;
    if (GetParam() == Over::memory)
      expected = 3;
    else if (GetParam() == Over::both && rank != 1)
      expected = 2;
    return mappedArenas() == expected
               ? Status()
               : Status::error("shares the memory of ", mappedArenas(), " ranks");
  });
}

TEST_P(GroupOver, ARankThatDiesIsNamed) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    GroupOptions options = optionsOf(rank, 2);
    if (GetParam() != Over::links)
      options.transports = GetParam() == Over::both && rank == 1 ? "all" : "";
    return text(inGroup(board, options, [&](Group &group) -> Status {
      std::vector<int32_t> ones{1};
      RETURN_IF_ERROR(run(group, "all_reduce", sumOf(ones)));
      if (rank == 1)
        kill(getpid(), SIGKILL);
      return run(group, "all_reduce", sumOf(ones));
    }));
  });
  EXPECT_THAT(processes.result(0),
              MatchesRegex("all_reduce, collective 2 of the group 'g': the connection to rank 1 "
                           "\\(.+\\) is lost: .+"));
}

TEST_P(GroupOver, ExchangesMessagesOfAnySize) {
  expectDone(3, [](Group &group, int64_t rank) -> Status {
    for (const size_t times : {size_t(1), size_t(90001)}) {
      // Of rank r for rank p: two messages of r + 2 p times as many numbers.
      auto count = [&](int64_t from, int64_t to) {
        return static_cast<size_t>(from + 2 * to) * times;
      };
      std::vector<std::vector<int32_t>> sent, received;
      std::vector<GroupMessage> messages;
      for (int64_t i = 0; i < 6; ++i) {
        sent.push_back(valuesOf(10 * rank + i, count(rank, i % 3)));
        received.emplace_back(count(i % 3, rank));
      }
      for (int64_t i = 0; i < 6; ++i) {
        const auto at = static_cast<size_t>(i);
        messages.push_back(
            {true, i % 3, sent[at].data(), static_cast<int64_t>(4 * sent[at].size())});
        messages.push_back(
            {false, i % 3, received[at].data(), static_cast<int64_t>(4 * received[at].size())});
      }
      Asked asked;
      group.exchange("all_to_all (i32)", messages, kLimit, asked.done());
      RETURN_IF_ERROR(asked.wait());
      for (int64_t i = 0; i < 6; ++i)
        RETURN_IF_ERROR(expectEqual(received[static_cast<size_t>(i)],
                                    valuesOf(10 * (i % 3) + rank + i / 3 * 3, count(i % 3, rank)),
                                    "from " + std::to_string(i % 3)));
    }
    return {};
  });
}

TEST_P(GroupOver, SizesThatDifferNameBoth) {
  const auto results = resultsOf(2, [](Group &group, int64_t rank) -> Status {
    std::vector<int32_t> sent(100000), received(100000);
    Asked asked;
    group.exchange("all_to_all (i32)",
                   {{true, 1 - rank, sent.data(), 400000},
                    {false, 1 - rank, received.data(), rank == 0 ? 399996 : 400000}},
                   kLimit, asked.done());
    return asked.wait();
  });
  EXPECT_THAT(results[0],
              MatchesRegex("all_to_all \\(i32\\), collective 1 of the group 'g': rank 1 \\(.+\\) "
                           "sent 400000 bytes where rank 0 expects 399996"));
}

TEST_P(GroupOver, SendsBesideCollectives) {
  expectDone(2, [](Group &group, int64_t rank) -> Status {
    int32_t number = rank == 0 ? 7 : 0, late = 0;
    std::promise<std::pair<Status, int64_t>> any;
    if (rank == 1)
      group.receive(-1, 3, &late, 4, kLimit,
                    [&](const Status &status, int64_t sender) { any.set_value({status, sender}); });
    // The collective ends though the receive before it waits.
    std::vector<int32_t> ones{1};
    RETURN_IF_ERROR(run(group, "all_reduce", sumOf(ones)));
    Asked asked;
    if (rank == 0) {
      group.send(1, 3, &number, 4, kLimit, asked.done());
      return asked.wait();
    }
    const auto [status, sender] = any.get_future().get();
    RETURN_IF_ERROR(status);
    return late == 7 && sender == 0 ? Status() : Status::error("other values came: ", late);
  });
}

TEST_P(GroupOver, CallsBackInOrder) {
  expectDone(2, [](Group &group, int64_t) -> Status {
    std::vector<std::vector<int32_t>> values(300, std::vector<int32_t>{1, 2, 3});
    std::vector<size_t> order;
    std::promise<void> last;
    for (size_t i = 0; i < values.size(); ++i)
      group.run("all_reduce", sumOf(values[i]), kLimit, [&, i](const Status &status) {
        if (status.ok())
          order.push_back(i);
        if (i + 1 == values.size())
          last.set_value();
      });
    last.get_future().wait();
    std::vector<size_t> expected(values.size());
    std::iota(expected.begin(), expected.end(), 0);
    if (order != expected)
      return Status::error("called back in another order");
    return expectEqual(values[299], {2, 4, 6}, "the last sum");
  });
}

/// A root that waits for nobody is held up before its messages fill the others' memory.
TEST(Group, ARootStaysWithinTwoRounds) {
  Board board;
  const auto results = resultsOf(2, [&](Group &group, int64_t rank) -> Status {
    constexpr int kMany = 1000;
    std::vector<int32_t> value{5};
    std::promise<void> last;
    std::atomic<int> ended{0};
    const GroupCollective broadcast = {CollectiveKind::broadcast,
                                       ReduceKind::sum,
                                       0,
                                       {{DType::i32, value.data(), value.data(), 1}}};
    auto ask = [&] {
      for (int i = 0; i < kMany; ++i)
        group.run("broadcast", broadcast, kLimit, [&](const Status &) {
          if (++ended == kMany)
            last.set_value();
        });
    };
    if (rank == 0) {
      ask();
      sleepFor(0.5);
      const int ahead = ended.load();
      board.write("waited", "");
      last.get_future().wait();
      return ahead == 256 ? Status() : Status::error("the root was ahead by ", ahead);
    }
    board.read("waited");
    ask();
    last.get_future().wait();
    return {};
  });
  EXPECT_EQ(results, (std::vector<std::string>{"done", "done"}));
}

TEST_P(GroupOver, WhatIsSentBeforeARankLeavesArrives) {
  const auto results = resultsOf(2, [&](Group &group, int64_t rank) -> Status {
    for (int i = 0; i < 50; ++i) {
      if (rank == 1 && i == 0)
        sleepFor(0.5);
      std::vector<int32_t> value(1000, rank == 0 ? i : -1);
      RETURN_IF_ERROR(run(group, "broadcast",
                          {CollectiveKind::broadcast,
                           ReduceKind::sum,
                           0,
                           {{DType::i32, value.data(), value.data(), 1000}}}));
      RETURN_IF_ERROR(expectEqual(value, std::vector<int32_t>(1000, i), "broadcast"));
    }
    return {};
  });
  EXPECT_EQ(results, (std::vector<std::string>{"done", "done"}));
}

TEST_P(GroupOver, RanksThatDisagreeNameBoth) {
  const auto results = resultsOf(3, [](Group &group, int64_t rank) -> Status {
    std::vector<int32_t> ones{1};
    RETURN_IF_ERROR(run(group, "all_reduce (sum, 1 i32)", sumOf(ones)));
    return run(group, rank == 1 ? "all_reduce (sum, 1 i32), the other" : "all_reduce (sum, 1 i32)",
               sumOf(ones));
  });
  for (const std::string &result : results) {
    EXPECT_THAT(result, HasSubstr("collective 2 of the group 'g': rank "));
    EXPECT_THAT(result, HasSubstr("runs all_reduce (sum, 1 i32)"));
    EXPECT_THAT(result, HasSubstr("all_reduce (sum, 1 i32), the other"));
  }
}

TEST_P(GroupOver, TimeLimitsNameWhoIsAwaited) {
  const auto results = resultsOf(2, [](Group &group, int64_t rank) -> Status {
    std::vector<int32_t> ones{1};
    if (rank == 1)
      sleepFor(4);
    return run(group, "all_reduce (sum, 1 i32)", sumOf(ones), 2 * kSecond);
  });
  EXPECT_THAT(results[0], MatchesRegex("all_reduce \\(sum, 1 i32\\), collective 1 of the group "
                                       "'g': rank 0 \\(.+\\) has waited 2.[0-9] s for rank 1 "
                                       "\\(.+\\), which has ended 0 collectives and runs none"));
  EXPECT_THAT(results[1], MatchesRegex("rank 0 \\(.+\\) has ended the group 'g': all_reduce.*"));
}

TEST_P(GroupOver, AfterAnEndNothingRuns) {
  const auto results = resultsOf(2, [](Group &group, int64_t rank) -> Status {
    if (rank == 0)
      group.end("rank 0 has had enough");
    std::vector<int32_t> ones{1};
    const Status first = run(group, "all_reduce", sumOf(ones));
    const Status second = run(group, "all_reduce", sumOf(ones));
    return first.message() == second.message() && group.state().message() == first.message()
               ? first
               : Status::error("other messages: ", first.message(), ", ", second.message());
  });
  EXPECT_EQ(results[0], "the group 'g' has ended: rank 0 has had enough");
  EXPECT_THAT(results[1], MatchesRegex("rank 0 \\(.+\\) has ended the group 'g': the group 'g' has "
                                       "ended: rank 0 has had enough"));
}

TEST(Group, RefusesIntroductionsThatDiffer) {
  auto ofRank1 = [](const std::function<void(GroupOptions &)> &change) {
    return resultsOf(
        2, [](Group &, int64_t) { return Status(); },
        [&](GroupOptions &options) {
          if (options.rank == 1)
            change(options);
        })[0];
  };
  EXPECT_EQ(
      ofRank1([](GroupOptions &options) {
        options.secret = *net::JobSecret::fromText("quite another secret");
      }),
      "the introduction of rank 1 of the group 'g' is not of a process with this job's secret");
  EXPECT_THAT(ofRank1([](GroupOptions &options) { options.name = "h"; }),
              MatchesRegex("the introduction of rank 1 of the group 'g' \\(.+\\): group 'g' is "
                           "expected, got 'h'"));
  EXPECT_EQ(text(Group::create(optionsOf(3, 2)).status()), "a group of 2 ranks has no rank 3");
}

TEST(Group, RefusesIntroductionsThatAreDamaged) {
  // In a process of its own, since UCX must not exist in a process that forks.
  RankProcessesOfTest processes(1, [](int64_t) -> std::string {
    Result<std::unique_ptr<Group>> group = Group::create(optionsOf(0, 1));
    if (!group.ok())
      return group.status().message();
    const std::string good = (*group)->introduction();
    for (size_t i = 0; i < good.size(); i += 7) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ 1);
      if ((*group)->connect({bad}).ok())
        return "byte " + std::to_string(i) + " is changed, and nobody sees it";
    }
    for (size_t length : {size_t(0), size_t(31), size_t(32), good.size() - 1})
      if ((*group)->connect({good.substr(0, length)}).ok())
        return "cut to " + std::to_string(length) + ", and nobody sees it";
    return text((*group)->connect({good}));
  });
  EXPECT_EQ(processes.result(0), "done");
}

} // namespace
