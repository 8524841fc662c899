// RUN: braid-opt %s --braid-merge-collectives | FileCheck %s
// RUN: braid-opt %s --braid-merge-collectives --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-merge-collectives) seed=5" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-merge-collectives,braid-unmerge-collectives) seed=5" | FileCheck %s --check-prefix=INVERSE

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8xf32>{{.*}}, %[[Y:[^:]*]]: tensor<8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}, %y: tensor<8xf32> {nn.name = "y"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<4x8xf32> {nn.name = "b"}) attributes {nn.entry} {
  // Merged at the position of the last one: its operand is computed in between.
  // CHECK: %[[G:.*]] = nn.activation gelu %[[X]]
  // CHECK-NEXT: %[[R:.*]]:3 = comm.all_reduce sum(%[[X]], %[[Y]], %[[G]]) over <@mesh, {tp}> role "q+q+k"
  // REMARK: comm.all_reduce 'q': now exchanges 2 values
  // REMARK: comm.all_reduce 'q+q+k': now exchanges 3 values
  // REMARK: comm.all_reduce 'q+q+k': the next collective depends on it
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "q" : tensor<4x8xf32>
  %1 = comm.all_reduce sum(%y) over <@mesh, {tp}> role "q" : tensor<8xf32>
  %g = nn.activation gelu %x : tensor<4x8xf32>
  %2 = comm.all_reduce sum(%g) over <@mesh, {tp}> role "k" : tensor<4x8xf32>
  %3 = nn.add %0, %1 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %4 = nn.add %3, %2 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK: comm.all_reduce sum(%{{[^,]*}}) over
  // REMARK: comm.all_reduce: the next collective is of another kind, group, reduction or dimension
  %5 = comm.all_reduce sum(%4) over <@mesh, {tp}> : tensor<4x8xf32>
  // Merged at the position of the first one: its result is used in between.
  // CHECK: comm.all_reduce max(%{{.*}}, %[[X]]) over
  // REMARK: comm.all_reduce: now exchanges 2 values
  %6 = comm.all_reduce max(%4) over <@mesh, {tp}> : tensor<4x8xf32>
  %7 = nn.add %6, %5 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %8 = comm.all_reduce max(%x) over <@mesh, {tp}> : tensor<4x8xf32>
  // REMARK: comm.all_reduce: no collective follows in its block
  return %7, %8 : tensor<4x8xf32>, tensor<4x8xf32>
}
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_reduce x3
// INVERSE: equivalent on 2 and 2 ranks:{{.*}}comm.all_reduce x6
