//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Library.h"
#include "Operations.h"

#include <cstring>

namespace braid::runtime {

size_t LibraryArguments::place(const char *operand) const {
  size_t i = 0;
  while (std::strcmp(kernel->operands[i].name, operand) != 0)
    ++i;
  return i;
}

Tensor LibraryArguments::tensor(const char *operand) const {
  const size_t i = place(operand);
  return {data[i], operands[i]->dtype, operands[i]->shape, operands[i]->strides};
}

Result<DType> storedType(const LibraryArguments &arguments, Storage storage) {
  std::optional<DType> type;
  for (size_t i = 0; i < arguments.operands.size(); ++i) {
    if (!arguments.LibraryCall::has(i) || !arguments[i].isFloat())
      continue;
    const OperandType &operand = arguments[i];
    const DType got = operand.dtype;
    const bool half = got == DType::f16 || got == DType::bf16;
    if (type ? got != *type : got != DType::f32 && !(half && storage == Storage::halves))
      return Status::error(std::string("expects ") + arguments.kernel->operands[i].name + " of " +
                           (type                         ? name(*type)
                            : storage == Storage::halves ? "f32, f16 or bf16"
                                                         : "f32") +
                           ", got " + name(got));
    type = got;
    if (operand.shape.back() != 1 && operand.strides.back() != 1)
      return Status::error(std::string("expects a contiguous last dimension of ") +
                           arguments.kernel->operands[i].name + " " + shapeString(operand.shape) +
                           ", got strides " + shapeString(operand.strides));
  }
  return *type;
}

namespace {

/// A command of Operations.h.
template <typename Op> class OperationRun : public LibraryRun {
public:
  explicit OperationRun(Op op) : op(std::move(op)) {}
  void run(const NamedCommand &source, ExecutionContext &context) const override {
    execute(op, source, context);
  }

private:
  Op op;
};

template <typename Op> Result<LibraryCommand> ready(Result<Op> op) {
  if (!op.ok())
    return op.status();
  return LibraryCommand(std::make_shared<OperationRun<Op>>(std::move(*op)));
}

/// How the CPU runs each kernel.
struct CpuKernel {
  const char *name;
  Result<LibraryCommand> (*resolve)(const LibraryArguments &a, const CpuResources &r);
};
constexpr CpuKernel kCpuKernels[] = {
    {"linear", [](auto &a, auto &r) { return ready(resolveProduct(a, r.threads, *r.products)); }},
    {"attention",
     [](auto &a, auto &r) { return ready(resolveAttention(a, r.threads, r.queryBlock)); }},
    {"rotary_table", [](auto &a, auto &r) { return ready(resolveRotaryTable(a, r.threads)); }},
    {"rotary", [](auto &a, auto &r) { return ready(resolveRotary(a, r.threads)); }},
    {"embedding", [](auto &a, auto &r) { return ready(resolveGather(a, r.threads)); }},
    {"position_ids", [](auto &a, auto &) { return ready(resolvePositionIds(a)); }},
    {"local_slice", [](auto &a, auto &) { return ready(resolveLocalSlice(a)); }},
};

} // namespace

Result<LibraryCommand> resolveLibrary(const LibraryArguments &arguments,
                                      const CpuResources &resources) {
  for (const CpuKernel &kernel : kCpuKernels)
    if (std::strcmp(kernel.name, arguments.kernel->name) == 0)
      return kernel.resolve(arguments, resources);
  return Status::error(std::string("has no kernel '") + arguments.kernel->name +
                       "' on target 'cpu'");
}

} // namespace braid::runtime
