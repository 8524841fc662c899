// RUN: braid-opt %s --braid-form-kernels=target=cuda --remark-format=emitRemark --remarks-filter=kernels -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: braid-opt %s --braid-form-kernels=target=cuda | FileCheck %s --check-prefix=CUDA
// RUN: braid-opt %s --braid-form-kernels | FileCheck %s --check-prefix=CPU
// RUN: not braid-opt %s --braid-form-kernels=target=tpu 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: tpu

// A block of a GPU has rows in shared memory: those of 8192 f32 once, but not twice, and longer ones not at all.

// CPU-LABEL: func.func @twice
// CPU: rt.launch @decode_sum_add_encode rows 4
// CUDA-LABEL: func.func @twice
// CUDA: %[[D:.*]] = nn.decode_sum
// CUDA-NEXT: rt.launch @add_encode rows 4 ins(%[[D]],
func.func @twice(%p: tensor<2x33808xi8>, %x: tensor<4x8192xf32>) -> tensor<1x33808xi8> {
  // REMARK: form-kernels-codecs-cuda.mlir:[[#@LINE+1]]:{{.*}}nn.decode_sum is not joined with nn.add: a block of a GPU would need 75008 bytes of shared memory for rows and codecs, and has 49152
  %0 = nn.decode_sum %p senders 2 as <"int8:128"> of f32 : tensor<2x33808xi8> -> tensor<4x8192xf32>
  %1 = nn.add %0, %x : tensor<4x8192xf32>, tensor<4x8192xf32> -> tensor<4x8192xf32>
  %2 = nn.encode %1 as <"int8:128"> : tensor<4x8192xf32> -> tensor<1x33808xi8>
  return %2 : tensor<1x33808xi8>
}

// CPU-LABEL: func.func @once
// CPU: rt.launch @gelu_encode rows 1
// CUDA-LABEL: func.func @once
// CUDA: rt.launch @gelu rows 1
// CUDA-NEXT: nn.encode
func.func @once(%x: tensor<1x14336xf32>) -> tensor<1x14800xi8> {
  // REMARK: form-kernels-codecs-cuda.mlir:[[#@LINE+1]]:{{.*}}nn.activation is not joined with nn.encode: a block of a GPU would need 66816 bytes of shared memory for rows and codecs, and has 49152
  %0 = nn.activation gelu %x : tensor<1x14336xf32>
  %1 = nn.encode %0 as <"int8:128"> : tensor<1x14336xf32> -> tensor<1x14800xi8>
  return %1 : tensor<1x14800xi8>
}

// CUDA-LABEL: func.func @of_halves
// CUDA: rt.launch @decode_sum_add_encode rows 4
func.func @of_halves(%p: tensor<2x33808xi8>, %x: tensor<4x8192xbf16>) -> tensor<1x33808xi8> {
  %0 = nn.decode_sum %p senders 2 as <"int8:128"> of bf16 : tensor<2x33808xi8> -> tensor<4x8192xbf16>
  %1 = nn.add %0, %x : tensor<4x8192xbf16>, tensor<4x8192xbf16> -> tensor<4x8192xbf16>
  %2 = nn.encode %1 as <"int8:128"> : tensor<4x8192xbf16> -> tensor<1x33808xi8>
  return %2 : tensor<1x33808xi8>
}
