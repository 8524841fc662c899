//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Version.h"
#include "braid/Target/Bundle/Bundle.h"
#include "dialects/RT/IR/RT.h"

using namespace mlir;
using namespace braid;

namespace {

runtime::Result<runtime::DType> dtypeOf(Type type) {
  std::string name;
  llvm::raw_string_ostream os(name);
  type.print(os);
  return runtime::parseDType(name);
}

runtime::Init initOf(nn::InitKind kind) {
  switch (kind) {
  case nn::InitKind::Normal:
    return runtime::Init::normal;
  case nn::InitKind::Ones:
    return runtime::Init::ones;
  case nn::InitKind::Zeros:
    return runtime::Init::zeros;
  }
  llvm_unreachable("all kinds are listed");
}

/// The fields that parameters, operands and results share.
template <typename T, typename AttrT> LogicalResult describe(Operation *op, AttrT attr, T &value) {
  value.name = attr.getName().str();
  runtime::Result<runtime::DType> dtype = dtypeOf(attr.getGlobalType().getElementType());
  if (!dtype.ok())
    return op->emitOpError() << "'" << attr.getName() << "': " << dtype.status().message();
  value.dtype = *dtype;
  ArrayRef<int64_t> shape = attr.getGlobalType().getShape();
  value.globalShape.assign(shape.begin(), shape.end());
  if (attr.getSharding())
    value.sharding = comm::toRuntime(attr.getSharding());
  return success();
}

runtime::Slice sliceOf(nn::SliceAttr attr) {
  runtime::Slice slice;
  slice.tensor = attr.getTensor().str();
  slice.tensorShape.assign(attr.getTensorShape().begin(), attr.getTensorShape().end());
  slice.permutation.assign(attr.getPermutation().begin(), attr.getPermutation().end());
  slice.sourceOffsets.assign(attr.getSourceOffsets().begin(), attr.getSourceOffsets().end());
  slice.destOffsets.assign(attr.getDestOffsets().begin(), attr.getDestOffsets().end());
  slice.sizes.assign(attr.getSizes().begin(), attr.getSizes().end());
  return slice;
}

LogicalResult describeEntry(rt::ProcedureOp procedure, runtime::Entry &entry) {
  entry.name = procedure.getSymName().str();
  for (unsigned i = 0; i < procedure.getNumArguments(); ++i) {
    if (auto attr =
            procedure.getArgAttrOfType<rt::ParameterAttr>(i, rt::RTDialect::kParameterAttrName)) {
      runtime::Parameter parameter;
      if (failed(describe(procedure, attr, parameter)))
        return failure();
      parameter.init = initOf(attr.getInit().getValue());
      for (Attribute slice : attr.getSlices())
        parameter.slices.push_back(sliceOf(cast<nn::SliceAttr>(slice)));
      entry.parameters.push_back(std::move(parameter));
      continue;
    }
    auto operand = procedure.getArgAttrOfType<rt::ValueAttr>(i, rt::RTDialect::kOperandAttrName);
    auto result = procedure.getArgAttrOfType<rt::ValueAttr>(i, rt::RTDialect::kResultAttrName);
    runtime::EntryValue value;
    if (failed(describe(procedure, operand ? operand : result, value)))
      return failure();
    if (RankedTensorType padded = (operand ? operand : result).getPaddedType())
      value.paddedShape.assign(padded.getShape().begin(), padded.getShape().end());
    (operand ? entry.operands : entry.results).push_back(std::move(value));
  }
  return success();
}

} // namespace

FailureOr<runtime::Manifest> braid::buildManifest(ModuleOp module) {
  runtime::Manifest manifest;
  manifest.producer = std::string("braid ") + runtime::version();
  manifest.modelName = module.getSymName().value_or("model").str();
  for (comm::MeshOp mesh : module.getOps<comm::MeshOp>())
    manifest.mesh = comm::toRuntime(mesh);
  for (rt::ProcedureOp procedure : module.getOps<rt::ProcedureOp>()) {
    if (!procedure.getEntry())
      continue;
    runtime::Entry entry;
    if (failed(describeEntry(procedure, entry)))
      return failure();
    manifest.entries.push_back(std::move(entry));
  }
  if (manifest.entries.empty())
    return module.emitError("expects a function with '") << nn::NNDialect::kEntryAttrName << "'";
  manifest.transports = {"threads", "shm"};
  return manifest;
}
