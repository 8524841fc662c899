// RUN: braid-opt %s --split-input-file --braid-hoist-all-gathers | FileCheck %s
// RUN: braid-opt %s --split-input-file --braid-hoist-all-gathers --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-hoist-all-gathers) seed=9" | FileCheck %s --check-prefix=SAME

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = call @f(%[[X]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[Z:.*]] = call @f(%[[Y]]) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: return %[[Z]]
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "a"}) attributes {nn.entry} {
  %p = comm.part %x dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %y = call @f(%p) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %z = call @f(%y) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %g = comm.all_gather(%z) dim 0 over <@mesh, {tp}> role "f" : tensor<2x8xf32> -> tensor<4x8xf32>
  return %g : tensor<4x8xf32>
}
// CHECK-LABEL: func.func private @f
// CHECK-SAME: %[[A:.*]]: tensor<4x8xf32>
// CHECK: %[[S:.*]] = comm.reduce_scatter sum(%[[A]])
// CHECK: %[[G:.*]] = comm.all_gather(%[[S]])
// CHECK: %[[B:.*]] = nn.add %[[G]], %[[A]]
// CHECK: return %[[B]]
// REMARK-DAG: moved to the callers of '@f'
// REMARK-DAG: moved into '@f'
// REMARK-DAG: moved above 'nn.add'
// REMARK-DAG: stays: 'comm.reduce_scatter' takes the unsliced value
func.func private @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<2x8xf32> -> tensor<4x8xf32>
  %s = comm.reduce_scatter sum(%w) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %a = nn.add %s, %x : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  return %a : tensor<2x8xf32>
}
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_gather x2 {{.*}}comm.reduce_scatter x2

// -----

comm.mesh @mesh <tp = 2>

#map = affine_map<(r, c) -> (r, c)>

// The body multiplies by a scalar that differs between ranks, so the full value cannot be computed before the gather.
// CHECK-LABEL: func.func @captures
// CHECK: %[[B:.*]] = linalg.generic
// CHECK: comm.all_gather(%[[B]])
// REMARK: comm.all_gather: stays: 'linalg.generic' captures a value that differs between the ranks
// SAME: equivalent on 2 and 2 ranks:{{.*}}comm.all_gather
func.func @captures(%x: tensor<4x4xf32> {nn.name = "x"}) -> (tensor<4x4xf32> {nn.name = "a"}) attributes {nn.entry} {
  %c0 = arith.constant 0 : index
  %p = comm.part %x dim 0 over <@mesh, {tp}> : tensor<4x4xf32> -> tensor<2x4xf32>
  %own = tensor.extract %p[%c0, %c0] : tensor<2x4xf32>
  %e = tensor.empty() : tensor<2x4xf32>
  %b = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%p : tensor<2x4xf32>) outs(%e : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %own : f32
    linalg.yield %m : f32
  } -> tensor<2x4xf32>
  %g = comm.all_gather(%b) dim 0 over <@mesh, {tp}> : tensor<2x4xf32> -> tensor<4x4xf32>
  return %g : tensor<4x4xf32>
}
