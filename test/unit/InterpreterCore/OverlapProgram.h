//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A small correct program with communication during computation, into which tests of program checks
// insert faults:
//   y = all_reduce_tp(x) + 2 x, where the doubling runs while the all_reduce is in flight.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_INTERPRETERCORE_OVERLAPPROGRAM_H
#define BRAID_TEST_UNIT_INTERPRETERCORE_OVERLAPPROGRAM_H

#include "../Runtime/ProgramBuilder.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"

#include <algorithm>

namespace braid::interp::testing {

namespace fb = braid::program;
using runtime::testing::argument;
using runtime::testing::communicationOf;
using runtime::testing::computeOf;
using runtime::testing::local;
using runtime::testing::ProgramBuilder;
using runtime::testing::symmetric;

struct Vector {
  float *allocated, *aligned;
  int64_t offset, size, stride;
  float &operator[](int64_t i) const { return aligned[offset + i * stride]; }
};
inline void add(void *const *operands) {
  const auto &a = *static_cast<Vector *>(operands[0]), &b = *static_cast<Vector *>(operands[1]),
             &out = *static_cast<Vector *>(operands[2]);
  for (int64_t i = 0; i < out.size; ++i)
    out[i] = a[i] + b[i];
}

class OverlapProgram {
public:
  static constexpr int64_t kElements = 8;

  OverlapProgram() : builder({{"tp", 2}}) {
    builder.operand("x", DType::f32, {kElements});
    builder.result("y", DType::f32, {kElements});
    builder.kernel("add", 3, add);
    auto main = builder.procedure("main", 2, 192, 128, 2);
    sent = main.buffer("sent", fb::Space::symmetric, 0, 32);
    received = main.buffer("received", fb::Space::symmetric, 64, 32);
    doubled = main.buffer("doubled", fb::Space::local, 0, 32);
    const auto x = argument(0, DType::f32, {kElements}), y = argument(1, DType::f32, {kElements});
    main.copy("send", x, at(sent));
    main.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {at(sent)}, {at(received)}, 0, 0, 1);
    main.launch("double", 0, {x, x, at(doubled)}, {true, true, true}, kElements);
    main.wait("sum", 1);
    main.launch("add", 0, {at(received), at(doubled), y}, {true, true, true}, kElements);
  }

  fb::ProcedureT &procedure() { return *builder.program.procedures[0]; }
  runtime::testing::ProcedureBuilder append() {
    return runtime::testing::ProcedureBuilder(builder.program, procedure());
  }
  fb::BufferT &buffer(int32_t number) { return *procedure().buffers[static_cast<size_t>(number)]; }
  /// A view of a full buffer at its current address.
  runtime::testing::V at(int32_t number) {
    const fb::BufferT &b = buffer(number);
    auto view = b.space == fb::Space::local ? local(b.offset_bytes, DType::f32, {kElements})
                                            : symmetric(b.offset_bytes, DType::f32, {kElements});
    return view.of(number);
  }
  /// Removes the first command of this kind from a queue.
  template <typename Commands> static void erase(Commands &commands, fb::Operation kind) {
    commands.erase(std::find_if(commands.begin(), commands.end(),
                                [&](const auto &c) { return c->op.type == kind; }));
  }

  Result<ProgramRoles> expand() {
    auto bundle = builder.contents();
    return expandProgram(bundle.members.at(bundle.manifest.programMember), bundle.manifest,
                         bundle.manifest.entries[0]);
  }
  Result<std::unique_ptr<ProgramInterpreter>> interpreter() {
    auto bundle = builder.contents();
    auto lookup = [&](const std::string &symbol) -> Result<runtime::KernelFunction> {
      return builder.kernels.at(symbol);
    };
    auto created = ProgramInterpreter::create(bundle.members.at(bundle.manifest.programMember),
                                              bundle.manifest, bundle.manifest.entries[0], lookup);
    if (!created.ok())
      return created;
    runtime::HostTensor x = runtime::HostTensor::zeros(DType::f32, {kElements});
    for (int64_t i = 0; i < kElements; ++i)
      x.as<float>()[i] = static_cast<float>(i + 1);
    if (Status status = (*created)->setInput("x", x); !status.ok())
      return status;
    return created;
  }
  /// Runs the program in this many orders.
  Result<ProgramResults> run(int64_t schedules) {
    auto created = interpreter();
    if (!created.ok())
      return created.status();
    return (*created)->runSchedules(1, schedules);
  }

  ProgramBuilder builder;
  int32_t sent, received, doubled;
};

} // namespace braid::interp::testing
#endif // BRAID_TEST_UNIT_INTERPRETERCORE_OVERLAPPROGRAM_H
