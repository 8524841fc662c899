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

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int9:128': expects integers of 2 to 8 bits, got 9 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int9:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int1': expects integers of 2 to 8 bits, got 1 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int1"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'fp8': expects int2 to int8, bf16, f16, fp8e4m3, fp8e5m2, fp6e3m2, fp6e2m3, fp4e2m1, mxfp8e4m3, mxfp8e5m2, mxfp6e3m2, mxfp6e2m3, mxfp4 or nvfp4 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"fp8"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int8:16': expects a group of 32 to 8192 elements that 8 divides, got 16 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int8:16"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int8:96+hadamard64': hadamard64 does not divide the group of 96 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int8:96+hadamard64"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int8:96+hadamard48': expects hadamard of a power of two from 16 to 256, got 48 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int8:96+hadamard48"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'mxfp4:64': mxfp4 expects groups of 32, got 64 [comm.encoding_c1]}}
  %0 = nn.encode %x as <"mxfp4:64"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'bf16:128': a cast has no groups and no options [comm.encoding_c1]}}
  %0 = nn.encode %x as <"bf16:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'fp8e4m3+symmetric': symmetric and zero-point are options of integers [comm.encoding_c1]}}
  %0 = nn.encode %x as <"fp8e4m3+symmetric"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int8+spikes+spikes': the option 'spikes' stands twice [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int8+spikes+spikes"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}

// -----

func.func @codec(%x: tensor<7x576xf32>, %p: tensor<4x1216xi8>) {
  // expected-error @+1 {{encoding 'int8+fast': expects an option symmetric, zero-point, bf16-scale, hadamardN or spikes, got 'fast' [comm.encoding_c1]}}
  %0 = nn.encode %x as <"int8+fast"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  return
}
