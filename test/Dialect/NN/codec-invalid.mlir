// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.encode' op expects one encoding, got 'int8:128/int4:128' [nn.codec_c1]}}
  %0 = nn.encode %x as <"int8:128/int4:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.decode' op expects an encoded type f32, f16 or bf16, got 'f64' [nn.codec_c2]}}
  %0 = nn.decode %p as <"int8:128"> of f64 : tensor<4x1216xi8> -> tensor<7x576xf32>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.encode' op expects a payload of 1216 bytes a part, got 1208 [nn.codec_c3]}}
  %0 = nn.encode %x as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1208xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.decode' op expects a payload of 640 bytes a part, got 1216 [nn.codec_c3]}}
  %0 = nn.decode %p as <"int4:128"> of f32 : tensor<4x1216xi8> -> tensor<7x576xf32>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.decode_sum' op expects parts of 3 senders, got 4 [nn.codec_c4]}}
  %0 = nn.decode_sum %p senders 3 as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<2x576xf32>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{'nn.decode_sum' op expects parts of 0 senders, got 4 [nn.codec_c4]}}
  %0 = nn.decode_sum %p senders 0 as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<2x576xf32>
  return
}

// -----

func.func @codec(%p: tensor<4x1216xi8>, %own: tensor<2x576xf32>) {
  // expected-error @+1 {{'nn.decode_sum' op expects 'own' and 'over' together [nn.codec_c5]}}
  %0 = nn.decode_sum %p own %own senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8>, tensor<2x576xf32> -> tensor<2x576xf32>
  return
}

// -----

comm.mesh @mesh <tp = 4>
func.func @codec(%p: tensor<4x1216xi8>, %own: tensor<2x576xbf16>) {
  // expected-error @+1 {{'nn.decode_sum' op expects 'own' of 'tensor<2x576xf32>', got 'tensor<2x576xbf16>' [nn.codec_c5]}}
  %0 = nn.decode_sum %p own %own over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8>, tensor<2x576xbf16> -> tensor<2x576xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @codec(%p: tensor<4x1216xi8>, %own: tensor<2x576xf32>) {
  // expected-error @+1 {{'nn.decode_sum' op expects a group of 4 ranks, as many as senders, got 2 [nn.codec_c5]}}
  %0 = nn.decode_sum %p own %own over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8>, tensor<2x576xf32> -> tensor<2x576xf32>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.encode' op expects 'first' of 0 without 'over', got 1 [nn.codec_c6]}}
  %0 = nn.encode %x first 1 as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

comm.mesh @mesh <tp = 4>
func.func @codec(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.encode' op expects 'first' in [0, 4), got 4 [nn.codec_c6]}}
  %0 = nn.encode %x over <@mesh, {tp}> first 4 as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

comm.mesh @mesh <tp = 1>
func.func @codec(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.encode' op expects a group of at least 2 ranks, got 1 [nn.codec_c6]}}
  %0 = nn.encode %x over <@mesh, {tp}> as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

comm.mesh @mesh <tp = 4>
func.func @codec(%x: tensor<7x576xf32>) {
  // expected-error @+1 {{'nn.encode' op unknown axis 'dp' in mesh 'mesh' [nn.codec_c6]}}
  %0 = nn.encode %x over <@mesh, {dp}> as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}
