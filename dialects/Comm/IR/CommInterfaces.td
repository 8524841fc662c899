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
    How an operation may be sharded: its dimensions as factors of an index expression, as in einsum notation.
    Propagation and partitioning know operations only through this interface (ShardingRule.h).
  }];
  let methods = [
    InterfaceMethod<"The factors of this operation.", "::braid::comm::ShardingRule", "getShardingRule">,
    InterfaceMethod<[{
      Builds this operation on per-rank operands, which are sharded as the rule's factors demand, with results of
      `resultTypes`. The default clones the operation; operations whose meaning depends on global extents override it.
      `partial` is the group over which reduction factors are split, major first, or null; with a group the values
      returned are this rank's partial sums, but for the rule's `completeResults`. Returns one value per result.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "::mlir::TypeRange":$resultTypes,
           "::braid::comm::GroupAttr":$partial), "",
      [{ return ::braid::comm::cloneWithTypes($_op.getOperation(), builder, operands, resultTypes); }]>
  ];
}

def Comm_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::braid::comm";
  let description = [{ A collective operation over a group of ranks. }];
  let methods = [
    InterfaceMethod<"The group it runs over.", "::braid::comm::GroupAttr", "getGroup">,
    InterfaceMethod<"Values it takes.", "::mlir::OperandRange", "getInputs">,
    InterfaceMethod<"Values it gives.", "::mlir::ResultRange", "getOutputs">,
    InterfaceMethod<"The name of the values in the model, empty when unknown.", "::llvm::StringRef", "getRoleName",
                    (ins), "", "return $_op.getRole().value_or(\"\");">,
    InterfaceMethod<[{
      Whether every value is exchanged independently of the others, so that collectives may be merged and unmerged and
      values removed. False where one value determines how others are sent, and for send and receive, which match each
      other.
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
