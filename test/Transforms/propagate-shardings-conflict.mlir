// RUN: braid-opt %s --braid-propagate-shardings --remark-format=emitRemark --remarks-filter=sharding -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t

// Two stated shardings conflict at equal cost: the first operand's is kept, and partitioning moves the second operand. Where
// the costs differ, the remark has both.
// REMARK: remark: {{.*}}nn.add: dimension 'hidden' is not split over axis 'tp' as in operand 1, because 'hidden' is split as in operand 0: a rank sends 128 bytes instead of 256
// REMARK: remark: {{.*}}nn.linear: dimension 'batch' is not split over axis 'tp' as in operand 0, because 'in' is split as in operand 1: a rank sends 1536 bytes instead of 32768
comm.mesh @mesh <dp = 2, tp = 2>

// CHECK: nn.add {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {dp}]>]}
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp}]>},
             %y: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  %0 = nn.add %x, %y : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {}], partial = [tp = sum]>]
func.func @g(%x: tensor<4x128xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>},
             %w: tensor<128x128xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})
    -> (tensor<4x128xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) {
  %0 = nn.linear %x, %w : tensor<4x128xf32>, tensor<128x128xf32> -> tensor<4x128xf32>
  return %0 : tensor<4x128xf32>
}
