// RUN: braid-opt %s --braid-propagate-shardings --braid-partition --split-input-file | FileCheck %s

// The search for a path does not enumerate all arrangements of the axes, which would take minutes here.

comm.mesh @mesh <a = 2, b = 2, c = 2, d = 2, e = 2, f = 2, g = 2, h = 2>
// CHECK-LABEL: func.func @slices_and_gathers
// CHECK-NEXT: comm.part %{{.*}} dim 2 over <@mesh, {d, e}>
// CHECK-NEXT: comm.part %{{.*}} dim 3 over <@mesh, {f}>
// CHECK-NEXT: comm.all_gather(%{{.*}}) dim 0 over <@mesh, {a}>
// CHECK-NEXT: comm.all_gather(%{{.*}}) dim 1 over <@mesh, {b, c}>
// CHECK-NEXT: return
func.func @slices_and_gathers(%x: tensor<8x8x8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b, c}, {}, {}]>})
    -> (tensor<8x8x8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {d, e}, {f}]>}) {
  return %x : tensor<8x8x8x8xf32>
}

// All axes change places: every dimension has as many shards as before, on other ranks.
// CHECK-LABEL: func.func @all_axes_permuted
// CHECK-NEXT: comm.permute(%{{.*}}) pairs {{.*}} over <@mesh, {a, b, c, d, e, f, g, h}>
// CHECK-NEXT: return
func.func @all_axes_permuted(%x: tensor<8x8x8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {c, d}, {e, f}, {g, h}]>})
    -> (tensor<8x8x8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{h, g}, {f, a}, {b, d}, {c, e}]>}) {
  return %x : tensor<8x8x8x8xf32>
}

// -----

// Partial sums over four axes of eight, each scattered along the dimension that the result shards over it.
comm.mesh @mesh <dp = 2, cp = 2, tp = 2, ep = 2, a = 2, b = 2, c = 2, d = 2>
// CHECK-LABEL: func.func @main
// CHECK: nn.linear
// CHECK-NEXT: comm.reduce_scatter sum(%{{.*}}) dim 0 over <@mesh, {dp}>
// CHECK-NEXT: comm.reduce_scatter sum(%{{.*}}) dim 1 over <@mesh, {cp}>
// CHECK-NEXT: comm.reduce_scatter sum(%{{.*}}) dim 2 over <@mesh, {tp}>
// CHECK-NEXT: comm.reduce_scatter sum(%{{.*}}) dim 1 over <@mesh, {ep}>
// CHECK-NEXT: return
func.func @main(%x: tensor<8x128x512xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {dp, cp, tp, ep}]>},
                %w: tensor<256x512xf32> {nn.name = "w", comm.sharding = #comm.sharding<@mesh, [{}, {dp, cp, tp, ep}]>})
    -> (tensor<8x128x256xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{dp}, {cp, ep}, {tp}]>}) attributes {nn.entry} {
  %0 = nn.linear %x, %w : tensor<8x128x512xf32>, tensor<256x512xf32> -> tensor<8x128x256xf32>
  return %0 : tensor<8x128x256xf32>
}
