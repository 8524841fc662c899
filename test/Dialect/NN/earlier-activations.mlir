// RUN: braid-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// Modules written before activations became one operation are upgraded when read.
// CHECK-LABEL: func.func @earlier
func.func @earlier(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: nn.activation gelu %{{.*}} : tensor<2x4xf32>
  %0 = nn.gelu erf %x : tensor<2x4xf32>
  // CHECK-NEXT: nn.activation gelu_tanh %{{.*}} : tensor<2x4xf32>
  %1 = nn.gelu tanh %0 : tensor<2x4xf32>
  // CHECK-NEXT: nn.activation silu %{{.*}} : tensor<2x4xf32>
  %2 = nn.silu %1 : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// -----

func.func @form(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{expects 'erf' or 'tanh', got 'fast'}}
  %0 = nn.gelu fast %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @type(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-note @-1 {{prior use here}}
  // expected-error @+1 {{use of value '%x' expects different type than prior uses: 'tensor<2x4xf16>' vs 'tensor<2x4xf32>'}}
  %0 = nn.silu %x : tensor<2x4xf16>
  return %0 : tensor<2x4xf16>
}

// -----

func.func @other(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{custom op 'nn.swish' is unknown}}
  %0 = nn.swish %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
