// RUN: braid-opt %s --split-input-file --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition,canonicalize) seed=11" | FileCheck %s

// Softmax and the logarithm of the sum of exponentials over a dimension that ranks hold parts of.
comm.mesh @mesh <tp = 4>

// CHECK: equivalent on 1 and 4 ranks
// CHECK: nn.reduce max
// CHECK: comm.all_reduce max
// CHECK: comm.all_reduce sum
// CHECK-NOT: all_gather
func.func @main(%x: tensor<3x5x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>})
    -> (tensor<3x5x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>}, tensor<3x5xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}]>}) {
  %m, %s = nn.reduce max %x dims [2] : tensor<3x5x8xf32> -> tensor<3x5xf32>, tensor<3x5xf32>
  %0 = nn.map %x rows(%m, %s) : tensor<3x5x8xf32> rows(tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5x8xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %d = arith.subf %a, %b : f32
    %e = math.exp %d : f32
    %f = arith.divf %e, %c : f32
    nn.yield %f : f32
  }
  %1 = nn.map %m, %s : tensor<3x5xf32>, tensor<3x5xf32> -> tensor<3x5xf32> {
  ^bb0(%a: f32, %b: f32):
    %l = math.log %b : f32
    %t = arith.addf %a, %l : f32
    nn.yield %t : f32
  }
  return %0, %1 : tensor<3x5x8xf32>, tensor<3x5xf32>
}

// -----

// Over two dimensions, one of them of another axis, and with a kept dimension in parts.
comm.mesh @mesh <dp = 2, tp = 2, sp = 2>

// CHECK: equivalent on 1 and 8 ranks
func.func @main(%x: tensor<4x6x8xf32> {comm.sharding = #comm.sharding<@mesh, [{sp}, {dp}, {tp}]>})
    -> (tensor<6xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}]>}, tensor<6xf32> {comm.sharding = #comm.sharding<@mesh, [{}]>}) {
  %m, %s = nn.reduce max %x dims [0, 2] : tensor<4x6x8xf32> -> tensor<6xf32>, tensor<6xf32>
  return %m, %s : tensor<6xf32>, tensor<6xf32>
}
