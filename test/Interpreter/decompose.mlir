// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-decompose-nn) tolerance=1e-7" | FileCheck %s

// An operation's decomposition computes the same as the operation. Its constants are f32, hence the tolerance.
// CHECK: equivalent on 1 and 1 ranks: {{.*}}linalg.generic
// CHECK-NOT: nn.layer_norm
func.func @main(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<2x3x8xf32>
  return %0 : tensor<2x3x8xf32>
}

// -----

// CHECK: equivalent on 1 and 1 ranks
// CHECK-NOT: nn.activation
func.func @main(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = nn.activation gelu %x : tensor<2x8xf32>
  %1 = nn.activation gelu_tanh %x : tensor<2x8xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// CHECK: equivalent on 1 and 1 ranks
// CHECK-NOT: nn.embedding
func.func @main(%ids: tensor<2x3xi64> {test.range = array<i64: 0, 9>}, %table: tensor<9x4xf32>, %p: tensor<3x4xf32>,
                %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<2x3x6xf32> {
  %0 = nn.embedding %ids, %table : tensor<2x3xi64>, tensor<9x4xf32> -> tensor<2x3x4xf32>
  %1 = nn.add %0, %p : tensor<2x3x4xf32>, tensor<3x4xf32> -> tensor<2x3x4xf32>
  %p2 = nn.linear %1, %w : tensor<2x3x4xf32>, tensor<6x4xf32> -> tensor<2x3x6xf32>
  %2 = nn.add %p2, %b : tensor<2x3x6xf32>, tensor<6xf32> -> tensor<2x3x6xf32>
  return %2 : tensor<2x3x6xf32>
}

// -----

// Grouped heads with a mask, then with all other restrictions of keys. Lengths start at 0, so some queries attend to no key.
// CHECK: equivalent on 1 and 1 ranks
// CHECK-NOT: nn.attention
func.func @main(%q: tensor<2x3x8xf32>, %k: tensor<2x5x2x2xf32>, %v: tensor<2x5x2x3xf32>, %mask: tensor<2x5xi64>,
                %length: tensor<2xi32> {test.range = array<i64: 0, 6>}, %offset: tensor<2xi64> {test.range = array<i64: -1, 3>})
    -> (tensor<2x3x12xf32>, tensor<2x3x4x3xf32>, tensor<2x3x4xf32>) {
  %0 = nn.split_heads %q : tensor<2x3x8xf32> -> tensor<2x3x4x2xf32>
  %1 = nn.attention %0, %k, %v mask %mask : tensor<2x5xi64> scale 0.7
      : tensor<2x3x4x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5x2x3xf32> -> tensor<2x3x4x3xf32>
  %2 = nn.merge_heads %1 : tensor<2x3x4x3xf32> -> tensor<2x3x12xf32>
  %3, %4 = nn.attention causal %0, %k, %v valid_length %length : tensor<2xi32> position_offset %offset : tensor<2xi64> scale 0.7
      : tensor<2x3x4x2xf32>, tensor<2x5x2x2xf32>, tensor<2x5x2x3xf32> -> tensor<2x3x4x3xf32>, tensor<2x3x4xf32>
  return %2, %3, %4 : tensor<2x3x12xf32>, tensor<2x3x4x3xf32>, tensor<2x3x4xf32>
}

// -----

// CHECK: equivalent on 1 and 1 ranks
// CHECK-NOT: nn.map
func.func @main(%x: tensor<2x3x8xf32>, %w: tensor<3x8xf32>, %m: tensor<2x3xf32>) -> tensor<2x3x8xf32> {
  %0 = nn.map %x, %w rows(%m) : tensor<2x3x8xf32>, tensor<3x8xf32> rows(tensor<2x3xf32>) -> tensor<2x3x8xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %half = arith.constant 0.5 : f32
    %d = arith.subf %a, %c : f32
    %e = math.tanh %d : f32
    %f = arith.mulf %e, %b : f32
    %less = arith.cmpf olt, %f, %half : f32
    %g = arith.select %less, %f, %half : f32
    nn.yield %g : f32
  }
  return %0 : tensor<2x3x8xf32>
}
