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
rt.procedure @launches(%w: memref<4x100xf32>, %y: memref<4x64xf32> {rt.result}, %z: memref<4x64xf32> {rt.result}) {
  %x = rt.subview %w at [0, 6] : memref<4x100xf32> to memref<4x64xf32, strided<[100, 1]>>
  rt.launch @double_up rows 4 ins(%x : memref<4x64xf32, strided<[100, 1]>>) outs(%y : memref<4x64xf32>)
  rt.launch @untouched rows 4 ins(%y : memref<4x64xf32>) outs(%z : memref<4x64xf32>)
  rt.return
}

// So does a caller that passes a part of a buffer.
// CHECK: {{^}}double_down(
// CHECK: using Row = braid::Map<64, 1, 256>;
rt.kernel @double_down(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
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
rt.procedure @callee(%x: memref<4x64xf32>, %y: memref<4x64xf32> {rt.result}) {
  rt.launch @double_down rows 4 ins(%x : memref<4x64xf32>) outs(%y : memref<4x64xf32>)
  rt.return
}
rt.procedure @caller(%x: memref<300xf32>, %y: memref<4x64xf32> {rt.result}) {
  %0 = rt.subview %x at [3] : memref<300xf32> to memref<256xf32>
  %1 = rt.view %0 : memref<256xf32> to memref<4x64xf32>
  rt.call @callee(%1, %y) : memref<4x64xf32>, memref<4x64xf32>
  rt.return
}
