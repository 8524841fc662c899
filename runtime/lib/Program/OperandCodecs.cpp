//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operands of generated kernels that launches have as payloads.
//
//===----------------------------------------------------------------------===//
#include "ProgramVerifier.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Program/Program.h"

namespace braid::runtime {

/// Elements of a row that an operand's codec may have; all rows together are checked for a launch.
static constexpr int64_t kMaxRowElements = int64_t(1) << 32;

const program::OperandCodecT *codecOf(const program::KernelT &kernel, size_t operand) {
  for (const auto &codec : kernel.codecs)
    if (codec->operand == operand)
      return codec.get();
  return nullptr;
}

LibraryCall codecCall(const program::OperandCodecT &codec, int64_t rows, OperandType payload,
                      std::optional<OperandType> own, int64_t parts) {
  LibraryCall call;
  call.kernel = findLibraryKernel(codec.codec->name);
  call.integers = codec.codec->integers;
  call.parts = parts;
  OperandType tensor;
  tensor.dtype = static_cast<DType>(codec.dtype);
  tensor.shape = codec.row_shape;
  tensor.shape.insert(tensor.shape.begin(), rows);
  tensor.strides.assign(tensor.shape.size(), 1);
  for (size_t d = tensor.shape.size() - 1; d-- > 0;)
    tensor.strides[d] = tensor.strides[d + 1] * tensor.shape[d + 1];
  call.operands.resize(call.kernel->operands.size());
  call.operands[codecRows(call)] = std::move(tensor);
  call.operands[codecPayload(call)] = std::move(payload);
  if (own)
    call.operands[kOwnRows] = std::move(own);
  return call;
}

static Status verifyCodec(const program::Kernel &kernel, const program::OperandCodec &codec) {
  const uint32_t operand = codec.operand(), numOperands = kernel.num_operands();
  if (operand >= numOperands)
    return Status::error("expects an operand below ", numOperands, ", got ", operand);
  const program::LibraryCall &call = *codec.codec();
  const std::string name = call.name()->str();
  const bool encodes = operand >= numOperands - kernel.num_outputs();
  if (encodes ? name != "encode" : name != "decode" && name != "decode_sum")
    return Status::error("expects the codec ", encodes ? "encode" : "decode or decode_sum",
                         ", got ", inQuotes(name));
  const size_t integers = call.integers() ? call.integers()->size() : 0,
               expected = findLibraryKernel(name)->integers.size();
  if (call.optional() != 0 || call.numbers() || integers != expected)
    return Status::error("expects ", expected, " integers of ", name, " and nothing else, got ",
                         integers);
  const bool hasOwn = codec.own() >= 0;
  if (hasOwn ? name != "decode_sum" || !call.axes() : call.axes() && !encodes)
    return Status::error("expects own rows and the axes of a group of decode_sum, or neither");
  if (hasOwn && (static_cast<uint32_t>(codec.own()) >= numOperands - kernel.num_outputs() ||
                 codecOf(kernel, static_cast<uint32_t>(codec.own()))))
    return Status::error("expects own rows in an operand that is read and has no codec, got ",
                         codec.own());
  if (!isAligned(*call.integers()) || !isAligned(*codec.row_shape()))
    return Status::error("expects integers and a shape that are aligned");
  if (codec.dtype() < program::DType::f32 || codec.dtype() > program::DType::i8)
    return Status::error("expects an element type, got ", int(codec.dtype()));
  const std::vector<int64_t> shape(codec.row_shape()->begin(), codec.row_shape()->end());
  const std::optional<int64_t> elements = checkedNumElements(shape);
  if (shape.empty() || shape.size() >= kMaxViewRank || !elements || *elements < 1 ||
      *elements > kMaxRowElements)
    return Status::error("expects 1 to ", kMaxViewRank - 1,
                         " dimensions of a row with up to 2^32 "
                         "elements, got ",
                         shapeString(shape));
  if (kernel.in_place())
    for (uint32_t shared : *kernel.in_place())
      if (shared == operand)
        return Status::error("expects it not to be in 'in_place'");
  return {};
}

Status verifyCodecs(const program::Kernel &kernel) {
  if (!kernel.codecs())
    return {};
  if (kernel.library())
    return Status::error("expects no codecs of a kernel of the library");
  int64_t last = -1;
  for (const program::OperandCodec *codec : *kernel.codecs()) {
    const int64_t operand = codec->operand();
    if (operand <= last)
      return Status::error("expects codecs of ascending operands, got operand ", operand,
                           " behind ", last);
    last = operand;
    RETURN_IF_ERROR(
        verifyCodec(kernel, *codec).within("codec of operand " + std::to_string(operand)));
  }
  return {};
}

const program::OperandCodec *codecOf(const program::Kernel &kernel, uint32_t operand) {
  if (kernel.codecs())
    for (const program::OperandCodec *codec : *kernel.codecs())
      if (codec->operand() == operand)
        return codec;
  return nullptr;
}

Status verifyPayload(const program::OperandCodec &codec, int64_t rows, const OperandType &view,
                     std::optional<OperandType> own, int64_t parts) {
  const std::unique_ptr<program::OperandCodecT> unpacked(codec.UnPack());
  return codecCall(*unpacked, rows, view, std::move(own), parts).check();
}

} // namespace braid::runtime
