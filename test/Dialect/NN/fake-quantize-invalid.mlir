// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @shape(%x: tensor<7x576xf32>, %c: tensor<2xi32>) {
  // expected-error @+1 {{'nn.fake_quantize' op expects a result of shape [7, 576], got [7, 575] [nn.fake_quantize_c1]}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x575xf32>
  return
}

// -----

func.func @scalar(%x: tensor<f32>, %c: tensor<2xi32>) {
  // expected-error @+1 {{'nn.fake_quantize' op expects at least one dimension and one element, got 'tensor<f32>' [nn.fake_quantize_c1]}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 : tensor<f32>, tensor<2xi32> -> tensor<f32>
  return
}

// -----

func.func @ranks(%x: tensor<7x576xf32>, %c: tensor<2xi32>) {
  // expected-error @+1 {{'nn.fake_quantize' op expects at least 1 rank, got 0 [nn.fake_quantize_c2]}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 0 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  return
}

// -----

func.func @codes(%x: tensor<7x576xf32>, %c: tensor<3xi32>) {
  // expected-error @+1 {{'nn.fake_quantize' op operand #1 must be tensor of 2 i32 values, but got 'tensor<3xi32>'}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 : tensor<7x576xf32>, tensor<3xi32> -> tensor<7x576xf32>
  return
}

// -----

func.func @parts(%x: tensor<7x576xf32>, %c: tensor<2xi32>) {
  // expected-error @+1 {{'nn.fake_quantize' op expects at least 1 part, got 0 [nn.fake_quantize_c2]}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 parts 0 : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  return
}

// -----

comm.mesh @mesh <tp = 4>
func.func @group(%x: tensor<7x576xf32>, %c: tensor<2xi32>) {
  // expected-error @+1 {{[nn.fake_quantize_c3]}}
  %0 = nn.fake_quantize %x by %c half reduce ranks 4 over <@mesh, {pp}> : tensor<7x576xf32>, tensor<2xi32> -> tensor<7x576xf32>
  return
}
