// RUN: braid-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @log_sum
// CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 : tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16> -> tensor<2x3x4x8xbf16>, tensor<2x3x4xf32>
func.func @log_sum(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x5x2x8xbf16>) -> tensor<2x3x4xf32> {
  %0, %1 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16> -> tensor<2x3x4x8xbf16>, tensor<2x3x4xf32>
  return %1 : tensor<2x3x4xf32>
}

// -----

func.func @type(%q: tensor<2x3x4x8xbf16>, %k: tensor<2x5x2x8xbf16>) {
  // expected-error @+1 {{'nn.attention' op expects a second result of f32, got 'bf16' [nn.attention_c11]}}
  %0, %1 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xbf16>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16> -> tensor<2x3x4x8xbf16>, tensor<2x3x4xbf16>
  return
}

// -----

func.func @shape(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects a second result of shape [2, 3, 4], got [2, 4, 3] [nn.attention_c11]}}
  %0, %1 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>, tensor<2x4x3xf32>
  return
}
