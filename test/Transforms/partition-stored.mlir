// How a parameter is stored does not change how it is used: it is gathered before its first use, under its own name, and the
// computation is the one of whole weights.
// RUN: braid-opt %S/Inputs/stored.mlir --braid-propagate-shardings | FileCheck %s --check-prefix=BEFORE
// RUN: braid-opt %S/Inputs/stored.mlir --braid-propagate-shardings --braid-partition > %t.cut
// RUN: FileCheck %s --input-file %t.cut
// RUN: sed 's/ stored <[^>]*>//' %S/Inputs/stored.mlir | braid-opt --braid-propagate-shardings --braid-partition > %t.whole
// RUN: FileCheck %s --check-prefix=WHOLE --input-file %t.whole
// Without the gathers and the places of weights, both are the same program.
// RUN: grep -v 'nn.parameter\|comm.all_gather' %t.cut | sed 's/%%[0-9]*/%%/g' > %t.rest
// RUN: grep -v nn.parameter %t.whole | sed 's/%%[0-9]*/%%/g' | diff %t.rest -
// RUN: braid-opt %S/Inputs/stored.mlir --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition,canonicalize) seed=3" | FileCheck %s --check-prefix=SAME
// SAME: 2 ranks

// BEFORE: nn.parameter "w" {comm.shardings = [#comm.sharding<@mesh, [{}, {}]>]} stored <@mesh, [{dp}, {}]> : tensor<32x16xf32>

// WHOLE-NOT: comm.all
// WHOLE: nn.parameter "w" of tensor<32x16xf32> sharded <@mesh, [{}, {}]> : tensor<32x16xf32>
// WHOLE-NOT: comm.all

// A call takes whole weights, which are gathered once for both calls; what comes later is gathered later.
// CHECK-LABEL: func.func private @layer
// CHECK-SAME: tensor<32x16xf32>, {{.*}}tensor<32xf32>, {{.*}}tensor<4x4x16xf32>, {{.*}}tensor<16x32xf32>)
// CHECK-NOT: comm.
// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<4x4x16xf32> {comm.global_type = tensor<8x4x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {}]>, nn.name = "y"}
// CHECK-DAG: %[[W:.*]] = nn.parameter "w" of tensor<32x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<16x16xf32>
// CHECK-DAG: %[[B:.*]] = nn.parameter "b" of tensor<32xf32> sharded <@mesh, [{dp}]> : tensor<16xf32>
// CHECK-DAG: %[[V:.*]] = nn.parameter "v" of tensor<16x32xf32> sharded <@mesh, [{}, {dp}]> : tensor<16x16xf32>
// CHECK-DAG: %[[U:.*]] = nn.parameter "u" of tensor<16x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<8x16xf32>
// CHECK-NEXT: %[[WHOLE_W:.*]] = comm.all_gather(%[[W]]) dim 0 over <@mesh, {dp}> role "w"
// CHECK-NEXT: %[[WHOLE_B:.*]] = comm.all_gather(%[[B]]) dim 0 over <@mesh, {dp}> role "b"
// CHECK-NEXT: %[[WHOLE_V:.*]] = comm.all_gather(%[[V]]) dim 1 over <@mesh, {dp}> role "v"
// CHECK-NEXT: call @layer(%[[WHOLE_W]], %[[WHOLE_B]], %{{.*}}, %[[WHOLE_V]])
// CHECK-NEXT: call @layer(%[[WHOLE_W]], %[[WHOLE_B]], %{{.*}}, %[[WHOLE_V]])
// CHECK-NEXT: %[[WHOLE_U:.*]] = comm.all_gather(%[[U]]) dim 0 over <@mesh, {dp}> role "u"
// CHECK-NEXT: nn.linear %{{.*}}, %[[WHOLE_U]] role "out"
// CHECK-NEXT: return
