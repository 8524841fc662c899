//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Passes that let matmuls of a partitioned module compute in fewer bits.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_MATMULPASSES_TD
#define BRAID_TRANSFORMS_MATMULPASSES_TD

include "mlir/Pass/PassBase.td"

def QuantizeMatmuls : Pass<"braid-quantize-matmuls", "::mlir::ModuleOp"> {
  let summary = "Let linear operations multiply 8-bit integers";
  let description = [{
    `matmuls` is a list of `PATTERN=int8`, of which the last one that matches a linear operation counts. A pattern is the role of a
    linear operation, with `*`, `?` and `[...]` as in file names:

        *=int8                       every linear operation that can be quantized
        *=int8,lm_head=none          all but the head
        mlp.*=int8                   those of the feed-forward network

    The input is quantized per row when the program runs (`nn.quantize_rows`, once for all operations that take it), the weight
    per output channel when it is loaded, from the f32 tensors of the checkpoint. Weights become parameters of the entry of two
    parts, also where functions pass them on. A weight is quantized by its whole rows, also where a rank has a part of them; the
    scale of an input that is sharded along its rows is that of the rank's part. A bias that follows joins in.

    Before, with `matmuls=*=int8`:
    ```mlir
    %w = nn.parameter "w" : tensor<384x576xf32>
    %y = nn.linear %x, %w role "mlp.up" : tensor<8x576xf32>, tensor<384x576xf32> -> tensor<8x384xf32>
    ```
    After:
    ```mlir
    %v = nn.parameter "w.int8" slices ["w"[384, 576]] quantized values : tensor<384x576xi8>
    %t = nn.parameter "w.scales" slices ["w"[384, 576]] quantized scales : tensor<384xf32>
    %q, %s = nn.quantize_rows %x : tensor<8x576xf32> -> tensor<8x576xi8>, tensor<8xf32>
    %y = nn.quantized_linear %q scales %s, %v scales %t role "mlp.up"
        : tensor<8x576xi8>, tensor<8xf32>, tensor<384x576xi8>, tensor<384xf32> -> tensor<8x384xf32>
    ```

    A pattern that matches nothing is an error, and so is one without `*`, `?` and `[` that matches an operation which cannot be
    quantized: of f16 or bf16, of more products than i32 can sum, or with a weight that is computed or given by the caller of an
    entry. Other patterns pass over those, with a remark.
  }];
  let options = [Option<"matmuls", "matmuls", "std::string", /*default=*/"\"\"",
                        "List of PATTERN=int8 or PATTERN=none, separated by commas">];
  let statistics = [Statistic<"numQuantized", "num-quantized", "Linear operations that are quantized">];
  let dependentDialects = ["::braid::nn::NNDialect"];
}

#endif
