// The gathers of weights that are stored cut: each starts before the call that uses the ones before it, so that they are in flight
// while it computes, and no earlier, so that the whole weights of two layers are there at a time.
// RUN: braid-opt %s --braid-start-collectives | FileCheck %s
// RUN: sed 's/dp = 2/dp = 2, tp = 2/; s/%%1 = nn.act/%%r = comm.all_reduce max(%%0) over <@mesh, {tp}> : tensor<4x16xf32> %%1 = nn.act/; s/gelu %%0/gelu %%r/' %s > %t.mlir
// RUN: braid-opt %t.mlir --braid-start-collectives | FileCheck %s --check-prefixes=CHECK,BESIDE
// RUN: braid-opt %t.mlir --test-equivalence="pipeline=builtin.module(braid-start-collectives) seed=3" | FileCheck %s --check-prefix=SAME4
// SAME4: 4 ranks
// RUN: braid-opt %s --braid-pipeline=from=comm --remark-format=emitRemark --remarks-filter=buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=MEMORY
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-start-collectives) seed=3" | FileCheck %s --check-prefix=SAME
// SAME: 2 ranks

// Two of the four weights of 16 * 16 * 4 bytes at once.
// MEMORY: @main: local {{.*}} symmetric 2048 bytes (2048 live at once, buffers 4096)

comm.mesh @mesh <dp = 2>
func.func private @layer(%x: tensor<4x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
  %0 = nn.linear %x, %w : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
  %1 = nn.activation gelu %0 : tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}
// Beside layers that communicate, the gathers have a queue of their own.
// CHECK-LABEL: func.func @main
// CHECK: %[[H0:.*]] = comm.start
// BESIDE-SAME: on 1 :
// CHECK: role "w0"
// CHECK: %[[H1:.*]] = comm.start
// CHECK: role "w1"
// CHECK-NOT: comm.start
// CHECK: comm.wait %[[H0]]
// CHECK: call @layer
// CHECK-NEXT: %[[H2:.*]] = comm.start
// CHECK: role "w2"
// CHECK-NOT: comm.start
// CHECK: comm.wait %[[H1]]
// CHECK: call @layer
// CHECK-NEXT: nn.parameter "w3"
// CHECK-NEXT: %[[H3:.*]] = comm.start
// CHECK: role "w3"
// CHECK: comm.wait %[[H2]]
// CHECK: call @layer
// CHECK: comm.wait %[[H3]]
// CHECK: call @layer
func.func @main(%x: tensor<4x16xf32> {nn.name = "x", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<4x16xf32> {nn.name = "y", comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}) attributes {nn.entry} {
  %w0 = nn.parameter "w0" of tensor<16x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %w1 = nn.parameter "w1" of tensor<16x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %w2 = nn.parameter "w2" of tensor<16x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %g0 = comm.all_gather(%w0) dim 0 over <@mesh, {dp}> role "w0" : tensor<8x16xf32> -> tensor<16x16xf32>
  %0 = call @layer(%x, %g0) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %g1 = comm.all_gather(%w1) dim 0 over <@mesh, {dp}> role "w1" : tensor<8x16xf32> -> tensor<16x16xf32>
  %1 = call @layer(%0, %g1) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %g2 = comm.all_gather(%w2) dim 0 over <@mesh, {dp}> role "w2" : tensor<8x16xf32> -> tensor<16x16xf32>
  %2 = call @layer(%1, %g2) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  // Where a parameter stands does not matter.
  %w3 = nn.parameter "w3" of tensor<16x16xf32> sharded <@mesh, [{dp}, {}]> : tensor<8x16xf32>
  %g3 = comm.all_gather(%w3) dim 0 over <@mesh, {dp}> role "w3" : tensor<8x16xf32> -> tensor<16x16xf32>
  %3 = call @layer(%2, %g3) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}
