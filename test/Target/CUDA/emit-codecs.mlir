// RUN: braid-test-compile-kernels %s -emit-cuda | FileCheck %s

// A kernel for each encoding and types, whatever the shapes are; decode and decode_sum share one.
// CHECK:      #include <braid/scalar.cuh>
// CHECK-NEXT: #include <braid/codec.cuh>
// CHECK:      // int8:128
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(braid::library::kThreads, 4)
// CHECK-NEXT: braid_decode_int8_128_of_f32_to_bf16(const braid::library::Codec a) {
// CHECK-NEXT:   braid::codec::decode<braid::codec::Encoding<int, 8, braid::codec::Form::asymmetric, braid::codec::Scale::f16, 128, 0, false>, float, braid::bf16>(a);
// CHECK-NEXT: }
// CHECK:      braid_decode_int8_128_of_f32_to_f32(
// CHECK:      // fp8e4m3:64+bf16-scale+hadamard32+spikes
// CHECK:      braid_encode_fp8e4m3_64_bf16_scale_hadamard32_spikes_of_bf16(
// CHECK:        braid::codec::encode<braid::codec::Encoding<braid::codec::E4m3, 8, braid::codec::Form::scaled, braid::codec::Scale::bf16, 64, 32, true>, braid::bf16>(a);
// CHECK:      braid_encode_int8_128_of_f32(
// CHECK-NOT:  __global__
// The first scalar is the code of the encoding (braid/Base/Encoding.h); the second of an encode, the position of the first part's receiver.
rt.kernel @encode(tensor<7x576xf32>) -> tensor<4x1216xi8> attributes {library = "encode", scalars = [2097266, 0]}
rt.kernel @encode_fewer(tensor<3x128xf32>) -> tensor<1x416xi8> attributes {library = "encode", scalars = [2097266, 0]}
rt.kernel @encode_rotated(tensor<1x64xbf16>) -> tensor<1x96xi8> attributes {library = "encode", scalars = [1094771, 0]}
rt.kernel @decode(tensor<4x1216xi8>) -> tensor<7x576xf32> attributes {library = "decode", scalars = [2097266, 0, 0]}
rt.kernel @decode_sum(tensor<4x1216xi8>) -> tensor<2x576xbf16> attributes {library = "decode_sum", scalars = [2097266, 0, 4]}
rt.kernel @decode_sum_of_two(tensor<4x1216xi8>) -> tensor<4x576xf32> attributes {library = "decode_sum", scalars = [2097266, 0, 2]}
