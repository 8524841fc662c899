//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTBASE_TD
#define BRAID_DIALECTS_RT_RTBASE_TD

include "dialects/Comm/IR/CommBase.td"

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"

def RT_Dialect : Dialect {
  let name = "rt";
  let cppNamespace = "::braid::rt";
  let summary = "The commands that the executor runs";
  let description = [{
    Procedures of commands on queues over planned memory, and the target-independent kernels that they launch. Each
    operation on memory is one command of the serialized program; nothing is inferred below this level.
  }];
  let dependentDialects = ["::braid::comm::CommDialect", "::braid::nn::NNDialect", "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();

    /// Discardable attribute on arguments and results: their name in the model or in generated code.
    static constexpr ::llvm::StringLiteral kNameAttrName = "rt.name";
    /// Discardable attribute on arguments and results of kernels: a #rt.payload.
    static constexpr ::llvm::StringLiteral kPayloadAttrName = "rt.payload";
    /// Discardable attributes on arguments of procedures. rt.result is a unit attribute, or on an entry a #rt.value;
    /// the others are on entries only.
    static constexpr ::llvm::StringLiteral kParameterAttrName = "rt.parameter";
    static constexpr ::llvm::StringLiteral kStateAttrName = "rt.state";
    static constexpr ::llvm::StringLiteral kOperandAttrName = "rt.operand";
    static constexpr ::llvm::StringLiteral kResultAttrName = "rt.result";
    /// Discardable unit attribute on arguments of procedures that are both read and written.
    static constexpr ::llvm::StringLiteral kInoutAttrName = "rt.inout";
  }];
}

class RT_Op<string mnemonic, list<Trait> traits = []> : Op<RT_Dialect, mnemonic, traits>;
class RT_Attr<string name, string m, list<Trait> traits = []> : AttrDef<RT_Dialect, name, traits> {
  let mnemonic = m;
}
class RT_Type<string name, string m, list<Trait> traits = []> : TypeDef<RT_Dialect, name, traits> {
  let mnemonic = m;
}

#endif
