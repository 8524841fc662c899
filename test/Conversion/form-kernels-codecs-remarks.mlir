// RUN: braid-opt %s --braid-form-kernels --remark-format=emitRemark --remarks-filter=kernels -o /dev/null 2>&1 | FileCheck %s
// What was not joined stays as it was.
// RUN: braid-opt %s --braid-form-kernels | FileCheck %s --check-prefix=IR

comm.mesh @mesh <tp = 2>

// IR-LABEL: func.func @matmuls
// IR: nn.decode
// IR: nn.encode
func.func @matmuls(%p: tensor<1x560xi8>, %w: tensor<64x64xf32>) -> tensor<1x560xi8> {
  // CHECK-DAG: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.decode is not joined with nn.linear: that is no row operation
  %0 = nn.decode %p as <"int8:64"> of f32 : tensor<1x560xi8> -> tensor<8x64xf32>
  %1 = nn.linear %0, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  // CHECK-DAG: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.encode is not joined with nn.linear: that is no row operation
  %2 = nn.encode %1 as <"int8:64"> : tensor<8x64xf32> -> tensor<1x560xi8>
  return %2 : tensor<1x560xi8>
}

// Another operation takes the value before the encode does.
// IR-LABEL: func.func @before
// IR: rt.launch @gelu
// IR: nn.encode
func.func @before(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> (tensor<1x560xi8>, tensor<8x64xf32>) {
  %0 = nn.activation gelu %x : tensor<8x64xf32>
  %1 = nn.linear %0, %w : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
  // CHECK: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.encode is not joined with nn.activation: another operation needs its value before
  %2 = nn.encode %0 as <"int8:64"> : tensor<8x64xf32> -> tensor<1x560xi8>
  return %2, %1 : tensor<1x560xi8>, tensor<8x64xf32>
}

// Rows that were cut into pieces are other rows.
func.func @pieces(%x: tensor<7x64xf32>) -> tensor<2x272xi8> {
  %0 = nn.activation gelu %x : tensor<7x64xf32>
  %1 = tensor.expand_shape %0 [[0], [1, 2]] output_shape [7, 2, 32] : tensor<7x64xf32> into tensor<7x2x32xf32>
  // CHECK: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.encode is not joined with tensor.expand_shape: that is no row operation
  %2 = nn.encode %1 as <"int8:32"> : tensor<7x2x32xf32> -> tensor<2x272xi8>
  return %2 : tensor<2x272xi8>
}

// Rows of another shape.
func.func @shapes(%p: tensor<1x96xi8>, %x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // CHECK: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.decode is not joined with nn.add: of another shape
  %0 = nn.decode %p as <"int8:64"> of f32 : tensor<1x96xi8> -> tensor<64xf32>
  %1 = nn.add %x, %0 : tensor<8x64xf32>, tensor<64xf32> -> tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// A decode in flight with a collective that it does not need hides it.
func.func @hides(%p: tensor<1x560xi8>, %q: tensor<1x560xi8>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %h = comm.start (%a = %q) : tensor<1x560xi8> -> !comm.handle<tensor<2x560xi8>> {
    %r = comm.all_gather(%a) dim 0 over <@mesh, {tp}> : tensor<1x560xi8> -> tensor<2x560xi8>
    comm.yield %r : tensor<2x560xi8>
  }
  // CHECK: form-kernels-codecs-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.decode is not joined with nn.add: it hides a collective that the user waits for
  %0 = nn.decode %p as <"int8:64"> of f32 : tensor<1x560xi8> -> tensor<8x64xf32>
  %1 = comm.wait %h keeping %q : !comm.handle<tensor<2x560xi8>>, tensor<1x560xi8> -> tensor<2x560xi8>
  %2 = nn.decode_sum %1 senders 2 as <"int8:64"> of f32 : tensor<2x560xi8> -> tensor<8x64xf32>
  // CHECK: @decode_sum_add joins 2 operations over 8 rows
  %3 = nn.add %0, %2 : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x64xf32>
  return %3 : tensor<8x64xf32>
}
