// RUN: braid-opt %s --test-equivalence="pipeline=builtin.module(braid-propagate-shardings,braid-partition) seed=3" | FileCheck %s

// The weights ask for the hidden dimension of %h sharded over tp, and %down reduces over the same axis: each rank's partial sum
// has full rows, and is sharded after the reduction.
// CHECK: equivalent on 1 and 2 ranks: {{.*}}comm.all_reduce
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @main
// CHECK: %[[DOWN:.*]] = nn.linear %{{.*}}, %{{.*}} role "mlp.down" : tensor<4x4xf32>, tensor<6x4xf32> -> tensor<4x6xf32>
// CHECK: comm.{{all_reduce|reduce_scatter}} sum(%[[DOWN]])
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"},
                %down: tensor<6x8xf32> {nn.name = "down", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>},
                %up: tensor<8x6xf32> {nn.name = "up", comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<4x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %h = nn.linear %x, %down role "mlp.down" : tensor<4x8xf32>, tensor<6x8xf32> -> tensor<4x6xf32>
  %y = nn.linear %h, %up role "mlp.up" : tensor<4x6xf32>, tensor<8x6xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
