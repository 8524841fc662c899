// RUN: braid-opt %s | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:.*]]: tensor<7x576xf32>, %[[C:.*]]: tensor<2xi32>
func.func @halves(%x: tensor<7x576xf32>, %c: tensor<2xi32>) -> tensor<7x576xbf16> {
  // CHECK: nn.fake_quantize %[[X]] by %[[C]] half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  // CHECK: nn.fake_quantize %{{.*}} by %[[C]] half gather ranks 1 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xbf16>
  %1 = nn.fake_quantize %0 by %c half gather ranks 1 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xbf16>
  return %1 : tensor<7x576xbf16>
}
