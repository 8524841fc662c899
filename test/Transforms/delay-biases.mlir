// RUN: braid-opt %s --braid-delay-biases | FileCheck %s
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-delay-biases) seed=3" | FileCheck %s --check-prefix=SAME
// SAME: equivalent on 1 and 1 ranks

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "a"}, tensor<4x8xf32> {nn.name = "b"}, tensor<4x8xf32> {nn.name = "c"}) attributes {nn.entry} {
  // CHECK-DAG: %[[W:.*]] = nn.parameter "w"
  // CHECK-DAG: %[[V:.*]] = nn.parameter "v"
  // CHECK-DAG: %[[B:.*]] = nn.parameter "b"
  // CHECK-DAG: %[[C:.*]] = nn.parameter "c"
  %w = nn.parameter "w" : tensor<8x8xf32>
  %v = nn.parameter "v" : tensor<8x8xf32>
  %b = nn.parameter "b" : tensor<8xf32>
  %c = nn.parameter "c" : tensor<8xf32>

  // The biases of two matmuls stay in their order.
  // CHECK: %[[P:.*]] = nn.linear %[[X]], %[[W]]
  // CHECK-NEXT: %[[Q:.*]] = nn.linear %[[X]], %[[V]]
  // CHECK-NEXT: %[[PQ:.*]] = nn.add %[[P]], %[[Q]]
  // CHECK-NEXT: %[[PQB:.*]] = nn.add %[[PQ]], %[[B]]
  // CHECK-NEXT: %[[R0:.*]] = nn.add %[[PQB]], %[[C]]
  // CHECK-NEXT: %[[A:.*]] = nn.add %[[R0]], %[[X]]
  %p = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %pb = nn.add %p, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %q = nn.linear %x, %v : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %qb = nn.add %q, %c : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %pq = nn.add %pb, %qb : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %a = nn.add %pq, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>

  // A residual is not a bias, and a value with another user does not change.
  // CHECK: %[[S:.*]] = nn.linear %[[X]], %[[W]]
  // CHECK-NEXT: %[[SB:.*]] = nn.add %[[S]], %[[B]]
  // CHECK-NEXT: %[[T:.*]] = nn.linear %[[X]], %[[V]]
  // CHECK-NEXT: %[[ST:.*]] = nn.add %[[SB]], %[[T]]
  // CHECK-NEXT: return %[[A]], %[[ST]], %[[SB]]
  %s = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %sb = nn.add %s, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %t = nn.linear %x, %v : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %st = nn.add %sb, %t : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %a, %st, %sb : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
