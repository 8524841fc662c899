// RUN: braid-opt %s -split-input-file --braid-form-kernels -verify-diagnostics

func.func @scalar(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{'nn.activation' op expects at least one dimension to form a kernel, got 'tensor<f32>'}}
  %0 = nn.activation gelu %x : tensor<f32>
  return %0 : tensor<f32>
}
