// RUN: braid-opt %s --braid-propagate-shardings --split-input-file -o %t.once
// RUN: braid-opt %s --braid-propagate-shardings --braid-propagate-shardings --split-input-file | diff %t.once -
// RUN: FileCheck %s < %t.once

// A second run does not treat the shardings that the first run derived as conflicts to decide.
comm.mesh @mesh <a = 2>
// CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
func.func @main(%x: tensor<8x8xf32> {nn.name = "x"}, %w: tensor<16x8xf32> {nn.name = "w"}) -> (tensor<8x16xf32> {nn.name = "r"}) attributes {nn.entry} {
  %0 = nn.add %x, %x {comm.shardings = [#comm.sharding<@mesh, [{?}, {a}]>]} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = nn.activation gelu %0 : tensor<8x8xf32>
  %2 = nn.linear %1, %w {comm.shardings = [#comm.sharding<@mesh, [{a}, {?}]>]} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// A second run also accepts calls of one function and an external function.
comm.mesh @mesh <a = 2, b = 2>
func.func private @e(tensor<8x8xf32>) -> tensor<8x8xf32>
func.func private @g(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.activation gelu %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                 %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = func.call @g(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = func.call @g(%y) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = func.call @e(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// Eight axes.
comm.mesh @mesh <a = 2, b = 2, c = 2, d = 2, e = 2, f = 2, g = 2, h = 2>
// CHECK-LABEL: func.func @eight_axes
// CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a, b, g}, {e, f, h}], partial = [c = sum, d = sum]>]
// CHECK: nn.activation {{.*}} [#comm.sharding<@mesh, [{a, b, g}, {e, f, h}]>]
func.func @eight_axes(%x: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {c, d}]>},
                      %w: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{e, f}, {c, d}]>}) -> tensor<64x64xf32> {
  %0 = nn.linear %x, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = nn.activation gelu %0 {comm.shardings = [#comm.sharding<@mesh, [{a, b, g}, {e, f, h}]>]} : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}
