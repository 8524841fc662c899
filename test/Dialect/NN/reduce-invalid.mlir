// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @kind(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expects sum, max or min, got 'mean'}}
  %0 = nn.reduce mean %x dims [0] : tensor<2x3xf32> -> tensor<3xf32>
  return
}

// -----

func.func @none(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects ascending dimensions below 2, at least one, got [] [nn.reduce_c1]}}
  %0 = nn.reduce sum %x dims [] : tensor<2x3xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @order(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects ascending dimensions below 2, at least one, got [1, 0] [nn.reduce_c1]}}
  %0 = nn.reduce sum %x dims [1, 0] : tensor<2x3xf32> -> tensor<f32>
  return
}

// -----

func.func @shape(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects a result of shape [3], got [2] [nn.reduce_c2]}}
  %0 = nn.reduce sum %x dims [0] : tensor<2x3xf32> -> tensor<2xf32>
  return
}

// -----

func.func @type(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects one element type, got 'f32' and 'bf16' [nn.reduce_c3]}}
  %0 = nn.reduce sum %x dims [0] : tensor<2x3xf32> -> tensor<3xbf16>
  return
}

// -----

func.func @second_kind(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects a second result of a maximum only, got one of sum [nn.reduce_c4]}}
  %0, %1 = nn.reduce sum %x dims [0] : tensor<2x3xf32> -> tensor<3xf32>, tensor<3xf32>
  return
}

// -----

func.func @second_type(%x: tensor<2x3xbf16>) {
  // expected-error @+1 {{'nn.reduce' op expects a second result of f32, got 'bf16' [nn.reduce_c4]}}
  %0, %1 = nn.reduce max %x dims [0] : tensor<2x3xbf16> -> tensor<3xbf16>, tensor<3xbf16>
  return
}

// -----

func.func @second_shape(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{'nn.reduce' op expects a second result of shape [3], got [2] [nn.reduce_c4]}}
  %0, %1 = nn.reduce max %x dims [0] : tensor<2x3xf32> -> tensor<3xf32>, tensor<2xf32>
  return
}
