//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The queues of programs that are written by hand, and their streams.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_STREAMS_H
#define BRAID_TEST_UNIT_RUNTIME_STREAMS_H

#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

#include <memory>
#include <string>
#include <vector>

namespace braid::runtime::testing {

using CommandList = std::vector<std::unique_ptr<program::CommandT>>;

/// The communication queue of programs that have one.
constexpr Queue kCommunicationQueue = 1;

inline CommandList &streamOf(program::ProcedureT &procedure, Queue queue) {
  return procedure.streams[queue]->commands;
}
inline CommandList &computeOf(program::ProcedureT &procedure) {
  return streamOf(procedure, kComputeQueue);
}
inline CommandList &communicationOf(program::ProcedureT &procedure) {
  return streamOf(procedure, kCommunicationQueue);
}

/// Adds a queue to a program, and a stream to each of its procedures.
inline Queue addQueue(program::ProgramT &program, program::QueueKind kind,
                      const std::string &name) {
  program.queues.push_back(std::make_unique<program::QueueT>());
  program.queues.back()->kind = kind;
  program.queues.back()->name = name;
  for (auto &procedure : program.procedures)
    procedure->streams.push_back(std::make_unique<program::StreamT>());
  return program.queues.size() - 1;
}
inline void addQueues(program::ProgramT &program) {
  addQueue(program, program::QueueKind::compute, "compute");
  addQueue(program, program::QueueKind::communication, "communication");
}
/// Gives a new procedure a stream for each queue.
inline void addStreams(const program::ProgramT &program, program::ProcedureT &procedure) {
  while (procedure.streams.size() < program.queues.size())
    procedure.streams.push_back(std::make_unique<program::StreamT>());
}

/// The queues of ranks that run without a program.
inline std::vector<QueueInfo> computeAndCommunication() {
  return {{QueueKind::compute, "compute"}, {QueueKind::communication, "communication"}};
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_STREAMS_H
