//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "VocabularyPadding.h"

#include "PadParameter.h"
#include "lib/Transforms/Sharding/StrategyOptions.h"

#include "braid/Transforms/ShardingUtils.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <optional>

using namespace mlir;
using namespace braid::comm;

namespace braid {

namespace {

/// An operation with a vocabulary, and its operands with one row or element for each word.
struct VocabularyOp {
  Operation *op;
  SmallVector<OpOperand *, 2> weights;

  int64_t rows() const { return typeOf(weights[0]->get()).getDimSize(0); }
  StringRef name() const { return isa<nn::EmbeddingOp>(op) ? kWordRole : kHeadRole; }
};

/// An operation that prevents padding.
struct Obstacle {
  Operation *op;
  std::string why;
};

class VocabularyPadder {
public:
  VocabularyPadder(ModuleOp module, int64_t ranks) : module(module), ranks(ranks) {}

  /// Collects the operations to pad.
  void find();
  bool hasHead = false;
  /// Whether padding and sharding leaves a rank with fewer weights.
  bool pays() const {
    return llvm::all_of(ops, [&](const VocabularyOp &op) {
      return padAtEnd(op.rows(), ranks).size / ranks < op.rows();
    });
  }
  /// Follows the padding through the module. Returns what prevents it, if anything.
  std::optional<Obstacle> check();
  void pad();

  SmallVector<VocabularyOp> ops;

private:
  std::optional<Obstacle> checkWeights(const VocabularyOp &op);
  std::optional<Obstacle> follow(OpOperand &use);
  std::optional<Obstacle> checkOthers(OpOperand &use);

  ModuleOp module;
  int64_t ranks;
  DenseSet<OpOperand *> weights; ///< of all operations
  /// Values with logits, and the dimension of the vocabulary.
  llvm::MapVector<Value, int64_t> logits;
  /// Results of entries that are logits, by function and index.
  llvm::SmallSetVector<std::pair<Operation *, unsigned>, 2> results;
};

void VocabularyPadder::find() {
  walkVocabularies(module, [&](Operation *op, OpOperand &weight, bool isHead) {
    VocabularyOp found{op, {&weight}};
    hasHead |= isHead;
    for (Operation *user : op->getUsers())
      if (auto bias = dyn_cast<nn::AddOp>(user);
          isHead && bias && typeOf(bias.getRhs()).getRank() == 1)
        found.weights.push_back(&bias.getRhsMutable());
    // A stated sharding decides whether and how the vocabulary is sharded.
    if (found.rows() % ranks != 0 && !getSharding(weight.get())) {
      weights.insert(found.weights.begin(), found.weights.end());
      ops.push_back(std::move(found));
    }
    return WalkResult::advance();
  });
}

std::optional<Obstacle> VocabularyPadder::checkWeights(const VocabularyOp &op) {
  for (OpOperand *weight : op.weights) {
    auto parameter = weight->get().getDefiningOp<nn::ParameterOp>();
    if (!parameter)
      return Obstacle{op.op, "expects its weights to be parameters"};
    if (getSharding(parameter.getResult()))
      return Obstacle{parameter, "it has a stated sharding"};
    if (!isBounded(withDim(typeOf(weight->get()), 0, padAtEnd(op.rows(), ranks).size)))
      return Obstacle{op.op, "its weights would have more than 2^48 elements"};
    // Parameter names are unique in an entry.
    for (OpOperand &use : parameter.getResult().getUses())
      if (!weights.contains(&use))
        return Obstacle{use.getOwner(),
                        "it takes parameter '" + parameter.getName().str() + "' too"};
  }
  if (auto embedding = dyn_cast<nn::EmbeddingOp>(op.op); embedding && embedding.getRows())
    return Obstacle{op.op, "it is padded already"};
  return std::nullopt;
}

/// Whether a user of logits tolerates padding: it acts on each element by itself, or returns them
/// from the entry, which removes the padding.
std::optional<Obstacle> VocabularyPadder::follow(OpOperand &use) {
  Operation *user = use.getOwner();
  int64_t dim = logits.lookup(use.get());
  if (isa<func::ReturnOp>(user)) {
    auto func = cast<func::FuncOp>(user->getParentOp());
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(func, module);
    if (!func->hasAttr(nn::NNDialect::kEntryAttrName) || !uses || !uses->empty())
      return Obstacle{user, "expects logits to be a result of the entry"};
    results.insert({func, use.getOperandNumber()});
    return std::nullopt;
  }
  auto shardable = dyn_cast<ShardingRuleOpInterface>(user);
  if (!shardable)
    return Obstacle{user, "logits go into an operation without a sharding rule"};
  ShardingRule rule = shardable.getShardingRule();
  const DimFactors &factors = rule.operands[use.getOperandNumber()][dim];
  if (factors.size() != 1 || rule.factors[factors[0]].kind != FactorKind::Parallel)
    return Obstacle{user, "logits go into an operation that would see the padding"};
  for (auto [result, tensor] : llvm::zip_equal(user->getResults(), rule.results)) {
    auto *own = llvm::find(tensor, factors);
    if (own == tensor.end())
      return Obstacle{user, "logits go into an operation that would see the padding"};
    logits.insert({result, own - tensor.begin()});
  }
  return std::nullopt;
}

/// Once all logits are known: other operands that share their dimension are padded too.
std::optional<Obstacle> VocabularyPadder::checkOthers(OpOperand &use) {
  auto shardable = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
  if (!shardable)
    return std::nullopt;
  ShardingRule rule = shardable.getShardingRule();
  const DimFactors &factors = rule.operands[use.getOperandNumber()][logits.lookup(use.get())];
  for (auto [operand, tensor] : llvm::zip_equal(shardable->getOpOperands(), rule.operands))
    for (const DimFactors &own : tensor)
      if (own == factors && !logits.contains(operand.get()) && !weights.contains(&operand))
        return Obstacle{shardable, "logits meet a value that cannot be padded"};
  return std::nullopt;
}

std::optional<Obstacle> VocabularyPadder::check() {
  for (const VocabularyOp &op : ops) {
    if (std::optional<Obstacle> obstacle = checkWeights(op))
      return obstacle;
    if (auto head = dyn_cast<nn::LinearOp>(op.op))
      logits.insert({head.getResult(), typeOf(head.getResult()).getRank() - 1});
  }
  for (size_t i = 0; i < logits.size(); ++i) // grows while it is traversed
    for (OpOperand &use : Value(logits.begin()[i].first).getUses())
      if (std::optional<Obstacle> obstacle = follow(use))
        return obstacle;
  for (auto [value, dim] : logits)
    for (OpOperand &use : value.getUses())
      if (std::optional<Obstacle> obstacle = checkOthers(use))
        return obstacle;
  return std::nullopt;
}

void VocabularyPadder::pad() {
  llvm::MapVector<Operation *, nn::ParameterOp> padded;
  for (VocabularyOp &op : ops) {
    DimPadding padding = padAtEnd(op.rows(), ranks);
    int64_t before = 0, after = 0, rows = op.rows();
    for (OpOperand *weight : op.weights) {
      auto parameter = weight->get().getDefiningOp<nn::ParameterOp>();
      nn::ParameterOp &larger = padded[parameter];
      if (!larger)
        larger = padParameter(parameter, 0, padding);
      before += typeOf(weight->get()).getNumElements();
      weight->set(larger.getResult());
      after += typeOf(weight->get()).getNumElements();
    }
    if (auto embedding = dyn_cast<nn::EmbeddingOp>(op.op))
      embedding.setRows(rows);
    remark::analysis(op.op->getLoc(), remark::RemarkOpts::name("Padding").category("padding"))
        << ("a vocabulary of " + Twine(rows) + " of '" + op.name() + "' is padded to " +
            Twine(padding.size) + " for axis '" + kTensorAxis + "' of size " + Twine(ranks) +
            ": its weights grow from " + Twine(before) + " to " + Twine(after) + " elements")
               .str();
  }
  for (auto &[old, larger] : padded)
    old->erase();
  for (auto [func, index] : results) {
    auto entry = cast<func::FuncOp>(func);
    if (!entry.getResultAttr(index, nn::NNDialect::kUnpaddedAttrName))
      entry.setResultAttr(index, nn::NNDialect::kUnpaddedAttrName,
                          TypeAttr::get(entry.getResultTypes()[index]));
  }
  for (auto [value, dim] : logits) {
    RankedTensorType type = typeOf(value);
    value.setType(withDim(type, dim, padAtEnd(type.getDimSize(dim), ranks).size));
  }
  for (auto [func, index] : results)
    updateType(cast<func::FuncOp>(func));
}

} // namespace

WalkResult walkVocabularies(ModuleOp module,
                            function_ref<WalkResult(Operation *, OpOperand &, bool)> visit) {
  return module.walk([&](Operation *op) {
    if (auto embedding = dyn_cast<nn::EmbeddingOp>(op);
        embedding && embedding.getRole() == kWordRole)
      return visit(op, embedding.getTableMutable(), /*isHead=*/false);
    if (auto head = dyn_cast<nn::LinearOp>(op); head && head.getRole() == kHeadRole)
      return visit(op, head.getWeightMutable(), /*isHead=*/true);
    return WalkResult::advance();
  });
}

FailureOr<int64_t> padVocabulary(ModuleOp module, int64_t ranks, bool wherePossible) {
  VocabularyPadder padder(module, ranks);
  padder.find();
  if (padder.ops.empty() || (wherePossible && (!padder.hasHead || !padder.pays())))
    return 0;
  if (std::optional<Obstacle> obstacle = padder.check()) {
    const VocabularyOp &first = padder.ops.front();
    std::string what = ("a vocabulary of " + Twine(first.rows()) + " cannot be padded for axis '" +
                        kTensorAxis + "' of size " + Twine(ranks) + ": " + obstacle->why)
                           .str();
    if (!wherePossible) {
      InFlightDiagnostic diag = emitNamedError(first.op);
      diag << what;
      if (obstacle->op != first.op)
        diag.attachNote(obstacle->op->getLoc()) << "see '" << obstacle->op->getName() << "'";
      return failure();
    }
    remark::missed(obstacle->op->getLoc(), remark::RemarkOpts::name("Padding").category("padding"))
        << what;
    return 0;
  }
  padder.pad();
  return static_cast<int64_t>(padder.ops.size());
}

} // namespace braid
