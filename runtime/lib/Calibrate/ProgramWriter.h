//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes the programs that a calibration runs: one procedure on a compute and a communication
// queue, without parameters, inputs or results.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_PROGRAMWRITER_H
#define BRAID_CALIBRATE_PROGRAMWRITER_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/Model.h"

namespace braid::runtime {

class ProgramWriter {
public:
  static constexpr Queue kCommunicationQueue = 1;

  /// Of a mesh of one axis, "r".
  explicit ProgramWriter(int64_t ranks);

  using View = std::unique_ptr<program::ViewT>;
  /// Floats at an offset of an arena of the frame, which grows to have room for them.
  View local(uint64_t offset, const std::vector<int64_t> &shape);
  View symmetric(uint64_t offset, const std::vector<int64_t> &shape);

  /// A kernel of one operand that does nothing; its number.
  uint32_t nothing();
  void launchNothing(uint32_t kernel);
  /// [m, k] x [n, k] transposed, in local memory.
  void matmul(int64_t m, int64_t n, int64_t k);
  void copy(View from, View to);
  /// Calls a procedure of one such launch.
  void callOfNothing(uint32_t kernel);
  /// From the compute queue to the communication queue and back.
  void eventThereAndBack();
  /// Begins a collective when the compute queue is here; returns its event.
  uint32_t start(CollectiveKind kind, const std::string &identity, View input, View output,
                 const std::vector<std::pair<int64_t, int64_t>> &pairs = {});
  void wait(uint32_t event);

  /// The only entry of a model in a world of such ranks.
  struct Ready {
    std::unique_ptr<Model> model;
    Execution *execution = nullptr;
  };
  Result<Ready> load(WorldOptions options);

private:
  template <typename Op> void add(Queue queue, Op op);
  View view(program::Space space, uint64_t &arena, uint64_t offset,
            const std::vector<int64_t> &shape);
  program::ProcedureT &main() { return *contents.procedures[0]; }
  void addProcedure(const std::string &name);

  program::ProgramT contents;
  Manifest manifest;
  std::map<std::string, KernelFunction> kernels;
  bool hasCallee = false;
};

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_PROGRAMWRITER_H
