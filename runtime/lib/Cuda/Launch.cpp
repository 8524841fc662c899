//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of generated kernels, as the launch table describes them.
//
//===----------------------------------------------------------------------===//
#include "StreamCommand.h"
#include "braid/Base/StatusMacros.h"

namespace braid::runtime::cuda {

namespace {

/// The parameters of a launch, and pointers to them.
struct Parameters {
  Parameters(std::vector<uint64_t> operands, int64_t numRows)
      : words(std::move(operands)), rows(static_cast<unsigned>(numRows)) {
    for (uint64_t &word : words)
      pointers.push_back(&word);
    pointers.push_back(&rows);
  }
  Parameters(const Parameters &) = delete;
  Parameters &operator=(const Parameters &) = delete;

  std::vector<uint64_t> words;
  unsigned rows;
  std::vector<void *> pointers;
};

Status checkOperand(const CudaOperand &expected, const Tensor &got, int64_t rows) {
  std::vector<int64_t> shape = expected.shape;
  if (expected.isRow())
    shape[0] = rows;
  if (got.dtype != expected.dtype || got.shape != shape)
    return Status::error(std::string("expects ") + name(expected.dtype) + " " + shapeString(shape) +
                         ", got " + name(got.dtype) + " " + shapeString(got.shape));
  if (got.numElements() == 0)
    return {};
  if (!got.shape.empty() && got.shape.back() != 1 && got.strides.back() != 1)
    return Status::error("expects a contiguous last dimension of " + shapeString(got.shape) +
                         ", got strides " + shapeString(got.strides));
  bool aligned =
      reinterpret_cast<uintptr_t>(got.data) % static_cast<uint64_t>(expected.alignment) == 0;
  for (size_t d = 0; d + 1 < got.shape.size(); ++d)
    aligned &= got.shape[d] == 1 || got.strides[d] * byteSize(got.dtype) % expected.alignment == 0;
  if (!aligned)
    return Status::error("expects an address and strides that are multiples of " +
                         std::to_string(expected.alignment) + " bytes, got strides " +
                         shapeString(got.strides) + " of " + name(got.dtype) + " at " +
                         std::to_string(reinterpret_cast<uintptr_t>(got.data) %
                                        static_cast<uint64_t>(expected.alignment)) +
                         " beyond such an address");
  return {};
}

} // namespace

Result<StreamCommand> makeLaunch(const DeviceLaunchCommand &command, RankDevice &rank) {
  const std::string &symbol = rank.program->kernels[command.kernel]->symbol;
  const CudaKernel *kernel = rank.table->find(symbol);
  if (!kernel)
    return Status::error("kernel '" + symbol + "' is not in the launch table for " +
                         rank.table->architecture);
  const auto outputs = static_cast<int64_t>(rank.program->kernels[command.kernel]->num_outputs);
  if (command.operands.size() != kernel->operands.size() || outputs != kernel->outputs)
    return Status::error(
        "kernel '" + symbol + "' expects " + std::to_string(kernel->operands.size()) +
        " operands with " + std::to_string(kernel->outputs) + " outputs, got " +
        std::to_string(command.operands.size()) + " with " + std::to_string(outputs));
  // Items are counted in 32 bits.
  if (command.rows > UINT32_MAX / kernel->itemsPerRow || kernel->blocks(command.rows) > INT32_MAX)
    return Status::error("kernel '" + symbol + "' expects fewer than 2^32 items, got " +
                         std::to_string(command.rows) + " rows of " +
                         std::to_string(kernel->itemsPerRow));
  std::vector<uint64_t> words;
  for (size_t i = 0; i < command.operands.size(); ++i) {
    const Tensor &tensor = command.operands[i];
    if (Status status = checkOperand(kernel->operands[i], tensor, command.rows); !status.ok())
      return Status::error("kernel '" + symbol + "', operand " + std::to_string(i) + " '" +
                           kernel->operands[i].name + "': " + status.message());
    words.push_back(address(tensor.data));
    for (size_t d = 0; d < kernel->operands[i].numStrides(); ++d)
      words.push_back(static_cast<uint64_t>(tensor.strides[d]));
  }
  if (kernel->blocks(command.rows) == 0)
    return StreamCommand();
  ASSIGN_OR_RETURN(CUfunction function, rank.kernels->generated(*kernel));
  auto parameters = std::make_shared<Parameters>(std::move(words), command.rows);
  return StreamCommand(
      [&api = rank.device->api(), function, kernel, parameters,
       blocks = static_cast<unsigned>(kernel->blocks(command.rows))](CUstream stream) {
        return api.check(api.cuLaunchKernel(function, blocks, 1, 1,
                                            static_cast<unsigned>(kernel->threads), 1, 1,
                                            static_cast<unsigned>(kernel->sharedBytes), stream,
                                            parameters->pointers.data(), nullptr),
                         "cuLaunchKernel");
      });
}

} // namespace braid::runtime::cuda
