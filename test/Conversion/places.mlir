// RUN: braid-opt %s --braid-form-kernels --braid-lower-to-rt --braid-assign-buffers | FileCheck %s

// Calls, and the copies that they need, are run by the ranks of their places; buffers of different ranks share bytes.

comm.mesh @mesh <pp = 2>

func.func private @first(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.activation silu %x : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @last(%w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = nn.activation gelu %w : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @keep(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}

// CHECK-LABEL: rt.procedure entry @main(
// CHECK-SAME: {rt.parameter = #rt.parameter<"w" of tensor<4x4xf32> on <@mesh, {pp = [1]}> init normal slices
// CHECK-SAME: {rt.operand = #rt.value<"x" of tensor<4x4xf32> on <@mesh, {pp = [0]}>>}
// CHECK-SAME: {rt.result = #rt.value<"y" of tensor<4x4xf32> on <@mesh, {pp = [0]}>>}
// CHECK-SAME: {rt.result = #rt.value<"z" of tensor<4x4xf32> on <@mesh, {pp = [1]}>>}
// CHECK-SAME: frame <local 64,
func.func @main(%x: tensor<4x4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0]}>})
    -> (tensor<4x4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [0]}>},
        tensor<4x4xf32> {nn.name = "z", comm.on = #comm.place<@mesh, {pp = [1]}>}) attributes {nn.entry} {
  %w = nn.parameter "w" on <@mesh, {pp = [1]}> : tensor<4x4xf32>
  // CHECK: %[[A:.*]] = rt.alloc at 0 : memref<4x4xf32, #rt.space<local>>
  // CHECK: rt.call @first(%{{.*}}, %[[A]]) at <local 0, symmetric 0, events 0> {comm.on = #comm.place<@mesh, {pp = [0]}>}
  %a = func.call @first(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK: %[[B:.*]] = rt.alloc at 0 : memref<4x4xf32, #rt.space<local>>
  // CHECK: rt.call @last(%{{.*}}, %[[B]]) at <local 0, symmetric 0, events 0> {comm.on = #comm.place<@mesh, {pp = [1]}>}
  %b = func.call @last(%w) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %y = func.call @first(%a) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = func.call @keep(%b) {comm.on = #comm.place<@mesh, {pp = [1]}>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// A result that is an argument is copied where it is declared to be.
// CHECK-LABEL: rt.procedure entry @given(
// CHECK: rt.copy ins(%{{.*}}) outs(%{{.*}}) {comm.on = #comm.place<@mesh, {pp = [1]}>}
func.func @given(%x: tensor<4x4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [1]}>})
    -> (tensor<4x4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [1]}>}) attributes {nn.entry} {
  return %x : tensor<4x4xf32>
}
