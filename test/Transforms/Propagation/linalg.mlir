// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s
// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition)" --split-input-file | FileCheck %s --check-prefix=EQUIV

// Named structured operations are sharded by their indexing maps, as linalg.generic is.

// EQUIV: equivalent on 1 and 4 ranks: linalg.transpose x1 tensor.empty x1{{$}}
comm.mesh @mesh <a = 4>
// CHECK-LABEL: func.func @transpose
func.func @transpose(%x: tensor<64x32xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>})
    -> (tensor<32x64xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}) attributes {nn.entry} {
  %e = tensor.empty() : tensor<32x64xf32>
  // CHECK: linalg.transpose {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {a}]>]}
  %0 = linalg.transpose ins(%x : tensor<64x32xf32>) outs(%e : tensor<32x64xf32>) permutation = [1, 0]
  return %0 : tensor<32x64xf32>
}

// -----

// EQUIV: equivalent on 1 and 4 ranks
comm.mesh @mesh <a = 2, b = 2>
// CHECK-LABEL: func.func @elementwise_and_reduce
func.func @elementwise_and_reduce(%x: tensor<8x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>},
                                  %y: tensor<8x16xf32> {nn.name = "y"}) -> (tensor<8xf32> {nn.name = "s"}, tensor<8x16xf32> {nn.name = "m"}) attributes {nn.entry} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  // CHECK: linalg.add {comm.shardings = [#comm.sharding<@mesh, [{a}, {b}]>]}
  %0 = linalg.add ins(%x, %y : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  // CHECK: linalg.exp {comm.shardings = [#comm.sharding<@mesh, [{a}, {b}]>]}
  %1 = linalg.exp ins(%0 : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %f = tensor.empty() : tensor<8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%f : tensor<8xf32>) -> tensor<8xf32>
  // CHECK: linalg.reduce {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{a}], partial = [b = sum]>]}
  %2 = linalg.reduce ins(%1 : tensor<8x16xf32>) outs(%z : tensor<8xf32>) dimensions = [1]
    (%in: f32, %acc: f32) {
      %s = arith.addf %in, %acc : f32
      linalg.yield %s : f32
    }
  return %2, %1 : tensor<8xf32>, tensor<8x16xf32>
}

// -----

// Maxima and minima over a sharded dimension are partial, and are scattered like sums.
// EQUIV: equivalent on 1 and 4 ranks: {{.*}}comm.reduce_scatter x1
comm.mesh @mesh <x = 2, y = 2>
#in = affine_map<(i, j, k) -> (i, j, k)>
#out = affine_map<(i, j, k) -> (i, j)>
// CHECK-LABEL: func.func @maximum
func.func @maximum(%x: tensor<8x8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{x}, {}, {y}]>})
    -> (tensor<8x8xf32> {nn.name = "r", comm.sharding = #comm.sharding<@mesh, [{x}, {y}]>}) attributes {nn.entry} {
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%low : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{x}, {}], partial = [y = max]>]}
  %0 = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x : tensor<8x8x8xf32>) outs(%z : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    %m = arith.maximumf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// A maximum with another start value is not partial, and neither is a reduction by multiplication.
// EQUIV: equivalent on 1 and 2 ranks
comm.mesh @mesh <a = 2>
// CHECK-LABEL: func.func @other_reductions
func.func @other_reductions(%x: tensor<4x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {a}]>})
    -> (tensor<2x2xf32> {nn.name = "m"}, tensor<4xf32> {nn.name = "p"}) attributes {nn.entry} {
  %low = arith.constant -1.0e30 : f32
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %l = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %o = linalg.fill ins(%one : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.reduce {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}], partial = [a = max]>]}
  %0 = linalg.reduce { arith.maximumf } ins(%x : tensor<4x8xf32>) outs(%l : tensor<4xf32>) dimensions = [1]
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{}, {}]>]
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [2, 2] : tensor<4xf32> into tensor<2x2xf32>
  // CHECK: linalg.reduce {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}]>]}
  %2 = linalg.reduce { arith.mulf } ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [1]
  return %1, %2 : tensor<2x2xf32>, tensor<4xf32>
}

// -----

// The body captures values from outside: a scalar is on every rank, a tensor is replicated.
// EQUIV: equivalent on 1 and 2 ranks
comm.mesh @mesh <a = 2>
#m = affine_map<(r, c) -> (r, c)>
// CHECK-LABEL: func.func @captures
func.func @captures(%x: tensor<8x4xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                    %t: tensor<4xf32> {nn.name = "t", comm.sharding = #comm.sharding<@mesh, [{a}]>}) -> (tensor<8x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %c = arith.constant 2.0 : f32
  %one = arith.constant 3 : index
  %e = tensor.empty() : tensor<8x4xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{a}, {}]>]}
  %r = linalg.generic {indexing_maps = [#m, #m], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %v = tensor.extract %t[%one] : tensor<4xf32>
    %m = arith.mulf %a, %c : f32
    %s = arith.addf %m, %v : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// There are fewer heads than ranks of the axis: a sub-axis shards the heads, the rest of it the dimension within them.
// EQUIV: equivalent on 1 and 4 ranks
comm.mesh @mesh <a = 4>
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<1x4x16xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{}, {}, {a}]>})
    -> (tensor<1x4x2x8xf32> {nn.name = "r"}) attributes {nn.entry} {
  // CHECK: nn.split_heads {{.*}} [#comm.sharding<@mesh, [{}, {}, {a:(1)2}, {a:(2)2}]>]
  %0 = nn.split_heads %x : tensor<1x4x16xf32> -> tensor<1x4x2x8xf32>
  return %0 : tensor<1x4x2x8xf32>
}
