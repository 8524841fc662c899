//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef GROUPNORM_TD
#define GROUPNORM_TD

include "dialects/Comm/IR/CommInterfaces.td"
include "dialects/NN/IR/NNInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/OpBase.td"

def GroupNorm_Dialect : Dialect {
  let name = "group";
  let cppNamespace = "::group";
}

def GroupNorm_RmsNormOp : Op<GroupNorm_Dialect, "rms_norm",
    [Pure, AllTypesMatch<["input", "result"]>, DeclareOpInterfaceMethods<Comm_ShardingRuleOpInterface>,
     DeclareOpInterfaceMethods<NN_CostOpInterface>,
     DeclareOpInterfaceMethods<NN_LibraryKernelOpInterface, ["isKernelRowOperand", "getKernelScalars"]>]> {
  let summary = "Root-mean-square normalization of each group of columns";
  let description = [{
    ```mlir
    %y = group.rms_norm %x, %weight size 32 epsilon 1.0e-5 : tensor<2x16x256xf32>, tensor<256xf32>
    ```
    The last dimension is divided into groups of `size` columns.
  }];
  let arguments = (ins RankedTensorOf<[F32]>:$input, RankedTensorOf<[F32]>:$weight,
                       ConfinedAttr<I64Attr, [IntPositive]>:$size, F64Attr:$epsilon);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = [{
    $input `,` $weight `size` $size `epsilon` $epsilon attr-dict `:` type($input) `,` type($weight)
  }];
  let hasVerifier = 1;
}

#endif
