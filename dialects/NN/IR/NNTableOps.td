//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a program computes whose encodings are chosen when it is loaded. The operations have a header of their own
// (NNTable.h), as few files need them.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNTABLEOPS_TD
#define BRAID_DIALECTS_NN_NNTABLEOPS_TD

include "dialects/NN/IR/NNOps.td"

def NN_EncodingCodes : ConfinedType<NN_Ids, [
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).getElementType().isInteger(32)">,
    CPred<"::llvm::equal(::llvm::cast<::mlir::ShapedType>($_self).getShape(), ::llvm::ArrayRef<int64_t>{2})">],
    "tensor of 2 i32 values">;

def NN_FakeQuantizeOp
    : NN_ReferenceOp<"fake_quantize", [], [NN_KernelCallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor as an encoding that is known at run time gives it back";
  let description = [{
    The rows of the input, which are all of its dimensions but the last, are encoded and decoded each by itself: the
    result has the error of a payload, but is none. `encodings` holds the codes (Encoding::code in braid/Base/Encoding.h)
    of the reduce half and of the gather half of an encoded collective, of which `half` is used. 0 is none: the input
    is only converted to the result's type. With both halves encoded, rows are cut as an all_reduce over `ranks` cuts them
    (braid/Base/RowPieces.h), which shows only in encodings with a factor per row.

    A code that is no encoding's is an error at run time.

    ```mlir
    %y = nn.fake_quantize %x by %codes half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
    ```

    With `over`, rows are in `parts` parts for each rank of a group, as in a payload that is sent to its ranks, and those for this rank are as
    they were: a rank adds its own rows without a loss.

    ```mlir
    %y = nn.fake_quantize %x by %codes half reduce ranks 4 parts 1 over <@mesh, {tp}>
        : tensor<8x576xf32>, tensor<2xi32> -> tensor<8x576xf32>
    ```

    Constraints:
    - (nn.fake_quantize_c1) input and result have the same shape, of at least one dimension and one element;
    - (nn.fake_quantize_c2) `ranks` is at least 1, and so is `parts`;
    - (nn.fake_quantize_c3) the group, if any, names a mesh of the module, and axes of it.}];
  let arguments = (ins NN_Tensor:$input, NN_EncodingCodes:$encodings, UnitAttr:$gather, I64Attr:$ranks,
                       DefaultValuedAttr<I64Attr, "1">:$parts, OptionalAttr<Comm_GroupAttr>:$group);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `by` $encodings `half` (`gather` $gather^) : (`reduce`)? `ranks` $ranks (`parts` $parts^)? (`over` $group^)? attr-dict `:`
    type($input) `,` type($encodings) `->` type($result)
  }];
  let extraClassDeclaration = [{ KernelCall getKernelCall(); }];
}

#endif
