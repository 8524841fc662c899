// RUN: braid-opt %s --braid-apply-strategy | FileCheck %s
// RUN: braid-opt %s --braid-apply-strategy="mesh=dp=2,tp=2" --remark-format=emitRemark --remarks-filter=sharding 2>&1 | FileCheck %s --check-prefix=MESH
// RUN: not braid-opt %s --braid-apply-strategy="mesh=tp=2 strategy=tp" 2>&1 | FileCheck %s --check-prefix=ASKED

// Strategy auto uses what the module offers: no weights to shard over tp, but a batch.
// CHECK: comm.mesh @mesh <tp = 1>
// CHECK: func.func @main(%{{.*}}: tensor<4x16xf32> {nn.name = "x"})
// MESH: there is no nn.linear to shard over 'tp': its ranks compute the same
// MESH: func.func @main(%{{.*}}: tensor<4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {?}]>, nn.name = "x"})
// ASKED: error: strategy 'tp' finds no nn.linear to shard over 'tp'
func.func @main(%x: tensor<4x16xf32> {nn.name = "x"}) -> (tensor<4x16xf32> {nn.name = "y"}) attributes {nn.entry} {
  %0 = nn.activation gelu %x : tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}
