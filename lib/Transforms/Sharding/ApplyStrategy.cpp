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
    FailureOr<MeshOp> op = findOrMakeMesh();
    if (failed(op) || failed(seed(*op)))
      signalPassFailure();
  }

private:
  FailureOr<MeshOp> findOrMakeMesh();
  LogicalResult seed(MeshOp mesh);
  LogicalResult seedParts(ArrayRef<const StrategyPart *> parts, MeshOp mesh);
  LogicalResult seedVocabulary(MeshOp mesh, bool sequence);
  bool hasCutVocabulary(MeshOp mesh);
  LogicalResult seedTensorParallel(MeshOp mesh, bool sequence);
  LogicalResult seedDataParallel(MeshOp mesh);
  LogicalResult seedSequence(Operation *sum, StringRef role, MeshOp mesh);
  LogicalResult seedDim(Operation *op, Value value, int64_t dim, StringRef what, MeshOp mesh,
                        StringRef axis, bool othersOpen = false);
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
  Builder attrs(&getContext());
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  for (const MeshAxis &axis : *axes) {
    names.push_back(attrs.getStringAttr(axis.name));
    sizes.push_back(axis.size);
  }
  if (Operation *other = SymbolTable::lookupSymbolIn(getOperation(), kMeshName))
    return other->emitOpError("has the name '") << kMeshName << "' that the mesh is to get";
  OpBuilder builder(&getContext());
  builder.setInsertionPointToStart(getOperation().getBody());
  return MeshOp::create(builder, getOperation().getLoc(), kMeshName, attrs.getArrayAttr(names),
                        sizes, DenseI64ArrayAttr());
}

LogicalResult ApplyStrategy::seedDim(Operation *op, Value value, int64_t dim, StringRef what,
                                     MeshOp mesh, StringRef axis, bool othersOpen) {
  auto type = cast<RankedTensorType>(value.getType());
  AxisAttr attr = AxisAttr::get(&getContext(), axis);
  int64_t size = axisSize(mesh, attr);
  if (size == 1 || getSharding(value))
    return success();
  if (type.getDimSize(dim) % size != 0)
    return emitNamedError(op) << what << " of size " << type.getDimSize(dim)
                              << " does not divide over axis '" << axis << "' of size " << size;
  SmallVector<DimAttr> dims(type.getRank(), DimAttr::get(&getContext(), {}, othersOpen));
  dims[dim] = DimAttr::get(&getContext(), attr);
  setSharding(value, ShardingAttr::get(&getContext(), FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
                                       dims, {}));
  ++numSeeds;
  return success();
}

/// A role at the start of a message.
std::string describe(StringRef role) { return role.empty() ? "" : ("role '" + role + "': ").str(); }

/// A partial sum is scattered over the sequence; the operations up to the next matmul then run on
/// shards of it.
LogicalResult ApplyStrategy::seedSequence(Operation *sum, StringRef role, MeshOp mesh) {
  auto type = cast<RankedTensorType>(sum->getResult(0).getType());
  if (type.getRank() < 3)
    return emitNamedError(sum)
           << describe(role) << "strategy 'tp-sp' expects a result [batch, sequence, hidden], got "
           << type;
  int64_t size = type.getDimSize(type.getRank() - 2),
          parts = axisSize(mesh, AxisAttr::get(&getContext(), kTensorAxis));
  if (size % parts != 0) {
    remark::missed(sum->getLoc(), remark::RemarkOpts::name("Sequence").category("sharding"))
        << (describe(role) + "a sequence of " + Twine(size) +
            " does not divide over 'tp' of size " + Twine(parts) + " and stays replicated")
               .str();
    return success();
  }
  return seedDim(sum, sum->getResult(0), type.getRank() - 2, describe(role) + "sequence dimension",
                 mesh, kTensorAxis, /*othersOpen=*/true);
}

LogicalResult ApplyStrategy::seedTensorParallel(MeshOp mesh, bool sequence) {
  bool any = false;
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (auto [linear, cut] : findColumnRowParallel(func)) {
      nn::LinearOp op = linear; // accessors are not const
      any = true;
      StringRef role = op.getRole().value_or("");
      std::string what =
          describe(role) + "dimension '" + (cut == LinearSplit::Column ? "out" : "in") + "'";
      if (failed(seedDim(op, op.getWeight(), static_cast<int64_t>(cut), what, mesh, kTensorAxis)))
        return failure();
      if (sequence && cut == LinearSplit::Row && failed(seedSequence(op, role, mesh)))
        return failure();
    }
  if (!any && strategy == "auto") {
    bool oneRank = axisSize(mesh, AxisAttr::get(&getContext(), kTensorAxis)) == 1;
    bool hasLinear =
        getOperation().walk([](nn::LinearOp) { return WalkResult::interrupt(); }).wasInterrupted();
    if (!oneRank && !hasLinear)
      remark::missed(getOperation().getLoc(),
                     remark::RemarkOpts::name("TensorParallel").category("sharding"))
          << "there is no nn.linear to shard over 'tp': its ranks compute the same";
    if (oneRank || !hasLinear)
      return success();
  }
  if (!any)
    return getOperation().emitError("strategy '")
           << strategy
           << "' finds no nn.linear to shard over 'tp': expects one of a known role "
              "(attention.query, attention.key, attention.value, attention.output, mlp.gate, "
              "mlp.up, mlp.down), or two of which the second depends on the first elementwise or "
              "headwise";
  return success();
}

/// Splits the embedding table by rows and the head by outputs, so that logits are sharded too.
LogicalResult ApplyStrategy::seedVocabulary(MeshOp mesh, bool sequence) {
  bool any = false;
  WalkResult result = getOperation().walk([&](Operation *op) {
    auto embedding = dyn_cast<nn::EmbeddingOp>(op);
    auto linear = dyn_cast<nn::LinearOp>(op);
    if (embedding && embedding.getRole() == kWordRole) {
      any = true;
      if (failed(seedDim(op, embedding.getTable(), 0, describe(kWordRole) + "dimension 'vocab'",
                         mesh, kTensorAxis)) ||
          (sequence && failed(seedSequence(op, kWordRole, mesh))))
        return WalkResult::interrupt();
    } else if (linear && linear.getRole() == kHeadRole) {
      any = true;
      if (failed(seedDim(op, linear.getWeight(), 0, describe(kHeadRole) + "dimension 'out'", mesh,
                         kTensorAxis)))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  if (!any)
    return getOperation().emitError("strategy '")
           << strategy
           << "' finds no vocabulary to shard over 'tp': expects an nn.embedding of role '"
           << kWordRole << "' or an nn.linear of role '" << kHeadRole << "'";
  return success();
}

/// Whether the model returns logits and every vocabulary divides. Without logits a replicated table
/// costs only memory, and a sharded one a reduction.
bool ApplyStrategy::hasCutVocabulary(MeshOp mesh) {
  int64_t size = axisSize(mesh, AxisAttr::get(&getContext(), kTensorAxis));
  bool head = false, divides = true;
  auto see = [&](Operation *op, Value table) {
    int64_t rows = cast<RankedTensorType>(table.getType()).getDimSize(0);
    if (rows % size == 0)
      return;
    divides = false;
    remark::missed(op->getLoc(), remark::RemarkOpts::name("Vocabulary").category("sharding"))
        << ("a vocabulary of " + Twine(rows) + " does not divide over 'tp' of size " + Twine(size) +
            " and stays replicated")
               .str();
  };
  getOperation().walk([&](Operation *op) {
    if (auto linear = dyn_cast<nn::LinearOp>(op); linear && linear.getRole() == kHeadRole) {
      head = true;
      see(op, linear.getWeight());
    } else if (auto embedding = dyn_cast<nn::EmbeddingOp>(op);
               embedding && embedding.getRole() == kWordRole) {
      see(op, embedding.getTable());
    }
  });
  return head && divides;
}

LogicalResult ApplyStrategy::seedDataParallel(MeshOp mesh) {
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
      if (failed(seedDim(func, argument, 0, what, mesh, kDataAxis, /*othersOpen=*/true)))
        return failure();
    }
  }
  return success();
}

LogicalResult ApplyStrategy::seed(MeshOp mesh) {
  // Local shapes would be partitioned a second time.
  for (auto func : getOperation().getOps<func::FuncOp>())
    for (unsigned i = 0; i < func.getNumArguments(); ++i)
      if (func.getArgAttr(i, CommDialect::kGlobalTypeAttrName))
        return func.emitOpError("is partitioned already");
  auto has = [&](StringRef axis) {
    return llvm::is_contained(mesh.getAxisNames().getAsValueRange<StringAttr>(), axis);
  };
  if (strategy == "auto") {
    SmallVector<const StrategyPart *> parts;
    for (const StrategyPart &part : strategyParts())
      if (has(part.axis) && part.name != "tp-sp" &&
          (part.name != "vocab" || hasCutVocabulary(mesh)))
        parts.push_back(&part);
    return seedParts(parts, mesh);
  }
  FailureOr<SmallVector<const StrategyPart *>> parts = parseStrategy(getOperation(), strategy);
  if (failed(parts))
    return failure();
  for (const StrategyPart *part : *parts)
    if (!has(part->axis))
      return mesh.emitOpError("has no axis '")
             << part->axis << "' for strategy '" << strategy << "'";
  return seedParts(*parts, mesh);
}

LogicalResult ApplyStrategy::seedParts(ArrayRef<const StrategyPart *> parts, MeshOp mesh) {
  auto named = [&](StringRef name) {
    return llvm::any_of(parts, [&](const StrategyPart *part) { return part->name == name; });
  };
  bool sequence = named("tp-sp");
  if ((sequence || named("tp")) && failed(seedTensorParallel(mesh, sequence)))
    return failure();
  if (named("vocab") && failed(seedVocabulary(mesh, sequence)))
    return failure();
  return success(!named("dp") || succeeded(seedDataParallel(mesh)));
}

} // namespace
} // namespace braid
