// RUN: braid-opt %s --braid-remove-dead-collectives | FileCheck %s
// RUN: braid-opt %s --canonicalize | FileCheck %s
// RUN: braid-opt %s --braid-remove-dead-collectives --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-remove-dead-collectives) seed=7" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <tp = 2>

// REMARK-DAG: comm.all_reduce 'q': a value that no rank reads removed
// REMARK-DAG: comm.all_gather 'dead': removed, no rank reads a result
// REMARK-DAG: comm.reduce_scatter 'dead': removed, no rank reads a result

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>{{.*}}, %[[Y:[^:]*]]: tensor<2xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<2xf32> {nn.name = "y"})
    -> (tensor<2xf32> {nn.name = "b"}) attributes {nn.entry} {
  // CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[Y]]) over <@mesh, {tp}> role "q" : tensor<2xf32>
  // CHECK-NEXT: return %[[R]]
  %r:2 = comm.all_reduce sum(%x, %y) over <@mesh, {tp}> role "q" : tensor<4x8xf32>, tensor<2xf32>
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> role "dead" : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "dead" : tensor<2x8xf32> -> tensor<4x8xf32>
  return %r#1 : tensor<2xf32>
}
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_reduce x1
