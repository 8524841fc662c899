//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program as one rank runs it: a flat list of commands per queue, with absolute addresses.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_COMMANDS_H
#define BRAID_EXECUTOR_COMMANDS_H

#include "braid/Program/program_generated.h"
#include "runtime/lib/Collective/Transport.h"
#include "runtime/lib/Kernels/Operations.h"

#include <deque>
#include <map>
#include <optional>
#include <variant>

namespace braid::runtime {

/// A launch of a generated kernel on a device.
struct DeviceLaunchCommand {
  uint32_t kernel; ///< of the program
  std::vector<Tensor> operands;
  int64_t rows;
  std::vector<EncodedOperand> encoded; ///< those of the operands that are payloads
};

struct CollectiveCommand {
  Collective collective;
  uint32_t event;
  uint32_t index; ///< in RankProgram::collectives
};
struct CollectiveWaitCommand {
  uint32_t event;
  uint32_t index;               ///< of the awaited collective in RankProgram::collectives
  Queue setter = kComputeQueue; ///< the queue of the collective
};
struct RecordCommand {
  uint32_t event;
};
struct AwaitCommand {
  uint32_t event;
  Queue setter = kComputeQueue; ///< the queue that records it
};

/// Which thread runs a command, and what may run at the same time.
struct CommandSchedule {
  static constexpr uint32_t kNoEvent = UINT32_MAX;
  /// It computes, and a collective may run meanwhile.
  bool mayOverlap = false;
  /// On another queue than the compute queue: the compute queue's thread runs it when it reaches
  /// the wait for it.
  bool byWaiter = false;
  /// Of a collective: it may begin while so many collectives before it on its queue are under way.
  uint8_t besides = 0;
  /// On the compute queue: the commands of another queue to run before this one.
  struct {
    Queue queue = kComputeQueue;
    size_t begin = 0, end = 0;
  } runsFirst;
  /// On the compute queue: reads in place (RankProgram::reads) that peers have to have ended before
  /// this command, and the one that ends with it.
  std::vector<uint32_t> awaitsReads;
  static constexpr uint32_t kNoRead = UINT32_MAX;
  uint32_t endsRead = kNoRead;
  /// Where two threads take turns on a queue: the event to await first and the event to set last.
  uint32_t firstAwaits = kNoEvent, thenSets = kNoEvent;
};

struct Command : NamedCommand, CommandSchedule {
  std::optional<Queue> awaitedQueue() const override;
  std::vector<RankQueue> missing() const override;
  bool waitsForRoom() const override;

  std::variant<LaunchCommand, LibraryCommand, CopyCommand, CollectiveCommand, CollectiveWaitCommand,
               RecordCommand, AwaitCommand, DeviceLaunchCommand, LibraryArguments>
      op;
};

struct CollectiveInfo {
  std::string calls; ///< from the entry down: "@main/@layer#3"
  std::string name;  ///< in the procedure: "attention.output"; unique among those of the same calls
  std::string kind;
  int64_t bytesSent = 0;
  bool exposedByForm = false; ///< nothing is computed between its start and its wait
  std::string algorithm;      ///< of the schedule: "direct"
  bool readInPlace = false;   ///< messages are decoded from the memory of peers
  int64_t chunkBytes = 0;     ///< of the schedule; 0: it has none
  /// Why this schedule; null of sends, receives and devices.
  std::shared_ptr<const cost::ChosenSchedule> chosen;

  /// Names the collective in the program: "@main/@layer#3/attention.output".
  std::string identity() const { return calls + "/" + name; }
};

struct CallFrame;   // Resolve.cpp
class CommandTimes; // CommandTimes.h

/// A command that uses the address of an argument of the entry's procedure, and its source.
struct ArgumentCommand {
  Queue queue;
  size_t command; ///< in that queue
  const program::CommandT *source;
  std::shared_ptr<const CallFrame> frame;
};

struct RankProgram {
  std::vector<std::vector<Command>> queues;
  /// By argument of the entry's procedure: the commands that depend on its address.
  std::vector<std::vector<ArgumentCommand>> uses;
  uint32_t numEvents = 0;
  std::vector<CollectiveInfo> collectives; ///< queue by queue, in the queue's order
  /// Of the messages of a collective, by commands of the compute queue.
  struct InPlaceRead {
    PeerReads *of;
    uint32_t collective; ///< index in `collectives`
  };
  std::vector<InPlaceRead> reads;
  std::vector<uint32_t> awaitsReads; ///< those that peers have to have ended before the run ends
  /// Of payloads that are read in place: their parts, by the compute queue's command and the
  /// address that the program gives them.
  std::map<size_t, std::map<const std::byte *, std::vector<std::byte *>>> payloads;
  /// By queue: whether it needs a thread of its own. The compute queue does.
  std::vector<bool> ownThread;
  std::deque<std::string> paths; ///< a deque, as commands point at them
  int64_t bytesSent = 0;         ///< in a run
  /// With ResolveInput::times: of each command on its own, by queue; and what could not be
  /// estimated, as a message.
  struct Estimate {
    double seconds = 0;
    double usedBytes = 0; ///< of memory, that it reads and writes
  };
  std::vector<std::vector<Estimate>> estimates;
  std::string notEstimated;
  /// By Command::path: the calls that lead there, "@main/@layer#3".
  std::map<const std::string *, std::string> callsOf;
};

/// Everything that addresses depend on.
struct ResolveInput {
  const program::ProgramT *program = nullptr;
  const Mesh *mesh = nullptr;
  const std::vector<KernelFunction> *kernels = nullptr; ///< by Program.kernels; null for a device
  std::string entry;
  int64_t rank = 0, threads = 1;
  std::vector<std::byte *> arguments; ///< of the entry's procedure
  std::byte *local = nullptr;
  SymmetricHeap symmetric;
  uint64_t localBytes = 0, symmetricBytes = 0;
  Transport *transport = nullptr;
  bool copyPayloads = false;           ///< nothing is read in place
  MatmulCache *matmuls = nullptr;      ///< null for a device
  int64_t queryBlock = 1;              ///< of the VectorKernels in use
  const CommandTimes *times = nullptr; ///< to estimate commands, or null
};

/// Must run on a thread for which useOneThread() was called.
Result<RankProgram> resolve(const ResolveInput &input);

/// A command with new addresses, and the one that it replaces.
struct MovedCommand {
  Queue queue;
  size_t command;
  Command replacement;
};
/// Resolves the commands again that use these arguments, whose addresses in `input` differ from
/// those that `program` was resolved with. `program` does not change.
Result<std::vector<MovedCommand>> moveArguments(const ResolveInput &input,
                                                const RankProgram &program,
                                                const std::vector<size_t> &arguments);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_COMMANDS_H
