// RUN: braid-opt %s --braid-propagate-shardings --braid-partition | FileCheck %s

// Rows are sharded; the dimension that top_k selects from is replicated.
comm.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = comm.all_gather({{.*}}) dim 1 over <@mesh, {tp}> {{.*}}: tensor<4x4xf32> -> tensor<4x8xf32>
// CHECK: nn.top_k %[[X]] : tensor<4x8xf32> -> tensor<4x3xf32>, tensor<4x3xi64>
func.func @main(%x: tensor<8x8xf32> {nn.name = "x", comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>})
    -> (tensor<8x3xf32> {nn.name = "v", comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>},
        tensor<8x3xi64> {nn.name = "i", comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}) attributes {nn.entry} {
  %v, %i = nn.top_k %x : tensor<8x8xf32> -> tensor<8x3xf32>, tensor<8x3xi64>
  return %v, %i : tensor<8x3xf32>, tensor<8x3xi64>
}
