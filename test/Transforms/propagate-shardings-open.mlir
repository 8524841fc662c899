// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s

// An open dimension takes further axes, a closed one does not. After propagation no dimension is open.
comm.mesh @mesh <dp = 2, tp = 2>

// CHECK-LABEL: func.func @open
// CHECK-SAME: %{{.*}}: tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}, {}]>}
// CHECK-SAME: -> (tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}, {}]>})
func.func @open(%x: tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}, {}]>}) -> tensor<8x16x4xf32> {
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{dp}, {tp}, {}]>]}
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{?}, {tp}, {?}]>]} : tensor<8x16x4xf32>
  return %0 : tensor<8x16x4xf32>
}
// CHECK-LABEL: func.func @closed
// CHECK-SAME: %{{.*}}: tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {}]>}
// CHECK-SAME: -> (tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}]>})
func.func @closed(%x: tensor<8x16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {}]>}) -> tensor<8x16x4xf32> {
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]}
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]} : tensor<8x16x4xf32>
  return %0 : tensor<8x16x4xf32>
}
// New axes are minor to the existing ones.
// CHECK-LABEL: func.func @minor
// CHECK-SAME: %{{.*}}: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, dp}, {}]>}
func.func @minor(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp, ?}, {}]>}) -> tensor<8x16xf32> {
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{tp, dp}, {}]>]} : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// A sharding stated for the result of a partial sum applies after the reduction.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @sum
// CHECK-SAME: -> (tensor<2x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}]>})
func.func @sum(%x: tensor<2x8x32xf32>, %w: tensor<16x32xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<2x8x16xf32> {
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>]}
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]} : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]}
  %1 = nn.activation gelu %0 : tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}
// If an operand is sharded like the result, the weight is gathered instead.
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<2x8x32xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}]>}, %w: tensor<16x32xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<2x8x16xf32> {
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]}
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}, {}]>]} : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}
// A result's sharding has priority over the operands': here the weight's sharding conflicts with that of the rows.
// CHECK-LABEL: func.func @result
func.func @result(%x: tensor<2x8x32xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}, {}]>}, %w: tensor<16x32xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) -> tensor<2x8x16xf32> {
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {tp}]>]}
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{?}, {?}, {tp}]>]} : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}
