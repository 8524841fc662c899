// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// nn.embedding
//===----------------------------------------------------------------------===//

func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op expects a result of shape [2, 3, 4], got [3, 2, 4] [nn.embedding_c1]}}
  %0 = nn.embedding %ids, %table : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<3x2x4xf32>
  return
}

// -----

// nn.embedding_c3
comm.mesh @mesh <tp = 2>
func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op unknown axis 'pp' in mesh 'mesh' [nn.embedding_c3]}}
  %0 = nn.embedding %ids, %table over <@mesh, {pp}> : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

// nn.embedding_c4
func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op expects 'rows' of 1 to 10, got 11 [nn.embedding_c4]}}
  %0 = nn.embedding %ids, %table rows 11 : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

// nn.embedding_c4
comm.mesh @mesh <tp = 2>
func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op expects 'rows' of 1 to 20, got 21 [nn.embedding_c4]}}
  %0 = nn.embedding %ids, %table rows 21 over <@mesh, {tp}> : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op expects one element type, got 'f32' and 'bf16' [nn.embedding_c2]}}
  %0 = nn.embedding %ids, %table : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xbf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.linear
//===----------------------------------------------------------------------===//

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x5xf32>) {
  // expected-error @+1 {{'nn.linear' op expects an input whose last dimension is 5 as the weight's second, got shape [2, 4] [nn.linear_c1]}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x5xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @linear(%x: tensor<f32>, %w: tensor<6x5xf32>) {
  // expected-error @+1 {{'nn.linear' op expects an input whose last dimension is 5 as the weight's second, got shape [] [nn.linear_c1]}}
  %0 = nn.linear %x, %w : tensor<f32>, tensor<6x5xf32> -> tensor<6xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // expected-error @+1 {{'nn.linear' op expects a result of shape [2, 6], got [2, 4] [nn.linear_c2]}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xbf16>) {
  // expected-error @+1 {{'nn.linear' op expects one element type, got 'f32' and 'bf16' [nn.linear_c3]}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x4xbf16> -> tensor<2x6xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.layer_norm
//===----------------------------------------------------------------------===//

func.func @layer_norm(%x: tensor<f32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op expects an input of at least one dimension [nn.layer_norm_c1]}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<f32>, tensor<4xf32>, tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<2xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op expects a weight of shape [4], got [2] [nn.layer_norm_c1]}}
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x4xf32>, tensor<2xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op expects a bias of shape [4], got [2] [nn.layer_norm_c1]}}
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op expects result type 'tensor<2x4xf32>', got 'tensor<4x4xf32>' [nn.layer_norm_c2]}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf16>) {
  // expected-error @+1 {{'nn.layer_norm' op expects one element type, got 'f32' and 'f16' [nn.layer_norm_c3]}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf16>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.layer_norm' op expects epsilon to be positive and finite, got -1 [nn.layer_norm_c4]}}
  %0 = nn.layer_norm %x, %w, %w epsilon -1.0 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<f32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op expects an input of at least one dimension [nn.rms_norm_c1]}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<f32>, tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<3xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op expects a weight of shape [4], got [3] [nn.rms_norm_c1]}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>' [nn.rms_norm_c2]}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf16>) {
  // expected-error @+1 {{'nn.rms_norm' op expects one element type, got 'f32' and 'f16' [nn.rms_norm_c3]}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{'nn.rms_norm' op expects epsilon to be positive and finite, got 0 [nn.rms_norm_c4]}}
  %0 = nn.rms_norm %x, %w epsilon 0.0 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @softmax(%x: tensor<f32>) {
  // expected-error @+1 {{'nn.softmax' op expects an input of at least one dimension [nn.softmax_c1]}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.activation, nn.add
//===----------------------------------------------------------------------===//

func.func @activation(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.activation' op requires the same type for all operands and results}}
  %0 = "nn.activation"(%x) {kind = #nn<activation gelu>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @activation(%x: tensor<2x4xf32>) {
  // expected-error @+2 {{failed to parse NN_ActivationAttr parameter 'value'}}
  // expected-error @+1 {{expected ::braid::nn::ActivationKind to be one of: gelu, gelu_tanh, silu, quick_gelu, gelu_10, relu, relu2, relu6, leaky_relu, mish, tanh, sigmoid, hardswish, laplace}}
  %0 = nn.activation elu %x : tensor<2x4xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'nn.add' op expects the second operand's shape at the end of the first one's, got [2] and [2, 4] [nn.add_c1]}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @add(%x: tensor<4xf32>, %y: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.add' op expects the second operand's shape at the end of the first one's, got [2, 4] and [4] [nn.add_c1]}}
  %0 = nn.add %x, %y : tensor<4xf32>, tensor<2x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'nn.add' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>' [nn.add_c2]}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<4xf16>) {
  // expected-error @+1 {{'nn.add' op expects one element type, got 'f32' and 'f16' [nn.add_c3]}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

// Element types and shapes that the dialect does not support.
func.func @types(%x: tensor<2x?xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{'nn.add' op operand #0 must be statically shaped tensor of at most 2^48 f32, bf16 or f16 values, but got 'tensor<2x?xf32>'}}
  %0 = nn.add %x, %y : tensor<2x?xf32>, tensor<4xf64> -> tensor<2x?xf32>
  return
}

// -----

// One element more than the limit.
func.func @too_large(%x: tensor<281474976710657xf32>, %y: tensor<281474976710656xf32>) {
  %0 = nn.add %y, %y : tensor<281474976710656xf32>, tensor<281474976710656xf32> -> tensor<281474976710656xf32>
  // expected-error @+1 {{'nn.add' op operand #0 must be statically shaped tensor of at most 2^48 f32, bf16 or f16 values, but got 'tensor<281474976710657xf32>'}}
  %1 = nn.add %x, %x : tensor<281474976710657xf32>, tensor<281474976710657xf32> -> tensor<281474976710657xf32>
  return
}

// -----

// No elements, but strides above the limit; also for ids.
func.func @too_large(%x: tensor<0x4294967296x4294967296xf32>) {
  // expected-error @+1 {{'nn.activation' op operand #0 must be statically shaped tensor of at most 2^48 f32, bf16 or f16 values, but got 'tensor<0x4294967296x4294967296xf32>'}}
  %0 = nn.activation silu %x : tensor<0x4294967296x4294967296xf32>
  return
}

// -----

func.func @too_large(%i: tensor<1x562949953421312xi64>, %w: tensor<4x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op operand #0 must be statically shaped tensor of at most 2^48 i32 or i64 values, but got 'tensor<1x562949953421312xi64>'}}
  %0 = nn.embedding %i, %w : tensor<1x562949953421312xi64>, tensor<4x4xf32> -> tensor<1x562949953421312x4xf32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<2xf32>) {
  // expected-error @+1 {{'nn.mul' op expects the second operand's shape at the end of the first one's, got [2] and [2, 4] [nn.mul_c1]}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {
  // expected-error @+1 {{'nn.mul' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>' [nn.mul_c2]}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<4xf16>) {
  // expected-error @+1 {{'nn.mul' op expects one element type, got 'f32' and 'f16' [nn.mul_c3]}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}
