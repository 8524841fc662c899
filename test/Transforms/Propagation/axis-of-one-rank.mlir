// RUN: braid-opt %s --braid-propagate-shardings | FileCheck %s
// RUN: braid-opt %s --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=LOCAL

// An axis of one rank splits nothing and leaves nothing to reduce, so shardings are derived without it.
comm.mesh @mesh <a = 2, b = 1>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{[^:]*}}: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>
// LOCAL-LABEL: func.func @main
func.func @main(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>},
                %w: tensor<4x16xf32> {nn.name = "w"}) -> (tensor<8x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  // CHECK: nn.linear {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{a}, {}]>]}
  // LOCAL: %[[Y:.*]] = nn.linear {{.*}} : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x4xf32>
  // LOCAL-NEXT: return %[[Y]]
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{?}, {?}], partial = [b = sum]>]} : tensor<8x16xf32>, tensor<4x16xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
