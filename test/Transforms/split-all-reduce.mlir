// RUN: braid-opt %s --braid-split-all-reduce | FileCheck %s
// RUN: braid-opt %s --braid-split-all-reduce="dim=2" | FileCheck %s --check-prefix=LAST
// RUN: braid-opt %s --braid-split-all-reduce --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --braid-split-all-reduce --braid-join-all-reduce | FileCheck %s --check-prefix=JOINED
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-split-all-reduce) seed=1" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <tp = 4>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<3x8x16xf32>{{.*}}, %[[Y:[^:]*]]: tensor<6x12xf32>{{.*}}, %[[Z:[^:]*]]: tensor<3xf32>
// LAST-LABEL: func.func @main
// JOINED-LABEL: func.func @main
func.func @main(%x: tensor<3x8x16xf32> {nn.name = "x"}, %y: tensor<6x12xf32> {nn.name = "y"}, %z: tensor<3xf32> {nn.name = "z"})
    -> (tensor<3x8x16xf32> {nn.name = "a"}, tensor<6x12xf32> {nn.name = "b"}, tensor<3xf32> {nn.name = "c"}) attributes {nn.entry} {
  // The sequence dimension is preferred to the outermost one.
  // CHECK: %[[A:.*]] = comm.reduce_scatter sum(%[[X]]) dim 1 over <@mesh, {tp}> role "mlp.down/reduce_scatter" : tensor<3x8x16xf32> -> tensor<3x2x16xf32>
  // CHECK: comm.all_gather(%[[A]]) dim 1 over <@mesh, {tp}> role "mlp.down/all_gather" : tensor<3x2x16xf32> -> tensor<3x8x16xf32>
  // LAST: comm.reduce_scatter sum({{.*}}) dim 2
  // LAST: comm.all_gather({{.*}}) dim 2
  // JOINED: comm.all_reduce sum({{.*}}) over <@mesh, {tp}> role "mlp.down" : tensor<3x8x16xf32>
  // REMARK: comm.all_reduce 'mlp.down': split over dimension 1
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<3x8x16xf32>
  // The axis does not divide 6 rows.
  // CHECK: comm.reduce_scatter max(%[[Y]]) dim 1
  // LAST: comm.all_reduce max
  // JOINED: comm.all_reduce max
  // REMARK: comm.all_reduce: split over dimension 1
  %b = comm.all_reduce max(%y) over <@mesh, {tp}> : tensor<6x12xf32>
  // CHECK: comm.all_gather({{.*}}) dim 1
  // CHECK: comm.all_reduce sum(%[[Z]])
  // REMARK: comm.all_reduce: no dimension divides over 4 ranks in every value
  %c = comm.all_reduce sum(%z) over <@mesh, {tp}> : tensor<3xf32>
  return %a, %b, %c : tensor<3x8x16xf32>, tensor<6x12xf32>, tensor<3xf32>
}
// SAME: equivalent on 4 and 4 ranks:{{.*}}comm.all_gather x2 comm.all_reduce x1 comm.reduce_scatter x2
