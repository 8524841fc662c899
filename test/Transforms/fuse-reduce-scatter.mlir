// RUN: braid-opt %s --braid-fuse-reduce-scatter | FileCheck %s
// RUN: braid-opt %s --braid-fuse-reduce-scatter --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-fuse-reduce-scatter) seed=3" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-fuse-reduce-scatter,braid-unfuse-reduce-scatter) seed=3" | FileCheck %s --check-prefix=INVERSE

comm.mesh @mesh <dp = 2, tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"})
    -> (tensor<4x8xf32> {nn.name = "a"}, tensor<4x8xf32> {nn.name = "b"}, tensor<8x8xf32> {nn.name = "c"}) attributes {nn.entry} {
  // CHECK: %[[S:.*]] = comm.reduce_scatter sum(%[[X]]) dim 0 over <@mesh, {tp}> role "q" : tensor<4x8xf32> -> tensor<2x8xf32>
  // CHECK-NOT: comm.part
  // CHECK: nn.add %[[S]], %[[S]]
  // REMARK: comm.all_reduce 'q': fused with slices of dimension 0
  %r = comm.all_reduce sum(%x) over <@mesh, {tp}> role "q" : tensor<4x8xf32>
  %s = comm.part %r dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %t = comm.part %r dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %u = nn.add %s, %t : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  %a = comm.all_gather(%u) dim 0 over <@mesh, {tp}> : tensor<2x8xf32> -> tensor<4x8xf32>
  // CHECK: comm.all_reduce
  // REMARK: comm.all_reduce: 'func.return' uses the unsliced value
  %b = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8xf32>
  // CHECK: comm.all_reduce
  // CHECK: comm.part
  // REMARK: comm.all_reduce: 'comm.part' uses the unsliced value
  %v = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4x8xf32>
  %w = comm.part %v dim 0 over <@mesh, {dp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %c = comm.all_gather(%w) dim 0 over <@mesh, {dp, tp}> : tensor<2x8xf32> -> tensor<8x8xf32>
  return %a, %b, %c : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8x8xf32>
}
// SAME: equivalent on 4 and 4 ranks:{{.*}}comm.all_reduce x2{{.*}}comm.reduce_scatter x1
// INVERSE: equivalent on 4 and 4 ranks:{{.*}}comm.all_reduce x3
