// RUN: braid-opt %s --braid-partition --split-input-file | FileCheck %s
// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-partition) seed=3" | FileCheck %s --check-prefix=SAME

// Two results that state different shardings: the operation is sharded as the first one states, the other one is moved.
comm.mesh @mesh <a = 2, b = 2>
#in = affine_map<(i, j, k) -> (i, j, k)>
#out = affine_map<(i, j, k) -> (i, k)>
#replicated = #comm.sharding<@mesh, [{}, {}]>
#cube = #comm.sharding<@mesh, [{}, {}, {}]>
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]]:2 = linalg.generic {{.*}}
// CHECK: -> (tensor<4x4xf32>, tensor<4x4xf32>)
// CHECK: %[[Q:.*]] = comm.permute(%[[R]]#1) pairs [0 -> 0, 2 -> 1, 1 -> 2, 3 -> 3] over <@mesh, {a, b}> : tensor<4x4xf32>
// CHECK: return %[[R]]#0, %[[Q]]
// SAME: equivalent on 1 and 4 ranks
func.func @main(%x: tensor<4x8x8xf32> {nn.name = "x", comm.sharding = #cube}, %y: tensor<4x8x8xf32> {nn.name = "y", comm.sharding = #cube})
    -> (tensor<4x8xf32> {nn.name = "p", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>},
        tensor<4x8xf32> {nn.name = "q", comm.sharding = #comm.sharding<@mesh, [{}, {b}]>}) attributes {nn.entry} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() {comm.shardings = [#replicated]} : tensor<4x8xf32>
  %z = linalg.fill {comm.shardings = [#replicated]} ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0, %1 = linalg.generic {indexing_maps = [#in, #in, #out, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : tensor<4x8x8xf32>, tensor<4x8x8xf32>) outs(%z, %z : tensor<4x8xf32>, tensor<4x8xf32>)
      attrs = {comm.shardings = [#comm.sharding<@mesh, [{}, {a}]>, #comm.sharding<@mesh, [{}, {b}]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %c, %a : f32
    %t = arith.addf %d, %b : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Partial over b and c; the reduction over c comes after the addition.
comm.mesh @mesh <a = 2, b = 2, c = 2>
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[P]]) over <@mesh, {b}> : tensor<4x16xf32>
// CHECK-NEXT: %[[S:.*]] = nn.add %[[R]], %[[R]]
// CHECK-NEXT: %[[T:.*]] = comm.all_reduce sum(%[[S]]) over <@mesh, {c}> : tensor<4x16xf32>
// CHECK-NEXT: return %[[T]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {b, c}]>},
                %w: tensor<16x8xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{}, {b, c}]>})
    -> (tensor<8x16xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}) attributes {nn.entry} {
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{a}, {}], partial = [b = sum, c = sum]>]} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  %1 = nn.add %0, %0 {comm.shardings = [#comm.sharding<@mesh, [{a}, {}], partial = [c = sum]>]} : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// The addition is also sharded over b, so the reductions scatter.
comm.mesh @mesh <a = 2, b = 2, c = 2>
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[R:.*]] = comm.reduce_scatter sum(%[[P]]) dim 1 over <@mesh, {b}> : tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK-NEXT: %[[S:.*]] = nn.add %[[R]], %[[R]]
// CHECK-NEXT: %[[T:.*]] = comm.reduce_scatter sum(%[[S]]) dim 0 over <@mesh, {c}> : tensor<4x8xf32> -> tensor<2x8xf32>
// CHECK-NEXT: return %[[T]]
// SAME: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {b, c}]>},
                %w: tensor<16x8xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{}, {b, c}]>})
    -> (tensor<8x16xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{a, c}, {b}]>}) attributes {nn.entry} {
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{a}, {}], partial = [b = sum, c = sum]>]} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  %1 = nn.add %0, %0 {comm.shardings = [#comm.sharding<@mesh, [{a}, {b}], partial = [c = sum]>]} : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
