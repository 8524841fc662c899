// RUN: braid-opt %s --test-interpret -o /dev/null | FileCheck %s

// CHECK: result0 = f32[2, 2] [2, 3, 6, 7]
// CHECK: result1 = i64[2] [8, 9]
// CHECK: result2 = f32[2, 7] [1, 2, 3, 4, -1, 2, 3, 5, 6, 7, 8, -2, 6, 7]
// CHECK: result3 = i64[5] [7, 8, 9, 8, 9]
func.func @main(%x: tensor<2x4xf32> {test.input = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>},
                %c: tensor<2x1xf32> {test.input = dense<[[-1.0], [-2.0]]> : tensor<2x1xf32>},
                %i: tensor<3xi64> {test.input = dense<[7, 8, 9]> : tensor<3xi64>})
    -> (tensor<2x2xf32>, tensor<2xi64>, tensor<2x7xf32>, tensor<5xi64>) {
  %0 = nn.slice %x dim 1 from 1 size 2 : tensor<2x4xf32> -> tensor<2x2xf32>
  %1 = nn.slice %i dim 0 from 1 size 2 : tensor<3xi64> -> tensor<2xi64>
  %2 = nn.concat %x, %c, %0 dim 1 : tensor<2x4xf32>, tensor<2x1xf32>, tensor<2x2xf32> -> tensor<2x7xf32>
  %3 = nn.concat %i, %1 dim 0 : tensor<3xi64>, tensor<2xi64> -> tensor<5xi64>
  return %0, %1, %2, %3 : tensor<2x2xf32>, tensor<2xi64>, tensor<2x7xf32>, tensor<5xi64>
}
