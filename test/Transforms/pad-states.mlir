// RUN: braid-opt %s --braid-pad-for-strategy="strategy=dp mesh=dp=2" | FileCheck %s

// A state is padded where it is kept, in all entries alike, and so nothing of it is copied. Callers see it without padding.
comm.mesh @mesh <dp = 2>

// CHECK-LABEL: func.func @append(
// CHECK-SAME: %[[X:.*]]: tensor<3x1x4xf32> {nn.name = "x"}, %[[KEYS:.*]]: tensor<4x8x4xf32> {nn.name = "keys", nn.state}, %[[P:.*]]: tensor<3xi32> {nn.name = "position"})
// CHECK-SAME: -> (tensor<4x8x4xf32> {nn.name = "keys", nn.unpadded = tensor<3x8x4xf32>})
// CHECK: %[[NEW:.*]] = nn.append %{{.*}} to %[[KEYS]] dim 1 at %{{.*}} : tensor<4x1x4xf32>, tensor<4x8x4xf32>, tensor<4xi32>
// CHECK: return %[[NEW]] : tensor<4x8x4xf32>
func.func @append(%x: tensor<3x1x4xf32> {nn.name = "x"}, %keys: tensor<3x8x4xf32> {nn.name = "keys", nn.state},
                  %p: tensor<3xi32> {nn.name = "position"})
    -> (tensor<3x8x4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %0 = nn.append %x to %keys dim 1 at %p : tensor<3x1x4xf32>, tensor<3x8x4xf32>, tensor<3xi32>
  return %0 : tensor<3x8x4xf32>
}

// What is computed from it is padded as well.
// CHECK-LABEL: func.func @read(
// CHECK-SAME: %[[KEYS:.*]]: tensor<4x8x4xf32> {nn.name = "keys", nn.state})
// CHECK-SAME: -> (tensor<4x8x4xf32> {nn.name = "y", nn.unpadded = tensor<3x8x4xf32>}, tensor<4x8x4xf32> {nn.name = "keys", nn.unpadded = tensor<3x8x4xf32>})
// CHECK: %[[Y:.*]] = nn.activation tanh %[[KEYS]] : tensor<4x8x4xf32>
// CHECK: return %[[Y]], %[[KEYS]]
func.func @read(%keys: tensor<3x8x4xf32> {nn.name = "keys", nn.state})
    -> (tensor<3x8x4xf32> {nn.name = "y"}, tensor<3x8x4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %y = nn.activation tanh %keys : tensor<3x8x4xf32>
  return %y, %keys : tensor<3x8x4xf32>, tensor<3x8x4xf32>
}
