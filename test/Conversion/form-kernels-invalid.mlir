// RUN: braid-opt %s -split-input-file --braid-form-kernels -verify-diagnostics

func.func @vector(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-error @below {{'nn.activation' op expects at least two dimensions to form a kernel, got 'tensor<16xf32>'}}
  %0 = nn.activation gelu %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
