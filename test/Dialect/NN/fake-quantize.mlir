// RUN: braid-opt %s | braid-opt | FileCheck %s

comm.mesh @mesh <tp = 4>

// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:.*]]: tensor<7x576xf32>, %[[C:.*]]: tensor<2xi32>
func.func @halves(%x: tensor<7x576xf32>, %c: tensor<2xi32>) -> tensor<7x576xbf16> {
  // CHECK: nn.fake_quantize %[[X]] by %[[C]] half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  // CHECK: nn.fake_quantize %{{.*}} by %[[C]] half gather ranks 1 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xbf16>
  %1 = nn.fake_quantize %0 by %c half gather ranks 1 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xbf16>
  // CHECK: nn.fake_quantize %[[X]] by %[[C]] half reduce ranks 4 over <@mesh, {tp}> : tensor<7x576xf32>
  %2 = nn.fake_quantize %x by %c half reduce ranks 4 parts 1 over <@mesh, {tp}> : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  // CHECK: nn.fake_quantize %{{.*}} by %[[C]] half reduce ranks 1 parts 2 over <@mesh, {tp}> : tensor<7x576xf32>
  %3 = nn.fake_quantize %2 by %c half reduce ranks 1 parts 2 over <@mesh, {tp}> : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  return %1 : tensor<7x576xbf16>
}
