//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "EncodingError.h"
#include "braid/Runtime/Version.h"

#include "braid/Target/Bundle/Bundle.h"
#include "dialects/RT/IR/RT.h"

using namespace mlir;
using namespace braid;

namespace {

/// The fields that parameters, states, operands and results share.
template <typename T, typename AttrT> LogicalResult describe(Operation *op, AttrT attr, T &value) {
  value.name = attr.getName().str();
  Type element = attr.getGlobalType().getElementType();
  std::optional<runtime::DType> dtype = comm::toRuntime(element);
  if (!dtype)
    return op->emitOpError() << "'" << attr.getName()
                             << "' expects elements that a bundle can hold, got " << element;
  value.dtype = *dtype;
  ArrayRef<int64_t> shape = attr.getGlobalType().getShape();
  value.globalShape.assign(shape.begin(), shape.end());
  if (attr.getSharding())
    value.sharding = comm::toRuntime(attr.getSharding());
  value.on = comm::toRuntime(attr.getPlace());
  return success();
}

LogicalResult describeEntry(rt::ProcedureOp procedure, runtime::Entry &entry) {
  entry.name = procedure.getSymName().str();
  for (unsigned i = 0; i < procedure.getNumArguments(); ++i) {
    if (auto attr =
            procedure.getArgAttrOfType<rt::ParameterAttr>(i, rt::RTDialect::kParameterAttrName)) {
      runtime::Parameter parameter;
      if (failed(describe(procedure, attr, parameter)))
        return failure();
      parameter.init = nn::toRuntime(attr.getInit().getValue());
      for (Attribute slice : attr.getSlices())
        parameter.slices.push_back(nn::toRuntime(cast<nn::SliceAttr>(slice)));
      if (nn::QuantizedPartAttr part = attr.getQuantized())
        parameter.quantized = nn::toRuntime(part.getValue());
      entry.parameters.push_back(std::move(parameter));
      continue;
    }
    const std::pair<StringRef, std::vector<runtime::EntryValue> *> kinds[] = {
        {rt::RTDialect::kStateAttrName, &entry.states},
        {rt::RTDialect::kOperandAttrName, &entry.operands},
        {rt::RTDialect::kResultAttrName, &entry.results}};
    for (auto [kind, values] : kinds) {
      auto attr = procedure.getArgAttrOfType<rt::ValueAttr>(i, kind);
      if (!attr)
        continue;
      runtime::EntryValue &value = values->emplace_back();
      if (failed(describe(procedure, attr, value)))
        return failure();
      if (RankedTensorType padded = attr.getPaddedType())
        value.paddedShape.assign(padded.getShape().begin(), padded.getShape().end());
      if (attr.getDefaultValue())
        value.defaultValue = attr.getDefaultValue().getInt();
      if (attr.getBelow())
        value.below = attr.getBelow().getInt();
    }
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
  manifest.checkTolerance = expectedTolerance(module);
  manifest.transports = {"threads", "shm", "ucx"};
  return manifest;
}
