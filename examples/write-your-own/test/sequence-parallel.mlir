// A block before and after the passes of ../passes.txt: the gather at its end moves into the next block. The level is that of
// `--emit=comm`, with the shapes of one rank. Sharded values differ between ranks, and no gather may move past them.
// RUN: braid-opt %s --braid-split-all-reduce --braid-sink-all-gathers | FileCheck %s

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func private @block
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK:         %[[NORM:.*]] = nn.rms_norm %[[X]],
// CHECK-NEXT:    %[[ALL:.*]] = comm.all_gather(%[[NORM]]) dim 1 over <@mesh, {tp}>
// CHECK-NEXT:    nn.linear %[[ALL]],
// CHECK:         %[[SHARD:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}>
// CHECK-NEXT:    %[[SUM:.*]] = nn.add %[[X]], %[[SHARD]] : tensor<2x4x8xf32>
// CHECK-NEXT:    return %[[SUM]]
func.func private @block(%x: tensor<2x8x8xf32>, %norm: tensor<8xf32>, %up: tensor<6x8xf32>, %down: tensor<8x6xf32>)
    -> tensor<2x8x8xf32> {
  %0 = nn.rms_norm %x, %norm epsilon 1.0e-5 : tensor<2x8x8xf32>, tensor<8xf32> -> tensor<2x8x8xf32>
  %1 = nn.linear %0, %up : tensor<2x8x8xf32>, tensor<6x8xf32> -> tensor<2x8x6xf32>
  %2 = nn.activation silu %1 : tensor<2x8x6xf32>
  %3 = nn.linear %2, %down : tensor<2x8x6xf32>, tensor<8x6xf32> -> tensor<2x8x8xf32>
  %4 = comm.all_reduce sum(%3) over <@mesh, {tp}> : tensor<2x8x8xf32>
  %5 = nn.add %x, %4 : tensor<2x8x8xf32>, tensor<2x8x8xf32> -> tensor<2x8x8xf32>
  return %5 : tensor<2x8x8xf32>
}

// CHECK-LABEL: func.func @main
// CHECK:         comm.part
// CHECK-NOT:     comm.
// CHECK:         call @block
// CHECK-NOT:     comm.
// CHECK:         call @block
// CHECK-NEXT:    comm.all_gather
// CHECK-NEXT:    return
func.func @main(
    %x: tensor<2x8x8xf32>, %norm: tensor<8xf32>,
    %up: tensor<6x8xf32> {comm.global_type = tensor<12x8xf32>, comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %down: tensor<8x6xf32> {comm.global_type = tensor<8x12xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> tensor<2x8x8xf32> {
  %0 = call @block(%x, %norm, %up, %down)
      : (tensor<2x8x8xf32>, tensor<8xf32>, tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<2x8x8xf32>
  %1 = call @block(%0, %norm, %up, %down)
      : (tensor<2x8x8xf32>, tensor<8xf32>, tensor<6x8xf32>, tensor<8x6xf32>) -> tensor<2x8x8xf32>
  return %1 : tensor<2x8x8xf32>
}
