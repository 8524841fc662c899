// RUN: braid-opt %s --braid-propagate-shardings --braid-partition | FileCheck %s

comm.mesh @mesh <dp = 2, tp = 2>

// Groups are sharded with their counts and matrices; k gives partial sums.
// CHECK-LABEL: func.func @groups
// CHECK: %[[P:.*]] = nn.matmul %{{.*}}, %{{.*}} counts %{{.*}} : tensor<2xi32> : tensor<2x6x4xf32>, tensor<2x4x10xf32> -> tensor<2x6x10xf32>
// CHECK: comm.all_reduce sum(%[[P]]) over <@mesh, {tp}>
func.func @groups(%x: tensor<4x6x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {tp}]>},
    %w: tensor<4x8x10xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}, {}]>},
    %n: tensor<4xi32> {nn.name = "n", comm.sharding = #comm.sharding<@mesh, [{dp}]>})
    -> (tensor<4x6x10xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {}]>}) attributes {nn.entry} {
  %0 = nn.matmul %x, %w counts %n : tensor<4xi32> : tensor<4x6x8xf32>, tensor<4x8x10xf32> -> tensor<4x6x10xf32>
  return %0 : tensor<4x6x10xf32>
}

// The accumulator is added once: k is not sharded.
// CHECK-LABEL: func.func @accumulate
// CHECK-COUNT-2: comm.all_gather
// CHECK: nn.matmul %{{.*}} transposed, %{{.*}} plus %{{.*}} : tensor<6x10xf32> : tensor<8x6xf32>, tensor<8x10xf32> -> tensor<6x10xf32>
func.func @accumulate(%x: tensor<8x6xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %w: tensor<8x10xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
    %a: tensor<6x10xf32> {nn.name = "a", comm.sharding = #comm.sharding<@mesh, [{}, {}]>})
    -> (tensor<6x10xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) attributes {nn.entry} {
  %0 = nn.matmul %x transposed, %w plus %a : tensor<6x10xf32> : tensor<8x6xf32>, tensor<8x10xf32> -> tensor<6x10xf32>
  return %0 : tensor<6x10xf32>
}
