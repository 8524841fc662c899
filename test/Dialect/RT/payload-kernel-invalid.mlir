// RUN: braid-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expects one encoding, got 'int4:128/int8:128' [rt.payload_c1]}}
rt.kernel @payload_c1(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int4:128/int8:128" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{encoding 'int9:128': expects integers of 2 to 8 bits, got 9 [comm.encoding_c1]}}
rt.kernel @encoding(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int9:128" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects an encoded type f32, f16 or bf16, got 'f64' [rt.payload_c2]}}
rt.kernel @payload_c2(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f64>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects at least 1 sender [rt.payload_c3]}}
rt.kernel @payload_c3_senders(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 0>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects no absent parts of a sum [rt.payload_c3]}}
rt.kernel @payload_c3_absent(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 2 absent>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects 'rt.payload' of argument 0 to be #rt.payload, got "int8:128"}}
rt.kernel @argument(%x: tensor<?x64xf32> {rt.payload = "int8:128"}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects 'rt.payload' of result 0 to be #rt.payload, got "int8:128" [rt.kernel_c13]}}
rt.kernel @kernel_c13_result(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = "int8:128"}) {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{does not know the argument attribute 'rt.payload'}}
rt.procedure @procedure(%x: memref<4x64xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) {
  rt.return
}

// -----
// expected-error @below {{expects 'rt.payload' on rows and columns of floats of a kernel with a body only, got argument 1 of type 'tensor<64xf32>' [rt.kernel_c13]}}
rt.kernel @kernel_c13_weights(%x: tensor<?x64xf32>, %w: tensor<64xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects 'rt.payload' on rows and columns of floats of a kernel with a body only, got argument 1 of type 'tensor<?xf32>' [rt.kernel_c13]}}
rt.kernel @kernel_c13_rows(%x: tensor<?x64xf32>, %w: tensor<?xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects 'rt.payload' on rows and columns of floats of a kernel with a body only, got argument 0 of type 'tensor<?x64xi32>' [rt.kernel_c13]}}
rt.kernel @kernel_c13_type(%x: tensor<?x64xi32> {rt.payload = #rt.payload<"int8:128" of f32>}) -> tensor<?x64xi32> {
  rt.yield %x : tensor<?x64xi32>
}

// -----
// expected-error @below {{expects 'rt.payload' on rows and columns of floats of a kernel with a body only, got argument 0 of type 'tensor<?x64xf32>' [rt.kernel_c13]}}
rt.kernel @kernel_c13_library(tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) -> tensor<?x64xf32> attributes {library_symbol = "f"}

// -----
// expected-error @below {{expects result 0 to be encoded as a tensor of 'f32' without senders, got #rt.payload<"int8:128" of bf16> [rt.kernel_c13]}}
rt.kernel @kernel_c13_encoded(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of bf16>}) {
  rt.yield %x : tensor<?x64xf32>
}

// -----
// expected-error @below {{expects result 0 to be encoded as a tensor of 'f32' without senders, got #rt.payload<"int8:128" of f32 senders 2> [rt.kernel_c13]}}
rt.kernel @kernel_c13_senders(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 2>}) {
  rt.yield %x : tensor<?x64xf32>
}

// -----
rt.kernel @decode(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}
func.func @launch_c6_type(%x: tensor<7x64xf32>) {
  // expected-error @below {{expects input 0 to be a payload of i8 values for @decode, got 'tensor<7x64xf32>' [rt.launch_c6]}}
  %0 = rt.launch @decode rows 7 ins(%x : tensor<7x64xf32>) -> tensor<7x64xf32>
  return
}

// -----
rt.kernel @decode(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}
func.func @launch_c6_bytes(%p: tensor<2x280xi8>) {
  // expected-error @below {{expects input 0 to be a payload of 7 rows for @decode: payload: expects shape [2, 288], got [2, 280] [rt.launch_c6]}}
  %0 = rt.launch @decode rows 7 ins(%p : tensor<2x280xi8>) -> tensor<7x64xf32>
  return
}

// -----
rt.kernel @sum(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 senders 4>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}
func.func @launch_c6_senders(%p: tensor<3x288xi8>) {
  // expected-error @below {{expects input 0 to be a payload of 4 rows for @sum: payload: expects the parts of 4 ranks, got shape [3, 288] [rt.launch_c6]}}
  %0 = rt.launch @sum rows 4 ins(%p : tensor<3x288xi8>) -> tensor<4x64xf32>
  return
}

// -----
rt.kernel @encode(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}) {
  rt.yield %x : tensor<?x64xf32>
}
rt.procedure @launch_c6_strides(%x: memref<4x64xf32>, %p: memref<2x3x96xi8> {rt.result}) {
  %0 = rt.subview %p at [0, 0, 0] : memref<2x3x96xi8> to memref<2x2x96xi8, strided<[288, 96, 1]>>
  // expected-error @below {{expects output 0 to be a payload of 4 rows for @encode: payload: expects leading dimensions that can be walked as one and a contiguous last one, got shape [2, 2, 96] and strides [288, 96, 1] [rt.launch_c6]}}
  rt.launch @encode rows 4 ins(%x : memref<4x64xf32>) outs(%0 : memref<2x2x96xi8, strided<[288, 96, 1]>>)
  rt.return
}

// -----

// expected-error @below {{expects 'own' beside 'senders' only [rt.payload_c4]}}
rt.kernel @payload_c4(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 own 0 over <@mesh, {tp}>>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----

comm.mesh @mesh <tp = 4>
// expected-error @below {{expects argument 1, which argument 0 has as its own rows, to be of type 'tensor<?x64xf32>' and not encoded [rt.kernel_c13]}}
rt.kernel @kernel_c13_own(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 4 own 1 over <@mesh, {tp}>>}, %o: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @below {{expects a group of 4 ranks, as many as senders, got 2 [rt.kernel_c13]}}
rt.kernel @kernel_c13_group(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 4 own 1 over <@mesh, {tp}>>}, %o: tensor<?x64xf32>) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----

// expected-error @below {{expects 'first' of at least 0 and beside 'over' only [rt.payload_c5]}}
rt.kernel @payload_c5(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 first 1>}) {
  rt.yield %x : tensor<?x64xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @below {{expects 'over' without 'own' on results only, got argument 0 with #rt.payload<"int8:64" of f32 over <@mesh, {tp}>> [rt.kernel_c13]}}
rt.kernel @kernel_c13_over(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}>>}) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @below {{expects a group of at least 3 ranks, got 2 [rt.kernel_c13]}}
rt.kernel @kernel_c13_first(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}> first 2>}) {
  rt.yield %x : tensor<?x64xf32>
}
