//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/CudaCodec.h"

#include "braid/Base/StatusMacros.h"

namespace braid::runtime {

namespace {

const char *elementOf(const Encoding &e) {
  switch (e.element) {
  case Encoding::Element::bf16:
    return "braid::bf16";
  case Encoding::Element::f16:
    return "braid::f16";
  case Encoding::Element::integer:
    return "int";
  case Encoding::Element::e4m3:
    return "braid::codec::E4m3";
  case Encoding::Element::e5m2:
    return "braid::codec::E5m2";
  case Encoding::Element::e3m2:
    return "braid::codec::E3m2";
  case Encoding::Element::e2m3:
    return "braid::codec::E2m3";
  case Encoding::Element::e2m1:
    break;
  }
  return "braid::codec::E2m1";
}

const char *formOf(const Encoding &e) {
  if (e.isCast())
    return "cast";
  if (e.element != Encoding::Element::integer)
    return "scaled";
  return e.form == Encoding::Form::asymmetric  ? "asymmetric"
         : e.form == Encoding::Form::symmetric ? "symmetric"
                                               : "zero_point";
}

const char *scaleOf(const Encoding &e) {
  if (e.isCast())
    return "none";
  switch (e.scale) {
  case Encoding::Scale::f16:
    return "f16";
  case Encoding::Scale::bf16:
    return "bf16";
  case Encoding::Scale::e8m0:
    return "e8m0";
  case Encoding::Scale::nvfp4:
    break;
  }
  return "nvfp4";
}

/// A type of tensors in CUDA C++.
std::string typeOf(DType type) {
  return type == DType::f32 ? "float" : std::string("braid::") + name(type);
}

} // namespace

bool CudaCodec::has(const std::string &kernel) {
  return kernel == "encode" || kernel == "decode" || kernel == "decode_sum";
}

Result<CudaCodec> CudaCodec::of(const LibraryCall &call) {
  ASSIGN_OR_RETURN(const PayloadLayout layout, payloadLayout(call));
  CudaCodec codec{layout.encoding, layout.type, std::nullopt};
  if (std::string(call.kernel->name) != "encode") {
    codec.result = call[call.kernel->firstOutput()].dtype;
    if (*codec.result != DType::f32 && *codec.result != DType::f16 && *codec.result != DType::bf16)
      return Status::error("out: expects f32, f16 or bf16, got ", name(*codec.result));
  }
  return codec;
}

std::string CudaCodec::function() const {
  std::string text = encoding.str();
  for (char &c : text)
    if (c == ':' || c == '+' || c == '-')
      c = '_';
  text = (result ? "braid_decode_" : "braid_encode_") + text + "_of_" + name(tensor);
  return result ? text + "_to_" + name(*result) : text;
}

std::string CudaCodec::encodingType() const {
  return std::string("braid::codec::Encoding<") + elementOf(encoding) + ", " +
         std::to_string(encoding.bits) + ", braid::codec::Form::" + formOf(encoding) +
         ", braid::codec::Scale::" + scaleOf(encoding) + ", " + std::to_string(encoding.group) +
         ", " + std::to_string(encoding.rotation) + ", " + (encoding.spikes ? "true" : "false") +
         ">";
}

std::string CudaCodec::tensorType() const { return typeOf(tensor); }
std::string CudaCodec::rowsType() const { return typeOf(result.value_or(tensor)); }

std::string CudaCodec::source() const {
  // Without the 4, which allow 64 registers, ptxas spills some words to make do with fewer.
  return "// " + encoding.str() +
         "\nextern \"C\" __global__ void __launch_bounds__(braid::library::kThreads, 4)\n" +
         function() +
         "(const braid::library::Codec a) {\n  braid::codec::" + (result ? "decode<" : "encode<") +
         encodingType() + ", " + tensorType() + (result ? ", " + rowsType() : "") + ">(a);\n}\n";
}

} // namespace braid::runtime
