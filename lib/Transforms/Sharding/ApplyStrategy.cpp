//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ColumnRowParallel.h"
#include "StrategyOptions.h"
#include "lib/Transforms/Padding/VocabularyPadding.h"

#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"

#include "braid/Base/Mesh.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_APPLYSTRATEGY
#include "braid/Transforms/Passes.h.inc"

namespace {

constexpr StringLiteral kMeshName = "mesh";
/// The default mesh of a model.
constexpr StringLiteral kOneRank = "tp=1";

struct ApplyStrategy : impl::ApplyStrategyBase<ApplyStrategy> {
  using Base::Base;

  void runOnOperation() override {
    FailureOr<MeshOp> found = findOrMakeMesh();
    if (failed(found))
      return signalPassFailure();
    meshOp = *found;
    if (failed(seed()))
      signalPassFailure();
  }

private:
  FailureOr<MeshOp> findOrMakeMesh();
  LogicalResult seed();
  LogicalResult seedComponents(ArrayRef<const StrategyComponent *> components);
  LogicalResult seedVocabulary(bool sequence);
  bool canShardVocabulary();
  LogicalResult seedTensorParallel(bool sequence);
  LogicalResult seedDataParallel();
  SmallVector<Value> paddedBatches(BlockArgument argument);
  LogicalResult seedSequence(Operation *sum, StringRef role);
  LogicalResult seedDim(Operation *op, Value value, int64_t dim, const Twine &what, StringRef axis,
                        bool othersOpen = false);
  int64_t sizeOf(StringRef axis) { return axisSize(meshOp, AxisAttr::get(&getContext(), axis)); }
  static void remarkMissed(Operation *op, StringRef name, const Twine &why) {
    remark::missed(op->getLoc(), remark::RemarkOpts::name(name).category("sharding")) << why.str();
  }

  MeshOp meshOp;
};

FailureOr<MeshOp> ApplyStrategy::findOrMakeMesh() {
  if (!getOperation().getOps<MeshOp>().empty()) {
    if (!mesh.empty() && failed(expectMesh(getOperation(), mesh)))
      return failure();
    return getModuleMesh(getOperation());
  }
  FailureOr<SmallVector<MeshAxis>> axes =
      parseMesh(getOperation(), mesh.empty() ? StringRef(kOneRank) : StringRef(mesh),
                /*anyAxis=*/strategy == kNoStrategy);
  if (failed(axes))
    return failure();
  OpBuilder builder(&getContext());
  auto names = llvm::map_to_vector(
      *axes, [&](const MeshAxis &axis) -> Attribute { return builder.getStringAttr(axis.name); });
  auto sizes = llvm::map_to_vector(*axes, [](const MeshAxis &axis) { return axis.size; });
  if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), kMeshName))
    return other->emitOpError("has the name '") << kMeshName << "' that the mesh is to get";
  builder.setInsertionPointToStart(getOperation().getBody());
  return MeshOp::create(builder, getOperation().getLoc(), kMeshName, builder.getArrayAttr(names),
                        sizes, DenseI64ArrayAttr());
}

LogicalResult ApplyStrategy::seedDim(Operation *op, Value value, int64_t dim, const Twine &what,
                                     StringRef axis, bool othersOpen) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t size = sizeOf(axis);
  if (size == 1 || getSharding(value))
    return success();
  if (type.getDimSize(dim) % size != 0)
    return emitNamedError(op) << what << " of size " << type.getDimSize(dim)
                              << " does not divide over axis '" << axis << "' of size " << size;
  SmallVector<DimAttr> dims(type.getRank(), DimAttr::get(&getContext(), {}, othersOpen));
  dims[dim] = DimAttr::get(&getContext(), AxisAttr::get(&getContext(), axis));
  setSharding(value, ShardingAttr::get(&getContext(),
                                       FlatSymbolRefAttr::get(meshOp.getSymNameAttr()), dims, {}));
  ++numSeeds;
  return success();
}

/// A role at the start of a message.
std::string describe(StringRef role) { return role.empty() ? "" : ("role '" + role + "': ").str(); }

/// A partial sum is scattered over the sequence; the operations up to the next matmul then run on
/// shards of it.
LogicalResult ApplyStrategy::seedSequence(Operation *sum, StringRef role) {
  auto type = cast<RankedTensorType>(sum->getResult(0).getType());
  if (type.getRank() < 3)
    return emitNamedError(sum)
           << describe(role) << "strategy 'tp-sp' expects a result [batch, sequence, hidden], got "
           << type;
  int64_t dim = type.getRank() - 2, size = type.getDimSize(dim);
  if (size % sizeOf(kTensorAxis) == 0)
    return seedDim(sum, sum->getResult(0), dim, describe(role) + "sequence dimension", kTensorAxis,
                   /*othersOpen=*/true);
  remarkMissed(sum, "Sequence",
               describe(role) + "a sequence of " + Twine(size) +
                   " does not divide over 'tp' of size " + Twine(sizeOf(kTensorAxis)) +
                   " and stays replicated");
  return success();
}

LogicalResult ApplyStrategy::seedTensorParallel(bool sequence) {
  bool any = false;
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (auto [linear, style] : findColumnRowParallel(func)) {
      nn::LinearOp op = linear; // accessors are not const
      any = true;
      StringRef role = op.getRole().value_or(""),
                dim = style == ParallelStyle::Column ? "out" : "in";
      if (failed(seedDim(op, op.getWeight(), static_cast<int64_t>(style),
                         describe(role) + "dimension '" + dim + "'", kTensorAxis)))
        return failure();
      if (sequence && style == ParallelStyle::Row && failed(seedSequence(op, role)))
        return failure();
    }
  if (any)
    return success();
  if (strategy == "auto") {
    bool oneRank = sizeOf(kTensorAxis) == 1;
    bool hasLinear =
        getOperation().walk([](nn::LinearOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!oneRank && !hasLinear)
      remarkMissed(getOperation(), "TensorParallel",
                   "there is no nn.linear to shard over 'tp': its ranks compute the same");
    if (oneRank || !hasLinear)
      return success();
  }
  return getOperation().emitError("strategy '")
         << strategy
         << "' finds no nn.linear to shard over 'tp': expects one of a known role "
            "(attention.query, attention.key, attention.value, attention.output, mlp.gate, "
            "mlp.up, mlp.down), or two of which the second depends on the first elementwise or "
            "headwise";
}

/// Splits the embedding table by rows and the head by outputs, so that logits are sharded too.
LogicalResult ApplyStrategy::seedVocabulary(bool sequence) {
  bool any = false;
  auto visit = [&](Operation *op, OpOperand &weight, bool isHead) -> WalkResult {
    any = true;
    std::string what =
        describe(isHead ? kHeadRole : kWordRole) + "dimension '" + (isHead ? "out" : "vocab") + "'";
    if (failed(seedDim(op, weight.get(), 0, what, kTensorAxis)))
      return failure();
    return sequence && !isHead ? seedSequence(op, kWordRole) : success();
  };
  if (walkVocabularies(getOperation(), visit).wasInterrupted())
    return failure();
  if (any)
    return success();
  return getOperation().emitError("strategy '")
         << strategy
         << "' finds no vocabulary to shard over 'tp': expects an nn.embedding of role '"
         << kWordRole << "' or an nn.linear of role '" << kHeadRole << "'";
}

/// Whether the model returns logits and every vocabulary divides. Without logits a replicated table
/// costs only memory, and a sharded one a reduction.
bool ApplyStrategy::canShardVocabulary() {
  bool hasHead = false, divides = true;
  walkVocabularies(getOperation(), [&](Operation *op, OpOperand &weight, bool isHead) {
    int64_t rows = cast<RankedTensorType>(weight.get().getType()).getDimSize(0);
    hasHead |= isHead;
    if (rows % sizeOf(kTensorAxis) != 0) {
      divides = false;
      remarkMissed(op, "Vocabulary",
                   "a vocabulary of " + Twine(rows) + " does not divide over 'tp' of size " +
                       Twine(sizeOf(kTensorAxis)) + " and stays replicated");
    }
    return WalkResult::advance();
  });
  return hasHead && divides;
}

/// The operand; or, where its batch does not divide, its padded forms, if there are any. The
/// operand itself is then the same on all ranks.
SmallVector<Value> ApplyStrategy::paddedBatches(BlockArgument argument) {
  const int64_t size = sizeOf(kDataAxis);
  SmallVector<Value> padded;
  if (cast<RankedTensorType>(argument.getType()).getDimSize(0) % size != 0)
    for (Operation *user : argument.getUsers())
      if (auto concat = dyn_cast<nn::ConcatOp>(user); concat && concat.getDim() == 0 &&
                                                      concat.getInputs().front() == argument &&
                                                      concat.getType().getDimSize(0) % size == 0)
        padded.push_back(concat.getResult());
  return padded.empty() ? SmallVector<Value>{argument} : padded;
}

LogicalResult ApplyStrategy::seedDataParallel() {
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (!isEntry(func) || func.isExternal())
      continue;
    for (BlockArgument argument : func.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0)
        continue;
      auto name =
          func.getArgAttrOfType<StringAttr>(argument.getArgNumber(), nn::NNDialect::kNameAttrName);
      std::string what = "operand " +
                         (name ? "'" + name.str() + "'" : std::to_string(argument.getArgNumber())) +
                         ": dimension 0";
      for (Value batch : paddedBatches(argument))
        if (failed(seedDim(func, batch, 0, what, kDataAxis, /*othersOpen=*/true)))
          return failure();
    }
  }
  return success();
}

LogicalResult ApplyStrategy::seed() {
  // Local shapes would be partitioned a second time.
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
  auto has = [&](StringRef axis) {
    return llvm::is_contained(meshOp.getAxisNames().getAsValueRange<StringAttr>(), axis);
  };
  if (strategy == "auto") {
    SmallVector<const StrategyComponent *> components;
    for (const StrategyComponent &component : strategyComponents())
      if (has(component.axis) && component.name != "tp-sp" && component.name != "fsdp" &&
          (component.name != "vocab" || canShardVocabulary()))
        components.push_back(&component);
    return seedComponents(components);
  }
  FailureOr<SmallVector<const StrategyComponent *>> components =
      parseStrategy(getOperation(), strategy);
  if (failed(components))
    return failure();
  for (const StrategyComponent *component : *components)
    if (!has(component->axis))
      return meshOp.emitOpError("has no axis '")
             << component->axis << "' for strategy '" << strategy << "'";
  return seedComponents(*components);
}

LogicalResult ApplyStrategy::seedComponents(ArrayRef<const StrategyComponent *> components) {
  auto has = [&](StringRef name) {
    return llvm::any_of(
        components, [&](const StrategyComponent *component) { return component->name == name; });
  };
  bool sequence = has("tp-sp");
  if ((sequence || has("tp")) && failed(seedTensorParallel(sequence)))
    return failure();
  if (has("vocab") && failed(seedVocabulary(sequence)))
    return failure();
  return success(!has("dp") || succeeded(seedDataParallel()));
}

} // namespace
} // namespace braid
