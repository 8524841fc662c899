// RUN: braid-opt %s --cse --loop-invariant-code-motion --control-flow-sink | FileCheck %s

// Collectives have effects on the communication resource, so that upstream passes do not merge, drop or move them.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @same_twice
// CHECK: %[[A:.*]] = comm.all_reduce
// CHECK: %[[B:.*]] = comm.all_reduce
// CHECK: return %[[A]], %[[B]]
func.func @same_twice(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  %1 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @unused
// CHECK: comm.all_reduce
// CHECK: comm.reduce_scatter
// CHECK: comm.all_gather
func.func @unused(%x: tensor<8x4xf32>) {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  %1 = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  %2 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<16x4xf32>
  return
}

// CHECK-LABEL: func.func @loop
// CHECK: scf.for
// CHECK: comm.all_reduce
// CHECK: scf.yield
func.func @loop(%x: tensor<8x4xf32>, %n: index) -> tensor<8x4xf32> {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> tensor<8x4xf32> {
    %a = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
    scf.yield %a : tensor<8x4xf32>
  }
  return %r : tensor<8x4xf32>
}

// A slice communicates nothing, so it is merged and moved like any pure operation.
// CHECK-LABEL: func.func @slice
// CHECK: %[[A:.*]] = comm.part
// CHECK-NEXT: return %[[A]], %[[A]]
func.func @slice(%x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  %1 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<4x4xf32>
}
