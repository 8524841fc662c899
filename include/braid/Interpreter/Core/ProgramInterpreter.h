//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs all ranks of a serialized program on memory, one step at a time. A seed picks the order
// among those that queues, events and collectives allow. A command begins and ends in separate
// steps, between which others run; until it ends, its outputs hold NaN. Memory whose value is not
// written yet or not needed any more holds NaN too. Commands that conflict, and reads of memory
// without a value, end the run.
//
// The interpreter shares no code with the executor: it expands, schedules and computes (in f64, by
// Kernels.h) commands itself. Only generated kernels are the same machine code.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_PROGRAMINTERPRETER_H
#define BRAID_INTERPRETER_CORE_PROGRAMINTERPRETER_H

#include "braid/Base/Weights.h"
#include "braid/Interpreter/Core/ExpandedProgram.h"

#include <functional>
#include <map>

namespace braid::interp {

using KernelLookup = std::function<Result<runtime::KernelFunction>(const std::string &symbol)>;

/// Results, and states after the run, by name, unpartitioned.
using ProgramResults = std::map<std::string, runtime::HostTensor>;

class ProgramInterpreter {
public:
  static Result<std::unique_ptr<ProgramInterpreter>> create(const runtime::Bytes &program,
                                                            const runtime::Manifest &manifest,
                                                            const runtime::Entry &entry,
                                                            const KernelLookup &kernels);
  ~ProgramInterpreter();

  const ProgramRoles &program() const;
  Status loadWeights(runtime::WeightSource &source);
  /// The unpartitioned value.
  Status setInput(const std::string &name, const runtime::HostTensor &value);
  /// The value of a state before every run from now on; zeros where none was given.
  Status setState(const std::string &name, const runtime::HostTensor &value);

  /// One run, in the order of this seed. Fails with Code::checkFailed and a message that names
  /// rank, commands and buffer when the program is at fault. Ranks that hold the same shard of a
  /// result must hold the same bits.
  Result<ProgramResults> run(uint64_t seed);

  /// `count` runs with seeds from `seed` on, which must all give the same bits.
  Result<ProgramResults> runSchedules(uint64_t seed, int64_t count,
                                      const std::function<void(int64_t)> &progress = {});

  struct State;

private:
  explicit ProgramInterpreter(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_PROGRAMINTERPRETER_H
