// A layer that runs attention and feed-forward in parallel and adds their results: two partial values whose sum is reduced
// once. Biases are added after the reduction.
// RUN: braid-opt %s --braid-apply-strategy="mesh=tp=2 strategy=tp" --braid-delay-biases --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,TP
// RUN: braid-opt %s --braid-apply-strategy="mesh=tp=2 strategy=tp-sp" --braid-delay-biases --braid-propagate-shardings --braid-partition --canonicalize --cse | FileCheck %s --check-prefixes=CHECK,SP
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=tp=2 strategy=tp},braid-delay-biases,braid-propagate-shardings,braid-partition) seed=5" | FileCheck %s --check-prefix=PLAIN
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-apply-strategy{mesh=dp=2,tp=4 strategy=tp-sp,dp},braid-delay-biases,braid-propagate-shardings,braid-partition) seed=6" | FileCheck %s --check-prefix=SEQUENCE

// PLAIN: equivalent on 1 and 2 ranks: comm.all_reduce x3 func.call
// SEQUENCE: equivalent on 1 and 8 ranks: comm.all_gather x3 comm.reduce_scatter x3 func.call

func.func @main(%x: tensor<2x8x16xf32> {nn.name = "x"}) -> (tensor<2x8x16xf32> {nn.name = "y"}) attributes {nn.entry} {
  %q = nn.parameter "q" : tensor<16x16xf32>
  %o = nn.parameter "o" : tensor<16x16xf32>
  %ob = nn.parameter "ob" : tensor<16xf32>
  %u = nn.parameter "u" : tensor<32x16xf32>
  %d = nn.parameter "d" : tensor<16x32xf32>
  %db = nn.parameter "db" : tensor<16xf32>
  %0 = call @plain(%x, %q, %o, %u, %d) : (tensor<2x8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>) -> tensor<2x8x16xf32>
  %1 = call @biased(%0, %q, %o, %ob, %u, %d, %db) : (tensor<2x8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<32x16xf32>, tensor<16x32xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  %2 = call @one_biased(%1, %q, %o, %u, %d, %db) : (tensor<2x8x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<32x16xf32>, tensor<16x32xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// CHECK-LABEL: func.func private @plain
// CHECK-SAME: (%[[X:[^:]*]]:
// SP-NEXT: comm.all_gather
// CHECK-NOT: comm
// CHECK: %[[O:.*]] = nn.linear {{.*}} role "attention.output"
// CHECK-NOT: comm
// CHECK: %[[D:.*]] = nn.linear {{.*}} role "mlp.down"
// CHECK-NEXT: %[[S:.*]] = nn.add %[[O]], %[[D]] : tensor<2x8x16xf32>
// TP-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[S]]) over <@mesh, {tp}> role "attention.output"
// SP-NEXT: %[[R:.*]] = comm.reduce_scatter sum(%[[S]]) dim 1 over <@mesh, {tp}> role "attention.output" : tensor<2x8x16xf32> -> tensor<2x4x16xf32>
// CHECK-NEXT: %[[Y:.*]] = nn.add %[[R]], %[[X]]
// CHECK-NEXT: return %[[Y]]
func.func private @plain(%x: tensor<2x8x16xf32>, %wq: tensor<16x16xf32>, %wo: tensor<16x16xf32>, %wu: tensor<32x16xf32>, %wd: tensor<16x32xf32>) -> tensor<2x8x16xf32> {
  %q = nn.linear %x, %wq role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %qh = nn.split_heads %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %a = nn.attention causal %qh, %qh, %qh scale 0.5 : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  %m = nn.merge_heads %a : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %o = nn.linear %m, %wo role "attention.output" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %u = nn.linear %x, %wu role "mlp.up" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %g = nn.activation gelu %u : tensor<2x8x32xf32>
  %d = nn.linear %g, %wd role "mlp.down" : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %s = nn.add %o, %d : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %y = nn.add %s, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// CHECK-LABEL: func.func private @biased
// CHECK: %[[O:.*]] = nn.linear {{.*}} role "attention.output"
// CHECK-NOT: comm
// CHECK: %[[D:.*]] = nn.linear {{.*}} role "mlp.down"
// CHECK-NEXT: %[[S:.*]] = nn.add %[[O]], %[[D]]
// TP-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[S]])
// SP-NEXT: %[[R:.*]] = comm.reduce_scatter sum(%[[S]]) dim 1
// CHECK-NEXT: %[[OB:.*]] = nn.add %[[R]], %{{.*}} : {{.*}}, tensor<16xf32>
// CHECK-NEXT: %[[DB:.*]] = nn.add %[[OB]], %{{.*}} : {{.*}}, tensor<16xf32>
// CHECK-NEXT: nn.add %[[DB]], %
// CHECK-NEXT: return
func.func private @biased(%x: tensor<2x8x16xf32>, %wq: tensor<16x16xf32>, %wo: tensor<16x16xf32>, %bo: tensor<16xf32>, %wu: tensor<32x16xf32>, %wd: tensor<16x32xf32>, %bd: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %q = nn.linear %x, %wq role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %qh = nn.split_heads %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %a = nn.attention causal %qh, %qh, %qh scale 0.5 : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  %m = nn.merge_heads %a : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %op = nn.linear %m, %wo role "attention.output" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %o = nn.add %op, %bo : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %u = nn.linear %x, %wu role "mlp.up" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %g = nn.activation gelu %u : tensor<2x8x32xf32>
  %dp = nn.linear %g, %wd role "mlp.down" : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %d = nn.add %dp, %bd : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %s = nn.add %o, %d : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %y = nn.add %s, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}

// CHECK-LABEL: func.func private @one_biased
// CHECK: nn.linear {{.*}} role "mlp.down"
// CHECK-NEXT: nn.add
// TP-NEXT: comm.all_reduce
// SP-NEXT: comm.reduce_scatter
// CHECK-NEXT: nn.add {{.*}}, tensor<16xf32>
// CHECK-NEXT: nn.add
// CHECK-NEXT: return
func.func private @one_biased(%x: tensor<2x8x16xf32>, %wq: tensor<16x16xf32>, %wo: tensor<16x16xf32>, %wu: tensor<32x16xf32>, %wd: tensor<16x32xf32>, %bd: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %q = nn.linear %x, %wq role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %qh = nn.split_heads %q : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %a = nn.attention causal %qh, %qh, %qh scale 0.5 : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  %m = nn.merge_heads %a : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %o = nn.linear %m, %wo role "attention.output" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %u = nn.linear %x, %wu role "mlp.up" : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
  %g = nn.activation gelu %u : tensor<2x8x32xf32>
  %dp = nn.linear %g, %wd role "mlp.down" : tensor<2x8x32xf32>, tensor<16x32xf32> -> tensor<2x8x16xf32>
  %d = nn.add %dp, %bd : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %s = nn.add %o, %d : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %y = nn.add %s, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  return %y : tensor<2x8x16xf32>
}
