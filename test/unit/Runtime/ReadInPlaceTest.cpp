//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Payloads that are decoded in the memory of the ranks that send them: where that may be, and that
// nobody writes there before they are.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"
#include "CudaTesting.h"
#include "ProgramBuilder.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i8 = DType::i8;
constexpr int64_t kRanks = 2, kColumns = 64;

Encoding encoding() { return *Encoding::parse("int8:64"); }
int64_t partBytes() { return layoutOf(encoding(), f32, 1, kColumns, 1).partBytes; }

/// Waits on the rank whose operand is above 0, which is to decode late.
void sleepIfPositive(void *const *descriptors) {
  struct Memref {
    float *allocated, *aligned;
  };
  if (static_cast<const Memref *>(descriptors[0])->aligned[0] > 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
}

/// A row of each rank is encoded, gathered as a payload, and decoded: "y" has the rows of "x" on
/// all ranks. Then the same with "u", to "v", in other memory or in that of the first payload.
/// Tests change the steps between.
class Program {
public:
  Program() : b({{"tp", kRanks}}), bytes((partBytes() + 63) / 64 * 64) {
    b.operand("x", f32, {kRanks, kColumns}, {{"tp"}, {}});
    b.operand("u", f32, {kRanks, kColumns}, {{"tp"}, {}});
    b.result("y", f32, {kRanks, kColumns});
    b.result("v", f32, {kRanks, kColumns});
    b.result("slept", f32, {kRanks, 1}, {{"tp"}, {}});
    sleeper = b.kernel("sleeper", 2, sleepIfPositive);
  }

  /// Builds it with the operand of the second gather at these bytes.
  ProgramBuilder &build(int64_t secondAt) {
    auto main = b.procedure("main", 5, 0, static_cast<uint64_t>(6 * bytes), events);
    first = payload(main, "first", 0, 1);
    gathered = payload(main, "gathered", bytes, kRanks);
    second = payload(main, "second", secondAt, 1);
    last = payload(main, "last", 4 * bytes, kRanks);
    encode(main, 0, first);
    main.start("gather", fb::CollectiveKind::all_gather, {"tp"}, {first}, {gathered}, 0, 0, 1,
               "gather");
    beforeWait(main);
    main.wait("gather", 1);
    main.launch("sleep", sleeper, {argument(0, f32, {1, kColumns}), argument(4, f32, {1, 1})},
                {false, false}, 1);
    beforeDecode(main);
    decode(main, gathered, 2);
    afterDecode(main);
    encode(main, 1, second);
    main.start("again", fb::CollectiveKind::all_gather, {"tp"}, {second}, {last}, 0, 2, 3, "again");
    main.wait("again", 3);
    beforeLast(main);
    decode(main, last, 3);
    return b;
  }

  V payload(ProcedureBuilder &main, const std::string &name, int64_t at, int64_t parts) const {
    const auto offset = static_cast<uint64_t>(at);
    return symmetric(offset, i8, {parts, partBytes()})
        .of(main.buffer(name, fb::Space::symmetric, offset,
                        static_cast<uint64_t>(parts * partBytes())));
  }
  void encode(ProcedureBuilder &main, uint32_t from, const V &to) {
    LibraryLaunch launch{"encode", {}, {encoding().code(), 0}};
    launch.operands.push_back(argument(from, f32, {1, kColumns}).build());
    launch.operands.push_back(to.build());
    main.compute("encode", launchIn(b.program, std::move(launch)));
  }
  void decode(ProcedureBuilder &main, const V &from, uint32_t to) {
    decode(main, from, argument(to, f32, {kRanks, kColumns}));
  }
  void decode(ProcedureBuilder &main, const V &from, const V &to) {
    LibraryLaunch launch{"decode", {}, {encoding().code(), static_cast<int64_t>(f32), 0}};
    launch.operands.push_back(from.build());
    launch.operands.push_back(to.build());
    main.compute("decode", launchIn(b.program, std::move(launch)));
  }

  ProgramBuilder b;
  const int64_t bytes; ///< of a part, aligned
  uint32_t sleeper = 0, events = 4;
  V first, gathered, second, last;
  using Step = std::function<void(ProcedureBuilder &)>;
  Step beforeWait = [](ProcedureBuilder &) {}, beforeDecode = beforeWait, afterDecode = beforeWait,
       beforeLast = beforeWait;
};

/// Rows that int8 has exactly, which differ by rank; that of rank `late` begins with a positive
/// one.
std::vector<float> rows(float scale, int64_t late) {
  std::vector<float> x;
  for (int64_t rank = 0; rank < kRanks; ++rank)
    for (int64_t c = 0; c < kColumns; ++c)
      x.push_back(scale * static_cast<float>(rank + 1) *
                  (c == 0 ? (rank == late ? 127.0f : -127.0f) : static_cast<float>(c - 32)));
  return x;
}

using Answers = std::vector<bool>;

/// Runs a program everywhere, with either rank late, and compares what it gives with what it gives
/// when payloads are copied. Tells of every collective whether it was read in place: on GPUs of
/// their own ranks do not see each other's memory.
Answers run(Program &program, int64_t secondAt) {
  Answers answers;
  ProgramBuilder &b = program.build(secondAt);
  for (const Where &where : kEverywhere)
    for (int64_t late = 0; late < kRanks; ++late) {
      std::vector<std::vector<float>> results;
      for (bool copies : {true, false}) {
        WorldOptions options = where.onCpu() ? WorldOptions() : onNullDevice();
        options.transport = where.transport;
        options.cudaGraph = where.graph;
        options.copyPayloads = copies;
        Result<std::unique_ptr<Session>> session =
            where.onCpu() ? b.session(options) : cudaSession(b, options);
        EXPECT_OK(session);
        if (!session.ok())
          return {};
        const std::vector<float> x = rows(1, late), u = rows(0.5f, late);
        EXPECT_OK((*session)->setInput("x", f32, {kRanks, kColumns}, x.data()));
        EXPECT_OK((*session)->setInput("u", f32, {kRanks, kColumns}, u.data()));
        for (int i = 0; i < 3; ++i)
          EXPECT_OK((*session)->run());
        Answers here;
        const auto report = nlohmann::json::parse((*session)->report());
        for (const auto &collective : report["collectives"])
          here.push_back(collective.contains("read_in_place"));
        if (copies || where.transport == std::string("nccl"))
          EXPECT_EQ(std::count(here.begin(), here.end(), true), 0) << where.name;
        else if (answers.empty())
          answers = here;
        else
          EXPECT_EQ(here, answers) << where.name;
        results.emplace_back();
        for (const char *name : {"y", "v"}) {
          Result<HostTensor> value = (*session)->output(name);
          EXPECT_OK(value);
          results.back().insert(results.back().end(), value->as<float>(),
                                value->as<float>() + kRanks * kColumns);
        }
      }
      EXPECT_EQ(results[1], results[0]) << where.name << ", rank " << late << " is late";
    }
  return answers;
}

TEST(ReadInPlace, ReadsPayloadsThatLieApart) {
  Program program;
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{true, true}));
}

TEST(ReadInPlace, WaitsForPeersBeforeItWritesOverTheirMessages) {
  Program program;
  EXPECT_EQ(run(program, 0), (Answers{true, true}));
}

TEST(ReadInPlace, WaitsBeforeAnotherQueueWritesOverThem) {
  Program program;
  program.events = 6;
  program.afterDecode = [&](ProcedureBuilder &main) {
    fb::CopyT copy;
    copy.source = argument(1, f32, {16}).build();
    copy.dest = symmetric(0, f32, {16}).build();
    main.record(kComputeQueue, 4);
    main.await(kCommunicationQueue, 4);
    main.communication("over", std::move(copy));
    main.record(kCommunicationQueue, 5);
    main.await(kComputeQueue, 5);
  };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{true, true}));
}

// The rows again, in the other order, and each by itself.
TEST(ReadInPlace, ReadsPiecesOfPayloads) {
  Program program;
  program.afterDecode = [&](ProcedureBuilder &main) {
    for (int64_t row = 0; row < kRanks; ++row) {
      V piece = program.gathered;
      piece.offset += static_cast<uint64_t>((kRanks - 1 - row) * partBytes());
      piece.shape[0] = 1;
      program.decode(main, piece,
                     argument(2, f32, {1, kColumns}, static_cast<uint64_t>(row * kColumns * 4)));
    }
  };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{true, true}));
}

TEST(ReadInPlace, NotWherePayloadsAreReadLater) {
  Program program;
  program.beforeLast = [&](ProcedureBuilder &main) { program.decode(main, program.gathered, 2); };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{false, true}));
}

TEST(ReadInPlace, NotWhereSomethingElseReadsThem) {
  Program program;
  program.afterDecode = [&](ProcedureBuilder &main) {
    V all = program.gathered;
    all.shape = {16};
    all.strides = {1};
    V to = program.last;
    to.shape = {16};
    to.strides = {1};
    main.copy("copy", all, to);
  };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{false, false}));
}

TEST(ReadInPlace, NotWhereTheRankWaitsForMoreBeforeItReads) {
  Program program;
  program.events = 6;
  program.beforeWait = [&](ProcedureBuilder &main) {
    const auto at = static_cast<uint64_t>(4 * program.bytes);
    main.start("more", fb::CollectiveKind::all_reduce, {"tp"}, {symmetric(at, DType::i32, {4})},
               {symmetric(at + 64, DType::i32, {4})}, 0, 4, 5, "more");
  };
  program.beforeDecode = [](ProcedureBuilder &main) { main.wait("more", 5); };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{false, false, true}));
}

TEST(ReadInPlace, NotWhereTheReadersBufferIsUnknown) {
  Program program;
  ProgramBuilder &b = program.build(3 * program.bytes);
  for (auto &stream : b.program.procedures[0]->streams)
    for (auto &command : stream->commands)
      if (fb::LaunchT *launch = command->op.AsLaunch())
        for (auto &view : launch->operands)
          view->buffer = -1;
  Result<std::unique_ptr<Session>> session = b.session();
  ASSERT_OK(session);
  EXPECT_EQ((*session)->report().find("read_in_place"), std::string::npos);
}

TEST(ReadInPlace, NotWhereRanksRunDifferentCommands) {
  Program program;
  program.afterDecode = [&](ProcedureBuilder &main) {
    main.copy("on one", argument(0, f32, {1, 1}), argument(4, f32, {1, 1}));
    auto &command = *streamOf(*program.b.program.procedures[0], kComputeQueue).back();
    command.on.push_back(std::make_unique<fb::CoordinatesT>());
    command.on.back()->axis = "tp";
    command.on.back()->coordinates = {0};
  };
  EXPECT_EQ(run(program, 3 * program.bytes), (Answers{false, false}));
}

} // namespace
