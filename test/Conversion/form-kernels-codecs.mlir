// RUN: braid-opt %s -split-input-file --braid-form-kernels | FileCheck %s
// GPUs have the same kernels, where rows are not too long for them.
// RUN: braid-opt %s -split-input-file --braid-form-kernels=target=cuda | FileCheck %s
// RUN: braid-opt %s -split-input-file --braid-form-kernels=fuse-codecs=false | FileCheck %s --check-prefix=APART
// RUN: braid-opt %s -split-input-file --braid-form-kernels="target=cuda fuse-codecs=false" | FileCheck %s --check-prefix=APART
// RUN: braid-opt %s -split-input-file --braid-form-kernels=fuse=false | FileCheck %s --check-prefix=APART

comm.mesh @mesh <tp = 4>

// What a reduce_scatter received is added, normalized and encoded for an all_gather in one kernel; the sum with the residual is a
// second result.
// CHECK-LABEL: rt.kernel @decode_sum_add_rms_norm_encode(
// CHECK-SAME: tensor<?x256xf32> {rt.payload = #rt.payload<"int4:128" of f32 senders 4>}, %{{.*}}: tensor<?x256xf32>, %{{.*}}: tensor<256xf32>)
// CHECK-SAME: -> (tensor<?x256xf32>, tensor<?x256xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) {
// CHECK-LABEL: func.func @between
// CHECK: %[[SENT:.*]] = comm.all_to_all
// CHECK-NEXT: %[[R:.*]]:2 = rt.launch @decode_sum_add_rms_norm_encode rows 12 ins(%[[SENT]], %arg1, %arg2 : tensor<4x1648xi8>, tensor<2x6x256xf32>, tensor<256xf32>) -> tensor<2x6x256xf32>, tensor<1x3184xi8>
// CHECK-NEXT: comm.all_gather(%[[R]]#1)
// CHECK-NOT: nn.{{en|de}}code
// CHECK: return %{{.*}}, %[[R]]#0
// APART-LABEL: func.func @between
// APART: nn.decode_sum
// APART: rt.launch @
// APART: nn.encode
func.func @between(%p: tensor<4x1648xi8>, %x: tensor<2x6x256xf32>, %w: tensor<256xf32>) -> (tensor<4x3184xi8>, tensor<2x6x256xf32>) {
  %0 = comm.all_to_all(%p) split 0 concat 0 over <@mesh, {tp}> role "r" : tensor<4x1648xi8> -> tensor<4x1648xi8>
  %1 = nn.decode_sum %0 senders 4 as <"int4:128"> of f32 : tensor<4x1648xi8> -> tensor<2x6x256xf32>
  %2 = nn.add %x, %1 : tensor<2x6x256xf32>, tensor<2x6x256xf32> -> tensor<2x6x256xf32>
  %3 = nn.rms_norm %2, %w epsilon 1.0e-5 : tensor<2x6x256xf32>, tensor<256xf32> -> tensor<2x6x256xf32>
  %4 = nn.encode %3 as <"int8:128"> : tensor<2x6x256xf32> -> tensor<1x3184xi8>
  %5 = comm.all_gather(%4) dim 0 over <@mesh, {tp}> role "g" : tensor<1x3184xi8> -> tensor<4x3184xi8>
  return %5, %2 : tensor<4x3184xi8>, tensor<2x6x256xf32>
}

// -----

// A sum that is encoded again, as in an all_reduce: rows that are padding are decoded, and rows that do not exist are encoded.
// CHECK-LABEL: rt.kernel @decode_sum_encode(
// CHECK-SAME: %[[X:.*]]: tensor<?x320xf32> {rt.payload = #rt.payload<"int8:128" of bf16 senders 4>})
// CHECK-SAME: -> (tensor<?x320xf32> {rt.payload = #rt.payload<"fp8e4m3:64" of f32>}) {
// CHECK-NEXT: rt.yield %[[X]] : tensor<?x320xf32>
// CHECK-LABEL: func.func @again
// CHECK: rt.launch @decode_sum_encode rows 2 ins(%arg0 : tensor<4x688xi8>) -> tensor<3x352xi8>
// APART-LABEL: func.func @again
// APART-NOT: rt.launch
// APART: return
func.func @again(%p: tensor<4x688xi8>) -> tensor<3x352xi8> {
  %0 = nn.decode_sum %p senders 4 as <"int8:128"> of bf16 : tensor<4x688xi8> -> tensor<2x320xf32>
  %1 = nn.encode %0 as <"fp8e4m3:64"> : tensor<2x320xf32> -> tensor<3x352xi8>
  return %1 : tensor<3x352xi8>
}

// -----

comm.mesh @mesh <tp = 4>

// What a rank would send to itself is not encoded by a kernel of rows either.
// CHECK-LABEL: rt.kernel @gelu_encode(
// CHECK-SAME: -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}>>}) {
// CHECK-LABEL: func.func @others
// CHECK: rt.launch @gelu_encode rows 8
func.func @others(%x: tensor<8x64xf32>) -> tensor<4x160xi8> {
  %0 = nn.activation gelu %x : tensor<8x64xf32>
  %1 = nn.encode %0 over <@mesh, {tp}> as <"int8:64"> : tensor<8x64xf32> -> tensor<4x160xi8>
  return %1 : tensor<4x160xi8>
}

// -----

comm.mesh @mesh <tp = 4>

// What a rank adds itself is an operand, as it is, that the codec has.
// CHECK-LABEL: rt.kernel @decode_sum_encode(
// CHECK-SAME: %[[X:.*]]: tensor<?x320xf32> {rt.payload = #rt.payload<"int8:128" of bf16 senders 4 own 1 over <@mesh, {tp}>>}, %{{.*}}: tensor<?x320xbf16>)
// CHECK-SAME: -> (tensor<?x320xf32> {rt.payload = #rt.payload<"fp8e4m3:64" of f32>}) {
// CHECK-NEXT: rt.yield %[[X]] : tensor<?x320xf32>
// CHECK-LABEL: func.func @own
// CHECK: %[[PART:.*]] = comm.part %arg1
// CHECK: rt.launch @decode_sum_encode rows 2 ins(%arg0, %[[PART]] : tensor<4x688xi8>, tensor<2x320xbf16>) -> tensor<3x352xi8>
// APART-LABEL: func.func @own
// APART-NOT: rt.launch
// APART: return
func.func @own(%p: tensor<4x688xi8>, %x: tensor<8x320xbf16>) -> tensor<3x352xi8> {
  %own = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x320xbf16> -> tensor<2x320xbf16>
  %0 = nn.decode_sum %p own %own over <@mesh, {tp}> senders 4 as <"int8:128"> of bf16 : tensor<4x688xi8>, tensor<2x320xbf16> -> tensor<2x320xf32>
  %1 = nn.encode %0 as <"fp8e4m3:64"> : tensor<2x320xf32> -> tensor<3x352xi8>
  return %1 : tensor<3x352xi8>
}

// -----

// Decoded rows that something else needs too are a result of the kernel. An absent part stays one.
// CHECK-LABEL: rt.kernel @decode_gelu(
// CHECK-SAME: {rt.payload = #rt.payload<"mxfp4" of f16 absent>}) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
// CHECK-LABEL: func.func @needed_twice
// CHECK: %[[R:.*]]:2 = rt.launch @decode_gelu rows 8
// CHECK-NEXT: nn.linear %[[R]]#0
func.func @needed_twice(%p: tensor<2x160xi8>, %w: tensor<64x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %0 = nn.decode %p as <"mxfp4"> of f16 absent : tensor<2x160xi8> -> tensor<8x64xf32>
  %1 = nn.activation gelu %0 : tensor<8x64xf32>
  %2 = nn.linear %0, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  return %1, %2 : tensor<8x64xf32>, tensor<8x64xf32>
}

// -----

// Rows with dimensions inside, where an operand has only some of them.
// CHECK-LABEL: rt.kernel @decode_add_encode(
// CHECK-SAME: tensor<?x3x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}, %{{.*}}: tensor<3x64xf32>)
// CHECK-SAME: -> (tensor<?x3x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}) attributes {row_dims = 2 : i64} {
// CHECK: rt.launch @decode_add_encode rows 2 ins(%arg0, %arg1 : tensor<1x432xi8>, tensor<3x64xf32>) -> tensor<6x96xi8>
func.func @positions(%p: tensor<1x432xi8>, %e: tensor<3x64xf32>) -> tensor<6x96xi8> {
  %0 = nn.decode %p as <"int8:64"> of f32 : tensor<1x432xi8> -> tensor<2x3x64xf32>
  %1 = nn.add %0, %e : tensor<2x3x64xf32>, tensor<3x64xf32> -> tensor<2x3x64xf32>
  %2 = nn.encode %1 as <"int8:64"> : tensor<2x3x64xf32> -> tensor<6x96xi8>
  return %2 : tensor<6x96xi8>
}

// -----

// Kernels that differ in an encoding only are not equal; the number of parts does not count.
// CHECK: rt.kernel @gelu_encode(
// CHECK: rt.kernel @gelu_encode_{{[0-9]+}}(
// CHECK-NOT: rt.kernel
// CHECK-LABEL: func.func @distinct
func.func @distinct(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %z: tensor<8x64xf32>) -> (tensor<4x160xi8>, tensor<4x96xi8>, tensor<2x288xi8>) {
  %0 = nn.activation gelu %x : tensor<8x64xf32>
  %1 = nn.encode %0 as <"int8:64"> : tensor<8x64xf32> -> tensor<4x160xi8>
  %2 = nn.activation gelu %y : tensor<8x64xf32>
  %3 = nn.encode %2 as <"int4:64"> : tensor<8x64xf32> -> tensor<4x96xi8>
  %4 = nn.activation gelu %z : tensor<8x64xf32>
  %5 = nn.encode %4 as <"int8:64"> : tensor<8x64xf32> -> tensor<2x288xi8>
  return %1, %3, %5 : tensor<4x160xi8>, tensor<4x96xi8>, tensor<2x288xi8>
}

// -----

comm.mesh @mesh <tp = 4>

// The collective starts as early as before: its payload is made where it was, and what other operations need later does not wait.
// CHECK-LABEL: func.func @starts_early
// CHECK: %[[A:.*]]:2 = rt.launch @gelu_encode rows 8
// CHECK-NEXT: comm.all_gather(%[[A]]#1)
// CHECK-NEXT: nn.linear %arg1
// CHECK-NEXT: rt.launch @mul rows 8 ins(%[[A]]#0
func.func @starts_early(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> (tensor<4x560xi8>, tensor<8x64xf32>) {
  %0 = nn.activation gelu %x : tensor<8x64xf32>
  %1 = nn.encode %0 as <"int8:64"> : tensor<8x64xf32> -> tensor<1x560xi8>
  %2 = comm.all_gather(%1) dim 0 over <@mesh, {tp}> role "g" : tensor<1x560xi8> -> tensor<4x560xi8>
  %3 = nn.linear %y, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  %4 = nn.mul %0, %3 : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  return %2, %4 : tensor<4x560xi8>, tensor<8x64xf32>
}
