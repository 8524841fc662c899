//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An overlap pass in a plugin: slices a matmul and the all_reduce of its result in two, so that the
// first half is reduced while the second half is multiplied.
//
//     y = all_reduce(x . w^T)
//
// becomes, with x0 and x1 the halves of the rows of x,
//
//     y = concat(all_reduce(x0 . w^T), all_reduce(x1 . w^T))
//
// Nothing is copied for it: slices are views, and both halves are reduced into y's memory. The
// compiler starts the first all_reduce before the second matmul, and waits for it behind.
//
//===----------------------------------------------------------------------===//
#include "braid/Transforms/Identity.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace braid;

namespace {

/// The dimension of rows that is sliced: the longest. The last one are columns, which stay whole.
int64_t longestRows(RankedTensorType type) {
  ArrayRef<int64_t> rows = type.getShape().drop_back();
  return std::distance(rows.begin(), llvm::max_element(rows));
}

struct SliceMatmul : PassWrapper<SliceMatmul, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SliceMatmul)

  StringRef getArgument() const override { return "slice-matmul"; }
  StringRef getDescription() const override {
    return "slice each matmul with an all_reduce of its result in two";
  }

  void runOnOperation() override {
    SmallVector<comm::AllReduceOp> reductions;
    getOperation()->walk([&](comm::AllReduceOp op) { reductions.push_back(op); });
    for (comm::AllReduceOp reduction : reductions)
      slice(reduction);
  }

private:
  static void slice(comm::AllReduceOp reduction) {
    // A merged all_reduce has several values, of which none is reduced before all are computed.
    auto linear = reduction.getInputs()[0].getDefiningOp<nn::LinearOp>();
    if (reduction.getInputs().size() != 1 || !linear || !linear->hasOneUse())
      return missed(reduction, "does not reduce the result of a matmul alone");
    const auto type = cast<RankedTensorType>(linear.getType());
    const int64_t dim = longestRows(type), rows = type.getDimSize(dim);
    if (type.getRank() < 2 || rows < 2)
      return missed(reduction, "has a single row");

    OpBuilder builder(reduction);
    SmallVector<Value> halves;
    const int64_t middle = (rows + 1) / 2;
    for (auto [from, size] : {std::pair(int64_t(0), middle), std::pair(middle, rows - middle)}) {
      Value x = nn::SliceOp::create(builder, linear.getLoc(), linear.getInput(), dim, from, size);
      const auto half = cast<RankedTensorType>(type.clone(withSize(type.getShape(), dim, size)));
      Value product = nn::LinearOp::create(builder, linear.getLoc(), half, x, linear.getWeight(),
                                           linear.getRoleAttr());
      Operation *part = builder.clone(*reduction);
      part->setOperands(product);
      part->getResult(0).setType(half);
      namePart(part, reduction, from == 0 ? "first" : "second");
      halves.push_back(part->getResult(0));
    }
    remark::passed(reduction.getLoc(),
                   remark::RemarkOpts::name("SliceMatmul").category("communication"))
        << ("sliced into " + Twine(middle) + " and " + Twine(rows - middle) + " rows").str();
    Value whole = nn::ConcatOp::create(builder, reduction.getLoc(), halves, dim);
    reduction.getResult(0).replaceAllUsesWith(whole);
    reduction.erase();
    linear.erase();
  }

  static SmallVector<int64_t> withSize(ArrayRef<int64_t> shape, int64_t dim, int64_t size) {
    SmallVector<int64_t> result(shape);
    result[dim] = size;
    return result;
  }

  static void missed(Operation *reduction, StringRef why) {
    remark::missed(reduction->getLoc(),
                   remark::RemarkOpts::name("SliceMatmul").category("communication"))
        << why;
  }
};

} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "slice-matmul", "0.1", [] { PassRegistration<SliceMatmul>(); }};
}
