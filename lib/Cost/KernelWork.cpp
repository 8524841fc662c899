//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/KernelWork.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/CastInterfaces.h"

using namespace mlir;

namespace braid {

static StringRef classOf(Operation &op, bool reduces) {
  if (isa<arith::DivFOp, arith::DivSIOp, arith::DivUIOp, arith::RemFOp, arith::RemSIOp,
          arith::RemUIOp, math::SqrtOp, math::RsqrtOp>(op))
    return "divide";
  if (isa<math::MathDialect>(op.getDialect()) &&
      !isa<math::AbsFOp, math::AbsIOp, math::CopySignOp, math::FmaOp>(op))
    return op.getName().stripDialect();
  return reduces ? "reduce" : "simple";
}

KernelWork kernelWork(rt::KernelOp kernel, int64_t rows) {
  KernelWork work;
  if (kernel.isExternal()) {
    if (std::optional<uint64_t> flops = kernel.getRowFlops())
      work["simple"] = SaturatingCount(static_cast<int64_t>(*flops)) * rows;
    return work;
  }
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    SaturatingCount points = 1;
    for (int64_t range : generic.getStaticLoopRanges())
      points *= ShapedType::isDynamic(range) ? rows : range;
    const bool reduces = generic.getNumReductionLoops() != 0;
    for (Operation &op : generic.getBody()->without_terminator()) {
      if (op.hasTrait<OpTrait::ConstantLike>() || isa<CastOpInterface, linalg::IndexOp>(op))
        continue;
      // Only what uses the value so far combines elements.
      const bool combines =
          reduces && llvm::any_of(op.getOperands(), [&](Value operand) {
            auto argument = dyn_cast<BlockArgument>(operand);
            return argument && argument.getArgNumber() >= generic.getNumDpsInputs();
          });
      work[classOf(op, combines)] += points;
    }
  }
  return work;
}

} // namespace braid
