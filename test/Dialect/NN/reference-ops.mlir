// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK-LABEL: func.func @experts
func.func @experts(%x: tensor<2x8x16xbf16>, %logits: tensor<2x8x4xbf16>) -> tensor<2x8x16xbf16> {
  // CHECK: %[[W:.*]], %[[E:.*]], %[[S:.*]], %{{.*}} = nn.router %{{.*}} top 2 capacity 6 normalized : tensor<2x8x4xbf16>
  %w, %e, %s, %c = nn.router %logits top 2 capacity 6 normalized : tensor<2x8x4xbf16>
  // CHECK: nn.router %{{.*}} top 4 capacity 1 : tensor<2x8x4xbf16>
  %w1, %e1, %s1, %c1 = nn.router %logits top 4 capacity 1 : tensor<2x8x4xbf16>
  // CHECK: %[[B:.*]] = nn.dispatch %{{.*}}, %[[E]], %[[S]] : tensor<2x8x16xbf16>, tensor<2x8x2xi32> -> tensor<2x4x6x16xbf16>
  %b = nn.dispatch %x, %e, %s : tensor<2x8x16xbf16>, tensor<2x8x2xi32> -> tensor<2x4x6x16xbf16>
  // CHECK: nn.combine %[[B]], %[[W]], %[[E]], %[[S]] : tensor<2x4x6x16xbf16>, tensor<2x8x2xbf16>, tensor<2x8x2xi32> -> tensor<2x8x16xbf16>
  %y = nn.combine %b, %w, %e, %s : tensor<2x4x6x16xbf16>, tensor<2x8x2xbf16>, tensor<2x8x2xi32> -> tensor<2x8x16xbf16>
  return %y : tensor<2x8x16xbf16>
}

// CHECK-LABEL: func.func @training
func.func @training(%x: tensor<2x8x16xf32>, %labels: tensor<2x8xi64>, %seed: tensor<i64>) -> tensor<2x8xf32> {
  // CHECK: %[[I:.*]] = nn.iota : tensor<2xi64>
  %i = nn.iota : tensor<2xi64>
  %j = nn.iota : tensor<8xi64>
  // CHECK: nn.iota : tensor<16xi32>
  %k = nn.iota : tensor<16xi32>
  // CHECK: nn.dropout %{{.*}} at(%[[I]], %{{.*}}, %{{.*}} : tensor<2xi64>, tensor<8xi64>, tensor<16xi32>) seed %{{.*}} : tensor<i64> rate 1.000000e-01 site 1 : tensor<2x8x16xf32>
  %0 = nn.dropout %x at (%i, %j, %k : tensor<2xi64>, tensor<8xi64>, tensor<16xi32>) seed %seed : tensor<i64> rate 0.1 site 1 : tensor<2x8x16xf32>
  // CHECK: nn.dropout %{{.*}} rate 0.000000e+00 : tensor<2x8x16xf32>
  %1 = nn.dropout %0 at (%i, %j, %k : tensor<2xi64>, tensor<8xi64>, tensor<16xi32>) seed %seed : tensor<i64> rate 0.0 : tensor<2x8x16xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} ignore -100 : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x8xf32>
  %2 = nn.cross_entropy %1, %labels ignore -100 : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x8xf32>
  // CHECK: nn.cross_entropy %{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x8xf32>
  %3 = nn.cross_entropy %1, %labels : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// Queries are of one sequence, keys and values of another.
// CHECK-LABEL: func.func @cross_attention
func.func @cross_attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %mask: tensor<2x5xi64>) -> tensor<2x3x4x8xf32> {
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : tensor<2x5xi64> scale 5.000000e-01 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  %0 = nn.attention %q, %k, %k mask %mask : tensor<2x5xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return %0 : tensor<2x3x4x8xf32>
}

// CHECK-LABEL: func.func @top_k
func.func @top_k(%x: tensor<2x3x8xbf16>) -> (tensor<2x3x4xbf16>, tensor<2x3x4xi32>) {
  // CHECK: nn.top_k %{{.*}} : tensor<2x3x8xbf16> -> tensor<2x3x4xbf16>, tensor<2x3x4xi32>
  %v, %i = nn.top_k %x : tensor<2x3x8xbf16> -> tensor<2x3x4xbf16>, tensor<2x3x4xi32>
  return %v, %i : tensor<2x3x4xbf16>, tensor<2x3x4xi32>
}

// CHECK-LABEL: func.func @last_token
func.func @last_token(%x: tensor<2x8x16xbf16>, %mask: tensor<2x8xi32>) -> tensor<2x1x16xbf16> {
  // CHECK: nn.last_token %{{.*}} mask %{{.*}} : tensor<2x8x16xbf16>, tensor<2x8xi32> -> tensor<2x1x16xbf16>
  %0 = nn.last_token %x mask %mask : tensor<2x8x16xbf16>, tensor<2x8xi32> -> tensor<2x1x16xbf16>
  return %0 : tensor<2x1x16xbf16>
}
