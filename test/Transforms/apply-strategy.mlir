// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=4 strategy=tp" | FileCheck %s --check-prefixes=CHECK,TP
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=4 strategy=dp" | FileCheck %s --check-prefixes=CHECK,DP
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=4 strategy=tp,dp" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=4" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=4" --braid-apply-strategy | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=1,tp=1" | FileCheck %s --check-prefix=ONE
// RUN: braid-opt %s --braid-apply-strategy | FileCheck %s --check-prefix=NOMESH

// CHECK: comm.mesh @mesh <dp = 2, tp = 4>
// An axis of size 1 shards nothing.
// ONE: comm.mesh @mesh <dp = 1, tp = 1>
// ONE-NOT: {{\[\{(dp|tp)}}
// A module that has no shardings is for one rank.
// NOMESH: comm.mesh @mesh <tp = 1>
// NOMESH-NOT: {{\[\{(dp|tp)}}

// CHECK-LABEL: func.func @main
// TP-SAME: (%{{.*}}: tensor<4x8x16xf32>, %{{.*}}: tensor<4x8xi64>, %{{.*}}: tensor<f32>)
// DP-SAME: (%{{.*}}: tensor<4x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}, {?}]>}, %{{.*}}: tensor<4x8xi64> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}]>}, %{{.*}}: tensor<f32>)
// BOTH-SAME: (%{{.*}}: tensor<4x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}, {?}]>}, %{{.*}}: tensor<4x8xi64> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}]>}, %{{.*}}: tensor<f32>)
func.func @main(%x: tensor<4x8x16xf32>, %mask: tensor<4x8xi64>, %s: tensor<f32>) -> tensor<4x8x16xf32> {
  // A weight that the entry itself reads carries its sharding on the operation.
  // TP: nn.parameter "here"{{.*}} {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]}
  // DP: nn.parameter "here" : tensor<16x16xf32>
  %w = nn.parameter "here" : tensor<16x16xf32>
  %0 = nn.linear %x, %w role "attention.query" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %other = nn.parameter "other" : tensor<16x16xf32>
  // Without a known role, the matmul's position decides: its input is the result of a column-parallel matmul.
  // TP: nn.parameter "other"{{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]}
  %1 = nn.linear %0, %other role "pooler" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %2 = call @layer(%1, %w, %w, %w) : (tensor<4x8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<4x8x16xf32>
  return %2 : tensor<4x8x16xf32>
}

// CHECK-LABEL: func.func private @layer
// TP-SAME: (%{{.*}}: tensor<4x8x16xf32>,
// TP-SAME: %{{.*}}: tensor<16x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
// TP-SAME: %{{.*}}: tensor<16x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
// TP-SAME: %{{.*}}: tensor<16x16xf32>)
// DP-SAME: (%{{[^{]*}})
func.func private @layer(%x: tensor<4x8x16xf32>, %up: tensor<16x16xf32>, %down: tensor<16x16xf32>, %plain: tensor<16x16xf32>) -> tensor<4x8x16xf32> {
  %0 = nn.linear %x, %up role "mlp.up" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %1 = nn.linear %0, %down role "mlp.down" : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  %2 = nn.linear %1, %plain : tensor<4x8x16xf32>, tensor<16x16xf32> -> tensor<4x8x16xf32>
  return %2 : tensor<4x8x16xf32>
}
