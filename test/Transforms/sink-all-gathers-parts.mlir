// RUN: braid-opt %s --braid-sink-all-gathers --remark-format=emitRemark --remarks-filter=communication 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file %t

comm.mesh @mesh <tp = 2>

// The slice is along another dimension: it runs on shards, and the gather sends half as much.
// CHECK-LABEL: func.func @slice
// CHECK-NEXT: %[[S:.*]] = nn.slice %{{.*}} dim 2 from 0 size 4 : tensor<2x4x8xf32> -> tensor<2x4x4xf32>
// CHECK-NEXT: comm.all_gather(%[[S]]) dim 1 over <@mesh, {tp}> : tensor<2x4x4xf32> -> tensor<2x8x4xf32>
func.func @slice(%x: tensor<2x4x8xf32>) -> tensor<2x8x4xf32> {
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<2x4x8xf32> -> tensor<2x8x8xf32>
  %1 = nn.slice %0 dim 2 from 0 size 4 : tensor<2x8x8xf32> -> tensor<2x8x4xf32>
  return %1 : tensor<2x8x4xf32>
}

// Two gathers become one, since the inputs are put together on shards.
// CHECK-LABEL: func.func @concat
// CHECK-NEXT: %[[C:.*]] = nn.concat %{{.*}}, %{{.*}} dim 0 : tensor<2x4xf32>, tensor<1x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: %[[G:.*]] = comm.all_gather(%[[C]]) dim 1 over <@mesh, {tp}> : tensor<3x4xf32> -> tensor<3x8xf32>
// CHECK-NEXT: return %[[G]]
func.func @concat(%x: tensor<2x4xf32>, %y: tensor<1x4xf32>) -> tensor<3x8xf32> {
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<2x4xf32> -> tensor<2x8xf32>
  %1 = comm.all_gather(%y) dim 1 over <@mesh, {tp}> : tensor<1x4xf32> -> tensor<1x8xf32>
  %2 = nn.concat %0, %1 dim 0 : tensor<2x8xf32>, tensor<1x8xf32> -> tensor<3x8xf32>
  return %2 : tensor<3x8xf32>
}

// A range of the gathered dimension is no range of a shard.
// CHECK-LABEL: func.func @along
// CHECK-NEXT: %[[G:.*]] = comm.all_gather
// CHECK-NEXT: nn.slice %[[G]] dim 1 from 1 size 6
// REMARK: 'nn.slice' needs all of 'sliced'
func.func @along(%x: tensor<2x4xf32>) -> tensor<2x6xf32> {
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {tp}> : tensor<2x4xf32> -> tensor<2x8xf32>
  %1 = nn.slice %0 dim 1 from 1 size 6 : tensor<2x8xf32> -> tensor<2x6xf32>
  return %1 : tensor<2x6xf32>
}
