// RUN: braid-test-compile-kernels %s -emit-llvm -isa x86-64-v3 | FileCheck %s
// RUN: braid-test-compile-kernels %s -isa x86-64-v3 -o %t.so
// RUN: llvm-nm -D %t.so | FileCheck %s --check-prefix=SYMBOLS
// RUN: braid-opt %s -braid-cpu-pipeline | FileCheck %s --check-prefix=DIALECT

// CHECK: ; x86-64-v3
// CHECK: define void @bias_gelu(ptr
// CHECK-NOT: load float,
// CHECK: load <16 x float>, ptr
// CHECK: call {{.*}}<16 x float> @llvm.fma.v16f32(
// CHECK: store <16 x float> {{.*}}, ptr
// CHECK: call void @llvm.masked.store.v16f32.p0(
// CHECK-NOT: @erf
// CHECK-NOT: call {{.*}}float @
// CHECK: attributes {{.*}}"target-cpu"="x86-64-v3"

// The object defines only the kernel and needs no other symbol.
// SYMBOLS: T bias_gelu
// SYMBOLS-NOT: {{[A-Za-z]}}

// DIALECT: llvm.func @bias_gelu(%{{.*}}: !llvm.ptr)
// DIALECT-NOT: builtin.unrealized_conversion_cast
// DIALECT: vector<16xf32>
#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @bias_gelu(%x: tensor<?x35xf32>, %w: tensor<35xf32>) -> tensor<?x35xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x35xf32>
  %e = tensor.empty(%n) : tensor<?x35xf32>
  %0 = linalg.generic {indexing_maps = [#rc, affine_map<(r, c) -> (c)>, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x, %w : tensor<?x35xf32>, tensor<35xf32>) outs(%e : tensor<?x35xf32>) {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %k = arith.constant 0.70710678118654752 : f32
      %half = arith.constant 0.5 : f32
      %one = arith.constant 1.0 : f32
      %a = arith.addf %p, %q : f32
      %1 = arith.mulf %a, %k : f32
      %2 = math.erf %1 : f32
      %3 = arith.addf %2, %one : f32
      %4 = arith.mulf %a, %half : f32
      %5 = arith.mulf %4, %3 : f32
      linalg.yield %5 : f32
  } -> tensor<?x35xf32>
  rt.yield %0 : tensor<?x35xf32>
}
