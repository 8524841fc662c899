//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "GatherMoves.h"
#include "SliceWise.h"

#include "braid/Transforms/Passes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_HOISTALLGATHERS
#include "braid/Transforms/Passes.h.inc"

namespace {

/// Whether `user` gathers that one value along `dim` over `group`.
bool isSameGather(Operation *user, int64_t dim, GroupAttr group) {
  auto gather = dyn_cast<AllGatherOp>(user);
  return gather && !isStarted(gather) && gather.getInputs().size() == 1 &&
         gathers(gather, dim, group);
}

/// The users of `part` that gather it take `whole` instead.
void useWhole(Value part, Value whole, int64_t dim, GroupAttr group) {
  for (Operation *user : llvm::make_early_inc_range(part.getUsers()))
    if (isSameGather(user, dim, group)) {
      user->getResult(0).replaceAllUsesWith(whole);
      user->erase();
    }
}

/// The whole that `part` is this rank's part of, where the block of `before` has it; null when it
/// would have to be gathered.
Value knownWhole(Value part, int64_t dim, GroupAttr group, Operation *before) {
  if (auto slice = part.getDefiningOp<LocalSliceOp>();
      slice && static_cast<int64_t>(slice.getDim()) == dim && slice.getGroup() == group)
    return slice.getInput();
  for (Operation *user : part.getUsers())
    if (isSameGather(user, dim, group) && user->getBlock() == before->getBlock()) {
      // Its operand exists there, as `before` takes it.
      if (!user->isBeforeInBlock(before))
        user->moveBefore(before);
      return user->getResult(0);
    }
  return {};
}

class Hoister {
public:
  Hoister(ModuleOp module, MeshOp mesh, bool acrossCalls)
      : module(module), replication(module, mesh), acrossCalls(acrossCalls) {}
  /// Makes one gather stand above what gives its operand; false when none can.
  bool run();
  void explain();
  GatherMoves moves;

private:
  bool hoistPast(AllGatherOp gather, std::string &why);
  bool hoistIntoCallee(AllGatherOp gather, std::string &why);
  bool hoistIntoCallers(AllGatherOp gather, std::string &why);
  bool hoist(AllGatherOp gather, std::string &why);

  ModuleOp module;
  Replication replication;
  bool acrossCalls;
};

/// `part` of which other users than `gather` go on taking a slice of `whole`.
void replaceByWhole(OpBuilder &builder, Value part, Value whole, AllGatherOp gather) {
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  useWhole(part, whole, dim, group);
  if (part.use_empty())
    return;
  auto slice = LocalSliceOp::create(builder, part.getLoc(), part.getType(), whole, dim, group);
  part.replaceAllUsesExcept(slice.getOutput(), slice);
}

bool Hoister::hoistPast(AllGatherOp gather, std::string &why) {
  auto part = cast<OpResult>(gather.getInputs()[0]);
  Operation *op = part.getOwner();
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  int64_t n = groupSize(gather, group);
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (op->getBlock() != gather->getBlock()) {
    why = name + " is in another block";
    return false;
  }
  std::optional<SliceDims> dims = sliceDims(op, part, dim, 1, why);
  if (!dims)
    return false;
  SaturatingCount before = bytesOf(gather.getOutputs()[0].getType()), after = 0;
  SmallVector<Value> wholes(op->getOperands());
  llvm::SetVector<Value> missing;
  for (auto [whole, cut] : llvm::zip_equal(wholes, dims->operands)) {
    if (!cut) {
      if (!replication.isReplicated(whole, group)) {
        why = name + " has an operand that differs between the ranks";
        return false;
      }
    } else if (Value known = knownWhole(whole, *cut, group, op)) {
      whole = known;
    } else if (missing.insert(whole)) {
      after += bytesOf(whole.getType()) * n;
    }
  }
  if (after > before) {
    why = name + " would need " + std::to_string(after.getValue()) +
          " bytes gathered in place of " + std::to_string(before.getValue());
    return false;
  }
  OpBuilder builder(op);
  DenseMap<Value, Value> gathered;
  for (auto [whole, part, cut] : llvm::zip_equal(wholes, op->getOperands(), dims->operands)) {
    if (!cut || whole != part)
      continue;
    Value &value = gathered[part];
    if (!value)
      value = AllGatherOp::create(builder, gather.getLoc(),
                                  TypeRange{wholeType(part.getType(), *cut, n)}, ValueRange{part},
                                  *cut, group, gather.getRoleAttr())
                  .getOutputs()[0];
    whole = value;
  }
  SmallVector<Type> types;
  for (auto [result, cut] : llvm::zip_equal(op->getResults(), dims->results))
    types.push_back(wholeType(result.getType(), *cut, n));
  FailureOr<SmallVector<Value>> results = rebuild(op, builder, wholes, types);
  if (failed(results)) {
    why = name + " cannot be built on whole values";
    return false;
  }
  remarkDone(gather, "HoistAllGathers", "moved above " + name);
  ++moves.past;
  builder.setInsertionPoint(op);
  Value own = (*results)[part.getResultNumber()];
  replaceByWhole(builder, part, own, gather);
  for (auto [result, whole, cut] : llvm::zip_equal(op->getResults(), *results, dims->results))
    if (!result.use_empty())
      result.replaceAllUsesWith(
          LocalSliceOp::create(builder, op->getLoc(), result.getType(), whole, *cut, group));
  op->erase();
  return true;
}

/// Above a call: the callee returns the whole.
bool Hoister::hoistIntoCallee(AllGatherOp gather, std::string &why) {
  auto part = cast<OpResult>(gather.getInputs()[0]);
  auto call = cast<func::CallOp>(part.getOwner());
  unsigned index = part.getResultNumber();
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  auto func = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  std::optional<SmallVector<func::CallOp>> calls = changeableCalls(func, why);
  if (!calls)
    return false;
  auto gathersResult = [&](func::CallOp other) {
    return llvm::any_of(other.getResult(index).getUsers(),
                        [&](Operation *user) { return isSameGather(user, dim, group); });
  };
  if (!llvm::all_of(*calls, gathersResult)) {
    why = "not all callers of '@" + func.getSymName().str() + "' gather its result";
    return false;
  }
  remarkDone(gather, "HoistAllGathers", "moved into '@" + func.getSymName() + "'");
  Type whole = gather.getOutputs()[0].getType();
  Operation *ret = func.getBody().front().getTerminator();
  OpBuilder builder(ret);
  Value inside = ret->getOperand(index);
  Value returned = knownWhole(inside, dim, group, ret);
  if (!returned)
    returned = AllGatherOp::create(builder, gather.getLoc(), TypeRange{whole}, ValueRange{inside},
                                   dim, group, gather.getRoleAttr())
                   .getOutputs()[0];
  ret->setOperand(index, returned);
  for (func::CallOp other : *calls) {
    // The old part is a value of its own until its users are told, then the result takes over.
    Value result = other.getResult(index);
    builder.setInsertionPointAfter(other);
    auto slice =
        LocalSliceOp::create(builder, other.getLoc(), result.getType(), result, dim, group);
    result.replaceAllUsesExcept(slice.getOutput(), slice);
    result.setType(whole);
    useWhole(slice.getOutput(), result, dim, group);
    if (slice->use_empty())
      slice.erase();
  }
  updateType(func);
  ++moves.intoCalls;
  return true;
}

/// Above the function: its callers give the whole.
bool Hoister::hoistIntoCallers(AllGatherOp gather, std::string &why) {
  auto argument = cast<BlockArgument>(gather.getInputs()[0]);
  auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
  if (!func) {
    why = "its operand is the argument of a block";
    return false;
  }
  std::optional<SmallVector<func::CallOp>> calls = changeableCalls(func, why);
  if (!calls)
    return false;
  unsigned index = argument.getArgNumber();
  int64_t dim = gather.getDim();
  GroupAttr group = gather.getGroup();
  Type whole = gather.getOutputs()[0].getType();
  remarkDone(gather, "HoistAllGathers", "moved to the callers of '@" + func.getSymName() + "'");
  for (func::CallOp call : *calls) {
    Value operand = call.getOperand(index);
    Value known = knownWhole(operand, dim, group, call);
    OpBuilder builder(call);
    if (!known)
      known = AllGatherOp::create(builder, gather.getLoc(), TypeRange{whole}, ValueRange{operand},
                                  dim, group, gather.getRoleAttr())
                  .getOutputs()[0];
    call->setOperand(index, known);
  }
  OpBuilder builder = OpBuilder::atBlockBegin(argument.getOwner());
  auto slice =
      LocalSliceOp::create(builder, argument.getLoc(), argument.getType(), argument, dim, group);
  argument.replaceAllUsesExcept(slice.getOutput(), slice);
  argument.setType(whole);
  useWhole(slice.getOutput(), argument, dim, group);
  if (slice->use_empty())
    slice.erase();
  updateType(func);
  ++moves.outOfCalls;
  return true;
}

bool Hoister::hoist(AllGatherOp gather, std::string &why) {
  if (gather.getInputs().size() != 1) {
    why = "it gathers several values";
    return false;
  }
  Value part = gather.getInputs()[0];
  if (gather->use_empty()) {
    why = "nobody uses its result";
    return false;
  }
  if (isa<BlockArgument>(part) || part.getDefiningOp<func::CallOp>()) {
    if (!acrossCalls) {
      why = "it is not to cross calls";
      return false;
    }
    return isa<BlockArgument>(part) ? hoistIntoCallers(gather, why) : hoistIntoCallee(gather, why);
  }
  return hoistPast(gather, why);
}

bool Hoister::run() {
  std::string why;
  // From the last on: what one leaves above itself is then still to come.
  SmallVector<AllGatherOp> gathers = collectivesIn<AllGatherOp>(module);
  for (AllGatherOp gather : llvm::reverse(gathers))
    if (hoist(gather, why))
      return true;
  return false;
}

void Hoister::explain() {
  for (AllGatherOp gather : collectivesIn<AllGatherOp>(module)) {
    std::string why;
    hoist(gather, why);
    remarkMissed(gather, "HoistAllGathers", "stays: " + why);
  }
}

struct HoistAllGathers : impl::HoistAllGathersBase<HoistAllGathers> {
  using HoistAllGathersBase::HoistAllGathersBase;

  void runOnOperation() override {
    // Every step moves a gather away from the results.
    FailureOr<GatherMoves> moves = moveGathers<Hoister>(getOperation(), acrossCalls);
    if (failed(moves))
      return signalPassFailure();
    numHoisted += moves->past;
    numIntoCalls += moves->intoCalls;
    numOutOfCalls += moves->outOfCalls;
    // What was taken of a whole that is now used itself.
    getOperation().walk([](LocalSliceOp slice) {
      if (slice->use_empty())
        slice.erase();
    });
  }
};

} // namespace
} // namespace braid
