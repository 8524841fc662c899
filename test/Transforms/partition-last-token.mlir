// RUN: braid-opt %s --split-input-file --braid-propagate-shardings --braid-partition | FileCheck %s
// RUN: braid-opt %S/Inputs/last-token.mlir --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition) seed=3" | FileCheck %s --check-prefix=SAME

// Batch and hidden size stay sharded; the sequence is gathered, and of the mask too.
comm.mesh @mesh <dp = 2, tp = 2, sp = 2>
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[X:.*]] = comm.all_gather({{.*}}) dim 1 over <@mesh, {sp}> {{.*}}: tensor<2x4x4xf32> -> tensor<2x8x4xf32>
// CHECK-DAG: %[[M:.*]] = comm.all_gather({{.*}}) dim 1 over <@mesh, {sp}> {{.*}}: tensor<2x4xi64> -> tensor<2x8xi64>
// CHECK: nn.last_token %[[X]] mask %[[M]] : tensor<2x8x4xf32>, tensor<2x8xi64> -> tensor<2x1x4xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}, {tp}]>},
                %m: tensor<4x8xi64> {nn.name = "m", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}]>})
    -> (tensor<4x1x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {tp}]>}) attributes {nn.entry} {
  %0 = nn.last_token %x mask %m : tensor<4x8x8xf32>, tensor<4x8xi64> -> tensor<4x1x8xf32>
  return %0 : tensor<4x1x8xf32>
}

// -----

// A selection of partial sums is a partial sum of the selection: one row is reduced, not eight.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @partial
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[L:.*]] = nn.last_token %[[P]] mask %{{.*}} : tensor<4x8x8xf32>, tensor<4x8xi64> -> tensor<4x1x8xf32>
// CHECK-NEXT: comm.all_reduce sum(%[[L]]) over <@mesh, {tp}> {{.*}}: tensor<4x1x8xf32>
func.func @partial(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>},
                   %m: tensor<4x8xi64> {nn.name = "m"}, %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x1x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>}) attributes {nn.entry} {
  %p = nn.linear %x, %w : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %0 = nn.last_token %p mask %m : tensor<4x8x8xf32>, tensor<4x8xi64> -> tensor<4x1x8xf32>
  return %0 : tensor<4x1x8xf32>
}

// SAME: equivalent on 1 and 8 ranks:
