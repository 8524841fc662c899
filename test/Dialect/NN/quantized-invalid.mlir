// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @rows(%x: tensor<f32>) {
  // expected-error @+1 {{'nn.quantize_rows' op expects an input of at least one dimension [nn.quantize_rows_c1]}}
  %q, %s = nn.quantize_rows %x : tensor<f32> -> tensor<i8>, tensor<f32>
  return
}

// -----

func.func @rows(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.quantize_rows' op expects values of shape [7, 576], got [576, 7] [nn.quantize_rows_c1]}}
  %q, %s = nn.quantize_rows %x : tensor<7x576xf32> -> tensor<576x7xi8>, tensor<7xf32>
  return
}

// -----

func.func @rows(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.quantize_rows' op expects scales of shape [7], got [576] [nn.quantize_rows_c2]}}
  %q, %s = nn.quantize_rows %x : tensor<7x576xf32> -> tensor<7x576xi8>, tensor<576xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<7xf32>, %w: tensor<32x65xi8>, %t: tensor<32xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects a weight of two dimensions whose second one is the input's last, got shapes [32, 65] and [7, 64] [nn.quantized_linear_c1]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t : tensor<7x64xi8>, tensor<7xf32>, tensor<32x65xi8>, tensor<32xf32> -> tensor<7x32xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<7xf32>, %w: tensor<32x64xi8>, %t: tensor<32xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects a result of shape [7, 32], got [7, 64] [nn.quantized_linear_c2]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t : tensor<7x64xi8>, tensor<7xf32>, tensor<32x64xi8>, tensor<32xf32> -> tensor<7x64xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<64xf32>, %w: tensor<32x64xi8>, %t: tensor<32xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects scales of the input of shape [7], got [64] [nn.quantized_linear_c3]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t : tensor<7x64xi8>, tensor<64xf32>, tensor<32x64xi8>, tensor<32xf32> -> tensor<7x32xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<7xf32>, %w: tensor<32x64xi8>, %t: tensor<64xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects scales of the weight of shape [32], got [64] [nn.quantized_linear_c3]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t : tensor<7x64xi8>, tensor<7xf32>, tensor<32x64xi8>, tensor<64xf32> -> tensor<7x32xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<7xf32>, %w: tensor<32x64xi8>, %t: tensor<32xf32>, %b: tensor<7xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects a bias of shape [32], got [7] [nn.quantized_linear_c4]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t bias %b : tensor<7x64xi8>, tensor<7xf32>, tensor<32x64xi8>, tensor<32xf32>, tensor<7xf32> -> tensor<7x32xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x64xi8>, %s: tensor<7xf32>, %w: tensor<32x64xi8>, %t: tensor<32xf32>, %b: tensor<32xbf16>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects one element type, got 'f32' and 'bf16' [nn.quantized_linear_c4]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t bias %b : tensor<7x64xi8>, tensor<7xf32>, tensor<32x64xi8>, tensor<32xf32>, tensor<32xbf16> -> tensor<7x32xf32>
  return
}

// -----

func.func @linear(%x: tensor<7x131072xi8>, %s: tensor<7xf32>, %w: tensor<32x131072xi8>, %t: tensor<32xf32>) {
  // expected-error @+1 {{'nn.quantized_linear' op expects at most 131071 products, whose sum is within 32 bits, got 131072 [nn.quantized_linear_c5]}}
  %y = nn.quantized_linear %x scales %s, %w scales %t : tensor<7x131072xi8>, tensor<7xf32>, tensor<32x131072xi8>, tensor<32xf32> -> tensor<7x32xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects two dimensions of i8 with 'quantized values', one of f32 with 'quantized scales', and floating-point numbers otherwise, got 'tensor<4x8xi8>' [nn.parameter_c9]}}
  %w = nn.parameter "w" : tensor<4x8xi8>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{got 'tensor<4x8xf32>' [nn.parameter_c9]}}
  %w = nn.parameter "w" quantized values : tensor<4x8xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{got 'tensor<8xi8>' [nn.parameter_c9]}}
  %w = nn.parameter "w" quantized values : tensor<8xi8>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{got 'tensor<4xbf16>' [nn.parameter_c9]}}
  %w = nn.parameter "w.scales" slices ["w"[4, 8]] quantized scales : tensor<4xbf16>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{got 'tensor<4x8xf32>' [nn.parameter_c9]}}
  %w = nn.parameter "w.scales" slices ["w"[4, 8]] quantized scales : tensor<4x8xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{'nn.parameter' op expects slices of rank 2, got tensor 'w' of rank 1 [nn.parameter_c2]}}
  %w = nn.parameter "w.scales" slices ["w"[4]] quantized scales : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{expects values or scales, got 'rows'}}
  %w = nn.parameter "w" quantized rows : tensor<4x8xi8>
  return
}
