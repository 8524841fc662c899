// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @router(%l: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'nn.router' op expects 'top' in [1, 4], got 5 [nn.router_c1]}}
  %w, %e, %s, %c = nn.router %l top 5 capacity 1 : tensor<2x3x4xf32>
  return
}

// -----

func.func @router(%l: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'nn.router' op expects 'top' in [1, 4], got 0 [nn.router_c1]}}
  %w, %e, %s, %c = nn.router %l top 0 capacity 1 : tensor<2x3x4xf32>
  return
}

// -----

func.func @router(%l: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'nn.router' op expects 'capacity' to be at least 1, got 0 [nn.router_c2]}}
  %w, %e, %s, %c = nn.router %l top 1 capacity 0 : tensor<2x3x4xf32>
  return
}

// -----

func.func @dispatch(%x: tensor<2x3x8xf32>, %e: tensor<2x4x2xi32>) {
  // expected-error @+1 {{'nn.dispatch' op expects experts and slots of shape [2, 3, 2], got [2, 4, 2] [nn.dispatch_c1]}}
  %0 = nn.dispatch %x, %e, %e : tensor<2x3x8xf32>, tensor<2x4x2xi32> -> tensor<2x4x5x8xf32>
  return
}

// -----

func.func @dispatch(%x: tensor<2x3x8xf32>, %e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{'nn.dispatch' op expects a result of shape [2, 4, 5, 8], got [2, 4, 5, 6] [nn.dispatch_c2]}}
  %0 = nn.dispatch %x, %e, %e : tensor<2x3x8xf32>, tensor<2x3x2xi32> -> tensor<2x4x5x6xf32>
  return
}

// -----

func.func @dispatch(%x: tensor<2x3x8xf32>, %e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{'nn.dispatch' op expects one element type, got 'f32' and 'f16' [nn.dispatch_c3]}}
  %0 = nn.dispatch %x, %e, %e : tensor<2x3x8xf32>, tensor<2x3x2xi32> -> tensor<2x4x5x8xf16>
  return
}

// -----

func.func @combine(%b: tensor<2x4x5x8xf32>, %w: tensor<3x3x2xf32>, %e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{'nn.combine' op expects weights of shape [2, 3, 2], got [3, 3, 2] [nn.combine_c1]}}
  %0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<3x3x2xf32>, tensor<2x3x2xi32> -> tensor<2x3x8xf32>
  return
}

// -----

func.func @combine(%b: tensor<2x4x5x8xf32>, %w: tensor<2x3x2xf32>, %e: tensor<2x3x1xi32>) {
  // expected-error @+1 {{'nn.combine' op expects experts and slots of shape [2, 3, 2], got [2, 3, 1] [nn.combine_c1]}}
  %0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<2x3x2xf32>, tensor<2x3x1xi32> -> tensor<2x3x8xf32>
  return
}

// -----

func.func @combine(%b: tensor<2x4x5x8xf32>, %w: tensor<2x3x2xf32>, %e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{'nn.combine' op expects a result of shape [2, 3, 8], got [2, 3, 4] [nn.combine_c2]}}
  %0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<2x3x2xf32>, tensor<2x3x2xi32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @combine(%b: tensor<2x4x5x8xf32>, %w: tensor<2x3x2xbf16>, %e: tensor<2x3x2xi32>) {
  // expected-error @+1 {{'nn.combine' op expects one element type, got 'f32' and 'bf16' [nn.combine_c3]}}
  %0 = nn.combine %b, %w, %e, %e : tensor<2x4x5x8xf32>, tensor<2x3x2xbf16>, tensor<2x3x2xi32> -> tensor<2x3x8xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2x3xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 1 to 3 dimensions with positions for each, got 2 and 1 [nn.dropout_c1]}}
  %0 = nn.dropout %x at (%i : tensor<2xi64>) seed %s : tensor<i64> rate 0.5 : tensor<2x3xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2x2x2x2xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 1 to 3 dimensions with positions for each, got 4 and 4 [nn.dropout_c1]}}
  %0 = nn.dropout %x at (%i, %i, %i, %i : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) seed %s : tensor<i64> rate 0.5 : tensor<2x2x2x2xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2x3xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 3 positions for dimension 1, got 2 [nn.dropout_c2]}}
  %0 = nn.dropout %x at (%i, %i : tensor<2xi64>, tensor<2xi64>) seed %s : tensor<i64> rate 0.5 : tensor<2x3xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 'rate' in [0, 1), got 1 [nn.dropout_c3]}}
  %0 = nn.dropout %x at (%i : tensor<2xi64>) seed %s : tensor<i64> rate 1.0 : tensor<2xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 'rate' in [0, 1), got -0.10000000000000001 [nn.dropout_c3]}}
  %0 = nn.dropout %x at (%i : tensor<2xi64>) seed %s : tensor<i64> rate -0.1 : tensor<2xf32>
  return
}

// -----

func.func @dropout(%x: tensor<2xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op expects 'rate' in [0, 1), got NaN [nn.dropout_c3]}}
  %0 = nn.dropout %x at (%i : tensor<2xi64>) seed %s : tensor<i64> rate 0x7FF8000000000000 : tensor<2xf32>
  return
}

// -----

// nn.dropout_c4
func.func @dropout(%x: tensor<2xf32>, %i: tensor<2xi64>, %s: tensor<i64>) {
  // expected-error @+1 {{'nn.dropout' op attribute 'site' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  %0 = nn.dropout %x at (%i : tensor<2xi64>) seed %s : tensor<i64> rate 0.5 site -1 : tensor<2xf32>
  return
}

// -----

func.func @cross_entropy(%x: tensor<f32>, %l: tensor<i64>) {
  // expected-error @+1 {{'nn.cross_entropy' op expects logits with a dimension of classes, got 'tensor<f32>' [nn.cross_entropy_c1]}}
  %0 = nn.cross_entropy %x, %l : tensor<f32>, tensor<i64> -> tensor<f32>
  return
}

// -----

func.func @cross_entropy(%x: tensor<2x3x8xf32>, %l: tensor<2x4xi64>) {
  // expected-error @+1 {{'nn.cross_entropy' op expects labels of shape [2, 3], got [2, 4] [nn.cross_entropy_c1]}}
  %0 = nn.cross_entropy %x, %l : tensor<2x3x8xf32>, tensor<2x4xi64> -> tensor<2x4xf32>
  return
}

// -----

func.func @cross_entropy(%x: tensor<2x3x8xf32>, %l: tensor<2x3xi64>) {
  // expected-error @+1 {{'nn.cross_entropy' op expects a result of shape [2, 3], got [2] [nn.cross_entropy_c2]}}
  %0 = nn.cross_entropy %x, %l : tensor<2x3x8xf32>, tensor<2x3xi64> -> tensor<2xf32>
  return
}

// -----

func.func @cross_entropy(%x: tensor<2x3x8xf32>, %l: tensor<2x3xi64>) {
  // expected-error @+1 {{'nn.cross_entropy' op expects one element type, got 'f32' and 'bf16' [nn.cross_entropy_c2]}}
  %0 = nn.cross_entropy %x, %l : tensor<2x3x8xf32>, tensor<2x3xi64> -> tensor<2x3xbf16>
  return
}

// -----

func.func @top_k(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.top_k' op expects values and indices of the input's shape with 1 to all of its last dimension, got [2, 8], [2, 9] and [2, 9] [nn.top_k_c1]}}
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<2x9xf32>, tensor<2x9xi64>
  return
}

// -----

func.func @top_k(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{got [2, 8], [3, 4] and [3, 4] [nn.top_k_c1]}}
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<3x4xf32>, tensor<3x4xi64>
  return
}

// -----

func.func @top_k(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{got [2, 8], [2, 4] and [2, 3] [nn.top_k_c1]}}
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<2x4xf32>, tensor<2x3xi64>
  return
}

// -----

func.func @top_k(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{got [2, 8], [2, 0] and [2, 0] [nn.top_k_c1]}}
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<2x0xf32>, tensor<2x0xi64>
  return
}

// -----

func.func @top_k(%x: tensor<f32>) {
  // expected-error @+1 {{got [], [] and [] [nn.top_k_c1]}}
  %v, %i = nn.top_k %x : tensor<f32> -> tensor<f32>, tensor<i64>
  return
}

// -----

func.func @top_k(%x: tensor<2x8xf32>) {
  // expected-error @+1 {{'nn.top_k' op expects one element type, got 'f32' and 'bf16' [nn.top_k_c2]}}
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<2x4xbf16>, tensor<2x4xi64>
  return
}

// -----

func.func @top_k(%x: tensor<2147483648xf32>) {
  // expected-error @+1 {{'nn.top_k' op expects indices of i64 for a last dimension of 2147483648 [nn.top_k_c3]}}
  %v, %i = nn.top_k %x : tensor<2147483648xf32> -> tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @last_token(%x: tensor<2x8x16xf32>, %m: tensor<2x7xi64>) {
  // expected-error @+1 {{'nn.last_token' op expects a mask of shape [2, 8], got [2, 7] [nn.last_token_c1]}}
  %0 = nn.last_token %x mask %m : tensor<2x8x16xf32>, tensor<2x7xi64> -> tensor<2x1x16xf32>
  return
}

// -----

func.func @last_token(%x: tensor<2x8x16xf32>, %m: tensor<2x8xi64>) {
  // expected-error @+1 {{'nn.last_token' op expects a result of shape [2, 1, 16], got [2, 8, 16] [nn.last_token_c2]}}
  %0 = nn.last_token %x mask %m : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x8x16xf32>
  return
}

// -----

func.func @last_token(%x: tensor<2x8x16xf32>, %m: tensor<2x8xi64>) {
  // expected-error @+1 {{'nn.last_token' op expects one element type, got 'f32' and 'bf16' [nn.last_token_c3]}}
  %0 = nn.last_token %x mask %m : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x1x16xbf16>
  return
}
