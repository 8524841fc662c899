// RUN: braid-opt %s --braid-partition --split-input-file | FileCheck %s
// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-partition) seed=3" | FileCheck %s --check-prefix=SAME

// Only the part of an axis that two forms do not share is exchanged.

comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x16xf32>
// CHECK: %[[A:.*]] = comm.all_gather(%[[X]]) dim 0 over <@mesh, {tp:(4)2}> : tensor<1x16xf32> -> tensor<2x16xf32>
// CHECK: return %[[A]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(1)4}, {}]>}) attributes {nn.entry} {
  return %x : tensor<8x16xf32>
}

// -----

// The other way nothing is sent.
comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x16xf32>
// CHECK: %[[A:.*]] = comm.local_slice %[[X]] dim 0 over <@mesh, {tp:(2)4}> : tensor<4x16xf32> -> tensor<1x16xf32>
// CHECK: return %[[A]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) attributes {nn.entry} {
  return %x : tensor<8x16xf32>
}

// -----

// The minor part moves to another dimension.
comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x16xf32>
// CHECK: %[[A:.*]] = comm.all_to_all(%[[X]]) split 1 concat 0 over <@mesh, {tp:(2)4}> : tensor<1x16xf32> -> tensor<4x4xf32>
// CHECK: return %[[A]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {tp:(2)4}]>}) attributes {nn.entry} {
  return %x : tensor<8x16xf32>
}

// -----

// Parts that follow each other are the axis: there is nothing to do.
comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<1x16xf32>
// CHECK-NEXT: return %[[X]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2, tp:(2)4}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) attributes {nn.entry} {
  return %x : tensor<8x16xf32>
}

// -----

// 2 and 3 of 6 ranks have no part in common.
comm.mesh @mesh <tp = 6>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x16xf32>
// CHECK: %[[A:.*]] = comm.all_gather(%[[X]]) dim 0 over <@mesh, {tp:(1)2}> : tensor<6x16xf32> -> tensor<12x16xf32>
// CHECK: %[[B:.*]] = comm.local_slice %[[A]] dim 0 over <@mesh, {tp:(1)3}> : tensor<12x16xf32> -> tensor<4x16xf32>
// CHECK: return %[[B]]
// SAME: equivalent on 1 and 6 ranks
func.func @main(%x: tensor<12x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {}]>})
    -> (tensor<12x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(1)3}, {}]>}) attributes {nn.entry} {
  return %x : tensor<12x16xf32>
}

// -----

// A product over parts of one axis, reduced over the part that cuts what is summed up.
comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = nn.linear %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
// CHECK: %[[R:.*]] = comm.all_reduce sum(%[[P]]) over <@mesh, {tp:(4)2}> : tensor<4x4xf32>
// CHECK: return %[[R]]
// SAME: equivalent on 1 and 8 ranks
#rows = #comm.sharding<@mesh, [{tp:(1)2}, {tp:(4)2}]>
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #rows},
                %w: tensor<8x16xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{tp:(2)2}, {tp:(4)2}]>})
    -> (tensor<8x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {tp:(2)2}]>}) attributes {nn.entry} {
  %y = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{tp:(1)2}, {tp:(2)2}], partial = [tp:(4)2 = sum]>]}
      : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
