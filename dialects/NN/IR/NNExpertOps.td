//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Mixtures of experts: routing tokens to experts and back. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNEXPERTOPS_TD
#define BRAID_DIALECTS_NN_NNEXPERTOPS_TD

def NN_RouterOp : NN_ReferenceOp<"router", [], [InferTypeOpAdaptor]> {
  let summary = "Assigns tokens to experts and to slots in the experts' blocks";
  let description = [{
    Logits are [groups, tokens, experts]. For every token, `experts[g, t, :]` are the `top` experts with the largest
    logits, largest first, the lower number first among equals, and `weights[g, t, :]` their probabilities by softmax
    over all experts; `normalized` divides these by their sum.

    An expert has `capacity` slots for the tokens of a group. Slots are assigned choice by choice, within a choice token
    by token: `slots[g, t, k]` is the next free slot of the token's k-th expert, or -1 when the expert is full, which
    drops the choice. `counts[g, e]` is the number of slots in use. Groups are independent of each other, so they may be
    sharded.

    ```mlir
    %weights, %experts, %slots, %counts = nn.router %logits top 2 capacity 40 normalized : tensor<8x128x8xf32>
    ```
    The results are tensor<8x128x2xf32>, twice tensor<8x128x2xi32>, and tensor<8x8xi32>.

    Constraints:
    - (nn.router_c1) `top` is at least 1 and at most the number of experts;
    - (nn.router_c2) `capacity` is at least 1.
  }];
  let arguments = (ins NN_TensorOfRank<3>:$logits, I64Attr:$top, I64Attr:$capacity, UnitAttr:$normalized);
  let results = (outs NN_TensorOfRank<3>:$weights, NN_IdsOfRank<3>:$experts, NN_IdsOfRank<3>:$slots,
                      NN_IdsOfRank<2>:$counts);
  let assemblyFormat = [{
    $logits `top` $top `capacity` $capacity (`normalized` $normalized^)? attr-dict `:` type($logits)
  }];
}

def NN_DispatchOp : NN_ReferenceOp<"dispatch", [], [AllTypesMatch<["experts", "slots"]>]> {
  let summary = "Copies tokens to their slots in the experts' blocks";
  let description = [{
    `result[g, e, c, :]` is the sum of `input[g, t, :]` over all t and k with `experts[g, t, k] = e` and
    `slots[g, t, k] = c`: one token in a slot that a router has assigned, zeros in the others. Slot -1 drops the choice.
    An expert or slot outside of the result is an error at run time.

    A `comm.all_to_all` turns a result sharded over groups into one sharded over experts.

    ```mlir
    %blocks = nn.dispatch %x, %experts, %slots
        : tensor<8x128x384xf32>, tensor<8x128x2xi32> -> tensor<8x8x40x384xf32>
    ```

    Constraints:
    - (nn.dispatch_c1) experts and slots are [groups, tokens, choices] with the input's groups and tokens;
    - (nn.dispatch_c2) the result is [groups, experts, capacity, hidden] with the input's groups and hidden size;
    - (nn.dispatch_c3) input and result have the same element type.
  }];
  let arguments = (ins NN_TensorOfRank<3>:$input, NN_IdsOfRank<3>:$experts, NN_IdsOfRank<3>:$slots);
  let results = (outs NN_TensorOfRank<4>:$result);
  let assemblyFormat = [{
    $input `,` $experts `,` $slots attr-dict `:` type($input) `,` type($experts) `->` type($result)
  }];
}

def NN_CombineOp : NN_ReferenceOp<"combine", [], [AllTypesMatch<["experts", "slots"]>]> {
  let summary = "The weighted sum of the experts' results for each token";
  let description = [{
    `result[g, t, :] = sum over k of weights[g, t, k] * blocks[g, experts[g, t, k], slots[g, t, k], :]`, over the
    choices whose slot is not -1; in f32 or wider. An expert or slot outside of the blocks is an error at run time.

    ```mlir
    %y = nn.combine %blocks, %weights, %experts, %slots
        : tensor<8x8x40x384xf32>, tensor<8x128x2xf32>, tensor<8x128x2xi32> -> tensor<8x128x384xf32>
    ```

    Constraints:
    - (nn.combine_c1) weights, experts and slots have one shape [groups, tokens, choices], with the blocks' groups;
    - (nn.combine_c2) the result is [groups, tokens, hidden] with the blocks' hidden size;
    - (nn.combine_c3) blocks, weights and result have the same element type.
  }];
  let arguments = (ins NN_TensorOfRank<4>:$blocks, NN_TensorOfRank<3>:$weights, NN_IdsOfRank<3>:$experts,
                       NN_IdsOfRank<3>:$slots);
  let results = (outs NN_TensorOfRank<3>:$result);
  let assemblyFormat = [{
    $blocks `,` $weights `,` $experts `,` $slots attr-dict
    `:` type($blocks) `,` type($weights) `,` type($experts) `->` type($result)
  }];
}

#endif
