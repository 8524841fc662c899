// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s

// One sharded weight shards a column-then-row pair and all operations between; the second matmul's result is partial.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @mlp
// CHECK-SAME: (%{{.*}}: tensor<4x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>}
// CHECK-SAME: %{{.*}}: tensor<64x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}
// CHECK-SAME: %{{.*}}: tensor<64xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>}
// CHECK-SAME: %{{.*}}: tensor<16x64xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}
// CHECK-SAME: -> (tensor<4x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>})
func.func @mlp(%x: tensor<4x8x16xf32>, %up: tensor<64x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
               %bias: tensor<64xf32>, %down: tensor<16x64xf32>) -> tensor<4x8x16xf32> {
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {tp}]>]}
  %p0 = nn.linear %x, %up : tensor<4x8x16xf32>, tensor<64x16xf32> -> tensor<4x8x64xf32>
  %0 = nn.add %p0, %bias : tensor<4x8x64xf32>, tensor<64xf32> -> tensor<4x8x64xf32>
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {tp}]>]}
  %1 = nn.activation gelu %0 : tensor<4x8x64xf32>
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>]}
  %2 = nn.linear %1, %down : tensor<4x8x64xf32>, tensor<16x64xf32> -> tensor<4x8x16xf32>
  return %2 : tensor<4x8x16xf32>
}

// -----

// Through calls in both directions: into a callee by its arguments, back by its results, and from one caller's operand to the
// other's. The callee comes before its callers.
comm.mesh @mesh <dp = 2>

// CHECK-LABEL: func.func @first
// CHECK-SAME: (%{{.*}}: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
// CHECK-SAME: -> (tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
func.func @first(%x: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}) -> tensor<4x16xf32> {
  // CHECK: call @twice(%{{.*}}) {comm.shardings = [#comm.sharding<@mesh, [{dp}, {}]>]}
  %0 = call @twice(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
// CHECK-LABEL: func.func @second
// CHECK-SAME: (%{{.*}}: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
func.func @second(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = call @twice(%x) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
// CHECK-LABEL: func.func private @twice
// CHECK-SAME: (%{{.*}}: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}) -> (tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
func.func private @twice(%x: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = nn.add %x, %x : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// -----

// A partial value passes through a linear operation that is its only user, and is reduced before other users.
comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @flows
func.func @flows(%x: tensor<4x8x16xf32>, %w: tensor<16x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}, %b: tensor<16xf32>) -> (tensor<4x8x4x4xf32>, tensor<4x8x4x4xf32>, tensor<4x8x16xf32>, tensor<4x8x4x4xf32>) {
  %0 = nn.linear %x, %w : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  // CHECK: nn.split_heads {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}, {}], partial = [tp = sum]>]}
  %1 = nn.split_heads %0 : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  // Two users: reduced once, for both.
  %2 = nn.linear %x, %w : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  // CHECK: nn.split_heads {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}, {}]>]}
  %3 = nn.split_heads %2 : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}]>]}
  %4 = nn.activation gelu %2 : tensor<4x8x16xf32>
  // A bias is added after the reduction, so the reduction comes right after the matmul.
  %p5 = nn.linear %x, %w : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %5 = nn.add %p5, %b : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
  // CHECK: nn.split_heads {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {}, {}]>]}
  %6 = nn.split_heads %5 : tensor<4x8x16xf32> -> tensor<4x8x4x4xf32>
  return %1, %3, %4, %6 : tensor<4x8x4x4xf32>, tensor<4x8x4x4xf32>, tensor<4x8x16xf32>, tensor<4x8x4x4xf32>
}

// -----

// Shardings in the IR are kept, also replicated ones, and propagation stops there.
comm.mesh @mesh <dp = 2, tp = 2>

// CHECK-LABEL: func.func @stated
// CHECK-SAME: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}
// CHECK-SAME: -> (tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
func.func @stated(%x: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]}
  %0 = nn.activation gelu %x {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} : tensor<4x16xf32>
  // CHECK: nn.activation {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]}
  %1 = nn.activation gelu %0 : tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

// -----

// linalg is sharded by its maps: parallel loops are sharded, a sum from zero is partial and so is a maximum, and a loop whose
// index the body reads stays replicated.
comm.mesh @mesh <tp = 2>
#row = affine_map<(i, j) -> (i, j)>
#sum = affine_map<(i, j) -> (i)>
#t = affine_map<(i, j) -> (j, i)>

// CHECK-LABEL: func.func @linalg
func.func @linalg(%x: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> (tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant -1.0e30 : f32
  // CHECK: tensor.empty() {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]}
  %e = tensor.empty() : tensor<16x4xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]}
  %0 = linalg.generic {indexing_maps = [#row, #t], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x16xf32>) outs(%e : tensor<16x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<16x4xf32>
  %v = tensor.empty() : tensor<4xf32>
  %z = linalg.fill ins(%zero : f32) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{}], partial = [tp = sum]>]}
  %1 = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x16xf32>) outs(%z : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %l = linalg.fill ins(%low : f32) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{}], partial = [tp = max]>]}
  %2 = linalg.generic {indexing_maps = [#row, #sum], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<4x16xf32>) outs(%l : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.maximumf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]}
  %f = tensor.empty() : tensor<4x16xf32>
  %3 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x16xf32>) outs(%f : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i64
    %g = arith.sitofp %k : i64 to f32
    %s = arith.addf %a, %g : f32
    linalg.yield %s : f32
  } -> tensor<4x16xf32>
  return %0, %1, %2, %3 : tensor<16x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x16xf32>
}
