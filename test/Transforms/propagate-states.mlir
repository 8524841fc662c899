// RUN: braid-opt %s --braid-propagate-shardings | FileCheck %s
// RUN: braid-opt %s --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=LOCAL

// A state has one sharding, before and after a run and in all entries, wherever it is stated or follows from.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @prefill(
// CHECK-SAME: %arg1: tensor<2x8x4x3xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, nn.name = "keys", nn.state}
// CHECK-SAME: -> (tensor<2x8x4x3xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, nn.name = "keys"})
// LOCAL-LABEL: func.func @prefill(
// LOCAL: nn.append %{{.*}} to %{{.*}} dim 1 at %{{.*}} : tensor<2x5x2x3xf32>, tensor<2x8x2x3xf32>, tensor<2xi32>
// LOCAL-NOT: comm.all_
func.func @prefill(%x: tensor<2x5x4x3xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>},
                   %keys: tensor<2x8x4x3xf32> {nn.name = "keys", nn.state}, %p: tensor<2xi32> {nn.name = "p"})
    -> (tensor<2x8x4x3xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %0 = nn.append %x to %keys dim 1 at %p : tensor<2x5x4x3xf32>, tensor<2x8x4x3xf32>, tensor<2xi32>
  return %0 : tensor<2x8x4x3xf32>
}

// CHECK-LABEL: func.func @read(
// CHECK-SAME: %arg0: tensor<2x8x4x3xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, nn.name = "keys", nn.state}
// CHECK-SAME: tensor<2x8x4x3xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}, {}]>, nn.name = "keys"})
// LOCAL-LABEL: func.func @read(
// LOCAL-SAME: %arg0: tensor<2x8x2x3xf32>
func.func @read(%keys: tensor<2x8x4x3xf32> {nn.name = "keys", nn.state})
    -> (tensor<2x8x4x3xf32> {nn.name = "y"}, tensor<2x8x4x3xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %y = nn.activation tanh %keys : tensor<2x8x4x3xf32>
  return %y, %keys : tensor<2x8x4x3xf32>, tensor<2x8x4x3xf32>
}
