// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition) seed=5" | FileCheck %s

// Dropout does not depend on the sharding: the positions are sharded like the value.
// CHECK: equivalent on 1 and 6 ranks
comm.mesh @mesh <dp = 2, tp = 3>
#s = #comm.sharding<@mesh, [{dp}, {tp}, {}]>
// CHECK-LABEL: func.func @main
// CHECK: %[[I:.*]] = nn.iota : tensor<4xi64>
// CHECK: %[[I2:.*]] = comm.part %[[I]] dim 0 over <@mesh, {dp}> : tensor<4xi64> -> tensor<2xi64>
// CHECK: %[[J:.*]] = nn.iota : tensor<6xi64>
// CHECK: %[[J2:.*]] = comm.part %[[J]] dim 0 over <@mesh, {tp}> : tensor<6xi64> -> tensor<2xi64>
// CHECK: %[[K:.*]] = nn.iota : tensor<8xi64>
// CHECK: nn.dropout %{{.*}} at(%[[I2]], %[[J2]], %[[K]] : tensor<2xi64>, tensor<2xi64>, tensor<8xi64>) seed %{{.*}} : tensor<i64> rate 5.000000e-01 site 3 : tensor<2x2x8xf32>
func.func @main(%x: tensor<4x6x8xf32> {nn.name = "x", comm.sharding = #s}, %seed: tensor<i64> {nn.name = "seed", test.range = array<i64: 0, 1000>})
    -> (tensor<4x6x8xf32> {nn.name = "y", comm.sharding = #s}) attributes {nn.entry} {
  %i = nn.iota : tensor<4xi64>
  %j = nn.iota : tensor<6xi64>
  %k = nn.iota : tensor<8xi64>
  %0 = nn.dropout %x at (%i, %j, %k : tensor<4xi64>, tensor<6xi64>, tensor<8xi64>) seed %seed : tensor<i64> rate 0.5 site 3 : tensor<4x6x8xf32>
  return %0 : tensor<4x6x8xf32>
}

// -----

// All partial sums drop the same elements, so the reduction may come after the dropout.
// CHECK: equivalent on 1 and 2 ranks
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = nn.linear
// CHECK: %[[D:.*]] = nn.dropout %[[P]]
// CHECK: comm.all_reduce sum(%[[D]])
func.func @main(%x: tensor<4x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
                %w: tensor<6x8xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
                %seed: tensor<i64> {nn.name = "seed"})
    -> (tensor<4x6xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) attributes {nn.entry} {
  %i = nn.iota : tensor<4xi64>
  %j = nn.iota : tensor<6xi64>
  %h = nn.linear %x, %w : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  %0 = nn.dropout %h at (%i, %j : tensor<4xi64>, tensor<6xi64>) seed %seed : tensor<i64> rate 0.25 : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
