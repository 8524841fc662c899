// RUN: braid-opt %s | FileCheck %s
// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

comm.mesh @mesh <tp = 4>

// CHECK-LABEL: func.func @codec
func.func @codec(%x: tensor<7x576xf32>, %h: tensor<2x3x4x64xbf16>) -> (tensor<7x576xf32>, tensor<2x576xf32>, tensor<2x3x4x64xf16>) {
  // Rows of 5 * 4 + 576 bytes, 2 of them in each of 4 parts, 16 bytes before them and 8 after them.
  // CHECK: nn.encode %{{.*}} as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  %p = nn.encode %x as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  %others = nn.encode %x over <@mesh, {tp}> first 0 as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  // CHECK: nn.encode %{{.*}} over <@mesh, {tp}> first 3 as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  %from = nn.encode %x over <@mesh, {tp}> first 3 as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
  // CHECK: nn.decode %{{.*}} as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<7x576xf32>
  %y = nn.decode %p as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<7x576xf32>
  // CHECK: nn.decode_sum %{{.*}} senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<2x576xf32>
  %s = nn.decode_sum %p senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<2x576xf32>
  // CHECK: nn.decode_sum %{{.*}} own %{{.*}} over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8>, tensor<2x576xf32> -> tensor<2x576xf32>
  %o = nn.decode_sum %p own %s over <@mesh, {tp}> senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8>, tensor<2x576xf32> -> tensor<2x576xf32>
  // Any number of leading dimensions counts parts. Options have one order, and groups of 128 are the default.
  // CHECK: nn.encode %{{.*}} as <"int4:128+symmetric+hadamard64+spikes"> : tensor<2x3x4x64xbf16> -> tensor<2x3x176xi8>
  %q = nn.encode %h as <"int4+spikes+hadamard64+symmetric"> : tensor<2x3x4x64xbf16> -> tensor<2x3x176xi8>
  // CHECK: nn.decode %{{.*}} as <"int4:128+symmetric+hadamard64+spikes"> of bf16 absent : tensor<2x3x176xi8> -> tensor<2x3x4x64xf16>
  %z = nn.decode %q as <"int4:128+symmetric+hadamard64+spikes"> of bf16 absent : tensor<2x3x176xi8> -> tensor<2x3x4x64xf16>
  return %y, %o, %z : tensor<7x576xf32>, tensor<2x576xf32>, tensor<2x3x4x64xf16>
}
