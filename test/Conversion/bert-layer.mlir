// RUN: braid-opt %S/../Transforms/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2 strategy=tp" \
// RUN:   --braid-propagate-shardings --braid-partition --braid-form-kernels --braid-start-collectives \
// RUN:   --braid-lower-to-rt --braid-assign-buffers --braid-verify-buffers | FileCheck %s
// RUN: braid-opt %S/../Transforms/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=dp=2,tp=2 strategy=dp,tp" \
// RUN:   --braid-propagate-shardings --braid-partition --braid-form-kernels --braid-start-collectives \
// RUN:   --braid-lower-to-rt --braid-assign-buffers --braid-verify-buffers | FileCheck %s

// A complete encoder layer under tensor parallelism (and data parallelism): two collectives, each followed by one kernel for
// bias, residual and normalization. GELU runs in place and nothing is copied.
// CHECK-LABEL: rt.procedure entry @main(
// CHECK-NOT: rt.copy
// CHECK: rt.call @layer({{.*}}) at <local
// CHECK-LABEL: rt.procedure @layer(
// CHECK-SAME: events 4>
// CHECK-NOT: rt.copy
// CHECK: rt.launch @attention
// CHECK: rt.start all_reduce with sum {{.*}} role "attention.output" event 1
// CHECK-NEXT: rt.wait
// CHECK: rt.launch @add_add_layer_norm rows
// CHECK: %[[UP:.*]] = rt.alloc at [[OFFSET:[0-9]+]] : memref<[[SHAPE:.*]], #rt.space<local>>
// CHECK-NEXT: rt.launch @matmul{{.*}} outs(%[[UP]]
// CHECK: rt.alloc at [[OFFSET]] : memref<[[SHAPE]], #rt.space<local>>
// CHECK: rt.launch @gelu rows
// CHECK: rt.start all_reduce with sum {{.*}} role "mlp.down" event 3
// CHECK: rt.launch @add_add_layer_norm rows
// CHECK-NEXT: rt.return
