// RUN: braid-test-compile-kernels %s -emit-cuda | FileCheck %s

#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>
#c = affine_map<(r, c) -> (c)>
#row = affine_map<(r) -> (r)>

// Two sweeps: results of the first stay in registers, in their storage type, for the second.
// CHECK:       #include <braid/library.cuh>
// CHECK-NEXT:  #include <braid/rows.cuh>
// CHECK:       // add_rms_norm: layers.0.attention.sum, layers.0.mlp_norm
// CHECK-NEXT:  // 4096 columns, in vectors of 8; a block has a row, a thread 2
// CHECK-NEXT:  extern "C" __global__ void __launch_bounds__(256)
// CHECK-NEXT:  add_rms_norm(const braid::bf16 *__restrict__ x, long long x_stride,
// CHECK-NEXT:               const braid::bf16 *__restrict__ residual, long long residual_stride,
// CHECK-NEXT:               const braid::bf16 *__restrict__ weight,
// CHECK-NEXT:               braid::bf16 *__restrict__ sum, long long sum_stride,
// CHECK-NEXT:               braid::bf16 *__restrict__ out, long long out_stride,
// CHECK-NEXT:               unsigned rows) {
// CHECK-NEXT:    using Row = braid::BlockRow<4096, 8, 256>;
// CHECK-NEXT:    const unsigned row = Row::row();
// CHECK-NEXT:    if (row >= rows)
// CHECK-NEXT:      return;
// CHECK-NEXT:    braid::vec<braid::bf16, 8> h[Row::steps];
// CHECK-NEXT:    float squares = 0.0f;
// CHECK-NEXT:    const braid::bf16 *const x_at_row = x + row * x_stride;
// CHECK:       #pragma unroll
// CHECK-NEXT:    for (int s = 0; s < Row::steps; ++s) {
// CHECK-NEXT:      const int c = Row::column(s);
// CHECK-NEXT:      const auto x_v = braid::load<8>(x_at_row + c);
// CHECK:           for (int j = 0; j < 8; ++j) {
// CHECK-NEXT:        const braid::bf16 t = braid::narrow<braid::bf16>(braid::widen(x_v[j]) + braid::widen(residual_v[j]));
// CHECK-NEXT:        h[s][j] = t;
// CHECK-NEXT:        const float t1 = braid::widen(t);
// CHECK-NEXT:        squares += t1 * t1;
// CHECK-NEXT:        sum_v[j] = t;
// CHECK-NEXT:      }
// CHECK-NEXT:      braid::store(sum_at_row + c, sum_v);
// CHECK-NEXT:    }
// CHECK-NEXT:    squares = Row::reduce<braid::Sum>(squares);
// CHECK-NEXT:    const float rrms = rsqrtf(squares * 0.00024414062f + 1e-05f);
// CHECK-NOT:     x_at_row
// CHECK:           const auto weight_v = braid::load<8>(weight + c);
// CHECK:             {{.*}} = braid::narrow<braid::bf16>(braid::widen(h[s][j]) * rrms * braid::widen(weight_v[j]));
// CHECK:           braid::store(out_at_row + c, out_v);
rt.kernel @add_rms_norm(%x: tensor<?x4096xbf16> {rt.name = "x"}, %r: tensor<?x4096xbf16> {rt.name = "residual"},
                        %w: tensor<4096xbf16> {rt.name = "weight"})
    -> (tensor<?x4096xbf16> {rt.name = "sum"}, tensor<?x4096xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x4096xbf16>
  %e = tensor.empty(%n) : tensor<?x4096xbf16>
  %er = tensor.empty(%n) : tensor<?xf32>
  %z = linalg.fill ins(%zero : f32) outs(%er : tensor<?xf32>) -> tensor<?xf32>
  %h = linalg.generic {indexing_maps = [#rc, #rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<?x4096xbf16>, tensor<?x4096xbf16>) outs(%e : tensor<?x4096xbf16>) {
    ^bb0(%a: bf16, %b: bf16, %o: bf16):
      %a32 = arith.extf %a : bf16 to f32
      %b32 = arith.extf %b : bf16 to f32
      %s = arith.addf %a32, %b32 fastmath<contract> : f32
      %t = arith.truncf %s : f32 to bf16
      linalg.yield %t : bf16
  } -> tensor<?x4096xbf16> loc("h")
  %ss = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
      ins(%h : tensor<?x4096xbf16>) outs(%z : tensor<?xf32>) {
    ^bb0(%a: bf16, %acc: f32):
      %a32 = arith.extf %a : bf16 to f32
      %s = arith.mulf %a32, %a32 fastmath<contract> : f32
      %t = arith.addf %acc, %s fastmath<contract> : f32
      linalg.yield %t : f32
  } -> tensor<?xf32> loc("squares")
  %rs = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel"]}
      ins(%ss : tensor<?xf32>) outs(%er : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %k = arith.constant 2.44140625e-04 : f32
      %eps = arith.constant 1.0e-05 : f32
      %m = arith.mulf %a, %k fastmath<contract> : f32
      %v = arith.addf %m, %eps fastmath<contract> : f32
      %t = math.rsqrt %v : f32
      linalg.yield %t : f32
  } -> tensor<?xf32> loc("rrms")
  %o = linalg.generic {indexing_maps = [#rc, #r, #c, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%h, %rs, %w : tensor<?x4096xbf16>, tensor<?xf32>, tensor<4096xbf16>) outs(%e : tensor<?x4096xbf16>) {
    ^bb0(%a: bf16, %s: f32, %g: bf16, %o: bf16):
      %a32 = arith.extf %a : bf16 to f32
      %g32 = arith.extf %g : bf16 to f32
      %m = arith.mulf %a32, %s fastmath<contract> : f32
      %y = arith.mulf %m, %g32 fastmath<contract> : f32
      %t = arith.truncf %y : f32 to bf16
      linalg.yield %t : bf16
  } -> tensor<?x4096xbf16> loc("normalized")
  rt.yield %h, %o : tensor<?x4096xbf16>, tensor<?x4096xbf16>
} loc(fused["layers.0.attention.sum", "layers.0.mlp_norm"])

// One elementwise operation may run in place, so no pointer is restrict-qualified.
// CHECK-LABEL: {{^}}// gelu
// CHECK:       {{^}}gelu(const float *x, long long x_stride,
// CHECK-NEXT:       float *out, long long out_stride,
// CHECK:         using Row = braid::Map<3072, 4, 256>;
// CHECK:             out_v[j] = x_v[j] * 0.5f * (erff(x_v[j] * 0.70710677f) + 1.0f);
rt.kernel @gelu(%x: tensor<?x3072xf32> {rt.name = "x"}) -> tensor<?x3072xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x3072xf32>
  %e = tensor.empty(%n) : tensor<?x3072xf32>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x3072xf32>) outs(%e : tensor<?x3072xf32>) {
    ^bb0(%a: f32, %o: f32):
      %half = arith.constant 0.5 : f32
      %k = arith.constant 0.70710678118654752 : f32
      %one = arith.constant 1.0 : f32
      %h = arith.mulf %a, %half fastmath<contract> : f32
      %m = arith.mulf %a, %k fastmath<contract> : f32
      %s = math.erf %m : f32
      %p = arith.addf %s, %one fastmath<contract> : f32
      %y = arith.mulf %h, %p fastmath<contract> : f32
      linalg.yield %y : f32
  } -> tensor<?x3072xf32>
  rt.yield %0 : tensor<?x3072xf32>
}

// Rows of 37 floats have no alignment, so elements are moved one by one; operations that must not be contracted are not.
// CHECK-LABEL: {{^}}// softmax
// CHECK-NEXT:  // 37 columns, in vectors of 1; a warp has a row, a thread 2
// CHECK:       {{^}}softmax(const float *__restrict__ float1, long long float1_stride0, long long float1_stride1,
// CHECK:         using Row = braid::WarpRow<37, 1, 128>;
// CHECK:         if (row >= rows * 2u)
// CHECK:         const unsigned row1 = row % 2u;
// CHECK-NEXT:    const unsigned row0 = row / 2u;
// CHECK:         float total = -braid::infinity();
// CHECK-NEXT:    const float *const float1_at_row = float1 + row0 * float1_stride0 + row1 * float1_stride1;
// CHECK:           if (c >= 37)
// CHECK-NEXT:        break;
// CHECK:           total = braid::Maximum::combine(total, float1_row[s][0]);
// CHECK:         total = Row::reduce<braid::Maximum>(total);
// CHECK:           const float t = __expf(__fsub_rn(float1_row[s][0], total));
// CHECK-NEXT:      out_v[0] = __fmul_rn(t, t);
rt.kernel @softmax(%x: tensor<?x2x37xf32> {rt.name = "float"}) -> tensor<?x2x37xf32> attributes {row_dims = 2 : i64} {
  %c0 = arith.constant 0 : index
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x2x37xf32>
  %e = tensor.empty(%n) : tensor<?x2x37xf32>
  %er = tensor.empty(%n) : tensor<?x2xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%er : tensor<?x2xf32>) -> tensor<?x2xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(b, r, c) -> (b, r, c)>, affine_map<(b, r, c) -> (b, r)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<?x2x37xf32>) outs(%m0 : tensor<?x2xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %0 = arith.maximumf %acc, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?x2xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, r, c) -> (b, r, c)>, affine_map<(b, r, c) -> (b, r)>,
                                        affine_map<(b, r, c) -> (b, r, c)>],
                       iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %m : tensor<?x2x37xf32>, tensor<?x2xf32>) outs(%e : tensor<?x2x37xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 fastmath<afn> : f32
      %2 = arith.mulf %1, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<?x2x37xf32>
  rt.yield %o : tensor<?x2x37xf32>
}
