//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "dialects/Comm/IR/Comm.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace braid::interp {

namespace {
ReduceKind toCore(comm::ReduceKind kind) {
  switch (kind) {
  case comm::ReduceKind::Sum:
    return ReduceKind::sum;
  case comm::ReduceKind::Max:
    return ReduceKind::max;
  case comm::ReduceKind::Min:
    return ReduceKind::min;
  }
  return ReduceKind::sum;
}

std::vector<std::pair<int64_t, int64_t>> pairsOf(ArrayRef<int64_t> positions) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (size_t i = 0; i < positions.size(); i += 2)
    pairs.push_back({positions[i], positions[i + 1]});
  return pairs;
}

Result<Collective> toCore(comm::CollectiveOpInterface op) {
  Collective collective;
  collective.axes = comm::toRuntime(op.getGroup());
  // The name under which ranks wait: a role is more informative than a line number.
  collective.name = op.getRoleName().empty() ? locationOf(op) : op.getRoleName().str();
  return TypeSwitch<Operation *, Result<Collective>>(op)
      .Case([&](comm::AllReduceOp reduce) {
        collective.kind = CollectiveKind::allReduce;
        collective.reduce = toCore(reduce.getKind());
        return collective;
      })
      .Case([&](comm::ReduceScatterOp scatter) {
        collective.kind = CollectiveKind::reduceScatter;
        collective.reduce = toCore(scatter.getKind());
        collective.dim = static_cast<int64_t>(scatter.getDim());
        return collective;
      })
      .Case([&](comm::AllGatherOp gather) {
        collective.kind = CollectiveKind::allGather;
        collective.dim = static_cast<int64_t>(gather.getDim());
        return collective;
      })
      .Case([&](comm::AllToAllOp exchange) {
        collective.kind = CollectiveKind::allToAll;
        collective.dim = static_cast<int64_t>(exchange.getSplitDim());
        collective.concatDim = static_cast<int64_t>(exchange.getConcatDim());
        return collective;
      })
      .Case([&](comm::ReduceOp reduce) {
        collective.kind = CollectiveKind::reduce;
        collective.reduce = toCore(reduce.getKind());
        collective.root = static_cast<int64_t>(reduce.getRoot());
        return collective;
      })
      .Case([&](comm::BroadcastOp broadcast) {
        collective.kind = CollectiveKind::broadcast;
        collective.root = static_cast<int64_t>(broadcast.getRoot());
        return collective;
      })
      .Case([&](comm::PermuteOp permute) {
        collective.kind = CollectiveKind::permute;
        collective.pairs = pairsOf(permute.getPairs());
        return collective;
      })
      .Case([&](comm::AllToAllVOp) {
        collective.kind = CollectiveKind::allToAllV;
        return collective;
      })
      .Case([&](comm::SendOp send) {
        collective.kind = CollectiveKind::send;
        collective.pairs = pairsOf(send.getPairs());
        collective.tag = send.getTag();
        return collective;
      })
      .Case([&](comm::RecvOp recv) -> Result<Collective> {
        collective.kind = CollectiveKind::recv;
        collective.pairs = pairsOf(recv.getPairs());
        collective.tag = recv.getTag();
        for (Type type : recv.getOutputs().getTypes()) {
          auto tensor = cast<RankedTensorType>(type);
          ASSIGN_OR_RETURN(DType dtype, dtypeOf(tensor.getElementType()));
          collective.received.push_back({dtype, tensor.getShape().vec()});
        }
        return collective;
      })
      .Default([](Operation *other) {
        return Status::error("is a collective that the interpreter does not know: '" +
                             other->getName().getStringRef().str() + "'");
      });
}

std::vector<Tensor> gatherInputs(OpContext &context, OperandRange operands) {
  std::vector<Tensor> inputs;
  for (mlir::Value operand : operands)
    inputs.push_back(context.tensor(operand));
  return inputs;
}

Status evaluateCollective(OpContext &context) {
  auto op = cast<comm::CollectiveOpInterface>(context.op);
  ASSIGN_OR_RETURN(Collective collective, toCore(op));
  return context.setAll(op->getResults(), context.rank.process.run(
                                              collective, gatherInputs(context, op.getInputs())));
}

Status evaluateStart(OpContext &context) {
  auto op = cast<comm::StartOp>(context.op);
  ASSIGN_OR_RETURN(Collective collective, toCore(op.getCollective()));
  ++context.rank.executed[op.getCollective()->getName().getStringRef().str()];
  // The verifier ensures that the collective takes the operands in order.
  ASSIGN_OR_RETURN(PendingCollective pending,
                   context.rank.process.start(collective, gatherInputs(context, op.getInputs())));
  context.set(op.getHandle(), RuntimeValue(pending));
  return {};
}

Status evaluateWait(OpContext &context) {
  auto op = cast<comm::WaitOp>(context.op);
  return context.setAll(op->getResults(), context.rank.process.wait(std::get<PendingCollective>(
                                              context.value(op.getHandle()))));
}
} // namespace

void populateCommEvaluators(EvaluatorTable &table) {
  table.add<comm::AllReduceOp>(evaluateCollective);
  table.add<comm::ReduceScatterOp>(evaluateCollective);
  table.add<comm::AllGatherOp>(evaluateCollective);
  table.add<comm::AllToAllOp>(evaluateCollective);
  table.add<comm::ReduceOp>(evaluateCollective);
  table.add<comm::BroadcastOp>(evaluateCollective);
  table.add<comm::PermuteOp>(evaluateCollective);
  table.add<comm::AllToAllVOp>(evaluateCollective);
  table.add<comm::SendOp>(evaluateCollective);
  table.add<comm::RecvOp>(evaluateCollective);
  table.add<comm::StartOp>(evaluateStart);
  table.add<comm::WaitOp>(evaluateWait);
  table.add<comm::LocalSliceOp>([](OpContext &context) {
    auto op = cast<comm::LocalSliceOp>(context.op);
    return context.set(op.getOutput(),
                       context.rank.process.localSlice(context.tensor(op.getInput()),
                                                       static_cast<int64_t>(op.getDim()),
                                                       comm::toRuntime(op.getGroup())));
  });
}

} // namespace braid::interp
