// RUN: braid-opt %s -split-input-file --braid-form-kernels --braid-lower-to-rt | FileCheck %s
// RUN: braid-opt %s -split-input-file --braid-form-kernels --braid-lower-to-rt --remark-format=emitRemark --remarks-filter=buffers 2>&1 | FileCheck %s --check-prefix=REMARK

// A cache changes in place, also through the layer that changes it. States come before other arguments.
// CHECK: rt.procedure @layer(%{{.*}}: memref<2x1x4xf32>, %[[K:.*]]: memref<2x8x4xf32> {rt.inout}, %[[P:.*]]: memref<2xi32>
// CHECK: rt.launch @append rows 16 ins(%{{.*}}, %[[P]] : memref<2x1x4xf32>, memref<2xi32>) outs(%[[K]] : memref<2x8x4xf32>)
// CHECK-LABEL: rt.procedure entry @decode(
// CHECK-SAME: %keys: memref<2x8x4xf32> {rt.state = #rt.value<"keys" of tensor<2x8x4xf32>>},
// CHECK-SAME: %x: memref<2x1x4xf32> {rt.operand = #rt.value<"x" of tensor<2x1x4xf32>>}, %position: memref<2xi32> {rt.operand
// CHECK-SAME: %y: memref<2x8x4xf32> {rt.result = #rt.value<"y" of tensor<2x8x4xf32>>}) {
// CHECK: rt.call @layer(%x, %keys, %position) : memref<2x1x4xf32>, memref<2x8x4xf32>, memref<2xi32>
// CHECK-NOT: rt.copy
// CHECK: rt.launch @tanh
func.func private @layer(%x: tensor<2x1x4xf32>, %keys: tensor<2x8x4xf32>, %p: tensor<2xi32>) -> tensor<2x8x4xf32> {
  %0 = nn.append %x to %keys dim 1 at %p : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return %0 : tensor<2x8x4xf32>
}
func.func @decode(%x: tensor<2x1x4xf32> {nn.name = "x"}, %keys: tensor<2x8x4xf32> {nn.name = "keys", nn.state},
                  %p: tensor<2xi32> {nn.name = "position"})
    -> (tensor<2x8x4xf32> {nn.name = "y"}, tensor<2x8x4xf32> {nn.name = "keys"}) attributes {nn.entry} {
  %0 = func.call @layer(%x, %keys, %p) : (tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>) -> tensor<2x8x4xf32>
  %y = nn.activation tanh %0 : tensor<2x8x4xf32>
  return %y, %0 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
}

// -----

// A kernel that reads the old value element by element writes the new one there. The old value may be read before.
// CHECK-LABEL: rt.procedure entry @in_place(
// CHECK-SAME: %sum: memref<2x4xf32> {rt.state
// CHECK: rt.launch @matmul rows 2 ins(%sum, %w
// CHECK: rt.launch @add rows 2 ins(%sum, %x : {{.*}}) outs(%sum : memref<2x4xf32>)
// CHECK-NOT: rt.copy
// CHECK: rt.return
// REMARK-NOT: copies
func.func @in_place(%x: tensor<2x4xf32> {nn.name = "x"}, %sum: tensor<2x4xf32> {nn.name = "sum", nn.state})
    -> (tensor<2x4xf32> {nn.name = "sum"}, tensor<2x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %w = nn.parameter "w" : tensor<4x4xf32>
  %y = nn.linear %sum, %w role "linear" : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %0 = nn.add %sum, %x : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  return %0, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// A state that does not change is not copied.
// CHECK-LABEL: rt.procedure entry @unchanged(
// CHECK-NOT: rt.copy
// CHECK: rt.return
func.func @unchanged(%sum: tensor<2x4xf32> {nn.name = "sum", nn.state})
    -> (tensor<2x4xf32> {nn.name = "sum"}, tensor<2x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %y = nn.activation tanh %sum : tensor<2x4xf32>
  return %sum, %y : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// The old value is read after the new one is computed.
// CHECK-LABEL: rt.procedure entry @read_later(
// CHECK: %[[NEW:.*]] = rt.alloc
// CHECK: outs(%[[NEW]]
// CHECK: rt.launch @matmul{{.*}} ins(%[[NEW]], %sum
// CHECK: rt.copy ins(%[[NEW]] : memref<4x4xf32, #rt.space<local>>) outs(%sum : memref<4x4xf32>)
// CHECK-NEXT: rt.return
// REMARK: copies 64 bytes: the new value of a state is given, used by a collective, or computed while the old one is still needed
func.func @read_later(%x: tensor<4x4xf32> {nn.name = "x"}, %sum: tensor<4x4xf32> {nn.name = "sum", nn.state})
    -> (tensor<4x4xf32> {nn.name = "sum"}, tensor<4x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = nn.add %sum, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %y = nn.linear %0, %sum role "linear" : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %0, %y : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// States that change places go through other memory; a result takes the old value before that.
// CHECK-LABEL: rt.procedure entry @swap(
// CHECK-SAME: %a: memref<4xf32> {rt.state{{.*}}, %b: memref<4xf32> {rt.state{{.*}}, %old: memref<4xf32> {rt.result
// CHECK: rt.copy ins(%a : {{.*}}) outs(%old : {{.*}})
// CHECK: rt.copy ins(%b : {{.*}}) outs(%[[KEPT_B:.*]] : {{.*}})
// CHECK: rt.copy ins(%a : {{.*}}) outs(%[[KEPT_A:.*]] : {{.*}})
// CHECK: rt.copy ins(%[[KEPT_B]] : {{.*}}) outs(%a : {{.*}})
// CHECK-NEXT: rt.copy ins(%[[KEPT_A]] : {{.*}}) outs(%b : {{.*}})
// REMARK: copies 16 bytes: the old value of a state becomes the new one of another
func.func @swap(%a: tensor<4xf32> {nn.name = "a", nn.state}, %b: tensor<4xf32> {nn.name = "b", nn.state})
    -> (tensor<4xf32> {nn.name = "a"}, tensor<4xf32> {nn.name = "b"}, tensor<4xf32> {nn.name = "old"}) attributes {nn.entry} {
  return %b, %a, %a : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// A collective reads the state in place, which is symmetric then, but writes memory of its own.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure entry @collective(
// CHECK-SAME: %sum: memref<4xf32, #rt.space<symmetric>> {rt.state
// CHECK-NOT: rt.copy
// CHECK: rt.start all_reduce with sum ins(%sum : {{.*}}) outs(%[[REDUCED:.*]] : memref
// CHECK: rt.copy ins(%[[REDUCED]] : {{.*}}) outs(%sum : {{.*}})
func.func @collective(%sum: tensor<4xf32> {nn.name = "sum", nn.state, comm.global_type = tensor<4xf32>, comm.sharding = #comm.sharding<@mesh, [{}]>})
    -> (tensor<4xf32> {nn.name = "sum", comm.global_type = tensor<4xf32>, comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  %h = comm.start (%a = %sum) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> role "sum" : tensor<4xf32>
    comm.yield %r : tensor<4xf32>
  }
  %0 = comm.wait %h keeping %sum : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
