// RUN: braid-opt %s --braid-join-all-reduce | FileCheck %s
// RUN: braid-opt %s --braid-join-all-reduce --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-join-all-reduce) seed=2" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <dp = 2, tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<4x8xf32> {nn.name = "b"}) attributes {nn.entry} {
  // Other users of the shards take a slice of the full value.
  // CHECK: %[[A:.*]] = comm.all_reduce sum(%[[X]]) over <@mesh, {tp}> role "q" : tensor<4x8xf32>
  // CHECK: %[[S:.*]] = comm.part %[[A]] dim 0 over <@mesh, {tp}>
  // CHECK: %[[G:.*]] = nn.activation gelu %[[S]]
  // CHECK: %[[B:.*]] = comm.all_gather(%[[G]]) dim 0
  // REMARK: comm.all_gather 'q': joined with its comm.reduce_scatter
  // REMARK: comm.all_gather: its operands are not the results of one comm.reduce_scatter
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> role "q" : tensor<4x8xf32> -> tensor<2x8xf32>
  %a = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "q" : tensor<2x8xf32> -> tensor<4x8xf32>
  %g = nn.activation gelu %s : tensor<2x8xf32>
  %b = comm.all_gather(%g) dim 0 over <@mesh, {tp}> : tensor<2x8xf32> -> tensor<4x8xf32>
  // CHECK: return %[[A]], %[[B]]
  return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @otherwise
func.func @otherwise(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // REMARK: comm.all_gather: the comm.reduce_scatter is over another dimension
  // CHECK: comm.reduce_scatter
  // CHECK: comm.all_gather
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %a = comm.all_gather(%s) dim 1 over <@mesh, {tp}> : tensor<2x8xf32> -> tensor<2x16xf32>
  // REMARK: comm.all_gather: the comm.reduce_scatter is over another group
  // CHECK: comm.reduce_scatter
  // CHECK: comm.all_gather
  %t = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %b = comm.all_gather(%t) dim 0 over <@mesh, {dp}> : tensor<2x8xf32> -> tensor<4x8xf32>
  return %a, %b : tensor<2x16xf32>, tensor<4x8xf32>
}
// SAME: equivalent on 4 and 4 ranks:{{.*}}comm.all_gather x1 comm.all_reduce x1 comm.part x1
