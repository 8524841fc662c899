//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RowEmitter.h"

#include "braid/Target/CPU/Passes.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Remarks.h"

#include "llvm/Support/MathExtras.h"

namespace braid::cpu {
#define GEN_PASS_DEF_CPULOWERKERNELS
#include "braid/Target/CPU/Passes.h.inc"
} // namespace braid::cpu

using namespace mlir;
using namespace braid;

namespace {
bool isSupported(Type element) {
  return element.isF32() || element.isInteger(32) || element.isInteger(64);
}

/// A kernel's operand may be a view, so all strides but the innermost are dynamic.
MemRefType memrefOf(RankedTensorType type) {
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (!strides.empty())
    strides.back() = 1;
  auto layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

class LowerKernels : public cpu::impl::CPULowerKernelsBase<LowerKernels> {
public:
  using CPULowerKernelsBase::CPULowerKernelsBase;

  void runOnOperation() override {
    if (!llvm::isPowerOf2_64(vectorWidth) || accumulators < 1) {
      getOperation().emitError(
          "expects a vector width that is a power of two and at least one accumulator, got ")
          << int64_t(vectorWidth) << " and " << int64_t(accumulators);
      return signalPassFailure();
    }
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<rt::KernelOp>()))
      if (!kernel.isExternal() && failed(lower(kernel)))
        return signalPassFailure();
  }

private:
  LogicalResult lower(rt::KernelOp kernel) {
    SmallVector<Type> types;
    for (auto [i, type] : llvm::enumerate(
             llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))) {
      auto tensor = cast<RankedTensorType>(type);
      // Rows that only a codec takes may have any type.
      const bool isRead = !kernel.isOwn(static_cast<unsigned>(i)) ||
                          !kernel.getBody().getArgument(static_cast<unsigned>(i)).use_empty();
      if (isRead && !isSupported(tensor.getElementType()))
        return kernel.emitOpError()
               << "'" << kernel.getSymName()
               << "' expects elements of f32, i32 or i64 on the CPU target, got " << tensor;
      types.push_back(memrefOf(tensor));
    }
    Block &body = kernel.getBody().front();
    FailureOr<cpu::RowSchedule> schedule = cpu::RowSchedule::build(
        body, body.getTerminator()->getOperands(), kernel.getRowDims(), rows::Keep{maxKeptBytes});
    if (failed(schedule))
      return failure();
    if (schedule->scalarReason.empty()) {
      ++numVectorized;
    } else {
      ++numScalar;
      remark::missed(
          schedule->scalarLoc,
          remark::RemarkOpts::name("vectorize").category("cpu").function(kernel.getSymName()))
          << remark::reason("{0}", schedule->scalarReason);
    }

    OpBuilder builder(kernel);
    Location loc = kernel.getLoc();
    auto func =
        func::FuncOp::create(builder, loc, kernel.getSymName(), builder.getFunctionType(types, {}));
    builder.setInsertionPointToStart(func.addEntryBlock());
    unsigned numOperands = kernel.getArgumentTypes().size();
    cpu::RowEmitter::Shape shape{vectorWidth, accumulators};
    cpu::RowEmitter(builder, loc, *schedule, shape, func.getArguments().take_front(numOperands),
                    func.getArguments().drop_front(numOperands))
        .emit();
    func::ReturnOp::create(builder, loc);
    kernel.erase();
    return success();
  }
};
} // namespace
