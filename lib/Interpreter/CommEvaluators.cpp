//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "dialects/Comm/IR/Comm.h"

using namespace mlir;

namespace braid::interp {

namespace {
Result<Collective> toCore(comm::CollectiveOpInterface op) {
  StringRef operation = op->getName().getStringRef(), kind = op->getName().stripDialect();
  // The core's kinds have the names of the comm operations, which name their attributes alike.
  Collective collective;
  int8_t number = 0;
  while (number <= int8_t(CollectiveKind::recv) && runtime::name(CollectiveKind(number)) != kind)
    ++number;
  if (number > int8_t(CollectiveKind::recv) ||
      !isa_and_nonnull<comm::CommDialect>(op->getDialect()))
    return Status::error("is a collective that the interpreter does not know: '" + operation.str() +
                         "'");
  collective.kind = CollectiveKind(number);
  if (auto reduce = op->getAttrOfType<comm::ReduceKindAttr>("kind"))
    collective.reduce = static_cast<ReduceKind>(reduce.getValue());
  auto integer = [&](StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  collective.dim = integer(collective.kind == CollectiveKind::allToAll ? "split_dim" : "dim");
  collective.concatDim = integer("concat_dim");
  collective.root = integer("root");
  collective.tag = integer("tag");
  if (auto pairs = op->getAttrOfType<DenseI64ArrayAttr>("pairs"))
    for (int64_t i = 0; i < pairs.size(); i += 2)
      collective.pairs.push_back({pairs[i], pairs[i + 1]});
  if (collective.kind == CollectiveKind::recv)
    for (Type type : op->getResultTypes()) {
      ASSIGN_OR_RETURN(DType dtype, dtypeOf(type));
      collective.received.push_back({dtype, cast<RankedTensorType>(type).getShape().vec()});
    }
  collective.axes = comm::toRuntime(op.getGroup());
  // Errors name a collective by its role, or by its line.
  collective.name = op.getRoleName().empty() ? locationOf(op) : op.getRoleName().str();
  return collective;
}

static_assert(int(comm::ReduceKind::Sum) == int(ReduceKind::sum) &&
              int(comm::ReduceKind::Max) == int(ReduceKind::max) &&
              int(comm::ReduceKind::Min) == int(ReduceKind::min));

std::vector<Tensor> gatherInputs(OpContext &context, OperandRange operands) {
  std::vector<Tensor> inputs;
  for (mlir::Value operand : operands)
    inputs.push_back(context.tensor(operand));
  return inputs;
}

Status evaluateCollective(OpContext &context, comm::CollectiveOpInterface op) {
  ASSIGN_OR_RETURN(Collective collective, toCore(op));
  return context.setAll(op->getResults(), context.rank.process.run(
                                              collective, gatherInputs(context, op.getInputs())));
}

Status evaluateStart(OpContext &context, comm::StartOp op) {
  ASSIGN_OR_RETURN(Collective collective, toCore(op.getCollective()));
  ++context.rank.executed[op.getCollective()->getName().getStringRef().str()];
  // The verifier ensures that the collective takes the operands in order.
  ASSIGN_OR_RETURN(PendingCollective pending,
                   context.rank.process.start(collective, gatherInputs(context, op.getInputs())));
  context.set(op.getHandle(), RuntimeValue(pending));
  return {};
}

Status evaluateWait(OpContext &context, comm::WaitOp op) {
  return context.setAll(op->getResults(), context.rank.process.wait(std::get<PendingCollective>(
                                              context.value(op.getHandle()))));
}

template <typename... Ops> void addCollectives(EvaluatorTable &table) {
  (table.add<Ops>(evaluateCollective), ...);
}
} // namespace

void populateCommEvaluators(EvaluatorTable &table) {
  addCollectives<comm::AllReduceOp, comm::ReduceScatterOp, comm::AllGatherOp, comm::AllToAllOp,
                 comm::ReduceOp, comm::BroadcastOp, comm::PermuteOp, comm::AllToAllVOp,
                 comm::SendOp, comm::RecvOp>(table);
  table.add<comm::StartOp>(evaluateStart);
  table.add<comm::WaitOp>(evaluateWait);
  table.add<comm::PartOp>([](OpContext &context, comm::PartOp op) {
    return context.set(op.getOutput(),
                       context.rank.process.part(context.tensor(op.getInput()), op.getDim(),
                                                 comm::toRuntime(op.getGroup()), op.getShift()));
  });
  table.add<comm::AssembleOp>([](OpContext &context, comm::AssembleOp op) {
    std::vector<Tensor> parts;
    for (Value input : op.getInputs())
      parts.push_back(context.tensor(input));
    return context.set(op.getOutput(),
                       context.rank.process.assemble(parts, op.getShifts().vec(), op.getDim(),
                                                     comm::toRuntime(op.getGroup())));
  });
}

} // namespace braid::interp
