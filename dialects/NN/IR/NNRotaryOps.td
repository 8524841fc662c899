//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rotary position embedding. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNROTARYOPS_TD
#define BRAID_DIALECTS_NN_NNROTARYOPS_TD

def NN_RotaryTableOp : NN_ComputeOp<"rotary_table", [NN_KernelCallOpInterface, AllTypesMatch<["cos", "sin"]>]> {
  let summary = "Cosines and sines of the rotation angles of positions";
  let description = [{
    With `position = s` for tables of shape [seq, n], and `position = s + position_offset[b]` for tables of shape
    [batch, seq, n]:

    `cos[(b,) s, i] = scale * cos(position * frequencies[i])`, and `sin` likewise.

    Angles and their functions are computed in f64 and then rounded: at position 8191, an angle in f32 would be off
    by 5e-4. The frequencies include any scaling (linear, dynamic, llama3), so that only the importer knows the scaling
    scheme; `scale` is a model's attention factor, mostly 1.

    ```mlir
    %cos, %sin = nn.rotary_table [1.0, 0.01] : tensor<128x2xf32>
    %c, %s = nn.rotary_table [1.0, 0.01] position_offset %p : tensor<8xi64> scale 1.2 : tensor<8x128x2xf32>
    ```

    Constraints:
    - (nn.rotary_table_c1) the tables' shape is [seq, n] without and [batch, seq, n] with position_offset, n the number of
      frequencies;
    - (nn.rotary_table_c2) position_offset has one element per batch;
    - (nn.rotary_table_c3) there is at least one frequency, and all are at least 0 and finite;
    - (nn.rotary_table_c4) `scale` is positive and finite.
  }];
  let arguments = (ins Optional<NN_IdsOfRank<1>>:$position_offset, DenseF64ArrayAttr:$frequencies,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let results = (outs NN_Tensor:$cos, NN_Tensor:$sin);
  let assemblyFormat = [{
    $frequencies (`position_offset` $position_offset^ `:` type($position_offset))? (`scale` $scale^)? attr-dict
    `:` type($cos)
  }];
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$table, "::mlir::Value":$positionOffset,
                                 "::llvm::ArrayRef<double>":$frequencies, "double":$scale)>];
  let extraClassDeclaration = [{
    KernelCall getKernelCall() {
      KernelCall call = {"rotary_table", {getPositionOffset()}, {}, {getScale().convertToDouble()}};
      ::llvm::append_range(call.numbers, getFrequencies());
      return call;
    }
  }];
}

def NN_RotaryOp
    : NN_ComputeOp<"rotary", [NN_KernelCallOpInterface, AllTypesMatch<["cos", "sin"]>, AllTypesMatch<["input", "result"]>]> {
  let summary = "Rotates pairs of a head's elements by their position's angles";
  let description = [{
    Input [batch, seq, heads, 2 * n]; element i of a head is paired with element i + n (the layout of Hugging Face
    checkpoints), and tables are [seq, n] or [batch, seq, n]:

    `result[b, s, h, i] = input[b, s, h, i] * cos[(b,) s, i] - input[b, s, h, i + n] * sin[(b,) s, i]` and
    `result[b, s, h, i + n] = input[b, s, h, i + n] * cos[(b,) s, i] + input[b, s, h, i] * sin[(b,) s, i]`.

    ```mlir
    %r = nn.rotary %q, %cos, %sin : tensor<8x128x9x64xf32>, tensor<128x32xf32>
    ```

    Constraints:
    - (nn.rotary_c1) the last dimension is even;
    - (nn.rotary_c2) the tables' shape is [seq, n] or [batch, seq, n];
    - (nn.rotary_c3) all element types are the same.
  }];
  let arguments = (ins NN_TensorOfRank<4>:$input, NN_Tensor:$cos, NN_Tensor:$sin);
  let results = (outs NN_TensorOfRank<4>:$result);
  let assemblyFormat = "$input `,` $cos `,` $sin attr-dict `:` type($input) `,` type($cos)";
  let extraClassDeclaration = [{
    KernelCall getKernelCall() { return {"rotary", {getInput(), getCos(), getSin()}}; }
  }];
}

#endif
