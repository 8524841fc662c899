// RUN: braid-opt %s --test-interpret -o /dev/null | FileCheck %s

// CHECK: result0 = f32[2, 4] [1, -1, 3, -2, 5, 6, 7, 8]
// CHECK: result1 = f32[2, 4] [1, 2, 3, 4, -1, -2, 7, 8]
// CHECK: result2 = f32[2, 6] [1, 2, 3, 4, -1, -2, 5, 6, 7, 8, -3, -4]
func.func @main(%x: tensor<2x4xf32> {test.input = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>},
                %r: tensor<2xf32> {test.input = dense<[-1.0, -2.0]> : tensor<2xf32>},
                %c: tensor<2x2xf32> {test.input = dense<[[-1.0, -2.0], [-3.0, -4.0]]> : tensor<2x2xf32>})
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x6xf32>) {
  %c1 = arith.constant 1 : index
  %0 = tensor.insert_slice %r into %x[0, %c1] [1, 2] [1, 2] : tensor<2xf32> into tensor<2x4xf32>
  %1 = tensor.insert_slice %r into %x[1, 0] [1, 2] [1, 1] : tensor<2xf32> into tensor<2x4xf32>
  %2 = tensor.concat dim(1) %x, %c : (tensor<2x4xf32>, tensor<2x2xf32>) -> tensor<2x6xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x6xf32>
}
