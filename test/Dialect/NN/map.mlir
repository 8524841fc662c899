// RUN: braid-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @map
// CHECK: %[[R:.*]] = nn.map %{{.*}}, %{{.*}} : tensor<2x8xbf16>, tensor<8xbf16> -> tensor<2x8xbf16> {
// CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK-NEXT: nn.yield %[[P]] : f32
func.func @map(%x: tensor<2x8xbf16>, %w: tensor<8xbf16>) -> tensor<2x8xbf16> {
  %0 = nn.map %x, %w : tensor<2x8xbf16>, tensor<8xbf16> -> tensor<2x8xbf16> {
  ^bb0(%a: f32, %b: f32):
    %1 = arith.mulf %a, %b : f32
    nn.yield %1 : f32
  }
  return %0 : tensor<2x8xbf16>
}

// -----

// Elements of several types, and one element for each row.
// CHECK-LABEL: func.func @rows
// CHECK: nn.map %{{.*}}, %{{.*}} rows(%{{.*}}, %{{.*}}) : tensor<2x8xbf16>, tensor<8xf16> rows(tensor<2xf32>, tensor<2xbf16>) -> tensor<2x8xf32> {
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %[[M:.*]]: f32, %{{.*}}: f32):
// CHECK-NEXT: nn.yield %[[M]] : f32
func.func @rows(%x: tensor<2x8xbf16>, %w: tensor<8xf16>, %m: tensor<2xf32>, %s: tensor<2xbf16>) -> tensor<2x8xf32> {
  %0 = nn.map %x, %w rows(%m, %s) : tensor<2x8xbf16>, tensor<8xf16> rows(tensor<2xf32>, tensor<2xbf16>) -> tensor<2x8xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    nn.yield %c : f32
  }
  return %0 : tensor<2x8xf32>
}

// -----

func.func @result(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.map' op expects a result of shape [2, 8], got [8, 2] [nn.map_c1]}}
  %0 = nn.map %x : tensor<2x8xf32> -> tensor<8x2xf32> {
  ^bb0(%a: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @none() {
  // expected-error @+1 {{'nn.map' op expects an input [nn.map_c1]}}
  %0 = "nn.map"() ({
    %1 = arith.constant 1.0 : f32
    nn.yield %1 : f32
  }) : () -> tensor<2x8xf32>
  return
}

// -----

func.func @shape(%x: tensor<2x8xf32>, %w: tensor<2xf32>) {
  // expected-error @+1 {{'nn.map' op expects an input's shape at the end of the first one's, got [2] and [2, 8] [nn.map_c1]}}
  %0 = nn.map %x, %w : tensor<2x8xf32>, tensor<2xf32> -> tensor<2x8xf32> {
  ^bb0(%a: f32, %b: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @row_shape(%x: tensor<2x8xf32>, %m: tensor<8xf32>) {
  // expected-error @+1 {{'nn.map' op expects an input in 'rows' of shape [2], got [8] [nn.map_c2]}}
  %0 = nn.map %x rows(%m) : tensor<2x8xf32> rows(tensor<8xf32>) -> tensor<2x8xf32> {
  ^bb0(%a: f32, %b: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @no_rows(%x: tensor<f32>, %m: tensor<f32>) {
  // expected-error @+1 {{'nn.map' op expects a last dimension beside 'rows', got [] [nn.map_c2]}}
  %0 = nn.map %x rows(%m) : tensor<f32> rows(tensor<f32>) -> tensor<f32> {
  ^bb0(%a: f32, %b: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @arguments(%x: tensor<2x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{'nn.map' op expects a body with 2 arguments of f32 that ends in nn.yield [nn.map_c3]}}
  %0 = nn.map %x, %w : tensor<2x8xf32>, tensor<8xf32> -> tensor<2x8xf32> {
  ^bb0(%a: f32):
    nn.yield %a : f32
  }
  return
}

// -----

func.func @operation(%x: tensor<2x8xf32>) {
  %0 = nn.map %x : tensor<2x8xf32> -> tensor<2x8xf32> {
  ^bb0(%a: f32):
    // expected-error @+1 {{'arith.constant' op expects to be an arith or math operation with one scalar result in the body of nn.map [nn.map_c4]}}
    %1 = arith.constant dense<1.0> : tensor<2xf32>
    nn.yield %a : f32
  }
  return
}
