// RUN: braid-opt %s --braid-unfuse-reduce-scatter | FileCheck %s
// RUN: braid-opt %s --braid-unfuse-reduce-scatter --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-unfuse-reduce-scatter) seed=4" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>{{.*}}, %[[Y:[^:]*]]: tensor<2xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<2xf32> {nn.name = "y"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<2xf32> {nn.name = "b"}) attributes {nn.entry} {
  // CHECK: %[[R:.*]]:2 = comm.all_reduce max(%[[X]], %[[Y]]) over <@mesh, {tp}> role "q"
  // CHECK-DAG: comm.part %[[R]]#0 dim 0
  // CHECK-DAG: comm.part %[[R]]#1 dim 0
  // CHECK-NOT: comm.reduce_scatter
  // REMARK: comm.reduce_scatter 'q': became a comm.all_reduce and a slice per value
  %s:2 = comm.reduce_scatter max(%x, %y) dim 0 over <@mesh, {tp}> role "q" : tensor<4x8xf32>, tensor<2xf32> -> tensor<2x8xf32>, tensor<1xf32>
  %a:2 = comm.all_gather(%s#0, %s#1) dim 0 over <@mesh, {tp}> : tensor<2x8xf32>, tensor<1xf32> -> tensor<4x8xf32>, tensor<2xf32>
  return %a#0, %a#1 : tensor<4x8xf32>, tensor<2xf32>
}
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_reduce x1 comm.part x2
