//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Passes for programs whose encodings are chosen when they are loaded.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_TRANSFORMS_TABLEPASSES_TD
#define BRAID_TRANSFORMS_TABLEPASSES_TD

include "mlir/Pass/PassBase.td"

def TabulateEncodings : Pass<"braid-tabulate-encodings", "::mlir::ModuleOp"> {
  let summary = "Let collectives have the error of encodings that are known at run time";
  let description = [{
    Every collective that can be encoded gets an operand of the entry, named `encoding-of-` and its identity, with the codes
    of its reduce half and its gather half (Encoding::code; 0, the default: none). Its values are passed through these
    encodings where an encoded collective passes them through payloads, and travel in f32: results have the bits of the program
    that `braid-quantize-collectives` and `braid-expand-encoded` make with the same encodings, so that many encodings can be compared
    with one compilation. Without any, an all_reduce of f32 has the bits of the plain one.

    Equal layers keep sharing code: a function gets an argument for each of its collectives and of those in its callees.

    Before:
    ```mlir
    func.func private @layer(%x: tensor<8x384xf32>) -> tensor<8x384xf32> {
      %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<8x384xf32>
      return %r : tensor<8x384xf32>
    }
    func.func @main(%x: tensor<8x384xf32> {nn.name = "x"}) -> (tensor<8x384xf32> {nn.name = "y"}) attributes {nn.entry} {
      %0 = call @layer(%x) : (tensor<8x384xf32>) -> tensor<8x384xf32>
      return %0 : tensor<8x384xf32>
    }
    ```
    After, over 2 ranks:
    ```mlir
    func.func private @layer(%x: tensor<8x384xf32>, %c: tensor<2xi32>) -> tensor<8x384xf32> {
      %0 = nn.fake_quantize %x by %c half reduce ranks 2 : tensor<8x384xf32>, tensor<2xi32> -> tensor<8x384xf32>
      %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> role "mlp.down" : tensor<8x384xf32>
      %r = nn.fake_quantize %1 by %c half gather ranks 2 : tensor<8x384xf32>, tensor<2xi32> -> tensor<8x384xf32>
      return %r : tensor<8x384xf32>
    }
    func.func @main(%x: tensor<8x384xf32> {nn.name = "x"},
                    %c: tensor<2xi32> {nn.default = 0 : i32, nn.name = "encoding-of-@main|@layer|mlp.down"})
        -> (tensor<8x384xf32> {nn.name = "y"}) attributes {nn.entry} {
      %0 = call @layer(%x, %c) : (tensor<8x384xf32>, tensor<2xi32>) -> tensor<8x384xf32>
      return %0 : tensor<8x384xf32>
    }
    ```

    A module without a collective that can be encoded is an error. A reduce_scatter of f16 or bf16 is passed over, as its sum
    would not be that of an encoded one.
  }];
  let statistics = [Statistic<"numEntries", "num-entries", "Collectives in the table">];
  let dependentDialects = ["::braid::comm::CommDialect", "::braid::nn::NNDialect", "::mlir::tensor::TensorDialect"];
}

#endif
