//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Cost/CommunicationCost.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {

RankedTensorType globalType(Type type, int64_t dim, int64_t n) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] =
      saturatingProduct({shape[dim], n}); // the verifier of its user refuses too large a type
  return tensor.clone(shape);
}

RankedTensorType partType(Type type, int64_t dim, int64_t n) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape[dim] /= n;
  return tensor.clone(shape);
}

SaturatingCount gatherBytes(Type part, int64_t n) {
  return collectiveCost(runtime::CollectiveKind::allGather, totalBytes(part), n).bytes;
}

bool isStarted(Operation *collective) { return isa<StartOp>(collective->getParentOp()); }

Value takePart(OpBuilder &builder, Location loc, Value whole, int64_t dim, GroupAttr group) {
  if (auto gather = whole.getDefiningOp<AllGatherOp>();
      gather && !isStarted(gather) && gather.getDim() == static_cast<uint64_t>(dim) &&
      gather.getGroup() == group)
    return gather.getInputs()[cast<OpResult>(whole).getResultNumber()];
  int64_t n = groupSize(builder.getInsertionBlock()->getParentOp(), group);
  return LocalSliceOp::create(builder, loc, partType(whole.getType(), dim, n), whole, dim, group);
}

static std::string title(Operation *collective) {
  std::string text = collective->getName().getStringRef().str();
  if (auto role = collective->getAttrOfType<StringAttr>("role"))
    text += (" '" + role.getValue() + "'").str();
  return text;
}

void remarkDone(Operation *collective, StringRef name, const Twine &what) {
  remark::passed(collective->getLoc(), remark::RemarkOpts::name(name).category("communication"))
      << (Twine(title(collective)) + ": " + what).str();
}

void remarkMissed(Operation *collective, StringRef name, const Twine &why) {
  remark::missed(collective->getLoc(), remark::RemarkOpts::name(name).category("communication"))
      << (Twine(title(collective)) + ": " + why).str();
}

} // namespace braid
