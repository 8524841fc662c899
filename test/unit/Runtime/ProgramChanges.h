//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Changes that make the sample program invalid, and the names of its commands in messages.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_PROGRAMCHANGES_H
#define BRAID_TEST_UNIT_RUNTIME_PROGRAMCHANGES_H

#include "SampleProgram.h"
#include "braid/Program/Program.h"

#include <cstring>
#include <functional>

namespace braid::runtime::testing {

using Change = std::function<void(program::ProgramT &)>;

inline Status verifyAfter(const Change &change, const Manifest &manifest = sampleManifest()) {
  program::ProgramT program = sampleProgram();
  change(program);
  return verifyProgram(serialized(program), manifest);
}

// The commands of the sample by kind.
inline program::LaunchT &launchAt(program::ProgramT &p, size_t command) {
  return *computeOf(*p.procedures[0])[command]->op.AsLaunch();
}
inline program::KernelT &kernelAt(program::ProgramT &p, size_t command) {
  return *p.kernels[launchAt(p, command).kernel];
}
struct SliceParts {
  ViewPtr &source, &dest;
  int64_t &dim;
  AxisRefs &axes;
};
inline SliceParts slice(program::ProgramT &p) {
  program::LibraryCallT &call = *kernelAt(p, 0).library;
  return {launchAt(p, 0).operands[0], launchAt(p, 0).operands[1], call.integers[0], call.axes};
}
struct MatmulParts {
  ViewPtr &lhs, &rhs, &out;
};
inline MatmulParts matmul(program::ProgramT &p) {
  std::vector<ViewPtr> &operands = launchAt(p, 1).operands;
  return {operands[0], operands[1], operands[2]};
}
inline void addBias(program::ProgramT &p, ViewPtr bias) {
  std::vector<ViewPtr> &operands = launchAt(p, 1).operands;
  operands.insert(operands.begin() + 2, std::move(bias));
  kernelAt(p, 1).library->optional = 1;
  kernelAt(p, 1).num_operands = 4;
}
inline program::RecordT &record(program::ProgramT &p) {
  return *computeOf(*p.procedures[0])[2]->op.AsRecord();
}
inline program::CollectiveWaitT &wait(program::ProgramT &p) {
  return *computeOf(*p.procedures[0])[3]->op.AsCollectiveWait();
}
inline program::LaunchT &launch(program::ProgramT &p) {
  return *computeOf(*p.procedures[0])[4]->op.AsLaunch();
}
inline program::AwaitT &await(program::ProgramT &p) {
  return *communicationOf(*p.procedures[0])[0]->op.AsAwait();
}
inline program::CollectiveStartT &collective(program::ProgramT &p) {
  return *communicationOf(*p.procedures[0])[1]->op.AsCollectiveStart();
}
inline program::ProcedureT &layer(program::ProgramT &p) { return *p.procedures[0]; }
inline program::ProcedureT &mainOf(program::ProgramT &p) { return *p.procedures[1]; }
/// The call is on both queues.
inline void eachCall(program::ProgramT &p, size_t index,
                     const std::function<void(program::CallT &)> &change) {
  change(*computeOf(mainOf(p))[index]->op.AsCall());
  change(*communicationOf(mainOf(p))[index]->op.AsCall());
}
/// Replaces the launch, the last command of the layer's compute queue, by an operation.
template <typename Op> void replaceLaunch(program::ProgramT &p, Op op) {
  computeOf(layer(p))[4] = command(operationIn(p, std::move(op)), "new");
}

/// A value that is not an enumerator, as a damaged file may contain; files store one byte.
template <typename Enum> Enum unknown(int8_t value) {
  static_assert(sizeof(Enum) == sizeof(value));
  Enum result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

// Functions, since a constant string could throw before main.
inline std::string slicePlace() { return "procedure 'layer', compute command 0 ('slice'): "; }
inline std::string matmulPlace() { return "procedure 'layer', compute command 1 ('linear'): "; }
inline std::string launchPlace() { return "procedure 'layer', compute command 4 ('gelu'): "; }
inline std::string collectivePlace() {
  return "procedure 'layer', communication command 1 ('all_reduce'): ";
}
inline std::string call0Place() { return "procedure 'main', compute command 0 ('layer.0'): "; }
inline std::string call1Place() { return "procedure 'main', compute command 1 ('layer.1'): "; }
inline std::string newPlace() { return "procedure 'layer', compute command 4 ('new'): "; }

} // namespace braid::runtime::testing

#endif // BRAID_TEST_UNIT_RUNTIME_PROGRAMCHANGES_H
