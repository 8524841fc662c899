//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_COMM_COMMINTERFACES_TD
#define BRAID_DIALECTS_COMM_COMMINTERFACES_TD

include "mlir/IR/OpBase.td"

def Comm_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::braid::comm";
  let description = [{
    How an operation may be cut: its dimensions as factors of an index expression, as in einsum notation. Propagation
    and partitioning know operations only through this interface (ShardingRule.h).
  }];
  let methods = [
    InterfaceMethod<"The factors of this operation.", "::braid::comm::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
      Builds this operation on per-rank operands, which are cut as the rule's factors demand; results are to have
      `resultTypes`. The default clones the operation; operations whose meaning depends on global extents override it.
      `partial` is the group over which reduction factors are cut, major first, null when none is: the values returned are
      then this rank's addends. Returns one value per result.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$resultTypes,
           "::braid::comm::GroupAttr":$partial), "",
      [{ return ::braid::comm::cloneWithTypes($_op.getOperation(), builder, operands, resultTypes); }]>
  ];
}

def Comm_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::braid::comm";
  let description = [{ A collective operation: values in, values out, over a group of ranks. }];
  let methods = [
    InterfaceMethod<"The group it runs over.", "::braid::comm::GroupAttr", "getGroup">,
    InterfaceMethod<"Values it takes.", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"Values it gives.", "::mlir::ResultRange", "getOutputs">,
    InterfaceMethod<"What the values mean in the model, empty when unknown.", "::llvm::StringRef", "getRoleName",
                    (ins), "", "return $_op.getRole().value_or(\"\");">,
    InterfaceMethod<[{
      True when every value is exchanged as if it were alone, so that collectives may be merged and taken apart and
      values left out. It is not true where one value says how others travel, or where what one operation sends
      another one takes.
    }], "bool", "hasIndependentValues", (ins), "", "return true;">,
    InterfaceMethod<"Which collective it is.", "::braid::runtime::CollectiveKind", "getCollectiveKind">,
    InterfaceMethod<"Whether any rank gives its value to another one.", "bool", "hasSource", (ins), "", "return true;">,
    InterfaceMethod<[{
      Bytes that a rank sends to others with the direct algorithm in a group of `n` ranks; where ranks differ, the rank
      that sends most.
    }], "int64_t", "getBytesSent", (ins "int64_t":$n), "", [{
      return ::braid::runtime::bytesSent(::braid::runtime::Algorithm::direct, $_op.getCollectiveKind(),
                                         ::braid::comm::totalBytes($_op.getInputs().getTypes()), n, $_op.hasSource());
    }]>
  ];
}

#endif
