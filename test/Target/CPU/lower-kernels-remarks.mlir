// RUN: braid-opt %s -braid-cpu-lower-kernels --remarks-filter="cpu" --remark-format=emitRemark 2>&1 | FileCheck %s

// CHECK: remark: [Missed] vectorize | Category:cpu | Function=double{{.*}}nothing varies along a column
// CHECK-LABEL: func.func @double(
// CHECK-NOT: vector
// CHECK: memref.load
// CHECK: arith.addf {{.*}} : f32
// CHECK: memref.store
rt.kernel @double(%x: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %o: f32):
      %1 = arith.addf %a, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?xf32>
  rt.yield %0 : tensor<?xf32>
}
