// Tensor parallelism with its reductions split and gathers moved is sequence parallelism: two gathers and two scatters in the
// one function that all layers share, none between layers, and after the last one the gather of the result.
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-split-all-reduce --braid-sink-all-gathers | FileCheck %s
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=dp=2,tp=4" --braid-propagate-shardings --braid-partition --braid-split-all-reduce --braid-sink-all-gathers | FileCheck %s
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2},braid-propagate-shardings,braid-partition,braid-split-all-reduce,braid-sink-all-gathers) seed=5" | FileCheck %s --check-prefix=SAME
// The reverse passes give tensor parallelism again: two reductions in the layer and no other collective.
// RUN: braid-opt %S/Inputs/bert-4-layers.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-split-all-reduce --braid-sink-all-gathers --braid-hoist-all-gathers --canonicalize --braid-join-all-reduce --canonicalize --cse | FileCheck %s --check-prefix=BACK

// CHECK-LABEL: func.func @main
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: comm.part
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: call @layer
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: call @layer
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: call @layer
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[LAST:.*]] = call @layer
// CHECK-NEXT: %[[FULL:.*]] = comm.all_gather(%[[LAST]]) dim 1
// CHECK-NEXT: return %[[FULL]]
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: %[[X:[^:]*]]: tensor
// CHECK-NEXT: %[[XG:.*]] = comm.all_gather(%[[X]]) dim 1 over <@mesh, {tp}>
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: nn.linear %[[XG]]
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[O:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "attention.output/reduce_scatter"
// CHECK-NEXT: %[[OB:.*]] = nn.add %[[O]]
// CHECK-NEXT: %[[R:.*]] = nn.add %[[OB]], %[[X]]
// CHECK-NEXT: %[[H:.*]] = nn.layer_norm %[[R]]
// CHECK-NEXT: %[[HG:.*]] = comm.all_gather(%[[H]]) dim 1 over <@mesh, {tp}> role "attention.output/all_gather"
// CHECK-NEXT: nn.linear %[[HG]]
// CHECK-NOT: comm.{{all|reduce|local}}
// CHECK: %[[D:.*]] = comm.reduce_scatter sum({{.*}}) dim 1 over <@mesh, {tp}> role "mlp.down/reduce_scatter"
// CHECK-NEXT: %[[DB:.*]] = nn.add %[[D]]
// CHECK-NEXT: %[[R2:.*]] = nn.add %[[DB]], %[[H]]
// CHECK-NEXT: %[[Y:.*]] = nn.layer_norm %[[R2]]
// CHECK-NEXT: return %[[Y]]

// SAME: equivalent on 1 and 2 ranks:{{.*}}comm.all_gather x9 comm.part x1 comm.reduce_scatter x8

// BACK-LABEL: func.func @main
// BACK-NOT: comm.{{all|reduce|local}}
// BACK-LABEL: func.func private @layer
// BACK-NOT: comm.{{all|reduce|local}}
// BACK: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "attention.output"
// BACK-NOT: comm.{{all|reduce|local}}
// BACK: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "mlp.down"
// BACK-NOT: comm.{{all|reduce|local}}
// BACK: return
