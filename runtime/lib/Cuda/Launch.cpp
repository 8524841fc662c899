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

#include <algorithm>

namespace braid::runtime::cuda {

namespace {

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

std::vector<void *> LaunchParameters::addresses() {
  std::vector<void *> all;
  size_t word = 0;
  for (int codec : order)
    all.push_back(codec < 0 ? static_cast<void *>(&words[word++])
                            : &codecs[static_cast<size_t>(codec)].arguments);
  all.push_back(&rows);
  return all;
}

/// Adds the parameter of a payload, whose rows are only in the kernel.
static Status addPayload(LaunchParameters &parameters, const CudaOperand &expected,
                         const EncodedOperand &encoded, int64_t rows) {
  const OperandType &type = encoded.codec[codecRows(encoded.codec)];
  RETURN_IF_ERROR(checkOperand(expected, {nullptr, type.dtype, type.shape, type.strides}, rows));
  ASSIGN_OR_RETURN(CodecLaunch codec, codecLaunch(encoded.codec));
  if (codec.kernel.function() != expected.codec)
    return Status::error("expects what ", expected.codec, " takes, got ", codec.kernel.function());
  codec.arguments.alignedTensor = 1; // in shared memory
  parameters.order.push_back(static_cast<int>(parameters.codecs.size()));
  parameters.codecs.push_back({encoded.operand, codec.kernel.result.has_value(), codec.arguments});
  return {};
}

Result<LaunchParameters> launchParameters(const CudaKernel &kernel,
                                          const DeviceLaunchCommand &command) {
  LaunchParameters parameters;
  parameters.rows = static_cast<unsigned>(command.rows);
  for (size_t i = 0; i < command.operands.size(); ++i) {
    const CudaOperand &expected = kernel.operands[i];
    const auto encoded = std::find_if(command.encoded.begin(), command.encoded.end(),
                                      [i](const EncodedOperand &one) { return one.operand == i; });
    const bool isPayload = encoded != command.encoded.end();
    const Tensor &tensor = command.operands[i];
    Status status;
    if (isPayload == expected.codec.empty())
      status = Status::error("expects ", isPayload ? "no payload" : "a payload");
    else if (isPayload)
      status = addPayload(parameters, expected, *encoded, command.rows);
    else
      status = checkOperand(expected, tensor, command.rows);
    if (!status.ok())
      return Status::error("kernel '" + kernel.symbol + "', operand " + std::to_string(i) + " '" +
                           expected.name + "': " + status.message());
    if (isPayload)
      continue;
    parameters.words.push_back(address(tensor.data));
    for (size_t d = 0; d < expected.numStrides(); ++d)
      parameters.words.push_back(static_cast<uint64_t>(tensor.strides[d]));
    parameters.order.insert(parameters.order.end(), 1 + expected.numStrides(), -1);
  }
  return parameters;
}

Result<StreamCommand> makeLaunch(const DeviceLaunchCommand &command, const LaunchPlace &place,
                                 RankDevice &rank) {
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
  ASSIGN_OR_RETURN(LaunchParameters made, launchParameters(*kernel, command));
  for (LaunchParameters::Codec &codec : made.codecs) {
    for (const EncodedOperand &encoded : command.encoded)
      if (encoded.operand == codec.operand)
        RETURN_IF_ERROR(placeParts(encoded.codec, place, rank, codec.arguments));
    if (codec.decodes) {
      codec.arguments.fault = rank.faults + place.queue;
      codec.arguments.command = payloadFault(place.number, codec.operand);
      rank.hasFaults[place.queue] = true;
    }
  }
  if (kernel->blocks(command.rows) == 0)
    return StreamCommand();
  ASSIGN_OR_RETURN(CUfunction function, rank.kernels->generated(*kernel));
  auto parameters = std::make_shared<LaunchParameters>(std::move(made));
  return StreamCommand(
      [&api = rank.device->api(), function, kernel, parameters, addresses = parameters->addresses(),
       blocks = static_cast<unsigned>(kernel->blocks(command.rows))](CUstream stream) mutable {
        return api.check(api.cuLaunchKernel(function, blocks, 1, 1,
                                            static_cast<unsigned>(kernel->threads), 1, 1,
                                            static_cast<unsigned>(kernel->sharedBytes), stream,
                                            addresses.data(), nullptr),
                         "cuLaunchKernel");
      });
}

} // namespace braid::runtime::cuda
