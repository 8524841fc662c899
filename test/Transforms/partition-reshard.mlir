// RUN: braid-opt %s --braid-partition --split-input-file | FileCheck %s

// Every kind of conversion between two shardings. Shardings are stated by hand.
comm.mesh @mesh <dp = 2, tp = 4>

// CHECK-LABEL: func.func @forms
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32> {comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
func.func @forms(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, dp}, {}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  // Replicated; the last result reuses it.
  // CHECK-DAG: %[[FULL:.*]] = comm.all_gather(%[[X]]) dim 0 over <@mesh, {dp}> : tensor<4x16xf32> -> tensor<8x16xf32>
  // CHECK-DAG: %[[DPTP:.*]] = comm.part %[[X]] dim 1 over <@mesh, {tp}> : tensor<4x16xf32> -> tensor<4x4xf32>
  // CHECK-DAG: %[[MAJOR:.*]] = comm.part %[[X]] dim 0 over <@mesh, {tp}> : tensor<4x16xf32> -> tensor<1x16xf32>
  // The full value is on every rank already, so its shards need no communication.
  // CHECK-DAG: %[[TP:.*]] = comm.part %[[FULL]] dim 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x4xf32>
  // CHECK-DAG: %[[MOVED:.*]] = comm.part %[[FULL]] dim 1 over <@mesh, {dp}> : tensor<8x16xf32> -> tensor<8x8xf32>
  // CHECK-DAG: %[[ORDER:.*]] = comm.part %[[FULL]] dim 0 over <@mesh, {tp, dp}> : tensor<8x16xf32> -> tensor<1x16xf32>
  // CHECK: return %[[FULL]], %[[DPTP]], %[[MAJOR]], %[[TP]], %[[MOVED]], %[[ORDER]], %[[FULL]]
  return %x, %x, %x, %x, %x, %x, %x : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}

// A value is sliced before it is gathered, which sends less.
// CHECK-LABEL: func.func @cut_first
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32>
func.func @cut_first(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) {
  // CHECK-NEXT: %[[SLICE:.*]] = comm.part %[[X]] dim 1 over <@mesh, {tp}> : tensor<4x16xf32> -> tensor<4x4xf32>
  // CHECK-NEXT: %[[TP:.*]] = comm.all_gather(%[[SLICE]]) dim 0 over <@mesh, {dp}> : tensor<4x4xf32> -> tensor<8x4xf32>
  // CHECK-NEXT: return %[[TP]]
  return %x : tensor<8x16xf32>
}

// An all_to_all moves an axis from one dimension to another.
// CHECK-LABEL: func.func @move
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32>
func.func @move(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp}]>}) {
  // CHECK-NEXT: %[[R:.*]] = comm.all_to_all(%[[X]]) split 1 concat 0 over <@mesh, {dp}> : tensor<4x16xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: return %[[R]]
  return %x : tensor<8x16xf32>
}

// Two axes move together; a third one stays; a slice over another axis comes before any communication.
// CHECK-LABEL: func.func @move_two
// CHECK-SAME: (%[[X:.*]]: tensor<1x16xf32>
func.func @move_two(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp, tp}]>},
        tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>}) {
  // CHECK-NEXT: %[[A:.*]] = comm.all_to_all(%[[X]]) split 1 concat 0 over <@mesh, {dp, tp}> : tensor<1x16xf32> -> tensor<8x2xf32>
  // CHECK-NEXT: %[[B:.*]] = comm.all_to_all(%[[X]]) split 1 concat 0 over <@mesh, {tp}> : tensor<1x16xf32> -> tensor<4x4xf32>
  // CHECK-NEXT: return %[[A]], %[[B]]
  return %x, %x : tensor<8x16xf32>, tensor<8x16xf32>
}

// The minor axis blocks the one that moves: it moves too, and is gathered there.
// CHECK-LABEL: func.func @make_way
// CHECK-SAME: (%[[X:.*]]: tensor<1x16xf32>
func.func @make_way(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp}]>}) {
  // CHECK-NEXT: %[[M:.*]] = comm.all_to_all(%[[X]]) split 1 concat 0 over <@mesh, {dp, tp}> : tensor<1x16xf32> -> tensor<8x2xf32>
  // CHECK-NEXT: %[[R:.*]] = comm.all_gather(%[[M]]) dim 1 over <@mesh, {tp}> : tensor<8x2xf32> -> tensor<8x8xf32>
  // CHECK-NEXT: return %[[R]]
  return %x : tensor<8x16xf32>
}

// Two axes of different sizes change places: the larger axis is split into sub-axes, so that a permute moves shards first.
// CHECK-LABEL: func.func @swap
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>
func.func @swap(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {dp}]>}) {
  // CHECK-NEXT: %[[A:.*]] = comm.permute(%[[X]]) pairs [0 -> 0, 2 -> 1, 1 -> 2, 3 -> 3] over <@mesh, {dp, tp:(1)2}> : tensor<4x4xf32>
  // CHECK-NEXT: %[[R:.*]] = comm.all_to_all(%[[A]]) split 0 concat 1 over <@mesh, {tp:(2)2}> : tensor<4x4xf32> -> tensor<2x8xf32>
  // CHECK-NEXT: return %[[R]]
  return %x : tensor<8x16xf32>
}

// The same axes in another order: every rank has another rank's shard.
// CHECK-LABEL: func.func @reorder
// CHECK-SAME: (%[[X:.*]]: tensor<1x16xf32>
func.func @reorder(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, dp}, {}]>}) {
  // CHECK-NEXT: %[[R:.*]] = comm.permute(%[[X]]) pairs [0 -> 0, 2 -> 1, 4 -> 2, 6 -> 3, 1 -> 4, 3 -> 5, 5 -> 6, 7 -> 7] over <@mesh, {dp, tp}> : tensor<1x16xf32>
  // CHECK-NEXT: return %[[R]]
  return %x : tensor<8x16xf32>
}

// The value is replicated over the axis that will shard it: every rank slices its value to the final size before it sends.
// CHECK-LABEL: func.func @other_axis
// CHECK-SAME: (%[[X:.*]]: tensor<4x16xf32>
func.func @other_axis(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK-NEXT: %[[S:.*]] = comm.part %[[X]] dim 0 over <@mesh, {tp:(1)2}> : tensor<4x16xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: %[[R:.*]] = comm.permute(%[[S]]) pairs {{.*}} over <@mesh, {dp, tp}> : tensor<2x16xf32>
  // CHECK-NEXT: return %[[R]]
  return %x : tensor<8x16xf32>
}

// -----

// A partial value is reduced once for all users, right after its definition, to the sharding that they share.
comm.mesh @mesh <tp = 2>
#w = #comm.sharding<@mesh, [{}, {tp}]>

// CHECK-LABEL: func.func @one_reduction
func.func @one_reduction(%x: tensor<8x16xf32> {comm.sharding = #w}, %w: tensor<16x16xf32> {comm.sharding = #w})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}, tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: %[[P:.*]] = nn.linear {{.*}} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  // CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[P]]) over <@mesh, {tp}> role "mlp.down" : tensor<8x16xf32>
  // CHECK-NEXT: %[[S:.*]] = comm.part %[[R]] dim 0 over <@mesh, {tp}>
  // CHECK-NEXT: nn.activation gelu %[[R]]
  // CHECK-NEXT: nn.activation gelu %[[S]]
  %0 = nn.linear %x, %w role "mlp.down" {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %1 = nn.activation gelu %0 {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} : tensor<8x16xf32>
  %2 = nn.activation gelu %0 {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<8x16xf32>
  return %1, %2 : tensor<8x16xf32>, tensor<8x16xf32>
}

// All users want the same sharding; the bias is added to the shard.
// CHECK-LABEL: func.func @scatter
// CHECK-SAME: %[[B:[^:]*]]: tensor<16xf32>
func.func @scatter(%b: tensor<16xf32> {comm.sharding = #comm.sharding<@mesh, [{}]>}, %x: tensor<8x16xf32> {comm.sharding = #w}, %w: tensor<16x16xf32> {comm.sharding = #w})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: %[[P:.*]] = nn.linear {{.*}} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  // CHECK-NEXT: %[[R:.*]] = comm.reduce_scatter sum(%[[P]]) dim 0 over <@mesh, {tp}> role "mlp.down" : tensor<8x16xf32> -> tensor<4x16xf32>
  // CHECK-NEXT: %[[S:.*]] = nn.add %[[R]], %[[B]] : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x16xf32>
  // CHECK-NEXT: nn.activation gelu %[[S]]
  // CHECK-NEXT: return
  %p0 = nn.linear %x, %w role "mlp.down" {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %0 = nn.add %p0, %b {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
  %1 = nn.activation gelu %0 {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// A slice of the bias is added if the bias's dimension is sharded.
// CHECK-LABEL: func.func @scatter_otherwise
// CHECK-SAME: %[[B:[^:]*]]: tensor<16xf32>
func.func @scatter_otherwise(%b: tensor<16xf32> {comm.sharding = #comm.sharding<@mesh, [{}]>}, %x: tensor<8x16xf32> {comm.sharding = #w}, %w: tensor<16x16xf32> {comm.sharding = #w})
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) {
  // CHECK: %[[P:.*]] = comm.part %[[B]] dim 0 over <@mesh, {tp}>
  // CHECK: %[[R:.*]] = comm.reduce_scatter {{.*}} dim 1 {{.*}} -> tensor<8x8xf32>
  // CHECK-NEXT: nn.add %[[R]], %[[P]] : tensor<8x8xf32>, tensor<8xf32>
  %p0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]} : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %0 = nn.add %p0, %b {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// A partial value passes through a linear operation and keeps its role.
// CHECK-LABEL: func.func @flows
func.func @flows(%x: tensor<2x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>}, %w: tensor<16x16xf32> {comm.sharding = #w})
    -> (tensor<2x8x4x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {}, {}]>}) {
  // CHECK: %[[P:.*]] = nn.linear
  // CHECK-NEXT: %[[H:.*]] = nn.split_heads %[[P]]
  // CHECK-NEXT: comm.all_reduce sum(%[[H]]) over <@mesh, {tp}> role "mlp.down" : tensor<2x8x4x4xf32>
  %0 = nn.linear %x, %w role "mlp.down" {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>]} : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %1 = nn.split_heads %0 {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}, {}], partial = [tp = sum]>]} : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  return %1 : tensor<2x8x4x4xf32>
}

// -----

// A normalized dimension must be replicated, and so must the operands of an operation without a sharding rule.
comm.mesh @mesh <tp = 2>
#c = #comm.sharding<@mesh, [{}, {tp}]>

// CHECK-LABEL: func.func @replicated
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf32>
func.func @replicated(%x: tensor<8x16xf32> {comm.sharding = #c}, %w: tensor<16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>}) -> (tensor<8x16xf32> {comm.sharding = #c}) {
  // CHECK: %[[G:.*]] = comm.all_gather(%[[X]]) dim 1
  // CHECK: %[[W:.*]] = comm.all_gather(%{{.*}}) dim 0
  // CHECK: %[[N:.*]] = nn.layer_norm %[[G]], %[[W]], %[[W]]
  // CHECK-NEXT: %[[M:.*]] = arith.negf %[[N]] : tensor<8x16xf32>
  // CHECK-NEXT: %[[S:.*]] = comm.part %[[M]] dim 1
  // CHECK-NEXT: return %[[S]]
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-12 {comm.shardings = [#c]} : tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<8x16xf32>
  %1 = arith.negf %0 {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// Values that a region reads are replicated too.
// CHECK-LABEL: func.func @region
func.func @region(%x: tensor<8x16xf32> {comm.sharding = #c}, %p: i1) -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  // CHECK: %[[G:.*]] = comm.all_gather
  // CHECK: scf.if
  // CHECK: scf.yield %[[G]] : tensor<8x16xf32>
  %0 = scf.if %p -> tensor<8x16xf32> {
    scf.yield %x : tensor<8x16xf32>
  } else {
    %1 = arith.negf %x : tensor<8x16xf32>
    scf.yield %1 : tensor<8x16xf32>
  }
  return %0 : tensor<8x16xf32>
}

// -----

// Call operands are converted to the shardings that the callee states; results have the shardings that it returns.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @caller
// CHECK-SAME: (%[[X:.*]]: tensor<8x8xf32>
func.func @caller(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: %[[S:.*]] = comm.all_to_all(%[[X]]) split 0 concat 1
  // CHECK: call @callee(%[[S]]) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %0 = call @callee(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
// CHECK: func.func private @callee(%{{.*}}: tensor<4x16xf32>) -> tensor<4x16xf32> {
func.func private @callee(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
