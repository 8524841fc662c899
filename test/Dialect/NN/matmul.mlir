// RUN: braid-opt %s | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @forms
func.func @forms(%row: tensor<4xf32>, %x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %v: tensor<5x4xf32>, %b: tensor<2x4x5xf32>,
    %t: tensor<2x4x3xf32>, %n: tensor<2xi64>, %acc: tensor<2x3x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK: nn.matmul %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4x5xf32> -> tensor<5xf32>
  %0 = nn.matmul %row, %w : tensor<4xf32>, tensor<4x5xf32> -> tensor<5xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} transposed role "mlp.up" : tensor<2x3x4xf32>, tensor<5x4xf32> -> tensor<2x3x5xf32>
  %1 = nn.matmul %x, %v transposed role "mlp.up" : tensor<2x3x4xf32>, tensor<5x4xf32> -> tensor<2x3x5xf32>
  // CHECK: nn.matmul %{{.*}} transposed, %{{.*}} : tensor<2x4x3xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  %2 = nn.matmul %t transposed, %b : tensor<2x4x3xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} counts %{{.*}} : tensor<2xi64> : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  %3 = nn.matmul %x, %b counts %n : tensor<2xi64> : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  // CHECK: nn.matmul %{{.*}}, %{{.*}} plus %{{.*}} : tensor<2x3x5xf32> : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  %4 = nn.matmul %x, %w plus %acc : tensor<2x3x5xf32> : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  return %4 : tensor<2x3x5xf32>
}
