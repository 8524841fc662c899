//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The verifier of a serialized program (runtime/program.fbs), on which the executor relies.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_PROGRAM_PROGRAM_H
#define BRAID_PROGRAM_PROGRAM_H

#include "braid/Base/LibraryKernels.h"
#include "braid/Base/Support.h"
#include "braid/Program/Manifest.h"

#include <memory>

namespace braid::program {
struct AxisRefT;
struct KernelT;
struct OperandCodecT;
struct Program;
struct ProgramT;
} // namespace braid::program

namespace braid::runtime {

/// A generated kernel: descriptors[i] points at the memref descriptor of operand i (program.fbs,
/// Kernel).
using KernelFunction = void (*)(void *const *descriptors);

/// One of the sequences of commands that a rank runs at the same time, by its number in the
/// program's list of queues.
using Queue = size_t;
constexpr Queue kComputeQueue = 0;

enum class QueueKind : int8_t { compute = 0, communication, copy };
const char *name(QueueKind kind); // "compute", "communication", "copy"
struct QueueInfo {
  QueueKind kind = QueueKind::compute;
  std::string name;
  int32_t priority = 0;
};
/// The queues of a verified program.
std::vector<QueueInfo> queuesOf(const program::ProgramT &program);

/// The program version that this version of Braid writes and reads.
constexpr uint32_t kProgramVersion = 7;

/// Limits of a verified program. There is one compute queue, and at most one for copies.
constexpr size_t kMaxCommunicationQueues = 8, kMaxQueues = kMaxCommunicationQueues + 2;
constexpr size_t kMaxViewRank = 8;
constexpr uint32_t kMaxCallDepth = 64;
/// The alignment of callees' frames and of an entry's memory in bytes.
constexpr uint64_t kFrameAlignment = 64;
/// Counts the commands of all entries, in all queues, with calls expanded.
constexpr uint64_t kMaxExpandedCommands = uint64_t(1) << 24;

/// Checks, in this order:
///
///  - the FlatBuffers structure, the version, and that mesh and entries are the manifest's;
///  - the list of queues, and that each procedure has a stream for each of them;
///  - calls: the same ones in all queues, no recursion, frames and events of callees inside of
///    their callers', disjoint events of siblings, events for the callee's event arguments, and
///    arguments outside of the callee's frame, of the type and size that the callee uses;
///  - the ranks that run a call or a copy: coordinates of the mesh;
///  - every command: enumerators and indices in range, views inside of their frame or argument and
///    of the buffer that they name, shapes and types that fit the operation, outputs whose elements
///    are distinct, collectives on symmetric memory, on a communication queue and over groups of
///    the mesh;
///  - symmetric memory for a procedure's symmetric arguments, and no other argument in a
///    collective;
///  - entries: parameters, states, operands and results in number, type and size, parameters and
///    operands not written, results written, and no rank using what it does not have;
///  - events, with all calls expanded: each set exactly once, CollectiveWait for events of
///    collectives and Await for recorded ones, and the queues of all ranks coming to their end.
///
/// The message names procedure, queue and command. The order of memory accesses is not checked: a
/// verified program may have data races.
Status verifyProgram(const Bytes &program, const Manifest &manifest);

/// The descriptor of a library kernel of a verified program; null for a generated kernel.
const LibraryKernel *libraryKernelOf(const program::KernelT &kernel);
/// The codec of an operand of a generated kernel; null where launches do not encode it.
const program::OperandCodecT *codecOf(const program::KernelT &kernel, size_t operand);
/// The call of a codec between a payload and the rows of a launch, which have no address. `own` is
/// the view of the operand that the codec has as its own rows, if it does, and `parts` the size of
/// its group, or 1. The call was not checked, unless the program was verified.
LibraryCall codecCall(const program::OperandCodecT &codec, int64_t rows, OperandType payload,
                      std::optional<OperandType> own, int64_t parts);
/// The names of a kernel's operands in messages, in order.
std::vector<std::string> operandNames(const program::KernelT &kernel);
std::vector<AxisRef> axesOf(const std::vector<std::unique_ptr<program::AxisRefT>> &axes);

} // namespace braid::runtime
#endif // BRAID_PROGRAM_PROGRAM_H
