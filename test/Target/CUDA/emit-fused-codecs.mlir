// RUN: braid-test-compile-kernels %s -emit-cuda | FileCheck %s

// Payloads come as what decodes or encodes them; rows are decoded before the row is computed and encoded behind it, in shared memory.
// CHECK:      #include <braid/scalar.cuh>
// CHECK-NEXT: #include <braid/codec_rows.cuh>
// CHECK:      // decode_sum_add_encode
// CHECK-NEXT: // 64 columns, in vectors of 4; a warp has a row, a thread 1
// CHECK-NEXT: extern "C" __global__ void __launch_bounds__(128, 7)
// CHECK-NEXT: decode_sum_add_encode(const braid::library::Codec p,
// CHECK-NEXT:                       const float *__restrict__ x, long long x_stride,
// CHECK-NEXT:                       const braid::library::Codec out,
// CHECK-NEXT:                       unsigned rows) {
// CHECK-NEXT:   braid::codec::check_parts(p);
// CHECK-NEXT:   using Row = braid::WarpRow<64, 4, 128>;
// CHECK-NEXT:   const unsigned row = Row::row();
// CHECK-NEXT:   if (row >= rows)
// CHECK-NEXT:     return;
// CHECK-NEXT:   // int4:32+spikes
// CHECK-NEXT:   using p_encoding = braid::codec::Encoding<int, 4, braid::codec::Form::asymmetric, braid::codec::Scale::f16, 32, 0, true>;
// CHECK-NEXT:   __shared__ braid::codec::RowMemory<float, Row> p_rows;
// CHECK-NEXT:   float *const p_row = p_rows.row();
// CHECK-NEXT:   braid::codec::decode_row<p_encoding, braid::bf16, Row>(p, row, p_row);
// CHECK-NEXT:   // int8:64
// CHECK-NEXT:   using out_encoding = braid::codec::Encoding<int, 8, braid::codec::Form::asymmetric, braid::codec::Scale::f16, 64, 0, false>;
// CHECK-NEXT:   __shared__ braid::codec::RowMemory<float, Row> out_rows;
// CHECK-NEXT:   float *const out_row = out_rows.row();
// CHECK:        braid::load<4>(p_row + c);
// CHECK:        braid::store_shared(out_row + c,
// CHECK:        braid::codec::encode_rows<out_encoding, Row>(out, row, out_row);
// CHECK-NEXT: }
#id = affine_map<(r, c) -> (r, c)>
rt.kernel @decode_sum_add_encode(
    %p: tensor<?x64xf32> {rt.name = "p", rt.payload = #rt.payload<"int4:32+spikes" of bf16 senders 4>}, %x: tensor<?x64xf32> {rt.name = "x"})
    -> (tensor<?x64xf32> {rt.payload = #rt.payload<"int8:64" of f32>}) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %x : tensor<?x64xf32>, tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
  } -> tensor<?x64xf32>
  rt.yield %0 : tensor<?x64xf32>
}

// Without row operations; blocks have rows that are long.
// CHECK:      // unpack
// CHECK-NEXT: // 4096 columns, in vectors of 8; a block has a row, a thread 2
// CHECK:      unpack(const braid::library::Codec x,
// CHECK:        __shared__ braid::codec::RowMemory<braid::bf16, Row> x_rows;
// CHECK:        braid::codec::decode_row<x_encoding, float, Row>(x, row, x_row);
// CHECK:        braid::store(out_at_row + c,
// CHECK-NOT:    encode_rows
rt.kernel @unpack(%x: tensor<?x4096xbf16> {rt.name = "x", rt.payload = #rt.payload<"nvfp4" of f32 absent>}) -> tensor<?x4096xbf16> {
  rt.yield %x : tensor<?x4096xbf16>
}
