// RUN: braid-opt %s --canonicalize | FileCheck %s

comm.mesh @mesh <dp = 1, tp = 2>

// Collectives over a group of one rank do nothing.
// CHECK-LABEL: func.func @single_rank
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @single_rank(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_reduce sum(%x) over <@mesh, {dp}> : tensor<8x4xf32>
  %1 = comm.reduce_scatter max(%x) dim 0 over <@mesh, {tp:(1)1}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = comm.all_gather(%x) dim 0 over <@mesh, {}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %3 = comm.part %x dim 0 over <@mesh, {dp}> : tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @several_ranks
// CHECK: comm.all_reduce
func.func @several_ranks(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {dp, tp}> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @duplicates
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>, %[[Y:.*]]: tensor<2xf32>)
// CHECK-NEXT: %[[R:.*]]:2 = comm.all_reduce sum(%[[X]], %[[Y]]) over <@mesh, {tp}> role "both" : tensor<8x4xf32>, tensor<2xf32>
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1, %[[R]]#0
func.func @duplicates(%x: tensor<8x4xf32>, %y: tensor<2xf32>) -> (tensor<8x4xf32>, tensor<2xf32>, tensor<8x4xf32>) {
  %0:3 = comm.all_reduce sum(%x, %y, %x) over <@mesh, {tp}> role "both" : tensor<8x4xf32>, tensor<2xf32>, tensor<8x4xf32>
  return %0#0, %0#1, %0#2 : tensor<8x4xf32>, tensor<2xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: func.func @inverse
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @inverse(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<8x8xf32>
  %1 = comm.part %0 dim 1 over <@mesh, {tp}> : tensor<8x8xf32> -> tensor<8x4xf32>
  %2 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x4xf32>
  %3 = comm.all_gather(%2) dim 0 over <@mesh, {tp}> : tensor<4x4xf32> -> tensor<8x4xf32>
  return %1, %3 : tensor<8x4xf32>, tensor<8x4xf32>
}

// A slice along another dimension does not invert the gather.
// CHECK-LABEL: func.func @not_inverse
// CHECK: comm.all_gather
// CHECK: comm.part
func.func @not_inverse(%x: tensor<8x4xf32>) -> tensor<4x8xf32> {
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<8x8xf32>
  %1 = comm.part %0 dim 0 over <@mesh, {tp}> : tensor<8x8xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused(%x: tensor<8x4xf32>) {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  return
}

// A collective that was started is waited for, even if its results are unused.
// CHECK-LABEL: func.func @started
// CHECK: comm.start
// CHECK: comm.all_reduce
// CHECK: comm.wait
func.func @started(%x: tensor<8x4xf32>) {
  %h = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {dp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  return
}

// CHECK-LABEL: func.func @single_rank_exchanges
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @single_rank_exchanges(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_to_all(%x) split 0 concat 1 over <@mesh, {dp}> : tensor<8x4xf32> -> tensor<8x4xf32>
  %1 = comm.reduce sum(%x) to 0 over <@mesh, {dp}> : tensor<8x4xf32>
  %2 = comm.broadcast(%x) from 0 over <@mesh, {dp}> : tensor<8x4xf32>
  %3 = comm.permute(%x) pairs [0 -> 0] over <@mesh, {dp}> : tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// An exchange and its inverse cancel, and so does a permute in which every rank keeps its value.
// CHECK-LABEL: func.func @exchange_back
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32>)
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @exchange_back(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<16x2xf32>
  %1 = comm.all_to_all(%0) split 0 concat 1 over <@mesh, {tp}> : tensor<16x2xf32> -> tensor<8x4xf32>
  %2 = comm.permute(%x) pairs [1 -> 1, 0 -> 0] over <@mesh, {tp}> : tensor<8x4xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}

// A position without a source gets zeros, also in a group of one. The other exchanges move data.
// CHECK-LABEL: func.func @exchanges_stay
// CHECK: comm.permute(%{{.*}}) pairs [] over <@mesh, {dp}>
// CHECK: comm.permute(%{{.*}}) pairs [0 -> 0] over <@mesh, {tp}>
// CHECK: comm.permute(%{{.*}}) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}>
// CHECK: comm.all_to_all
// CHECK: comm.all_to_all
func.func @exchanges_stay(%x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x1xf32>) {
  %0 = comm.permute(%x) pairs [] over <@mesh, {dp}> : tensor<8x4xf32>
  %1 = comm.permute(%x) pairs [0 -> 0] over <@mesh, {tp}> : tensor<8x4xf32>
  %2 = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp}> : tensor<8x4xf32>
  %3 = comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<16x2xf32>
  %4 = comm.all_to_all(%3) split 1 concat 0 over <@mesh, {tp}> : tensor<16x2xf32> -> tensor<32x1xf32>
  return %0, %1, %2, %4 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x1xf32>
}

// CHECK-LABEL: func.func @unused_exchanges
// CHECK-NEXT: return
func.func @unused_exchanges(%x: tensor<8x4xf32>) {
  %0 = comm.all_to_all(%x) split 0 concat 1 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<4x8xf32>
  %1 = comm.reduce sum(%x) to 0 over <@mesh, {tp}> : tensor<8x4xf32>
  %2 = comm.broadcast(%x) from 0 over <@mesh, {tp}> : tensor<8x4xf32>
  %3 = comm.permute(%x) pairs [0 -> 1] over <@mesh, {tp}> : tensor<8x4xf32>
  return
}
