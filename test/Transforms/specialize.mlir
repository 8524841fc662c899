// DEFINE: %{calls} =
// DEFINE: %{specialize} = braid-opt %s --braid-specialize=calls=%{calls}
// REDEFINE: %{calls} = @main/@layer#1
// RUN: %{specialize} | FileCheck %s
// RUN: %{specialize} | braid-opt --braid-identify-collectives | FileCheck %s
// REDEFINE: %{calls} = "@main/@layer#*"
// RUN: %{specialize} | FileCheck %s --check-prefix=ALL
// REDEFINE: %{calls} = @main/@layer#0/@block#1,@main/@once
// RUN: %{specialize} | FileCheck %s --check-prefix=NESTED
// REDEFINE: %{calls} = @main/@layer#9
// RUN: not %{specialize} 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expects a call that '@main/@layer#9' names, found none
// REDEFINE: %{calls} = main/layer
// RUN: not %{specialize} 2>&1 | FileCheck %s --check-prefix=PATH
// PATH: error: expects call paths such as '@main/@layer#3', got 'main/layer'
// REDEFINE: %{calls} = @other/@layer
// RUN: not %{specialize} 2>&1 | FileCheck %s --check-prefix=ROOT
// ROOT: error: expects call paths such as '@main/@layer#3', from a function of the module, got '@other/@layer'
// REDEFINE: %{calls} = "@main/@layer["
// RUN: not %{specialize} 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: expects call paths such as '@main/@layer#*', got '@main/@layer[': {{.+}}

comm.mesh @mesh <tp = 2>

// The chosen call has a callee of its own, under the call's name; both calls keep their names, and the collective its own.
// CHECK-LABEL: func.func @main
// CHECK: call @layer(%{{.*}}) {comm.call = "layer#0"}
// CHECK: call @layer_1(%{{.*}}) {comm.call = "layer#1"}
// CHECK: call @once
// CHECK-LABEL: func.func private @layer(
// CHECK-LABEL: func.func private @layer_1(
// CHECK: call @block(%{{.*}}) {comm.call = "block#0"}
// CHECK: call @block(%{{.*}}) {comm.call = "block#1"}
// CHECK-LABEL: func.func private @block(
// CHECK-NOT: func.func private @block_

// The last call keeps the function, so that none is left without a call.
// ALL-LABEL: func.func @main
// ALL: call @layer_0(%{{.*}}) {comm.call = "layer#0"}
// ALL: call @layer(%{{.*}}) {comm.call = "layer#1"}

// The callees on the way are specialized too; a callee with one call is not cloned.
// NESTED-LABEL: func.func @main
// NESTED: call @layer_0(%{{.*}}) {comm.call = "layer#0"}
// NESTED: call @layer(%{{.*}}) {comm.call = "layer#1"}
// NESTED: call @once(
// NESTED-LABEL: func.func private @layer(
// NESTED: call @block(
// NESTED: call @block(
// NESTED-LABEL: func.func private @layer_0(
// NESTED: call @block(%{{.*}}) {comm.call = "block#0"}
// NESTED: call @block_1(%{{.*}}) {comm.call = "block#1"}
// NESTED-LABEL: func.func private @block_1(
// NESTED: comm.all_reduce {{.*}} role "sum"
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = call @layer(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = call @layer(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = call @once(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
func.func private @layer(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = call @block(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = call @block(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
func.func private @block(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "sum" : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @once(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.activation gelu %x : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
