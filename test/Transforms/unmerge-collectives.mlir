// RUN: braid-opt %s --braid-unmerge-collectives | FileCheck %s
// RUN: braid-opt %s --braid-unmerge-collectives --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-unmerge-collectives) seed=6" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>{{.*}}, %[[Y:[^:]*]]: tensor<2xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<2xf32> {nn.name = "y"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<2xf32> {nn.name = "b"}) attributes {nn.entry} {
  // CHECK: %[[A:.*]] = comm.reduce_scatter sum(%[[X]]) dim 0 over <@mesh, {tp}> role "q" : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK: %[[B:.*]] = comm.reduce_scatter sum(%[[Y]]) dim 0 over <@mesh, {tp}> role "k" : tensor<2xf32> -> tensor<1xf32>
  // CHECK: comm.all_gather(%[[A]]) dim 0 over <@mesh, {tp}> role "both/0"
  // CHECK: comm.all_gather(%[[B]]) dim 0 over <@mesh, {tp}> role "both/1"
  // REMARK: comm.reduce_scatter 'q+k': became 2 collectives
  %s:2 = comm.reduce_scatter sum(%x, %y) dim 0 over <@mesh, {tp}> role "q+k" : tensor<4x8xf32>, tensor<2xf32> -> tensor<2x8xf32>, tensor<1xf32>
  %a:2 = comm.all_gather(%s#0, %s#1) dim 0 over <@mesh, {tp}> role "both" : tensor<2x8xf32>, tensor<1xf32> -> tensor<4x8xf32>, tensor<2xf32>
  return %a#0, %a#1 : tensor<4x8xf32>, tensor<2xf32>
}
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_gather x2 comm.reduce_scatter x2
