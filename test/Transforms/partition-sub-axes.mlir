// RUN: braid-opt %s --braid-partition --split-input-file | FileCheck %s
// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-partition) seed=3" | FileCheck %s --check-prefix=SAME

// Only the sub-axis in which the two shardings differ is exchanged.

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

// The other direction sends nothing.
comm.mesh @mesh <tp = 8>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x16xf32>
// CHECK: %[[A:.*]] = comm.part %[[X]] dim 0 over <@mesh, {tp:(2)4}> : tensor<4x16xf32> -> tensor<1x16xf32>
// CHECK: return %[[A]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {}]>})
    -> (tensor<8x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) attributes {nn.entry} {
  return %x : tensor<8x16xf32>
}

// -----

// The minor sub-axis moves to another dimension.
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

// Consecutive sub-axes are the axis: nothing changes.
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

// Sub-axes of 2 and of 3 of 6 ranks have no common sub-axis, but the full axis refines both: sixths are gathered to thirds.
comm.mesh @mesh <tp = 6>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x16xf32>
// CHECK: %[[A:.*]] = comm.part %[[X]] dim 0 over <@mesh, {tp:(2)3}> : tensor<6x16xf32> -> tensor<2x16xf32>
// CHECK: %[[B:.*]] = comm.all_gather(%[[A]]) dim 0 over <@mesh, {tp:(3)2}> : tensor<2x16xf32> -> tensor<4x16xf32>
// CHECK: return %[[B]]
// SAME: equivalent on 1 and 6 ranks
func.func @main(%x: tensor<12x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {}]>})
    -> (tensor<12x16xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(1)3}, {}]>}) attributes {nn.entry} {
  return %x : tensor<12x16xf32>
}

// -----

// The major sub-axis of 2 and the minor sub-axis of 2 of 6 have no common factorization either: no value is sharded over both.
comm.mesh @mesh <tp = 6>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x12xf32>
// CHECK: %[[A:.*]] = comm.part %[[X]] dim 0 over <@mesh, {tp:(2)3}> : tensor<6x12xf32> -> tensor<2x12xf32>
// CHECK: %[[B:.*]] = comm.all_to_all(%[[A]]) split 1 concat 0 over <@mesh, {tp:(3)2}> : tensor<2x12xf32> -> tensor<4x6xf32>
// CHECK: %[[C:.*]] = comm.all_gather(%[[B]]) dim 0 over <@mesh, {tp:(1)3}> : tensor<4x6xf32> -> tensor<12x6xf32>
// CHECK: return %[[C]]
// SAME: equivalent on 1 and 6 ranks
func.func @main(%x: tensor<12x12xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {}]>})
    -> (tensor<12x12xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {tp:(3)2}]>}) attributes {nn.entry} {
  return %x : tensor<12x12xf32>
}

// -----

// A permute over the full axis, in disjoint groups, one for each position of dp.
comm.mesh @mesh <tp = 6, dp = 2>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x6xf32>
// CHECK: %[[A:.*]] = comm.permute(%[[X]]) pairs [0 -> 0, 4 -> 1, 2 -> 2, 3 -> 3, 1 -> 4, 5 -> 5] over <@mesh, {tp}> : tensor<6x6xf32>
// CHECK: %[[B:.*]] = comm.all_gather(%[[A]]) dim 1 over <@mesh, {dp}> : tensor<6x6xf32> -> tensor<6x12xf32>
// CHECK: return %[[B]]
// SAME: equivalent on 1 and 12 ranks
func.func @main(%x: tensor<12x12xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}, {dp}]>})
    -> (tensor<12x12xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{tp:(3)2}, {}]>}) attributes {nn.entry} {
  return %x : tensor<12x12xf32>
}

// -----

// A matmul of values with overlapping sub-axes.
comm.mesh @mesh <tp = 6>
// CHECK-LABEL: func.func @main
// SAME: equivalent on 1 and 6 ranks
func.func @main(%x: tensor<12x12xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp:(3)2}, {}]>},
                %w: tensor<12x12xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{tp:(2)3}, {}]>})
    -> (tensor<12x12xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {tp:(1)2}]>}) attributes {nn.entry} {
  %y = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {tp:(1)2}]>]}
      : tensor<12x12xf32>, tensor<12x12xf32> -> tensor<12x12xf32>
  return %y : tensor<12x12xf32>
}

// -----

// A matmul sharded over sub-axes of one axis, reduced over the sub-axis that shards the contracted dimension.
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
