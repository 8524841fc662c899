//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parts of values. Slices and concatenations move nothing: below, a slice is a view of its operand's memory, and the operands of a
// concatenation are written in place where that is possible. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNPARTOPS_TD
#define BRAID_DIALECTS_NN_NNPARTOPS_TD

/// Of every element type that a bundle can hold.
def NN_Value : ConfinedType<StaticShapeTensorOf<[F64, F32, BF16, F16, I64, I32, I8]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 f64, f32, bf16, f16, i64, i32 or i8 values">;

def NN_SliceOp : NN_ReferenceOp<"slice"> {
  let summary = "A range of one dimension";
  let description = [{
    `result[i..., j, k...] = input[i..., from + j, k...]` with `size` positions j of dimension `dim`.

    After partitioning the ranges of all ranks are the same: the dimension stays whole. A rank's own shard is
    `comm.part`.

    ```mlir
    %y = nn.slice %x dim 1 from 4 size 8 : tensor<2x17x384xf32> -> tensor<2x8x384xf32>
    ```

    Constraints:
    - (nn.slice_c1) `dim` is a dimension of the input;
    - (nn.slice_c2) the range is not empty and lies inside of the dimension;
    - (nn.slice_c3) the result has the input's type with `size` in that dimension.
  }];
  let arguments = (ins NN_Value:$input, I64Attr:$dim, I64Attr:$from, I64Attr:$size);
  let results = (outs NN_Value:$result);
  let assemblyFormat = [{
    $input `dim` $dim `from` $from `size` $size attr-dict `:` type($input) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "int64_t":$dim, "int64_t":$from, "int64_t":$size)>];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_ConcatOp : NN_ReferenceOp<"concat"> {
  let summary = "Values one after the other along one dimension";
  let description = [{
    The result has the positions of the first input in dimension `dim`, then those of the second, and so on. Inputs may
    have different sizes there. As with `nn.slice`, the dimension stays whole on a rank.

    ```mlir
    %y = nn.concat %a, %b, %a dim 1 : tensor<2x8xf32>, tensor<2x5xf32>, tensor<2x8xf32> -> tensor<2x21xf32>
    ```

    Constraints:
    - (nn.concat_c1) there is at least one input;
    - (nn.concat_c2) `dim` is a dimension of the first input;
    - (nn.concat_c3) no input is empty in that dimension, and all inputs have the first one's type but for it;
    - (nn.concat_c4) the result has the first input's type with the sum of the inputs' sizes in that dimension.
  }];
  let arguments = (ins Variadic<NN_Value>:$inputs, I64Attr:$dim);
  let results = (outs NN_Value:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$dim)>];
  let extraClassDeclaration = [{
    /// The first position of every input in the result.
    ::llvm::SmallVector<int64_t> getOffsets();
  }];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def NN_AppendOp : NN_ReferenceOp<"append", [], [NN_KernelCallOpInterface, AllTypesMatch<["cache", "result"]>]> {
  let summary = "A value with new elements at positions that are known at run time";
  let description = [{
    `result[b, i..., position[b] + j, k...] = input[b, i..., j, k...]` along dimension `dim`, and elsewhere the result is the
    cache. It changes the cache in place unless others still need it as it was.

    As the position offsets of attention and of rotary tables, `position` has one element for each position of the first
    dimension. One that is negative, or for which the new elements would not fit, is an error at run time.

    ```mlir
    %keys1 = nn.append %k to %keys dim 1 at %position
        : tensor<2x1x4x16xf32>, tensor<2x64x4x16xf32>, tensor<2xi32>
    ```

    Constraints:
    - (nn.append_c1) `dim` is a dimension of the cache but not the first one;
    - (nn.append_c2) the input has the cache's type but for `dim`, where it has at least 1 and at most as many elements;
    - (nn.append_c3) the shape of `position` is the cache's first dimension.
  }];
  let arguments = (ins NN_Value:$input, NN_Value:$cache, NN_IdsOfRank<1>:$position, I64Attr:$dim);
  let results = (outs NN_Value:$result);
  let assemblyFormat = [{
    $input `to` $cache `dim` $dim `at` $position attr-dict `:` type($input) `,` type($cache) `,` type($position)
  }];
  let extraClassDeclaration = [{ KernelCall getKernelCall(); }];
}

#endif
