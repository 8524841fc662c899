// Parameters, operands and results that collectives of an entry or of a callee use are symmetric arguments of its procedure: no
// copies.
// RUN: braid-opt %s --pass-pipeline='builtin.module(braid-start-collectives,braid-form-kernels,braid-lower-to-rt,braid-assign-buffers)' | FileCheck %s
comm.mesh @mesh <tp = 2>

// The callee gathers its weight.
// CHECK-LABEL: rt.procedure @layer(
// CHECK-SAME: memref<2x8xf32>
// CHECK-SAME: memref<4x8xf32, #rt.space<symmetric>>
func.func private @layer(%x: tensor<2x8xf32>, %w: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %g = comm.all_gather(%w) dim 0 over <@mesh, {tp}> role "w" : tensor<4x8xf32> -> tensor<8x8xf32>
  %0 = nn.linear %x, %g : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}

// CHECK-LABEL: rt.procedure entry @main(
// A weight for the callee, one that is gathered here, one for both, and one that no collective uses.
// CHECK-SAME: %called: memref<4x8xf32, #rt.space<symmetric>> {rt.parameter
// CHECK-SAME: %gathered: memref<4x8xf32, #rt.space<symmetric>> {rt.parameter
// CHECK-SAME: %half: memref<8x8xf32, #rt.space<symmetric>> {rt.parameter
// CHECK-SAME: %plain: memref<8x8xf32> {rt.parameter
// CHECK-SAME: %x: memref<2x8xf32, #rt.space<symmetric>> {rt.operand
// CHECK-SAME: %plain_0: memref<2x8xf32> {rt.operand
// CHECK-SAME: %y: memref<2x8xf32, #rt.space<symmetric>> {rt.result
// CHECK-SAME: %z: memref<2x8xf32> {rt.result
// CHECK-NOT: rt.copy
// CHECK: rt.start all_reduce with sum ins(%x : {{.*}}) outs(%y :
// CHECK: rt.start all_gather ins(%gathered :
// CHECK: rt.call @layer({{.*}}, %called,
// CHECK: rt.subview %half at [4, 0]
// CHECK-NOT: rt.copy
func.func @main(
    %x: tensor<2x8xf32> {nn.name = "x", comm.global_type = tensor<2x8xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>},
    %p: tensor<2x8xf32> {nn.name = "plain", comm.global_type = tensor<2x8xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    -> (tensor<2x8xf32> {nn.name = "y", comm.global_type = tensor<2x8xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>},
        tensor<2x8xf32> {nn.name = "z", comm.global_type = tensor<2x8xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    attributes {nn.entry} {
  %called = nn.parameter "called" of tensor<8x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4x8xf32>
  %gathered = nn.parameter "gathered" of tensor<8x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4x8xf32>
  %half = nn.parameter "half" : tensor<8x8xf32>
  %plain = nn.parameter "plain" : tensor<8x8xf32>
  %y = comm.all_reduce sum (%x) over <@mesh, {tp}> role "x" : tensor<2x8xf32>
  %g = comm.all_gather(%gathered) dim 0 over <@mesh, {tp}> role "gathered" : tensor<4x8xf32> -> tensor<8x8xf32>
  %0 = nn.linear %p, %g : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %1 = nn.linear %0, %plain : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  %2 = call @layer(%1, %called) : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %bottom = nn.slice %half dim 0 from 4 size 4 : tensor<8x8xf32> -> tensor<4x8xf32>
  %3 = call @layer(%2, %bottom) : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %4 = nn.linear %3, %half : tensor<2x8xf32>, tensor<8x8xf32> -> tensor<2x8xf32>
  return %y, %4 : tensor<2x8xf32>, tensor<2x8xf32>
}
