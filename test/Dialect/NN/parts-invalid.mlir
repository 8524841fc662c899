// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects 'dim' in [0, 2), got 2 [nn.slice_c1]}}
  %0 = nn.slice %x dim 2 from 0 size 1 : tensor<4x6xf32> -> tensor<4x6xf32>
  return
}

// -----

func.func @slice(%x: tensor<f32>) {
  // expected-error @+1 {{'nn.slice' op expects 'dim' in [0, 0), got 0 [nn.slice_c1]}}
  %0 = nn.slice %x dim 0 from 0 size 1 : tensor<f32> -> tensor<f32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a range inside of dimension 1 of size 6, got 3 from 4 [nn.slice_c2]}}
  %0 = nn.slice %x dim 1 from 4 size 3 : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a range inside of dimension 1 of size 6, got 2 from -1 [nn.slice_c2]}}
  %0 = nn.slice %x dim 1 from -1 size 2 : tensor<4x6xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a range inside of dimension 0 of size 4, got 0 from 1 [nn.slice_c2]}}
  %0 = nn.slice %x dim 0 from 1 size 0 : tensor<4x6xf32> -> tensor<0x6xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a range inside of dimension 0 of size 4, got 2 from 9223372036854775807 [nn.slice_c2]}}
  %0 = nn.slice %x dim 0 from 9223372036854775807 size 2 : tensor<4x6xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a result of type 'tensor<4x2xf32>', got 'tensor<4x3xf32>' [nn.slice_c3]}}
  %0 = nn.slice %x dim 1 from 0 size 2 : tensor<4x6xf32> -> tensor<4x3xf32>
  return
}

// -----

func.func @slice(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.slice' op expects a result of type 'tensor<4x2xf32>', got 'tensor<4x2xbf16>' [nn.slice_c3]}}
  %0 = nn.slice %x dim 1 from 0 size 2 : tensor<4x6xf32> -> tensor<4x2xbf16>
  return
}

// -----

func.func @slice(%x: tensor<?x6xf32>) {
  // expected-error @+1 {{'nn.slice' op operand #0 must be statically shaped tensor of at most 2^48 f64, f32, bf16, f16, i64, i32 or i8 values, but got 'tensor<?x6xf32>'}}
  %0 = nn.slice %x dim 1 from 0 size 2 : tensor<?x6xf32> -> tensor<?x2xf32>
  return
}

// -----

func.func @concat() {
  // expected-error @+1 {{'nn.concat' op expects at least one input [nn.concat_c1]}}
  %0 = "nn.concat"() <{dim = 0 : i64}> : () -> tensor<4xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x6xf32>) {
  // expected-error @+1 {{'nn.concat' op expects 'dim' in [0, 2), got -1 [nn.concat_c2]}}
  %0 = nn.concat %x, %x dim -1 : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x6xf32>, %y: tensor<3x5xf32>) {
  // expected-error @+1 {{'nn.concat' op expects input 1 of type 'tensor<4x6xf32>' with any size of at least 1 in dimension 0, got 'tensor<3x5xf32>' [nn.concat_c3]}}
  %0 = nn.concat %x, %y dim 0 : tensor<4x6xf32>, tensor<3x5xf32> -> tensor<7x6xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x6xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'nn.concat' op expects input 1 of type 'tensor<4x6xf32>' with any size of at least 1 in dimension 0, got 'tensor<4xf32>' [nn.concat_c3]}}
  %0 = nn.concat %x, %y dim 0 : tensor<4x6xf32>, tensor<4xf32> -> tensor<8x6xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x6xf32>, %y: tensor<4x6xf16>) {
  // expected-error @+1 {{'nn.concat' op expects input 1 of type 'tensor<4x6xf32>' with any size of at least 1 in dimension 1, got 'tensor<4x6xf16>' [nn.concat_c3]}}
  %0 = nn.concat %x, %y dim 1 : tensor<4x6xf32>, tensor<4x6xf16> -> tensor<4x12xf32>
  return
}

// -----

func.func @concat(%x: tensor<0x6xf32>) {
  // expected-error @+1 {{'nn.concat' op expects input 0 of type 'tensor<0x6xf32>' with any size of at least 1 in dimension 0, got 'tensor<0x6xf32>' [nn.concat_c3]}}
  %0 = nn.concat %x dim 0 : tensor<0x6xf32> -> tensor<0x6xf32>
  return
}

// -----

func.func @concat(%x: tensor<4x6xf32>, %y: tensor<4x5xf32>) {
  // expected-error @+1 {{'nn.concat' op expects a result of type 'tensor<4x11xf32>', got 'tensor<4x12xf32>' [nn.concat_c4]}}
  %0 = nn.concat %x, %y dim 1 : tensor<4x6xf32>, tensor<4x5xf32> -> tensor<4x12xf32>
  return
}
