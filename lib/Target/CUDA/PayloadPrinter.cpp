//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a row kernel does with operands that are payloads: calls of codec_rows.cuh around the
// computation, which has their rows in shared memory.
//
//===----------------------------------------------------------------------===//
#include "RowPrinter.h"

using namespace mlir;
using namespace braid;
using namespace braid::cuda;

void RowPrinter::addCodec(unsigned number, runtime::CudaOperand &operand) {
  rt::PayloadAttr payload = kernel.getPayload(number);
  if (!payload)
    return;
  runtime::CudaCodec codec{payload.getEncoding().getPair().reduce,
                           *comm::toRuntime(payload.getType()), std::nullopt};
  if (number < kernel.getArgumentTypes().size())
    codec.result = operand.dtype;
  operand.codec = codec.function();
  codecs[number] = {codec, names.fresh(operand.name + "_encoding"),
                    names.fresh(operand.name + "_rows"), names.fresh(operand.name + "_row")};
}

void RowPrinter::printPayloadChecks() {
  for (const auto &[number, coded] : codecs)
    if (coded.codec.result)
      os << "  braid::codec::check_parts(" << operandNames[number] << ");\n";
}

void RowPrinter::printPayloadRows() {
  for (const auto &[number, coded] : codecs) {
    const std::string element = coded.codec.rowsType();
    os << "  // " << coded.codec.encoding.str() << "\n  using " << coded.encoding << " = "
       << coded.codec.encodingType() << ";\n  __shared__ braid::codec::RowMemory<" << element
       << ", Row> " << coded.memory << ";\n  " << element << " *const " << coded.row << " = "
       << coded.memory << ".row();\n";
    if (coded.codec.result)
      os << "  braid::codec::decode_row<" << coded.encoding << ", " << coded.codec.tensorType()
         << ", Row>(" << operandNames[number] << ", row, " << coded.row << ");\n";
  }
}

void RowPrinter::printEncodes() {
  for (const auto &[number, coded] : codecs)
    if (!coded.codec.result)
      os << "  braid::codec::encode_rows<" << coded.encoding << ", Row>(" << operandNames[number]
         << ", row, " << coded.row << ");\n";
}
