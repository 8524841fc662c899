// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @slices
func.func @slices(%x: tensor<2x17x384xf32>, %ids: tensor<9xi64>, %mask: tensor<4x2xi8>) {
  // CHECK: nn.slice %{{.*}} dim 1 from 4 size 8 : tensor<2x17x384xf32> -> tensor<2x8x384xf32>
  %0 = nn.slice %x dim 1 from 4 size 8 : tensor<2x17x384xf32> -> tensor<2x8x384xf32>
  // CHECK: nn.slice %{{.*}} dim 0 from 8 size 1 : tensor<9xi64> -> tensor<1xi64>
  %1 = nn.slice %ids dim 0 from 8 size 1 : tensor<9xi64> -> tensor<1xi64>
  // CHECK: nn.slice %{{.*}} dim 0 from 0 size 4 : tensor<4x2xi8> -> tensor<4x2xi8>
  %2 = nn.slice %mask dim 0 from 0 size 4 : tensor<4x2xi8> -> tensor<4x2xi8>
  return
}

// CHECK-LABEL: func.func @concats
func.func @concats(%a: tensor<2x8xbf16>, %b: tensor<2x5xbf16>, %ids: tensor<3xi32>) {
  // CHECK: nn.concat %{{.*}}, %{{.*}}, %{{.*}} dim 1 : tensor<2x8xbf16>, tensor<2x5xbf16>, tensor<2x8xbf16> -> tensor<2x21xbf16>
  %0 = nn.concat %a, %b, %a dim 1 : tensor<2x8xbf16>, tensor<2x5xbf16>, tensor<2x8xbf16> -> tensor<2x21xbf16>
  // CHECK: nn.concat %{{.*}} dim 0 : tensor<3xi32> -> tensor<3xi32>
  %1 = nn.concat %ids dim 0 : tensor<3xi32> -> tensor<3xi32>
  return
}
