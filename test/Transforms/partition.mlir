// RUN: braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp" --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=TP
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=COUNT
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=dp=2,tp=4" --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=COUNT
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=dp=4" --braid-propagate-shardings --braid-partition | FileCheck %s --check-prefix=DP
// RUN: braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --remark-format=emitRemark --remarks-filter=sharding -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: comm.all_reduce over 2 ranks for 'attention.output': value is #comm.sharding<@mesh, [{}, {}, {}], partial = [tp = sum]>{{.*}}bytesSentPerRank=2048
// REMARK: comm.all_reduce over 2 ranks for 'mlp.down'

// Tensor parallelism, column then row: two reductions in the one function that all layers share, and no other collective.
// COUNT-LABEL: func.func @main
// COUNT-NOT: {{comm\.(all|reduce|local)}}
// COUNT: return
// COUNT-LABEL: func.func private @layer
// COUNT-NOT: {{comm\.(all|reduce|local)}}
// COUNT: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "attention.output"
// COUNT-NOT: {{comm\.(all|reduce|local)}}
// COUNT: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "mlp.down"
// COUNT-NOT: {{comm\.(all|reduce|local)}}
// COUNT: return

// Data parallelism needs no collectives for inference.
// DP: func.func @main(%{{.*}}: tensor<1x8xi64> {comm.global_type = tensor<4x8xi64>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>, nn.name = "input_ids"}
// DP-NOT: {{comm\.(all|reduce|local)}}
// DP: func.func private @layer

// TP: comm.mesh @mesh <tp = 2>
// TP: func.func @main
// TP-SAME: %[[IDS:.*]]: tensor<4x8xi64> {comm.global_type = tensor<4x8xi64>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>, nn.name = "input_ids"}
// TP-SAME: -> (tensor<4x8x16xf32> {comm.global_type = tensor<4x8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}, {}]>, nn.name = "last_hidden_state"})
// TP: nn.parameter "embeddings.word.weight" of tensor<32x16xf32> sharded <@mesh, [{}, {}]> : tensor<32x16xf32>
// TP: nn.parameter "layer.0.attention.query.weight" of tensor<16x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<8x16xf32>
// TP: nn.parameter "layer.0.attention.query.bias" init zeros of tensor<16xf32> sharded <@mesh, [{tp}]> : tensor<8xf32>
// TP: nn.parameter "layer.0.attention.output.weight" of tensor<16x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<16x8xf32>
// TP: nn.parameter "layer.0.attention.output.bias" init zeros of tensor<16xf32> sharded <@mesh, [{}]> : tensor<16xf32>
// TP: call @layer
// TP: func.func private @layer(%[[X:[^:]*]]: tensor<4x8x16xf32>, %[[MASK:[^:]*]]: tensor<4x8xi64>,
// TP-NOT: comm.sharding
// TP: %[[QP:.*]] = nn.linear %[[X]], %{{.*}} role "attention.query" : tensor<4x8x16xf32>, tensor<8x16xf32> -> tensor<4x8x8xf32>
// TP-NEXT: %[[Q:.*]] = nn.add %[[QP]], %{{.*}} : tensor<4x8x8xf32>, tensor<8xf32> -> tensor<4x8x8xf32>
// TP: %[[QH:.*]] = nn.split_heads %[[Q]] : tensor<4x8x8xf32> -> tensor<4x8x2x4xf32>
// TP: %[[AH:.*]] = nn.attention %[[QH]], %{{.*}}, %{{.*}} mask %[[MASK]]
// TP: %[[A:.*]] = nn.merge_heads %[[AH]] : tensor<4x8x2x4xf32> -> tensor<4x8x8xf32>
// The bias is added once, after the reduction.
// TP-NEXT: %[[P:.*]] = nn.linear %[[A]], %[[WO:[^ ]*]] role "attention.output" : tensor<4x8x8xf32>, tensor<16x8xf32> -> tensor<4x8x16xf32>
// TP-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[P]]) over <@mesh, {tp}> role "attention.output" : tensor<4x8x16xf32>
// TP-NEXT: %[[O:.*]] = nn.add %[[R]], %{{.*}} : tensor<4x8x16xf32>, tensor<16xf32> -> tensor<4x8x16xf32>
// TP-NEXT: nn.add %[[O]], %[[X]]
