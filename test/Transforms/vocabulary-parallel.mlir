// The word table is sharded by rows, the head by outputs: one reduction after the look-up and sharded logits; with sequence
// parallelism a scatter after the look-up and a gather before the head.
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp,vocab" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,PLAIN
// By default a model shards its vocabulary if it has a head and the axis divides the vocabulary, and otherwise does not.
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,PLAIN
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=tp=2" | FileCheck %s --check-prefix=BERT
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp-sp,vocab" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SP
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2 strategy=tp,vocab},braid-propagate-shardings,braid-partition) seed=5" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2,dp=2 strategy=tp-sp,vocab,dp},braid-propagate-shardings,braid-partition) seed=6" | FileCheck %s --check-prefix=SAME-SP

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[IDS:[^:]*]]: tensor<2x8xi64> {comm.global_type = tensor<2x8xi64>, comm.sharding = #comm.sharding<@mesh, [{}, {}]>
// CHECK-SAME: -> (tensor<2x8x16xf32> {comm.global_type = tensor<2x8x32xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>
// CHECK: %[[WORDS:.*]] = nn.parameter "model.embed_tokens.weight" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
// CHECK: %[[E:.*]] = nn.embedding %[[IDS]], %[[WORDS]] over <@mesh, {tp}> role "embedding.word" : tensor<2x8xi64>, tensor<16x16xf32> -> tensor<2x8x16xf32>
// PLAIN-NEXT: %[[H:.*]] = comm.all_reduce sum(%[[E]]) over <@mesh, {tp}> role "embedding.word"
// SP-NEXT: %[[H:.*]] = comm.reduce_scatter sum(%[[E]]) dim 1 over <@mesh, {tp}> role "embedding.word"
// CHECK: call @layer(%[[H]],
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[N:.*]] = nn.rms_norm
// SP-NEXT: %[[G:.*]] = comm.all_gather(%[[N]]) dim 1 over <@mesh, {tp}>
// CHECK: %[[HEAD:.*]] = nn.parameter "lm_head.weight" of tensor<32x16xf32> sharded <@mesh, [{tp}, {}]> : tensor<16x16xf32>
// PLAIN: %[[L:.*]] = nn.linear %[[N]], %[[HEAD]] role "lm_head"
// SP: %[[L:.*]] = nn.linear %[[G]], %[[HEAD]] role "lm_head"
// CHECK-NEXT: return %[[L]] : tensor<2x8x16xf32>

// BERT: nn.parameter "embeddings.word.weight" : tensor<32x16xf32>

// SAME: equivalent on 1 and 2 ranks:{{.*}}comm.all_reduce x9
// SAME-SP: equivalent on 1 and 4 ranks:{{.*}}comm.all_gather x9 comm.reduce_scatter x9
