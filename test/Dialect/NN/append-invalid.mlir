// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @append(%x: tensor<2x1x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects 'dim' in [1, 3), got 0 [nn.append_c1]}}
  %0 = nn.append %x to %cache dim 0 at %p : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x1x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects 'dim' in [1, 3), got 3 [nn.append_c1]}}
  %0 = nn.append %x to %cache dim 3 at %p : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x9x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects an input of type 'tensor<2x8x4xf32>' with 1 to 8 in dimension 1, got 'tensor<2x9x4xf32>' [nn.append_c2]}}
  %0 = nn.append %x to %cache dim 1 at %p : tensor<2x9x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x0x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects an input of type 'tensor<2x8x4xf32>' with 1 to 8 in dimension 1, got 'tensor<2x0x4xf32>' [nn.append_c2]}}
  %0 = nn.append %x to %cache dim 1 at %p : tensor<2x0x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects an input of type 'tensor<2x8x4xf32>' with 1 to 8 in dimension 1, got 'tensor<2x4xf32>' [nn.append_c2]}}
  %0 = nn.append %x to %cache dim 1 at %p : tensor<2x4xf32>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x1x4xf16>, %cache: tensor<2x8x4xf32>, %p: tensor<2xi32>) {
  // expected-error @+1 {{'nn.append' op expects an input of type 'tensor<2x8x4xf32>' with 1 to 8 in dimension 1, got 'tensor<2x1x4xf16>' [nn.append_c2]}}
  %0 = nn.append %x to %cache dim 1 at %p : tensor<2x1x4xf16>, tensor<2x8x4xf32>, tensor<2xi32>
  return
}

// -----

func.func @append(%x: tensor<2x1x4xf32>, %cache: tensor<2x8x4xf32>, %p: tensor<3xi32>) {
  // expected-error @+1 {{'nn.append' op expects 2 positions, got 3 [nn.append_c3]}}
  %0 = nn.append %x to %cache dim 1 at %p : tensor<2x1x4xf32>, tensor<2x8x4xf32>, tensor<3xi32>
  return
}
