// RUN: rm -rf %t && split-file %s %t
// RUN: not braid-test-compile-kernels %t/f64.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=F64
// RUN: not braid-test-compile-kernels %t/wide.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: not braid-test-compile-kernels %t/call.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not braid-test-compile-kernels %t/total.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=TOTAL
// RUN: not braid-test-compile-kernels %t/many.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not braid-test-compile-kernels %t/library.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=LIBRARY
// RUN: not braid-test-compile-kernels %t/codec.mlir -emit-cuda 2>&1 | FileCheck %s --check-prefix=CODEC

//--- codec.mlir
// CODEC: error: 'rt.kernel' op 'unpack' expects codecs outside of kernels on the CUDA target, as braid-form-kernels=target=cuda leaves them: a block of a GPU would need 49920 bytes of shared memory for rows and codecs, and has 49152
rt.kernel @unpack(%x: tensor<?x12288xf32> {rt.payload = #rt.payload<"int8:32" of f32>}) -> tensor<?x12288xf32> {
  rt.yield %x : tensor<?x12288xf32>
}

//--- library.mlir
// LIBRARY: error: 'rt.kernel' op 'norm' is 'my_norm' of a library for the CPU, which the CUDA target cannot run
rt.kernel @norm(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "my_norm"}

//--- many.mlir
rt.kernel @unchanged(%x: tensor<?x1024xf32>) -> tensor<?x1024xf32> {
  rt.yield %x : tensor<?x1024xf32>
}
func.func @launches(%x: memref<16777216x1024xf32>, %y: memref<16777216x1024xf32>) {
  // MANY: error: 'rt.launch' op expects less than 2^32 vectors on the CUDA target, got 16777216 rows of 256
  rt.launch @unchanged rows 16777216 ins(%x : memref<16777216x1024xf32>) outs(%y : memref<16777216x1024xf32>)
  return
}

//--- f64.mlir
// F64: error: 'rt.kernel' op 'copy' expects elements of f32, bf16, f16, i8, i32 or i64 on the CUDA target, got 'tensor<?x8xf64>'
rt.kernel @copy(%x: tensor<?x8xf64>) -> tensor<?x8xf64> {
  rt.yield %x : tensor<?x8xf64>
}

//--- wide.mlir
#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @wide(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      // WIDE: error: 'arith.extf' op of type 'f64' has no form in CUDA
      %1 = arith.extf %a : f32 to f64
      %2 = arith.truncf %1 : f64 to f32
      linalg.yield %2 : f32
  } -> tensor<?x8xf32>
  rt.yield %0 : tensor<?x8xf32>
}

//--- call.mlir
#rc = affine_map<(r, c) -> (r, c)>
rt.kernel @call(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x8xf32>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      // CALL: error: 'math.cbrt' op on 'f32' has no form in CUDA
      %1 = math.cbrt %a : f32
      linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  rt.yield %0 : tensor<?x8xf32>
}

//--- total.mlir
#rc = affine_map<(r, c) -> (r, c)>
#r = affine_map<(r, c) -> (r)>
rt.kernel @total(%x: tensor<?x8xf16>) -> tensor<?xf16> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f16
  %n = tensor.dim %x, %c0 : tensor<?x8xf16>
  %e = tensor.empty(%n) : tensor<?xf16>
  %z = linalg.fill ins(%zero : f16) outs(%e : tensor<?xf16>) -> tensor<?xf16>
  // TOTAL: error: 'linalg.generic' op expects to reduce in f32 on the CUDA target, got 'f16'
  %0 = linalg.generic {indexing_maps = [#rc, #r], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf16>) outs(%z : tensor<?xf16>) {
    ^bb0(%a: f16, %acc: f16):
      %1 = arith.addf %acc, %a : f16
      linalg.yield %1 : f16
  } -> tensor<?xf16>
  rt.yield %0 : tensor<?xf16>
}
