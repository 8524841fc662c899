//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Schedule/CommandCost.h"

#include "braid/Base/LibraryKernels.h"
#include "braid/Cost/KernelWork.h"
#include "braid/Transforms/ShardingUtils.h"
#include "dialects/NN/IR/NN.h"

using namespace mlir;

namespace braid::schedule {

CommandCost &CommandCost::operator+=(const CommandCost &other) {
  flops += other.flops;
  bytes += other.bytes;
  bytesSent += other.bytesSent;
  return *this;
}

/// Operands are read once, and results written once.
static SaturatingCount traffic(Operation *op) {
  SaturatingCount bytes = 0;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.hasStaticShape())
      bytes += comm::totalBytes(type);
  return bytes;
}

static SaturatingCount flopsOf(rt::LaunchOp launch) {
  rt::KernelOp kernel = launch.getKernelOp();
  if (!kernel.getLibrary()) {
    SaturatingCount flops = 0;
    const auto operands =
        static_cast<unsigned>(kernel.getArgumentTypes().size() + kernel.getResultTypes().size());
    for (unsigned operand = 0; operand < operands; ++operand)
      if (kernel.getPayload(operand)) {
        const runtime::LibraryCall codec =
            kernel.getCodecCall(operand, static_cast<int64_t>(launch.getRows()), /*payload=*/{});
        flops += static_cast<int64_t>(std::min(codec.kernel->flops(codec), 0x1p62));
      }
    for (const auto &[operation, count] :
         kernelWork(kernel, static_cast<int64_t>(launch.getRows())))
      flops += count;
    return flops;
  }
  int64_t parts = kernel.getGroup() ? comm::groupSize(kernel, *kernel.getGroup()) : 1;
  FailureOr<runtime::LibraryCall> call = kernel.getLibraryCall(parts);
  if (failed(call) || !call->kernel->flops)
    return 0;
  return static_cast<int64_t>(std::min(call->kernel->flops(*call), 0x1p62));
}

CommandCost CommandCosts::of(Operation *op) {
  CommandCost cost;
  if (auto call = dyn_cast<func::CallOp>(op))
    return ofCallee(call);
  if (auto start = dyn_cast<comm::StartOp>(op))
    return of(start.getCollective());
  if (auto collective = dyn_cast<comm::CollectiveOpInterface>(op)) {
    cost.bytesSent = collective.getBytesSent(comm::groupSize(op, collective.getGroup()));
    return cost;
  }
  if (auto launch = dyn_cast<rt::LaunchOp>(op)) {
    cost.flops = flopsOf(launch);
    cost.bytes = traffic(op);
    return cost;
  }
  if (auto computation = dyn_cast<nn::CostOpInterface>(op)) {
    nn::OpCost own = computation.getCost();
    cost.flops = SaturatingCount(own.matrixFlops) + own.vectorFlops;
    cost.bytes = SaturatingCount(own.bytesRead) + own.bytesWritten;
    return cost;
  }
  if (isa<nn::ParameterOp, comm::WaitOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
      op->hasTrait<OpTrait::IsTerminator>())
    return cost;
  cost.bytes = traffic(op);
  return cost;
}

CommandCost CommandCosts::ofCallee(func::CallOp call) {
  func::FuncOp callee = calleeOf(call);
  if (!callee)
    return {};
  // A recursive call finds this entry and adds nothing.
  auto [entry, isNew] = callees.try_emplace(callee);
  if (!isNew)
    return entry->second;
  CommandCost cost;
  for (Block &block : callee.getBody())
    for (Operation &op : block)
      cost += of(&op);
  return callees[callee] = cost;
}

} // namespace braid::schedule
