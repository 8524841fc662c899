// RUN: braid-opt %s --split-input-file --verify-diagnostics

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'arith.addf' op expects 'comm.encoding' to be a #comm.encoding of a collective, got #comm.encoding<"int8:128"> [comm.attributes_c11]}}
  %0 = arith.addf %x, %x {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'comm.all_reduce' op expects 'comm.encoding' to be a #comm.encoding of a collective, got "int8" [comm.attributes_c11]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = "int8"} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'comm.reduce' op cannot be encoded as 'int8:128': a comm.reduce has no encoded form [comm.attributes_c12]}}
  %0 = comm.reduce sum(%x) to 0 over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'comm.all_reduce' op cannot be encoded as 'int8:128': it is no sum [comm.attributes_c12]}}
  %0 = comm.all_reduce max(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:128">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'comm.all_gather' op cannot be encoded as 'int8:128': it has values of tensor<4xi32>, and encodings take rows of f32, f16 or bf16 [comm.attributes_c12]}}
  %0 = comm.all_gather(%i) dim 0 over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:128">} : tensor<4xi32> -> tensor<8xi32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{'comm.all_gather' op has one half, but two encodings 'int4:128/int8:128' [comm.attributes_c13]}}
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int4:128/int8:128">} : tensor<4x64xf32> -> tensor<8x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int9:128': expects integers of 2 to 8 bits, got 9 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int9:128">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int1': expects integers of 2 to 8 bits, got 1 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int1">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'fp8': expects int2 to int8, bf16, f16, fp8e4m3, fp8e5m2, fp6e3m2, fp6e2m3, fp4e2m1, mxfp8e4m3, mxfp8e5m2, mxfp6e3m2, mxfp6e2m3, mxfp4 or nvfp4 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"fp8">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int8:16': expects a group of 32 to 8192 elements that 8 divides, got 16 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:16">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int8:96+hadamard64': hadamard64 does not divide the group of 96 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:96+hadamard64">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int8:96+hadamard48': expects hadamard of a power of two from 16 to 256, got 48 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8:96+hadamard48">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'mxfp4:64': mxfp4 expects groups of 32, got 64 [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"mxfp4:64">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'bf16:128': a cast has no groups and no options [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"bf16:128">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'fp8e4m3+symmetric': symmetric and zero-point are options of integers [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"fp8e4m3+symmetric">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int8+spikes+spikes': the option 'spikes' stands twice [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8+spikes+spikes">} : tensor<4x64xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<4x64xf32>, %i: tensor<4xi32>) {
  // expected-error @+1 {{encoding 'int8+fast': expects an option symmetric, zero-point, bf16-scale, hadamardN or spikes, got 'fast' [comm.encoding_c1]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> {comm.encoding = #comm.encoding<"int8+fast">} : tensor<4x64xf32>
  return
}
