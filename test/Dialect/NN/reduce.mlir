// RUN: braid-opt %s | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @forms
func.func @forms(%x: tensor<2x3x4xbf16>) -> (tensor<4xbf16>, tensor<2x3xbf16>, tensor<bf16>) {
  // CHECK: nn.reduce sum %{{.*}} dims [0, 1] : tensor<2x3x4xbf16> -> tensor<4xbf16>
  %0 = nn.reduce sum %x dims [0, 1] : tensor<2x3x4xbf16> -> tensor<4xbf16>
  // CHECK: nn.reduce max %{{.*}} dims [2] : tensor<2x3x4xbf16> -> tensor<2x3xbf16>
  %1 = nn.reduce max %x dims [2] : tensor<2x3x4xbf16> -> tensor<2x3xbf16>
  // CHECK: nn.reduce min %{{.*}} dims [0, 1, 2] : tensor<2x3x4xbf16> -> tensor<bf16>
  %2 = nn.reduce min %x dims [0, 1, 2] : tensor<2x3x4xbf16> -> tensor<bf16>
  return %0, %1, %2 : tensor<4xbf16>, tensor<2x3xbf16>, tensor<bf16>
}

// CHECK-LABEL: func.func @pair
func.func @pair(%x: tensor<2x3x4xbf16>) -> (tensor<2x4xbf16>, tensor<2x4xf32>) {
  // CHECK: nn.reduce max %{{.*}} dims [1] : tensor<2x3x4xbf16> -> tensor<2x4xbf16>, tensor<2x4xf32>
  %0, %1 = nn.reduce max %x dims [1] : tensor<2x3x4xbf16> -> tensor<2x4xbf16>, tensor<2x4xf32>
  return %0, %1 : tensor<2x4xbf16>, tensor<2x4xf32>
}
