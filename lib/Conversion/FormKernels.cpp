//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "KernelBuilder.h"
#include "KernelGroups.h"

#include "braid/Conversion/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Remarks.h"

namespace braid {
#define GEN_PASS_DEF_FORMKERNELS
#include "braid/Conversion/Passes.h.inc"
} // namespace braid

using namespace mlir;
using namespace braid;

namespace {

/// Moves a wait down to the first operation of its block that uses one of its results, directly or
/// within a region.
void sinkWait(comm::WaitOp wait) {
  Block *block = wait->getBlock();
  Operation *first = block->getTerminator();
  for (Operation *user : wait->getUsers())
    if (Operation *here = block->findAncestorOpInBlock(*user); here->isBeforeInBlock(first))
      first = here;
  // Waits with the same first user keep their order.
  for (Operation *before = first->getPrevNode();
       before != wait && isa_and_nonnull<comm::WaitOp>(before); before = before->getPrevNode())
    first = before;
  wait->moveBefore(first);
}

/// The product that a sum adds to its other operand, and that operand, where the product's kernel
/// can add in its memory: nothing else uses the two, and no collective lies between product and
/// sum, so that the product may be computed in the sum's place.
struct Accumulation {
  Operation *product = nullptr;
  Value accumulator;
};

Accumulation findAccumulation(nn::AddOp add) {
  auto isIn = [&](Operation *op) { return op && op->getBlock() == add->getBlock(); };
  for (auto [product, other] :
       {std::pair(add.getRhs(), add.getLhs()), std::pair(add.getLhs(), add.getRhs())}) {
    Operation *matmul = product.getDefiningOp(), *producer = other.getDefiningOp();
    auto full = dyn_cast_or_null<nn::MatmulOp>(matmul);
    if (!isIn(matmul) || !isIn(producer) || product.getType() != other.getType() ||
        !product.hasOneUse() || !other.hasOneUse() || isa<nn::ParameterOp>(producer) ||
        !(isa<nn::LinearOp>(matmul) || (full && !full.getCounts() && !full.getAccumulator())))
      continue;
    auto between = llvm::make_range(matmul->getIterator(), add->getIterator());
    if (producer->isBeforeInBlock(matmul) && llvm::none_of(between, [](Operation &op) {
          return isa<comm::CommDialect>(op.getDialect());
        }))
      return {matmul, other};
  }
  return {};
}

/// Equal kernels are one, whose location is that of the first. An error of a codec names the
/// collective of its own payload.
Location locationOf(ArrayRef<Operation *> members, rt::KernelOp kernel) {
  if (members.size() == 1)
    return members.front()->getLoc();
  SmallVector<Location> locs;
  for (Operation *op : members)
    if (isDecode(op) || isEncode(op))
      locs.push_back(op->getLoc());
  if (locs.empty())
    return kernel.getLoc();
  for (Operation *op : members)
    locs.push_back(op->getLoc());
  return FusedLoc::get(kernel.getContext(), locs);
}

struct FormKernels : braid::impl::FormKernelsBase<FormKernels> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    schedule::Communication communication(getOperation());
    SmallVector<rt::KernelOp> kernels(getOperation().getOps<rt::KernelOp>());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      for (Block &block : function.getBody())
        if (failed(runOnBlock(function, block, communication, symbols, kernels)))
          return signalPassFailure();
  }

  LogicalResult runOnBlock(func::FuncOp function, Block &block,
                           const schedule::Communication &communication, SymbolTable &symbols,
                           SmallVectorImpl<rt::KernelOp> &kernels) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isRowOperation(&op) && failed(verifyRowOperation(&op)))
        return failure();
      if (auto library = dyn_cast<nn::LibraryKernelOpInterface>(op))
        if (failed(launchLibraryKernel(function, library, symbols, kernels)))
          return failure();
    }
    KernelGroups joined(block, communication, fuse, fuseCodecs, target);
    numJoined += joined.numJoined;
    for (ArrayRef<Operation *> members : llvm::reverse(joined.groups)) {
      if (fuse && members.size() == 1 && accumulate(members.front()))
        continue;
      KernelGroup group;
      group.ops.assign(members.begin(), members.end());
      group.findInterface();
      OpBuilder builder(function);
      FailureOr<rt::KernelOp> built = buildKernel(builder, group);
      if (failed(built))
        return failure();
      rt::KernelOp kernel = unique(*built, symbols, kernels);
      const size_t count = members.size();
      ResultRange results = launch(members.back(), locationOf(members, kernel),
                                   ValueRange(group.outputs).getTypes(), kernel, group.getRows(),
                                   group.inputs, "kernel", "joins " + Twine(count) + " operations");
      for (auto [output, result] : llvm::zip_equal(group.outputs, results))
        output.replaceUsesWithIf(
            result, [&](OpOperand &use) { return !llvm::is_contained(members, use.getOwner()); });
    }
    // Erases unused operations, and producers whose users are all in kernels.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if ((isRowOperation(&op) || isDecode(&op) || isEncode(&op)) && op.use_empty())
        op.erase();
    // A kernel runs at the place of its last operation, so the waits of its first ones may sink;
    // from the last wait on, since the first user of a wait may be another wait.
    for (comm::WaitOp wait : llvm::reverse(joined.lateWaits))
      sinkWait(wait);
    return success();
  }

  /// Whether an operation would be in a kernel with a codec if fuse-codecs were given.
  bool isKeptFromCodec(Operation *op) const {
    return !fuseCodecs && (llvm::any_of(op->getUsers(), isEncode) ||
                           llvm::any_of(op->getOperands(), [](Value operand) {
                             Operation *producer = operand.getDefiningOp();
                             return producer && isDecode(producer);
                           }));
  }

  /// Lets the kernel of a product add, where the sum would be a kernel of its own with codecs in
  /// kernels too: a product that is added by its kernel may be rounded in another way.
  bool accumulate(Operation *op) {
    auto add = dyn_cast<nn::AddOp>(op);
    if (add && isKeptFromCodec(add))
      return false;
    auto [product, accumulator] = add ? findAccumulation(add) : Accumulation();
    if (!product)
      return false;
    OpBuilder builder(add);
    auto matmul = dyn_cast<nn::MatmulOp>(product);
    auto joined = nn::MatmulOp::create(
        builder, product->getLoc(), add.getResult().getType(), product->getOperand(0),
        product->getOperand(1), /*counts=*/Value(), accumulator, matmul && matmul.getTransposeLhs(),
        !matmul || matmul.getTransposeRhs(), product->getAttrOfType<StringAttr>("role"));
    remark::passed(add.getLoc(), remark::RemarkOpts::name("accumulate").category("kernels"))
        << "nn.add is done by the matmul that it adds";
    add.replaceAllUsesWith(joined.getResult());
    add.erase();
    product->erase();
    ++numAccumulations;
    return true;
  }

  LogicalResult launchLibraryKernel(func::FuncOp function, nn::LibraryKernelOpInterface op,
                                    SymbolTable &symbols, SmallVectorImpl<rt::KernelOp> &kernels) {
    OpBuilder builder(function);
    int64_t rows = 1;
    FailureOr<rt::KernelOp> declared = declareKernel(builder, op, rows);
    if (failed(declared))
      return failure();
    rt::KernelOp kernel = unique(*declared, symbols, kernels);
    op->replaceAllUsesWith(launch(op, op->getLoc(), op->getResultTypes(), kernel, rows,
                                  op->getOperands(), "library",
                                  "calls " + *kernel.getLibrarySymbol()));
    op->erase();
    return success();
  }

  /// Creates a launch before `before`, and a remark `name` that says what the kernel does.
  ResultRange launch(Operation *before, Location loc, TypeRange types, rt::KernelOp kernel,
                     int64_t rows, ValueRange inputs, StringRef name, const Twine &what) {
    OpBuilder builder(before);
    ++numLaunches;
    remark::passed(loc, remark::RemarkOpts::name(name).category("kernels"))
        << ("@" + kernel.getSymName() + " " + what + " over " + Twine(rows) + " rows").str();
    return rt::LaunchOp::create(builder, loc, types, FlatSymbolRefAttr::get(kernel), rows, inputs)
        .getResults();
  }

  /// An equal existing kernel, or this one under a unique name.
  rt::KernelOp unique(rt::KernelOp kernel, SymbolTable &symbols,
                      SmallVectorImpl<rt::KernelOp> &kernels) {
    for (rt::KernelOp other : kernels)
      if (areEquivalent(kernel, other)) {
        kernel.erase();
        return other;
      }
    symbols.insert(kernel);
    kernels.push_back(kernel);
    ++numKernels;
    return kernel;
  }
};

} // namespace
