// DEFINE: %{encodings} =
// DEFINE: %{quantize} = braid-opt %s --braid-quantize-collectives=encodings=%{encodings}
// REDEFINE: %{encodings} = "*=int8:128"
// RUN: %{quantize} | FileCheck %s
// RUN: %{quantize} --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK-DAG: comm.all_reduce 'mlp.down': encoded as int8:128, as '*' says
// REMARK-DAG: comm.all_reduce 'largest': it is no sum
// The last one counts, and halves go where they belong.
// REDEFINE: %{encodings} = "*=int4:128+spikes/int8:128,mlp.*=bf16,tokens=none"
// RUN: %{quantize} | FileCheck %s --check-prefix=MIXED
// REDEFINE: %{encodings} = "@main/@layer#1/mlp.down=fp8e4m3:128"
// RUN: %{quantize} | FileCheck %s --check-prefix=PATH
// REDEFINE: %{encodings} = "mlp.upp=int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: expects collectives that 'mlp.upp' names, found none among 'mlp.down', 'attention.output', 'largest', 'tokens', 'shards'
// REDEFINE: %{encodings} = "@main/@layer#7/mlp.down=int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=NOPATH
// NOPATH: error: expects collectives that '@main/@layer#7/mlp.down' names, found none among
// REDEFINE: %{encodings} = "largest=int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=MAX
// MAX: error: 'comm.all_reduce' op 'largest' cannot be encoded as int8:128: it is no sum
// REDEFINE: %{encodings} = "lar*=int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=ALLMAX
// ALLMAX: error: expects a collective that 'lar*' names and that can be encoded, found none: 'largest': it is no sum
// REDEFINE: %{encodings} = "*=int9:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=WIDTH
// WIDTH: error: expects a list of PATTERN=ENCODING to quantize, such as '*=int8:128', got '*=int9:128': encoding 'int9:128': expects integers of 2 to 8 bits, got 9
// REDEFINE: %{encodings} = "int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=FORM
// FORM: error: expects a list of PATTERN=ENCODING to quantize, such as '*=int8:128', got 'int8:128'
// REDEFINE: %{encodings} = "mlp[=int8:128"
// RUN: not %{quantize} 2>&1 | FileCheck %s --check-prefix=GLOB
// GLOB: error: expects a list of PATTERN=ENCODING to quantize, such as '*=int8:128', got 'mlp[=int8:128': invalid glob pattern

comm.mesh @mesh <tp = 4>

// CHECK-LABEL: func.func private @layer
// MIXED-LABEL: func.func private @layer
// PATH-LABEL: func.func private @layer(
// PATH-NOT: comm.encoding
// PATH-LABEL: func.func private @layer_1(
// PATH: role "mlp.down" {comm.encoding = #comm.encoding<"fp8e4m3:128">}
// PATH-NOT: comm.encoding
func.func private @layer(%x: tensor<4x256xf32>) -> tensor<4x256xf32> {
  // CHECK: role "mlp.down" {comm.encoding = #comm.encoding<"int8:128">}
  // MIXED: role "mlp.down" {comm.encoding = #comm.encoding<"bf16">}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "mlp.down" : tensor<4x256xf32>
  // CHECK: role "attention.output" {comm.encoding = #comm.encoding<"int8:128">}
  // MIXED: role "attention.output" {comm.encoding = #comm.encoding<"int4:128+spikes/int8:128">}
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> role "attention.output" : tensor<4x256xf32>
  return %1 : tensor<4x256xf32>
}

func.func @main(%x: tensor<4x256xf32>) -> tensor<4x256xf32> {
  %a = call @layer(%x) : (tensor<4x256xf32>) -> tensor<4x256xf32>
  // PATH: call @layer_1({{.*}}) {comm.call = "layer#1"}
  %b = call @layer(%a) : (tensor<4x256xf32>) -> tensor<4x256xf32>
  // CHECK: role "largest" : tensor
  %c = comm.all_reduce max(%b) over <@mesh, {tp}> role "largest" : tensor<4x256xf32>
  // CHECK: role "tokens" {comm.encoding = #comm.encoding<"int8:128">}
  // MIXED: role "tokens" : tensor
  %d = comm.all_gather(%c) dim 0 over <@mesh, {tp}> role "tokens" : tensor<4x256xf32> -> tensor<16x256xf32>
  // CHECK: role "shards" {comm.encoding = #comm.encoding<"int8:128">}
  // MIXED: role "shards" {comm.encoding = #comm.encoding<"int4:128+spikes">}
  %e = comm.reduce_scatter sum(%d) dim 0 over <@mesh, {tp}> role "shards" : tensor<16x256xf32> -> tensor<4x256xf32>
  return %e : tensor<4x256xf32>
}
