// Sequence parallelism stated by the strategy: two gathers and two scatters in the function that all layers share, none between
// layers, and none before the first or after the last one, since ids and logits are sharded.
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp-sp" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=dp=2,tp=2 strategy=tp-sp,dp" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2 strategy=tp-sp},braid-propagate-shardings,braid-partition,canonicalize) seed=5" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=dp=2,tp=2 strategy=tp-sp,dp},braid-propagate-shardings,braid-partition,canonicalize) seed=6" | FileCheck %s --check-prefix=SAME4
// Plain tensor parallelism has two reductions; split and moved, they become the same program.
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp" --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefix=PLAIN
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp" --braid-propagate-shardings --braid-partition --braid-split-all-reduce --braid-sink-all-gathers --canonicalize --cse | FileCheck %s --check-prefix=REWRITTEN
// RUN: braid-opt %S/Inputs/llama-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2 strategy=tp},braid-propagate-shardings,braid-partition,braid-split-all-reduce,braid-sink-all-gathers,canonicalize) seed=7" | FileCheck %s --check-prefix=SAME-REWRITTEN

// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.*}}: tensor<{{[12]}}x4xi64> {comm.global_type = tensor<2x8xi64>, comm.sharding = #comm.sharding<@mesh, [{{.*}}, {tp}]>, nn.name = "input_ids"}
// CHECK-SAME: -> (tensor<{{[12]}}x4x32xf32> {comm.global_type = tensor<2x8x32xf32>, comm.sharding = #comm.sharding<@mesh, [{{.*}}, {tp}, {}]>, nn.name = "logits"})
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: (%[[X:[^:]*]]: tensor<{{[12]}}x4x16xf32>
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[A:.*]] = nn.rms_norm %[[X]]
// CHECK-NEXT: %[[AG:.*]] = comm.all_gather(%[[A]]) dim 1 over <@mesh, {tp}>
// CHECK-NEXT: nn.linear %[[AG]], %{{.*}} role "attention.query"
// CHECK-NEXT: nn.linear %[[AG]], %{{.*}} role "attention.key"
// CHECK-NEXT: nn.linear %[[AG]], %{{.*}} role "attention.value"
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[O:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "attention.output"
// CHECK-NEXT: %[[R:.*]] = nn.add %[[O]], %[[X]]
// CHECK-NEXT: %[[B:.*]] = nn.rms_norm %[[R]]
// CHECK-NEXT: %[[BG:.*]] = comm.all_gather(%[[B]]) dim 1 over <@mesh, {tp}>
// CHECK-NEXT: nn.linear %[[BG]], %{{.*}} role "mlp.gate"
// CHECK-NEXT: nn.linear %[[BG]], %{{.*}} role "mlp.up"
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[D:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "mlp.down"
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[D]], %[[R]]
// CHECK-NEXT: return %[[Y]]

// SAME: equivalent on 1 and 2 ranks:{{.*}}comm.all_gather x8 comm.reduce_scatter x8
// SAME4: equivalent on 1 and 4 ranks:{{.*}}comm.all_gather x8 comm.reduce_scatter x8

// PLAIN-LABEL: func.func @main
// PLAIN-NOT: comm.{{all|reduce|local}}
// PLAIN-LABEL: func.func private @layer
// PLAIN-NOT: comm.{{all|reduce|local}}
// PLAIN: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "attention.output"
// PLAIN-NOT: comm.{{all|reduce|local}}
// PLAIN: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "mlp.down"
// PLAIN-NOT: comm.{{all|reduce|local}}
// PLAIN: return

// The first layer's input is sliced; the gather of the last layer's result is the one before the head.
// REWRITTEN-LABEL: func.func @main
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: comm.part
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: call @layer
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: %[[N:.*]] = comm.all_gather({{.*}}) dim 1
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: nn.linear %[[N]], %{{.*}} role "lm_head"
// REWRITTEN-NEXT: return
// REWRITTEN-LABEL: func.func private @layer
// REWRITTEN-SAME: (%[[X:[^:]*]]: tensor<2x4x16xf32>
// REWRITTEN-NEXT: %[[A:.*]] = nn.rms_norm %[[X]]
// REWRITTEN-NEXT: %[[AG:.*]] = comm.all_gather(%[[A]]) dim 1 over <@mesh, {tp}>
// REWRITTEN-NEXT: nn.linear %[[AG]], %{{.*}} role "attention.query"
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: %[[O:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "attention.output/reduce_scatter"
// REWRITTEN-NEXT: %[[R:.*]] = nn.add %[[O]], %[[X]]
// REWRITTEN-NEXT: %[[B:.*]] = nn.rms_norm %[[R]]
// REWRITTEN-NEXT: %[[BG:.*]] = comm.all_gather(%[[B]]) dim 1 over <@mesh, {tp}>
// REWRITTEN-NEXT: nn.linear %[[BG]], %{{.*}} role "mlp.gate"
// REWRITTEN-NOT: comm.{{all|reduce|local}}
// REWRITTEN: %[[D:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "mlp.down/reduce_scatter"
// REWRITTEN-NEXT: %[[Y:.*]] = nn.add %[[D]], %[[R]]
// REWRITTEN-NEXT: return %[[Y]]
// SAME-REWRITTEN: equivalent on 1 and 2 ranks:{{.*}}comm.all_gather x9 comm.part x1 comm.reduce_scatter x8
