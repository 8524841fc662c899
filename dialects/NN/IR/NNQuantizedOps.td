//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls of 8-bit integers. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNQUANTIZEDOPS_TD
#define BRAID_DIALECTS_NN_NNQUANTIZEDOPS_TD

def NN_Int8 : ConfinedType<StaticShapeTensorOf<[I8]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 i8 values">;
def NN_Scales : ConfinedType<StaticShapeTensorOf<[F32]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 f32 values">;

def NN_QuantizeRowsOp : NN_ReferenceOp<"quantize_rows", [], [NN_KernelCallOpInterface]> {
  let summary = "Rows of 8-bit integers with a scale each";
  let description = [{
    The rows of the input are all of its dimensions but the last. A row x becomes integers of [-127, 127] and a scale, symmetric
    around 0: `scales[i...] = max(|x|) / 127` and `values[i..., :] = round(x / scale)`, in f32, rounded to nearest, ties to even
    (braid/Base/RowQuantization.h). A row whose scale would be below 2^-126 becomes zeros; a row with an infinity or a NaN, zeros
    with a scale of NaN, so that whatever it is multiplied with is NaN.

    ```mlir
    %q, %s = nn.quantize_rows %x : tensor<8x128x384xf32> -> tensor<8x128x384xi8>, tensor<8x128xf32>
    ```

    Constraints:
    - (nn.quantize_rows_c1) the input has at least one dimension, and the values have its shape;
    - (nn.quantize_rows_c2) the scales have the input's shape without the last dimension.
  }];
  let arguments = (ins NN_Tensor:$input);
  let results = (outs NN_Int8:$values, NN_Scales:$scales);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($values) `,` type($scales)";
  let builders = [OpBuilder<(ins "::mlir::Value":$input)>];
  let extraClassDeclaration = [{ KernelCall getKernelCall() { return {"quantize_rows", {getInput()}}; } }];
}

def NN_QuantizedLinearOp : NN_ReferenceOp<"quantized_linear", [], [NN_KernelCallOpInterface]> {
  let summary = "x . w^T of 8-bit integers with scales";
  let description = [{
    `result[i..., o] = (sum over k of input[i..., k] * weight[o, k]) * input_scales[i...] * weight_scales[o] (+ bias[o])`. The
    sum is exact, in i32; what follows is in f32. It is an nn.linear (with the bias that follows it) whose input has gone through
    nn.quantize_rows and whose weight is a parameter that the loader quantizes by rows.

    ```mlir
    %y = nn.quantized_linear %q scales %s, %w scales %t bias %b role "mlp.up"
        : tensor<8x128x384xi8>, tensor<8x128xf32>, tensor<1536x384xi8>, tensor<1536xf32>, tensor<1536xf32>
        -> tensor<8x128x1536xf32>
    ```

    Constraints:
    - (nn.quantized_linear_c1) the weight has two dimensions, and the last dimension of the input is its second;
    - (nn.quantized_linear_c2) the result's shape is the input's with the last dimension replaced by the weight's rows;
    - (nn.quantized_linear_c3) there is a scale for each row of the input and for each row of the weight;
    - (nn.quantized_linear_c4) the bias, if any, has an element for each row of the weight, of the result's element type;
    - (nn.quantized_linear_c5) at most 131071 products are summed, so that no sum leaves i32.
  }];
  let arguments = (ins NN_Int8:$input, NN_Scales:$input_scales, NN_Int8:$weight, NN_Scales:$weight_scales,
                       Optional<NN_TensorOfRank<1>>:$bias, OptionalAttr<StrAttr>:$role);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $input `scales` $input_scales `,` $weight `scales` $weight_scales (`bias` $bias^)? (`role` $role^)? attr-dict `:` type($input) `,`
    type($input_scales) `,` type($weight) `,` type($weight_scales) (`,` type($bias)^)? `->` type($result)
  }];
  let extraClassDeclaration = [{
    KernelCall getKernelCall() {
      return {"matmul", {getInput(), getWeight(), getBias(), nullptr, getInputScales(), getWeightScales()}, {0, 1, 0}};
    }
  }];
}

#endif
