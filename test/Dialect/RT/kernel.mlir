// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK-LABEL: rt.kernel @softmax_scale(
// CHECK-SAME: %[[X:.*]]: tensor<?x384xf32> {rt.name = "x"}, %[[W:.*]]: tensor<384xf32> {rt.name = "w"}) -> (tensor<?x384xf32> {rt.name = "out"}) {
rt.kernel @softmax_scale(%x: tensor<?x384xf32> {rt.name = "x"}, %w: tensor<384xf32> {rt.name = "w"})
    -> (tensor<?x384xf32> {rt.name = "out"}) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %n = tensor.dim %x, %c0 : tensor<?x384xf32>
  %row = tensor.empty(%n) : tensor<?xf32>
  %m0 = linalg.fill ins(%low : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%row : tensor<?xf32>) -> tensor<?xf32>
  %m = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x384xf32>) outs(%m0 : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %0 = arith.maximumf %acc, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %m : tensor<?x384xf32>, tensor<?xf32>) outs(%s0 : tensor<?xf32>) {
    ^bb0(%a: f32, %b: f32, %acc: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 : f32
      %2 = arith.addf %acc, %1 : f32
      linalg.yield %2 : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x384xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m, %s, %w : tensor<?x384xf32>, tensor<?xf32>, tensor<?xf32>, tensor<384xf32>) outs(%e : tensor<?x384xf32>) {
    ^bb0(%a: f32, %b: f32, %d: f32, %f: f32, %out: f32):
      %0 = arith.subf %a, %b : f32
      %1 = math.exp %0 : f32
      %2 = arith.divf %1, %d : f32
      %3 = arith.mulf %2, %f : f32
      linalg.yield %3 : f32
  } -> tensor<?x384xf32>
  // CHECK: rt.yield %{{.*}} : tensor<?x384xf32>
  rt.yield %o : tensor<?x384xf32>
}

// There are two row dimensions; the second operand has no batch dimension.
// CHECK-LABEL: rt.kernel @add_positions(
// CHECK-SAME: attributes {row_dims = 2 : i64}
rt.kernel @add_positions(%x: tensor<?x16x8xf32>, %p: tensor<16x8xf32>) -> tensor<?x16x8xf32> attributes {row_dims = 2 : i64} {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16x8xf32>
  %e = tensor.empty(%n) : tensor<?x16x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, s, c) -> (b, s, c)>, affine_map<(b, s, c) -> (s, c)>, affine_map<(b, s, c) -> (b, s, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %p : tensor<?x16x8xf32>, tensor<16x8xf32>) outs(%e : tensor<?x16x8xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
  } -> tensor<?x16x8xf32>
  rt.yield %o : tensor<?x16x8xf32>
}
