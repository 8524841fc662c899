// RUN: braid-test-opt %s --split-input-file --test-interpret | FileCheck %s
// RUN: not braid-test-opt %S/Inputs/launch-symbol.mlir --test-interpret 2>&1 | FileCheck %s --check-prefix=SYMBOL
// SYMBOL: error: {{.*}}launch-symbol.mlir:3:8: 'rt.launch': runs the function 'own' of a library, which the interpreter does not know

// A kernel of the runtime's library, without and with its optional operand.
rt.kernel @matmul(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32> attributes {library = "matmul", scalars = [0, 1, 0]}
rt.kernel @biased(tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    attributes {library = "matmul", optional = ["bias"], scalars = [0, 1, 0]}
// CHECK: result0 = f32[2, 2] [1, 2, 3, 4]
// CHECK: result1 = f32[2, 2] [11, 22, 13, 24]
func.func @main(%x: tensor<2x2xf32> {test.input = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>},
                %w: tensor<2x2xf32> {test.input = dense<[[1.0, 0.0], [0.0, 1.0]]> : tensor<2x2xf32>},
                %b: tensor<2xf32> {test.input = dense<[10.0, 20.0]> : tensor<2xf32>}) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %0 = rt.launch @matmul rows 2 ins(%x, %w : tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = rt.launch @biased rows 2 ins(%x, %w, %b : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}
