// RUN: braid-test-compile-kernels %s -emit-cuda | FileCheck %s

// A launch on slices of wider rows limits the width of accesses: here two floats, 8 bytes.
#rc = affine_map<(r, c) -> (r, c)>
// CHECK: {{^}}double_up(
// CHECK: using Row = braid::Map<64, 2, 256>;
rt.kernel @double_up(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x64xf32>
  %e = tensor.empty(%n) : tensor<?x64xf32>
  %0 = linalg.generic {indexing_maps = [#rc, #rc], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x64xf32>) outs(%e : tensor<?x64xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.addf %a, %a fastmath<contract> : f32
      linalg.yield %1 : f32
  } -> tensor<?x64xf32>
  rt.yield %0 : tensor<?x64xf32>
}
// CHECK: {{^}}untouched(
// CHECK: using Row = braid::Map<64, 4, 256>;
rt.kernel @untouched(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  rt.yield %x : tensor<?x64xf32>
}
func.func @launches(%x: memref<4x64xf32, strided<[100, 1], offset: 6>>, %y: memref<4x64xf32>) {
  rt.launch @double_up rows 4 ins(%x : memref<4x64xf32, strided<[100, 1], offset: 6>>) outs(%y : memref<4x64xf32>)
  rt.launch @untouched rows 4 ins(%y : memref<4x64xf32>) outs(%y : memref<4x64xf32>)
  return
}
