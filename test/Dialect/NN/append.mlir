// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @decode(
// CHECK-SAME: %arg1: tensor<2x64x4x16xf32> {nn.name = "keys", nn.state}
// CHECK-SAME: tensor<2x64x4x16xf32> {nn.name = "keys"})
func.func @decode(%k: tensor<2x1x4x16xf32> {nn.name = "k"}, %keys: tensor<2x64x4x16xf32> {nn.name = "keys", nn.state},
                  %position: tensor<2xi32> {nn.name = "position"})
    -> (tensor<2x64x4x16xf32> {nn.name = "keys"}) attributes {nn.entry} {
  // CHECK: nn.append %arg0 to %arg1 dim 1 at %arg2 : tensor<2x1x4x16xf32>, tensor<2x64x4x16xf32>, tensor<2xi32>
  %0 = nn.append %k to %keys dim 1 at %position : tensor<2x1x4x16xf32>, tensor<2x64x4x16xf32>, tensor<2xi32>
  return %0 : tensor<2x64x4x16xf32>
}

// The whole cache at once, of any element type.
// CHECK-LABEL: func.func @whole(
func.func @whole(%x: tensor<3x5xi8>, %cache: tensor<3x5xi8>, %position: tensor<3xi64>) -> tensor<3x5xi8> {
  // CHECK: nn.append %arg0 to %arg1 dim 1 at %arg2 : tensor<3x5xi8>, tensor<3x5xi8>, tensor<3xi64>
  %0 = nn.append %x to %cache dim 1 at %position : tensor<3x5xi8>, tensor<3x5xi8>, tensor<3xi64>
  return %0 : tensor<3x5xi8>
}
