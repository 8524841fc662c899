//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Schedules of collectives over links between processes: every algorithm gives the sums that it
// says, from messages alone.
//
//===----------------------------------------------------------------------===//
#include "NetTesting.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Collective/Schedule.h"

#include <map>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;

namespace {

/// Runs an all_reduce of f32, step by step; messages wait in memory of their own.
class Run {
public:
  Run(Link &link, const Schedule &schedule, std::vector<float> &input, std::vector<float> &output,
      uint64_t sequence)
      : link(link), schedule(schedule), input(bytesOf(input)), output(bytesOf(output)),
        scratch(static_cast<size_t>(schedule.scratchBytes)), sequence(sequence) {}

  Status all() {
    for (const StepSource &source : schedule.sources)
      if (source.isMessage()) {
        Message &message = messages[{source.peer, source.message}];
        message.bytes.resize(static_cast<size_t>(source.piece.bytes));
        link.receive(message.transfer, source.peer, tag(source.message), message.bytes.data(),
                     message.bytes.size());
      }
    std::vector<Transfer> sends(schedule.steps.size());
    for (size_t i = 0; i < schedule.steps.size(); ++i) {
      const ScheduleStep &step = schedule.steps[i];
      // What a piece is sent from is not written again before the send is done.
      for (uint32_t before : schedule.dependenciesOf(step))
        if (schedule.steps[before].kind == StepKind::send)
          RETURN_IF_ERROR(wait(sends[before]));
      if (step.kind == StepKind::send)
        link.send(sends[i], step.peer, tag(step.message), at(step.piece),
                  static_cast<size_t>(step.piece.bytes));
      else
        RETURN_IF_ERROR(perform(step));
    }
    for (size_t i = 0; i < sends.size(); ++i)
      if (schedule.steps[i].kind == StepKind::send)
        RETURN_IF_ERROR(wait(sends[i]));
    return {};
  }

private:
  struct Message {
    Transfer transfer;
    std::vector<std::byte> bytes;
  };
  static std::byte *bytesOf(std::vector<float> &values) {
    return reinterpret_cast<std::byte *>(values.data());
  }
  /// Of this collective and message; collectives follow each other without a meeting.
  uint64_t tag(uint32_t message) const { return sequence << 32 | message; }
  std::byte *at(const Piece &piece) {
    std::byte *base = piece.space == Space::input    ? input
                      : piece.space == Space::output ? output
                                                     : scratch.data();
    return base + piece.offset;
  }
  Status wait(const Transfer &transfer) {
    for (const int64_t until = nowNs() + 20 * kSecond; !transfer.done();) {
      if (nowNs() >= until)
        return Status::error("a message does not come");
      RETURN_IF_ERROR(link.progress(until));
    }
    return transfer.status();
  }
  Status perform(const ScheduleStep &step) {
    if (step.kind == StepKind::clear) {
      std::fill_n(at(step.piece), step.piece.bytes, std::byte(0));
      return {};
    }
    std::vector<float> sum(static_cast<size_t>(step.piece.bytes) / sizeof(float));
    bool isFirst = true;
    for (const StepSource &source : schedule.sourcesOf(step)) {
      const std::byte *from = nullptr;
      if (source.isMessage()) {
        Message &message = messages[{source.peer, source.message}];
        RETURN_IF_ERROR(wait(message.transfer));
        from = message.bytes.data();
      } else {
        from = at(source.piece);
      }
      const auto *values = reinterpret_cast<const float *>(from);
      for (size_t i = 0; i < sum.size(); ++i)
        sum[i] = isFirst ? values[i] : sum[i] + values[i];
      isFirst = false;
    }
    std::copy_n(reinterpret_cast<const std::byte *>(sum.data()), step.piece.bytes, at(step.piece));
    return {};
  }

  Link &link;
  const Schedule &schedule;
  std::byte *input, *output;
  std::vector<std::byte> scratch;
  uint64_t sequence;
  std::map<std::pair<int64_t, uint32_t>, Message> messages;
};

float valueOf(int64_t rank, size_t i) {
  return 1.0F / static_cast<float>(1 + (i * 7 + static_cast<size_t>(rank) * 13) % 101);
}

Status reduce(Link &link, ScheduleAlgorithm algorithm, size_t count, uint64_t sequence) {
  ScheduleRequest request;
  request.algorithm = algorithm;
  request.ranks = link.ranks();
  request.values.push_back({static_cast<int64_t>(count * sizeof(float)), sizeof(float)});
  request.chunkBytes = 4096;
  ASSIGN_OR_RETURN(const Schedule schedule, makeSchedule(request, link.rank()));
  std::vector<float> input(count), output(count, -1);
  for (size_t i = 0; i < count; ++i)
    input[i] = valueOf(link.rank(), i);
  RETURN_IF_ERROR(Run(link, schedule, input, output, sequence).all());
  const bool isExact = keepsRankOrder(algorithm, CollectiveKind::allReduce, link.ranks());
  for (size_t i = 0; i < count; ++i) {
    float sum = valueOf(0, i);
    for (int64_t rank = 1; rank < link.ranks(); ++rank)
      sum += valueOf(rank, i);
    if (isExact ? output[i] != sum : std::abs(output[i] - sum) > 1e-6F * sum)
      return Status::error(name(algorithm), ": element ", i, " is ", output[i], ", expects ", sum);
  }
  return {};
}

TEST(LinkSchedules, AllReducesOfEveryAlgorithm) {
  for (int64_t ranks : {2, 3, 4}) {
    const uint16_t port = freePort();
    RankProcessesOfTest processes(ranks, [&](int64_t rank) {
      auto run = [&]() -> Status {
        ASSIGN_OR_RETURN(auto networks, openNetworks({}));
        ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(networks, rank, ranks));
        RETURN_IF_ERROR(
            joinJob(networks, optionsOf(rank, ranks, onLoopback(port)), *link).status());
        uint64_t sequence = 0;
        for (ScheduleAlgorithm algorithm : {ScheduleAlgorithm::direct, ScheduleAlgorithm::ring,
                                            ScheduleAlgorithm::recursiveDoubling,
                                            ScheduleAlgorithm::tree, ScheduleAlgorithm::oneShot})
          for (size_t count : {1, 5, 1000, 20000})
            RETURN_IF_ERROR(reduce(*link, algorithm, count, sequence++));
        // With the last collective every rank has a message of every other, and what came before.
        return link->close(nowNs() + 5 * kSecond);
      };
      const Status status = run();
      return status.ok() ? std::string("done") : status.message();
    });
    for (int64_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(processes.result(rank), "done") << "rank " << rank << " of " << ranks;
  }
}

} // namespace
