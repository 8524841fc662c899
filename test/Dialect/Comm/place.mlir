// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// Calls, parameters and entry values on some of the ranks.

comm.mesh @mesh <pp = 4, tp = 2>

func.func private @stage(%x: tensor<4xf32>) -> tensor<4xf32>

// CHECK-LABEL: func.func @main
// CHECK-SAME: comm.on = #comm.place<@mesh, {pp = [0, 2]}>
// CHECK-SAME: comm.on = #comm.place<@mesh, {pp = [1, 3], tp = [0]}>
func.func @main(%x: tensor<4xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [0, 2]}>})
    -> (tensor<4xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [1, 3], tp = [0]}>}) attributes {nn.entry} {
  // CHECK: nn.parameter "w" on <@mesh, {pp = [1, 3]}> : tensor<4xf32>
  %w = nn.parameter "w" on <@mesh, {pp = [1, 3]}> : tensor<4xf32>
  // CHECK: nn.parameter "v" init ones of tensor<8xf32> sharded <@mesh, [{tp}]> on <@mesh, {pp = [3]}> : tensor<4xf32>
  %v = nn.parameter "v" init ones of tensor<8xf32> sharded <@mesh, [{tp}]> on <@mesh, {pp = [3]}> : tensor<4xf32>
  // CHECK: call @stage(%{{.*}}) {comm.on = #comm.place<@mesh, {pp = [1, 3]}>}
  %y = func.call @stage(%w) {comm.on = #comm.place<@mesh, {pp = [1, 3]}>} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
