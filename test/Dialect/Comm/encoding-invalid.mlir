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
