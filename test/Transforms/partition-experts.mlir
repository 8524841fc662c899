// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition) seed=5" | FileCheck %s

// Tokens are sharded by groups, experts over the same ranks: the chosen tokens are sent to the experts and back.
// CHECK: equivalent on 1 and 4 ranks: {{.*}}comm.all_to_all x2
comm.mesh @mesh <ep = 4>
#map_x = affine_map<(g, e, c, o, h) -> (g, e, c, h)>
#map_w = affine_map<(g, e, c, o, h) -> (e, o, h)>
#map_y = affine_map<(g, e, c, o, h) -> (g, e, c, o)>
// CHECK-LABEL: func.func @main
// CHECK: nn.router
// CHECK: %[[B:.*]] = nn.dispatch %{{.*}} : tensor<1x6x4xf32>, tensor<1x6x2xi32> -> tensor<1x8x3x4xf32>
// CHECK: %[[T:.*]] = comm.all_to_all(%[[B]]) split 1 concat 0 over <@mesh, {ep}> : tensor<1x8x3x4xf32> -> tensor<4x2x3x4xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[T]], %{{.*}} : tensor<4x2x3x4xf32>, tensor<2x5x4xf32>)
// CHECK: %[[R:.*]] = comm.all_to_all(%[[Y]]) split 0 concat 1 over <@mesh, {ep}> : tensor<4x2x3x5xf32> -> tensor<1x8x3x5xf32>
// CHECK: nn.combine %[[R]]
func.func @main(%x: tensor<4x6x4xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{ep}, {}, {}]>},
                %route: tensor<8x4xf32> {nn.name = "route"},
                %experts: tensor<8x5x4xf32> {nn.name = "experts", comm.sharding = #comm.sharding<@mesh, [{ep}, {}, {}]>})
    -> (tensor<4x6x5xf32> {nn.name = "y", comm.sharding = #comm.sharding<@mesh, [{ep}, {}, {}]>}) attributes {nn.entry} {
  %logits = nn.linear %x, %route : tensor<4x6x4xf32>, tensor<8x4xf32> -> tensor<4x6x8xf32>
  %w, %e, %s, %c = nn.router %logits top 2 capacity 3 normalized : tensor<4x6x8xf32>
  %b = nn.dispatch %x, %e, %s : tensor<4x6x4xf32>, tensor<4x6x2xi32> -> tensor<4x8x3x4xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x8x3x5xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x8x3x5xf32>) -> tensor<4x8x3x5xf32>
  %y = linalg.generic {indexing_maps = [#map_x, #map_w, #map_y], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%b, %experts : tensor<4x8x3x4xf32>, tensor<8x5x4xf32>) outs(%init : tensor<4x8x3x5xf32>)
      attrs = {comm.shardings = [#comm.sharding<@mesh, [{}, {ep}, {}, {}]>]} {
  ^bb0(%l: f32, %r: f32, %acc: f32):
    %p = arith.mulf %l, %r : f32
    %q = arith.addf %acc, %p : f32
    linalg.yield %q : f32
  } -> tensor<4x8x3x5xf32>
  %o = nn.combine %y, %w, %e, %s : tensor<4x8x3x5xf32>, tensor<4x6x2xf32>, tensor<4x6x2xi32> -> tensor<4x6x5xf32>
  return %o : tensor<4x6x5xf32>
}
