//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_DIALECTS_NN_NN_H
#define BRAID_DIALECTS_NN_NN_H

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/Cost.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace braid::runtime {
enum class Init : int8_t;
enum class QuantizedPart : int8_t;
struct Slice;
} // namespace braid::runtime

#include "dialects/NN/IR/NNDialect.h.inc"
#include "dialects/NN/IR/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/IR/NNAttrs.h.inc"

namespace braid::nn {
/// A call of a kernel of the runtime's library, by its descriptor.
struct KernelCall {
  llvm::StringRef kernel;
  llvm::SmallVector<mlir::Value> inputs; ///< null for an optional input that is absent
  llvm::SmallVector<int64_t> integers = {};
  llvm::SmallVector<double> numbers = {};
  comm::GroupAttr group = {};
  /// What the first output holds before the call, if the kernel changes it (Access::inout).
  mlir::Value accumulator = {};
};
} // namespace braid::nn

#include "dialects/NN/IR/NNInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/NN/IR/NNOps.h.inc"

namespace braid::nn {
/// Converts an attribute for code without MLIR.
runtime::Init toRuntime(InitKind kind);
runtime::QuantizedPart toRuntime(QuantizedPart part);
runtime::Slice toRuntime(SliceAttr slice);

/// The result of an entry that is the new value of a state, by the state's argument, and the
/// argument by the result; nullopt for other arguments and results.
std::optional<unsigned> getStateResult(mlir::FunctionOpInterface entry, unsigned argument);
std::optional<unsigned> getStateArgument(mlir::FunctionOpInterface entry, unsigned result);
} // namespace braid::nn

#endif // BRAID_DIALECTS_NN_NN_H
