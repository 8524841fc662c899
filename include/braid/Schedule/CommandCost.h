//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a command of a block costs: the operations at any level up to scheduled.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SCHEDULE_COMMANDCOST_H
#define BRAID_SCHEDULE_COMMANDCOST_H

#include "dialects/Comm/IR/SaturatingCount.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace braid::schedule {

/// The work of one rank.
struct CommandCost {
  SaturatingCount flops = 0;
  SaturatingCount bytes = 0;     ///< of memory that is read and written
  SaturatingCount bytesSent = 0; ///< to other ranks; where ranks differ, by the one that sends most

  bool isFree() const { return flops == 0 && bytes == 0 && bytesSent == 0; }
  CommandCost &operator+=(const CommandCost &other);
};

/// Costs of operations. A callee is counted once for all of its calls.
class CommandCosts {
public:
  /// Of a launch by its kernel's body or descriptor, of a call by its callee's operations, of a
  /// collective by the bytes of the direct algorithm, of other operations by nn::CostOpInterface.
  /// Views, parameters and constants are free. Other operations read their operands and write
  /// their results.
  CommandCost of(mlir::Operation *op);

private:
  CommandCost ofCallee(mlir::func::CallOp call);

  llvm::DenseMap<mlir::Operation *, CommandCost> callees;
};

} // namespace braid::schedule
#endif // BRAID_SCHEDULE_COMMANDCOST_H
