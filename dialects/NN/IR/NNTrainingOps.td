//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Operations that training adds to the forward pass. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNTRAININGOPS_TD
#define BRAID_DIALECTS_NN_NNTRAININGOPS_TD

def NN_IotaOp : NN_ReferenceOp<"iota"> {
  let summary = "The positions along a dimension: 0, 1, 2, ...";
  let description = [{
    An operation whose meaning depends on positions takes them as an operand. The positions are sharded like the dimension
    and stay those of the unpartitioned value, so they give the place of a rank's shard.

    ```mlir
    %p = nn.iota : tensor<128xi64>
    ```
  }];
  let results = (outs NN_IdsOfRank<1>:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  // The types of operands and results are the only constraint.
  let hasVerifier = 0;
}

def NN_DropoutOp : NN_ReferenceOp<"dropout", [], [AllTypesMatch<["input", "result"]>]> {
  let summary = "Sets random elements to zero and scales up the rest";
  let description = [{
    `result[i...]` is 0 when `u < rate * 2^32`, else `input[i...] / (1 - rate)`, where u is the first word of
    Philox4x32-10 for the counter (`positions[0][i0]`, `positions[1][i1]`, `positions[2][i2]`, `site`), 0 for missing
    dimensions, and the key (lower, upper half of `seed`); each word is the lower 32 bits of its integer.

    Whether an element is dropped depends on its position in the unpartitioned value, not on sharding or evaluation
    order: the positions are operands and are sharded like the input. `site` distinguishes the dropouts of a function;
    the seed differs between its calls, layers and steps.

    ```mlir
    %b = nn.iota : tensor<8xi64>
    %s = nn.iota : tensor<128xi64>
    %h = nn.iota : tensor<384xi64>
    %y = nn.dropout %x at (%b, %s, %h : tensor<8xi64>, tensor<128xi64>, tensor<384xi64>) seed %seed : tensor<i64>
        rate 0.1 site 1 : tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.dropout_c1) the input has 1 to 3 dimensions, and there are as many positions operands;
    - (nn.dropout_c2) there is one position for each element of a dimension;
    - (nn.dropout_c3) `rate` is at least 0 and below 1;
    - (nn.dropout_c4, ODS) `site` is at least 0.
  }];
  let arguments = (ins NN_Tensor:$input, Variadic<NN_IdsOfRank<1>>:$positions, NN_IdsOfRank<0>:$seed, F64Attr:$rate,
                       DefaultValuedAttr<ConfinedAttr<I32Attr, [IntNonNegative]>, "0">:$site);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `at` `(` $positions `:` type($positions) `)` `seed` $seed `:` type($seed) `rate` $rate (`site` $site^)?
    attr-dict `:` type($input)
  }];
}

def NN_CrossEntropyOp : NN_ReferenceOp<"cross_entropy"> {
  let summary = "The negative log-likelihood of labels under logits";
  let description = [{
    `result[i...] = log(sum over c of exp(logits[i..., c])) - logits[i..., labels[i...]]`, relative to the row's
    maximum, in f32 or wider. Where the label is `ignore`, the result is 0. Any other label outside of [0, classes) is
    an error at run time. There is one loss for each label, sharded like the labels; the caller averages them.

    ```mlir
    %loss = nn.cross_entropy %logits, %labels ignore -100
        : tensor<8x128x32000xf32>, tensor<8x128xi64> -> tensor<8x128xf32>
    ```

    Constraints:
    - (nn.cross_entropy_c1) the logits have at least one dimension, and the labels' shape is theirs without the last one;
    - (nn.cross_entropy_c2) the result has the labels' shape and the logits' element type.
  }];
  let arguments = (ins NN_Tensor:$logits, NN_Ids:$labels, OptionalAttr<I64Attr>:$ignore);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $logits `,` $labels (`ignore` $ignore^)? attr-dict `:` type($logits) `,` type($labels) `->` type($result)
  }];
}

#endif
