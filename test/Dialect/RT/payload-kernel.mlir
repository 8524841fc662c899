// RUN: braid-opt %s | braid-opt | FileCheck %s

// Encodings are printed in their canonical form.
// CHECK: rt.kernel @both(%{{.*}}: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64+bf16-scale+spikes" of bf16 senders 4>}, %{{.*}}: tensor<?x64xf32> {rt.payload = #rt.payload<"mxfp4" of f32 absent>})
// CHECK-SAME: -> (tensor<?x64xf32>, tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) {
rt.kernel @both(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64+spikes+bf16-scale" of bf16 senders 4>},
                %y: tensor<?x64xf32> {rt.payload = #rt.payload<"mxfp4" of f32 absent>})
    -> (tensor<?x64xf32>, tensor<?x64xf32> {rt.payload = #rt.payload<"int8" of f32>}) {
  rt.yield %x, %y : tensor<?x64xf32>, tensor<?x64xf32>
}

rt.kernel @inner(%x: tensor<?x3x64xf32> {rt.payload = #rt.payload<"bf16" of f32>}) -> tensor<?x3x64xf32> attributes {row_dims = 2 : i64} {
  rt.yield %x : tensor<?x3x64xf32>
}

comm.mesh @mesh <tp = 4>
// Of a sum, the rows that the rank adds itself are an argument, which the body need not use.
// CHECK: rt.kernel @own(%{{.*}}: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of bf16 senders 4 own 1 over <@mesh, {tp}>>}, %{{.*}}: tensor<?x64xbf16>)
rt.kernel @own(%x: tensor<?x64xf32> {rt.payload = #rt.payload<"int8:128" of bf16 senders 4 own 1 over <@mesh, {tp}>>},
               %o: tensor<?x64xbf16>) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}

// What a rank would send to itself is not encoded.
// CHECK: rt.kernel @others(%{{.*}}: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}>>}) {
rt.kernel @others(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}> first 0>}) {
  rt.yield %x : tensor<?x64xf32>
}
// CHECK: rt.kernel @piece(%{{.*}}: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}> first 3>}) {
rt.kernel @piece(%x: tensor<?x64xf32>) -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32 over <@mesh, {tp}> first 3>}) {
  rt.yield %x : tensor<?x64xf32>
}

// Payloads have any number of parts, and rows that the kernel has no operand for.
// CHECK-LABEL: func.func @launches
func.func @launches(%p: tensor<8x320xi8>, %q: tensor<4x2x64xi8>, %c: tensor<2x1x784xi8>) {
  // CHECK: rt.launch @both rows 7 ins(%{{.*}}, %{{.*}} : tensor<8x320xi8>, tensor<4x2x64xi8>) -> tensor<7x64xf32>, tensor<1x496xi8>
  %0:2 = rt.launch @both rows 7 ins(%p, %q : tensor<8x320xi8>, tensor<4x2x64xi8>) -> tensor<7x64xf32>, tensor<1x496xi8>
  // CHECK: rt.launch @inner rows 4 ins(%{{.*}} : tensor<2x1x784xi8>) -> tensor<4x3x64xf32>
  %1 = rt.launch @inner rows 4 ins(%c : tensor<2x1x784xi8>) -> tensor<4x3x64xf32>
  return
}

// CHECK-LABEL: rt.procedure @memory
// CHECK: rt.launch @inner rows 4 ins(%{{.*}} : memref<2x784xi8>)
rt.procedure @memory(%c: memref<2x784xi8>, %o: memref<4x3x64xf32> {rt.result}) {
  rt.launch @inner rows 4 ins(%c : memref<2x784xi8>) outs(%o : memref<4x3x64xf32>)
  rt.return
}
