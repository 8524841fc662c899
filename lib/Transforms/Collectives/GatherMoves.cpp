//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GatherMoves.h"

#include "mlir/Analysis/CallGraph.h"
#include "llvm/ADT/SCCIterator.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace braid;
using namespace braid::comm;

GatherMover::GatherMover(ModuleOp module, MeshOp mesh, bool acrossCalls, Counts counts)
    : counts(counts), module(module), acrossCalls(acrossCalls), replication(module, mesh),
      rewriter(module.getContext(), this), users(symbols, module) {
  CallGraph graph(module);
  for (auto it = llvm::scc_begin<const CallGraph *>(&graph); !it.isAtEnd(); ++it)
    if (const CallGraphNode *node = it->front(); !it.hasCycle() && !node->isExternal())
      acyclic.insert(node->getCallableRegion()->getParentOp());
}

void GatherMover::notifyOperationErased(Operation *op) {
  worklist.remove(op);
  inserted.remove(op);
  replication.forget(op);
}

void GatherMover::notifyMatchFailure(Location loc, function_ref<void(Diagnostic &)> reason) {
  if (!reasons)
    return;
  Diagnostic text(loc, DiagnosticSeverity::Remark);
  reason(text);
  if (std::string why = text.str(); !llvm::is_contained(*reasons, why))
    reasons->push_back(std::move(why));
}

FailureOr<bool> GatherMover::move(MatchFn match, bool firstFirst) {
  SmallVector<AllGatherOp> gathers = collectivesIn<AllGatherOp>(module);
  if (firstFirst)
    std::reverse(gathers.begin(), gathers.end());
  worklist.insert(gathers.begin(), gathers.end());
  bool changed = false;
  while (!worklist.empty()) {
    auto gather = cast<AllGatherOp>(worklist.back());
    FailureOr<Move> move = match(gather);
    if (failed(move)) {
      worklist.remove(gather);
      continue;
    }
    if (failed((*move)()))
      return failure();
    changed = true;
    for (Operation *op : inserted.takeVector()) {
      replication.update(op);
      if (isa<AllGatherOp>(op))
        worklist.insert(op);
    }
  }
  return changed;
}

std::string GatherMover::explain(function_ref<void()> match) {
  SmallVector<std::string> texts;
  reasons = &texts;
  match();
  reasons = nullptr;
  return llvm::join(texts, "; ");
}

FailureOr<SmallVector<func::CallOp>> GatherMover::matchCalls(func::FuncOp func) {
  std::string name = ("'@" + func.getSymName() + "'").str();
  if (isEntry(func))
    return rewriter.notifyMatchFailure(func, name + " is the entry");
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return rewriter.notifyMatchFailure(func, name + " is not of one block");
  if (!acyclic.contains(func))
    return rewriter.notifyMatchFailure(func,
                                       name + " is recursive, or no public function calls it");
  SmallVector<func::CallOp> calls;
  for (Operation *user : users.getUsers(func))
    if (auto call = dyn_cast<func::CallOp>(user))
      calls.push_back(call);
  if (calls.empty() || calls.size() != users.getUsers(func).size())
    return rewriter.notifyMatchFailure(func, name + " is not only called");
  if (llvm::any_of(calls, [](func::CallOp call) { return placeOf(call); }))
    return rewriter.notifyMatchFailure(func, name + " is run by some ranks only");
  return calls;
}

LogicalResult GatherMover::matchBytes(Operation *op, SaturatingCount before,
                                      SaturatingCount after) {
  if (after <= before)
    return success();
  return rewriter.notifyMatchFailure(op, quoted(op) + " would need " + Twine(after.getValue()) +
                                             " bytes sent in place of " + Twine(before.getValue()));
}

Value GatherMover::gather(Value shard, int64_t dim, AllGatherOp like, StringRef name) {
  Type type = gatheredType(shard.getType(), dim, groupSize(like, like.getGroup()));
  return AllGatherOp::create(rewriter, like.getLoc(), TypeRange{type}, ValueRange{shard}, dim,
                             like.getGroup(),
                             name.empty() ? like.getRoleAttr() : rewriter.getStringAttr(name))
      .getOutputs()[0];
}
