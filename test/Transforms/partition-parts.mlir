// RUN: braid-opt %s --split-input-file --braid-propagate-shardings --braid-partition | FileCheck %s
// RUN: braid-opt %S/Inputs/parts.mlir --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition,canonicalize) seed=3" | FileCheck %s --check-prefix=SAME

// SAME: equivalent on 1 and 8 ranks:

// Batch and hidden size stay sharded; the sliced dimension is gathered, and a rank's slice is cut to its own shard.
comm.mesh @mesh <dp = 2, tp = 2, sp = 2>
// CHECK-LABEL: func.func @slice
// CHECK: %[[X:.*]] = comm.all_gather(%{{.*}}) dim 1 over <@mesh, {sp}> {{.*}}: tensor<2x4x4xf32> -> tensor<2x8x4xf32>
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[X]] dim 1 from 3 size 4 : tensor<2x8x4xf32> -> tensor<2x4x4xf32>
// CHECK-NEXT: %[[R:.*]] = comm.part %[[S]] dim 1 over <@mesh, {sp}> : tensor<2x4x4xf32> -> tensor<2x2x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @slice(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}, {tp}]>})
    -> (tensor<4x4x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{dp}, {sp}, {tp}]>}) attributes {nn.entry} {
  %0 = nn.slice %x dim 1 from 3 size 4 : tensor<4x8x8xf32> -> tensor<4x4x8xf32>
  return %0 : tensor<4x4x8xf32>
}

// -----

// The other operand becomes sharded like the first, and so does the result.
comm.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32> {{.*}}, %[[Y:.*]]: tensor<2x5x4xf32>
// CHECK-NEXT: %[[C:.*]] = nn.concat %[[X]], %[[Y]] dim 1 : tensor<2x3x4xf32>, tensor<2x5x4xf32> -> tensor<2x8x4xf32>
// CHECK-NEXT: return %[[C]]
func.func @concat(%x: tensor<4x3x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {tp}]>},
                  %y: tensor<4x5x8xf32> {nn.name = "y"}) -> (tensor<4x8x8xf32> {nn.name = "z"}) attributes {nn.entry} {
  %0 = nn.concat %x, %y dim 1 : tensor<4x3x8xf32>, tensor<4x5x8xf32> -> tensor<4x8x8xf32>
  return %0 : tensor<4x8x8xf32>
}

// -----

// A slice of partial sums is a partial sum of the slice: three rows are reduced, not eight. So is a concatenation, where
// all operands are partial: they are reduced together.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @partial
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[P]] dim 1 from 5 size 3
// CHECK-NEXT: %[[Q:.*]] = nn.linear
// CHECK-NEXT: %[[C:.*]] = nn.concat %[[S]], %[[Q]] dim 1 : tensor<4x3x8xf32>, tensor<4x2x8xf32> -> tensor<4x5x8xf32>
// CHECK-NEXT: comm.all_reduce sum(%[[C]]) over <@mesh, {tp}> {{.*}}: tensor<4x5x8xf32>
// CHECK-NEXT: return
func.func @partial(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>},
                   %y: tensor<4x2x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>},
                   %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x5x8xf32> {nn.name = "z", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>}) attributes {nn.entry} {
  %p = nn.linear %x, %w : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %0 = nn.slice %p dim 1 from 5 size 3 : tensor<4x8x8xf32> -> tensor<4x3x8xf32>
  %q = nn.linear %y, %w : tensor<4x2x8xf32>, tensor<8x8xf32> -> tensor<4x2x8xf32>
  %1 = nn.concat %0, %q dim 1 : tensor<4x3x8xf32>, tensor<4x2x8xf32> -> tensor<4x5x8xf32>
  return %1 : tensor<4x5x8xf32>
}

// -----

// One operand is no sum: the other is reduced first.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @one_partial
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[P]])
// CHECK-NEXT: nn.concat %[[R]], %{{.*}} dim 1
func.func @one_partial(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>},
                       %y: tensor<4x2x8xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>},
                       %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x10x8xf32> {nn.name = "z", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>}) attributes {nn.entry} {
  %p = nn.linear %x, %w : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %1 = nn.concat %p, %y dim 1 : tensor<4x8x8xf32>, tensor<4x2x8xf32> -> tensor<4x10x8xf32>
  return %1 : tensor<4x10x8xf32>
}

// -----

// Twice the same value would be reduced twice.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @same_partial
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[P]])
// CHECK-NEXT: nn.concat %[[R]], %[[R]] dim 1
func.func @same_partial(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>},
                        %w: tensor<8x8xf32> {nn.name = "w"})
    -> (tensor<4x16x8xf32> {nn.name = "z", comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>}) attributes {nn.entry} {
  %p = nn.linear %x, %w : tensor<4x8x8xf32>, tensor<8x8xf32> -> tensor<4x8x8xf32>
  %1 = nn.concat %p, %p dim 1 : tensor<4x8x8xf32>, tensor<4x8x8xf32> -> tensor<4x16x8xf32>
  return %1 : tensor<4x16x8xf32>
}
