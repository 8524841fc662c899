//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives between processes give the same bits as between threads; ranks that are killed or
// stopped at random moments end the others within the limit, and nothing is left behind.
//
//===----------------------------------------------------------------------===//
#include "CollectiveValues.h"
#include "LimitTesting.h"
#include "Streams.h"
#include "Testing.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Model/Processes.h"
#include "runtime/lib/Sync/HostMemory.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <random>
#include <set>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

/// The seed, which is logged, or read from the environment to repeat a failure.
uint32_t testSeed() {
  const char *given = std::getenv("BRAID_TEST_SEED");
  return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
}

using Groups = std::vector<std::vector<int64_t>>;

/// A collective of all ranks, each in its group.
struct Step {
  CollectiveKind kind;
  ReduceKind reduce;
  DType dtype;
  Groups groups;
  int64_t outer, inner; ///< of a chunk
};

/// The rank's input or output consists of one chunk for each rank.
bool isOfChunks(CollectiveKind kind) {
  return kind == CollectiveKind::reduceScatter || kind == CollectiveKind::allGather ||
         kind == CollectiveKind::allToAll;
}
const CollectiveKind kAllKinds[] = {CollectiveKind::allReduce, CollectiveKind::reduceScatter,
                                    CollectiveKind::allGather, CollectiveKind::allToAll,
                                    CollectiveKind::reduce,    CollectiveKind::broadcast,
                                    CollectiveKind::permute};

/// Ranks of one transport; all their collectives are created in advance.
class TestWorld {
public:
  TestWorld(bool processes, int64_t ranks, const std::vector<Step> &steps, double timeLimit = 60)
      : transport(processes ? createShmTransport(ranks) : createThreadsTransport(ranks)),
        control(ranks, computeAndCommunication(), timeLimit, {20, false},
                processes ? Sharing::forks : Sharing::process),
        commands(static_cast<size_t>(ranks)), ranks(ranks) {
    uint64_t end = 0;
    for (const Step &step : steps) {
      size_t index = commands[0].size();
      uint64_t bytes = 0;
      for (const auto &group : step.groups) {
        int64_t size = static_cast<int64_t>(group.size());
        Part part{step.dtype, {step.outer, step.inner}, 0, 0};
        int64_t dim = isOfChunks(step.kind) ? 1 : 0, concat = dim;
        if (step.kind == CollectiveKind::allToAll && index % 2) // between two dimensions
          dim = 0;
        bytes = static_cast<uint64_t>(step.outer * step.inner * size * byteSize(step.dtype));
        bytes = (bytes + 63) / 64 * 64;
        part.input = end;
        part.output = end + bytes;
        for (int64_t rank : group) {
          CollectiveCommand op{};
          op.collective.kind = step.kind;
          op.collective.reduce = step.reduce;
          op.collective.dim = dim;
          op.collective.concatDim = concat;
          if (step.kind == CollectiveKind::reduce || step.kind == CollectiveKind::broadcast)
            op.collective.root = static_cast<int64_t>(index) % size;
          for (int64_t s = 0; step.kind == CollectiveKind::permute && s + 1 < size; ++s)
            op.collective.pairs.push_back({s, (s + static_cast<int64_t>(index)) % size});
          op.collective.values = {valueOf(op.collective, size, part)};
          op.collective.queue = kCommunicationQueue;
          op.collective.group = transport->group(group, kCommunicationQueue);
          op.collective.position = std::find(group.begin(), group.end(), rank) - group.begin();
          op.collective.name = "step." + std::to_string(index);
          EXPECT_OK(transport->plan(op.collective));
          Command c;
          c.name = op.collective.name;
          c.operation = name(step.kind);
          c.op = std::move(op);
          commands[static_cast<size_t>(rank)].push_back(std::move(c));
        }
      }
      end += 2 * bytes;
    }
    EXPECT_OK(transport->allocate(end));
    symmetricBytes = end;
    control.begin();
  }

  /// Values whose sums are rounded and that are valid in every type.
  void fill(const std::vector<Step> &steps, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, 40);
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (size_t s = 0; s < steps.size(); ++s) {
        const CollectiveValue &v = value(rank, s);
        std::byte *in = transport->heap(rank).peer(rank, v.input.offset);
        for (uint64_t at = 0; at < v.output.offset - v.input.offset;
             at += static_cast<uint64_t>(byteSize(v.dtype))) {
          float x = static_cast<float>(normal(random));
          uint32_t bits;
          std::memcpy(&bits, &x, 4);
          switch (v.dtype) {
          case DType::f32:
            std::memcpy(in + at, &x, 4);
            break;
          case DType::f64: {
            double wide = x / 3.0;
            std::memcpy(in + at, &wide, 8);
            break;
          }
          case DType::bf16:
            bits >>= 16;
            std::memcpy(in + at, &bits, 2);
            break;
          case DType::f16: // an exponent that is not all ones
            bits = random() & 0xbbff;
            std::memcpy(in + at, &bits, 2);
            break;
          default: {
            int64_t whole = static_cast<int64_t>(x);
            std::memcpy(in + at, &whole, static_cast<size_t>(byteSize(v.dtype)));
          }
          }
        }
      }
  }

  const CollectiveValue &value(int64_t rank, size_t step) const {
    return std::get<CollectiveCommand>(commands[static_cast<size_t>(rank)][step].op)
        .collective.values[0];
  }

  /// Does the work of a communication queue; true when all steps are done.
  bool work(int64_t rank, uint32_t seed, unsigned maxSleepUs) {
    std::mt19937 random(seed + static_cast<uint32_t>(rank));
    QueueState &self = control.queue(rank, kCommunicationQueue);
    for (const Command &c : commands[static_cast<size_t>(rank)]) {
      self.at.store(&c);
      if (random() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % (maxSleepUs + 1)));
      if (!transport->run(std::get<CollectiveCommand>(c.op).collective, transport->heap(rank),
                          control, self))
        return false;
      self.progress.fetch_add(1);
    }
    self.at.store(nullptr);
    return true;
  }

  std::unique_ptr<Transport> transport;
  RunControl control;
  std::vector<std::vector<Command>> commands;
  int64_t ranks;
  uint64_t symmetricBytes = 0;
};

/// Waits until all processes have ended; returns how each ended, by rank.
std::vector<std::string> join(Processes &processes, int64_t ranks, double limit) {
  std::vector<std::string> how(static_cast<size_t>(ranks), "still running");
  for (int64_t begin = nowNs();
       processes.numRunning() > 0 && static_cast<double>(nowNs() - begin) < limit * 1e9;)
    for (const Processes::End &end : processes.wait(10000000))
      how[static_cast<size_t>(end.rank)] = end.how;
  return how;
}

/// One group of all ranks, and pairs in reverse order; for 6 ranks also rows and columns of a mesh.
std::vector<Groups> groupsOf(int64_t ranks) {
  Groups whole(1), pairs;
  for (int64_t r = 0; r < ranks; ++r)
    whole[0].push_back(r);
  for (int64_t r = 0; r + 1 < ranks; r += 2)
    pairs.push_back({r + 1, r});
  if (ranks % 2)
    pairs.push_back({ranks - 1});
  std::vector<Groups> all{whole, pairs};
  if (ranks == 6)
    all.insert(all.end(), {Groups{{0, 1, 2}, {3, 4, 5}}, Groups{{0, 3}, {1, 4}, {2, 5}}});
  return all;
}

class Ranks : public ::testing::TestWithParam<int64_t> {};

TEST_P(Ranks, ProcessesGiveTheBitsOfThreads) {
  const int64_t ranks = GetParam();
  const uint32_t seed = testSeed();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  std::vector<Step> steps;
  for (const Groups &groups : groupsOf(ranks))
    for (DType dtype :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8})
      for (CollectiveKind kind : kAllKinds)
        for (auto reduce : {ReduceKind::sum, ReduceKind::max, ReduceKind::min})
          for (auto [outer, inner] : {std::pair{1, 1}, std::pair{3, 37}, std::pair{1, 1021}})
            // Groups of different sizes in one step would need buffers of different sizes.
            if (groups.front().size() == groups.back().size())
              steps.push_back({kind, reduce, dtype, groups, outer, inner});
  std::shuffle(steps.begin(), steps.end(), std::mt19937(seed));
  TestWorld threads(false, ranks, steps), forks(true, ranks, steps);
  threads.fill(steps, seed);
  forks.fill(steps, seed);

  std::vector<std::thread> running;
  Processes processes; // before the threads: a fork copies only the calling thread
  ASSERT_OK(
      processes.start(ranks, [&](int64_t rank) { return forks.work(rank, seed, 50) ? 0 : 1; }));
  for (int64_t r = 0; r < ranks; ++r)
    running.emplace_back([&, r] { EXPECT_TRUE(threads.work(r, seed, 50)); });
  for (std::thread &thread : running)
    thread.join();
  for (const std::string &how : join(processes, ranks, 60))
    EXPECT_EQ(how, "ended with status 0") << forks.control.failure().message();

  for (int64_t r = 0; r < ranks; ++r)
    for (size_t s = 0; s < steps.size(); ++s) {
      const CollectiveValue &v = threads.value(r, s);
      ASSERT_EQ(std::memcmp(threads.transport->heap(r).peer(r, v.output.offset),
                            forks.transport->heap(r).peer(r, v.output.offset),
                            v.output.offset - v.input.offset),
                0)
          << name(steps[s].kind) << " " << name(steps[s].dtype) << " on rank " << r;
    }
  // The comparison is only meaningful if the collectives wrote something.
  std::set<CollectiveKind> wrote;
  for (int64_t r = 0; r < ranks; ++r)
    for (size_t s = 0; s < steps.size(); ++s) {
      const std::byte *out = forks.transport->heap(r).peer(r, forks.value(r, s).output.offset);
      if (std::any_of(out, out + byteSize(steps[s].dtype) * steps[s].inner,
                      [](std::byte b) { return b != std::byte(0); }))
        wrote.insert(steps[s].kind);
    }
  // A permute in a group of one rank has no source and gives zeros.
  EXPECT_EQ(wrote.size(), std::size(kAllKinds) - (ranks == 1 ? 1 : 0));
}
INSTANTIATE_TEST_SUITE_P(Of, Ranks, ::testing::Values(1, 2, 3, 4, 5, 6));

constexpr int64_t kLostRanks = 3;

/// The failure of ranks that run collectives endlessly, after one of them gets the signal.
Status failureWithout(int64_t victim, CollectiveKind kind, int signal, double limit,
                      std::mt19937 &random) {
  std::vector<Step> steps(100, {kind, ReduceKind::sum, DType::f32, {{0, 1, 2}}, 1, 33});
  TestWorld world(true, kLostRanks, steps, limit);
  int pipes[2];
  if (pipe(pipes) != 0)
    return Status::error("no pipe");
  const uint32_t seed = random();
  Processes processes;
  Status started = processes.start(kLostRanks,
                                   [&](int64_t rank) {
                                     pid_t self[2] = {static_cast<pid_t>(rank), getpid()};
                                     if (write(pipes[1], self, sizeof self) != sizeof self)
                                       return 2;
                                     while (world.work(rank, seed, 100)) {
                                     }
                                     return 1;
                                   },
                                   {pipes[1]});
  if (!started.ok())
    return started;
  pid_t pidOf[kLostRanks];
  for (int64_t r = 0; r < kLostRanks; ++r) {
    pid_t told[2];
    if (read(pipes[0], told, sizeof told) != static_cast<ssize_t>(sizeof told))
      return Status::error("a rank did not begin");
    pidOf[told[0]] = told[1];
  }
  close(pipes[0]);
  close(pipes[1]);
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
  EXPECT_EQ(kill(pidOf[victim], signal), 0);
  int64_t begin = nowNs();
  if (signal == SIGSTOP) { // it stays stopped until it is killed
    while (processes.numRunning() > 1 && nowNs() - begin < 60000000000)
      processes.wait(10000000);
    const bool stopped = processes.numRunning() == 1 && processes.running(victim);
    processes.kill();
    if (!stopped)
      return Status::error("expects all but the stopped rank to end");
  } else {
    std::string how = join(processes, kLostRanks, 60)[static_cast<size_t>(victim)];
    if (how != "was ended by signal 9 (Killed)")
      return Status::error("the rank " + how);
  }
  EXPECT_LT(static_cast<double>(nowNs() - begin) * 1e-9, limit + 30);
  return world.control.failure();
}

class Lost : public ::testing::TestWithParam<std::tuple<CollectiveKind, int>> {};

/// A rank is lost while ranks run collectives endlessly.
TEST_P(Lost, EndsTheOthersWithinTheLimit) {
  const CollectiveKind kind = std::get<0>(GetParam());
  const int signal = std::get<1>(GetParam());
  const uint32_t seed = testSeed();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 5; ++round) {
    const int64_t victim = random() % kLostRanks;
    expectRankFailed(
        MatchesRegex("rank [0-2]: " + std::string(name(kind)) +
                     " 'step\\.[0-9]+' on the communication queue waited [0-9.]+ s for rank " +
                     std::to_string(victim) + ", which has not arrived \\(.*\\)"),
        [&](double limit) { return failureWithout(victim, kind, signal, limit, random); });
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1); // no process is left to wait for
    EXPECT_EQ(errno, ECHILD);
  }
}
INSTANTIATE_TEST_SUITE_P(In, Lost,
                         ::testing::Combine(::testing::ValuesIn(kAllKinds),
                                            ::testing::Values(SIGKILL, SIGSTOP)));

TEST(Lost, AllThatHaveNotArrivedAreNamed) {
  expectRankFailed(
      MatchesRegex("rank [02]: all_reduce 'step\\.0' on the communication queue waited [0-9.]+ s "
                   "for ranks 1 and 3, which have not arrived \\(rank 1 is .*; rank 3 is .*\\)"),
      [](double limit) {
        TestWorld world(
            true, 4,
            // Each rank sums a share, so that each needs all others.
            {{CollectiveKind::allReduce, ReduceKind::sum, DType::f32, {{0, 1, 2, 3}}, 1, 1024}},
            limit);
        Processes processes;
        EXPECT_OK(processes.start(4, [&](int64_t rank) {
          if (rank % 2)
            return 0; // does not arrive
          return world.work(rank, 1, 0) ? 0 : 1;
        }));
        join(processes, 4, 60);
        return world.control.failure();
      });
}

TEST(HostMemory, WhatDoesNotFitIsRefusedWithItsSize) {
  HostMemory memory;
  EXPECT_THAT(memory.map(size_t(1) << 50, Sharing::forks).message(),
              MatchesRegex("cannot allocate 1125899906842624 bytes, the system has [0-9]+ "
                           "available: Cannot allocate memory"));
  EXPECT_THAT(memory.map(SIZE_MAX).message(),
              MatchesRegex("cannot allocate 18446744073709551615 bytes, the system has [0-9]+ "
                           "available: Cannot allocate memory"));
  EXPECT_EQ(memory.data(), nullptr);
}

TEST(HostMemory, LargeMemoryBeginsAtAHugePage) {
  for (const Sharing sharing : {Sharing::process, Sharing::forks})
    for (size_t bytes : {size_t(1), size_t(5000), size_t(1) << 21, (size_t(5) << 20) + 3}) {
      HostMemory memory;
      ASSERT_OK(memory.map(bytes, sharing));
      EXPECT_EQ(memory.bytes(), bytes);
      const size_t alignment = bytes >= size_t(1) << 21 ? size_t(1) << 21 : 4096;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % alignment, 0u);
      for (size_t at : {size_t(0), bytes / 2, bytes - 1})
        EXPECT_EQ(memory.data()[at], std::byte{0});
      std::memset(memory.data(), 1, bytes);
    }
}

/// Whether some process has allocated a page of shared memory.
bool isAllocated(std::byte *page) {
  unsigned char resident = 0;
  EXPECT_EQ(mincore(page, 1, &resident), 0);
  return resident & 1;
}

TEST(HostMemory, TouchAllocatesThePagesOfARange) {
  constexpr size_t kPage = 4096;
  for (const Sharing sharing : {Sharing::process, Sharing::forks}) {
    HostMemory memory;
    ASSERT_OK(memory.map(8 * kPage, sharing));
    memory.data()[3 * kPage] = std::byte{7};
    ASSERT_OK(memory.touch(2 * kPage + 100, 2 * kPage - 100));
    ASSERT_OK(memory.touch(6 * kPage, 0));
    for (size_t page = 0; page < 8; ++page)
      EXPECT_EQ(isAllocated(memory.data() + page * kPage), page == 2 || page == 3) << page;
    EXPECT_EQ(memory.data()[3 * kPage], std::byte{7}) << "touching changes nothing";
    EXPECT_EQ(memory.data()[2 * kPage], std::byte{0});
  }
}

/// Where a write would end the process, touching is an error.
TEST(HostMemory, TouchReportsPagesThatCannotBeAllocated) {
  constexpr size_t kPage = 4096;
  HostMemory memory;
  ASSERT_OK(memory.map(4 * kPage, Sharing::forks));
  ASSERT_EQ(munmap(memory.data() + 2 * kPage, kPage), 0);
  ASSERT_OK(memory.touch(0, 2 * kPage));
  EXPECT_THAT(memory.touch(0, 4 * kPage).message(),
              MatchesRegex("cannot allocate 16384 bytes, the system has [0-9]+ available: Cannot "
                           "allocate memory"));
}

/// Bytes of this process's shared memory at a block that are in a huge page.
size_t hugeBytesAt(const std::byte *block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  const std::string field = "ShmemPmdMapped:";
  std::ifstream file("/proc/self/smaps");
  bool isIn = false;
  for (std::string line; std::getline(file, line);) {
    // "first-last rwxs ..." begins a mapping, "Field: number kB" is of the last one.
    char *end = nullptr;
    const uintptr_t first = std::strtoull(line.c_str(), &end, 16);
    if (*end == '-')
      isIn = first <= address && address < std::strtoull(end + 1, nullptr, 16);
    else if (isIn && line.rfind(field, 0) == 0)
      return std::strtoull(line.c_str() + field.size(), nullptr, 10) * 1024;
  }
  return 0;
}

/// Also where the system's setting for shared memory ignores requests for huge pages.
TEST(HostMemory, SharedMemoryThatIsTouchedIsInHugePages) {
  constexpr size_t kHuge = size_t(1) << 21, kPage = 4096;
  // Linux has what this needs since 6.1.
  HostMemory probe;
  ASSERT_OK(probe.map(kHuge, Sharing::forks));
  probe.data()[0] = std::byte{1};
  if (madvise(probe.data(), kHuge, 25 /* MADV_COLLAPSE */) != 0)
    GTEST_SKIP()
        << "shared memory has huge pages since Linux 6.1, unless 'shmem_enabled' is 'deny': "
        << std::strerror(errno);
  const int descriptor = memfd_create("braid-test", MFD_CLOEXEC);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(ftruncate(descriptor, 4 * kHuge), 0);
  for (bool isFile : {false, true}) {
    HostMemory memory;
    ASSERT_OK(isFile ? memory.mapFile(descriptor, 4 * kHuge)
                     : memory.map(4 * kHuge, Sharing::forks));
    std::byte *const data = memory.data();
    data[kHuge + 5] = std::byte{7};
    data[3 * kHuge - 1] = std::byte{8};
    // Of the first block and the last one only a part.
    ASSERT_OK(memory.touch(kHuge - kPage, 2 * kHuge + 2 * kPage));
    EXPECT_EQ(hugeBytesAt(data), 2 * kHuge) << isFile;
    EXPECT_EQ(data[kHuge + 5], std::byte{7}) << "touching changes nothing";
    EXPECT_EQ(data[3 * kHuge - 1], std::byte{8});
    EXPECT_FALSE(isAllocated(data));
    EXPECT_TRUE(isAllocated(data + kHuge - kPage));
    EXPECT_TRUE(isAllocated(data + 3 * kHuge));
    EXPECT_FALSE(isAllocated(data + 3 * kHuge + kPage));
    // Another process sees the same.
    Processes processes;
    ASSERT_OK(processes.start(1, [&](int64_t) {
      const bool same = data[kHuge + 5] == std::byte{7} && data[3 * kHuge - 1] == std::byte{8};
      return same && hugeBytesAt(data) == 2 * kHuge ? 0 : 1;
    }));
    EXPECT_EQ(join(processes, 1, 60)[0], "ended with status 0");
  }
  close(descriptor);
}

/// Neither the launcher nor a peer touches the symmetric memory of a rank.
TEST(ShmTransport, ARankTouchesItsOwnSymmetricMemory) {
  constexpr size_t kBytes = 10 * 4096;
  auto transport = createShmTransport(3);
  ASSERT_OK(transport->allocate(kBytes));
  auto touched = [&] {
    std::vector<int64_t> ranks;
    for (int64_t r = 0; r < 3; ++r) {
      std::byte *begin = transport->heap(r).peer(r, 0);
      auto *page = begin - reinterpret_cast<uintptr_t>(begin) % 4096;
      int pages = 0;
      for (; page < begin + kBytes; page += 4096)
        pages += isAllocated(page);
      if (pages > 0)
        ranks.push_back(r);
      EXPECT_TRUE(pages == 0 || pages >= 10) << pages;
    }
    return ranks;
  };
  using Ranks = std::vector<int64_t>;
  EXPECT_EQ(touched(), Ranks());
  for (int64_t rank : {1, 0, 2}) {
    Processes processes;
    ASSERT_OK(processes.start(
        3, [&](int64_t self) { return self != rank || transport->touch(self).ok() ? 0 : 1; }));
    for (const std::string &how : join(processes, 3, 60))
      EXPECT_EQ(how, "ended with status 0");
    EXPECT_EQ(touched(), rank == 1 ? Ranks({1}) : rank == 0 ? Ranks({0, 1}) : Ranks({0, 1, 2}));
  }
}

} // namespace
