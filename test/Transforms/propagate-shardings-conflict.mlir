// RUN: braid-opt %s --braid-propagate-shardings --remark-format=emitRemark --remarks-filter=sharding -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t

// Two stated shardings meet: the first operand's stands, the second operand is brought to it by partitioning.
// REMARK: remark: {{.*}}nn.add: dimension 'hidden' is not cut over axis 'tp', which an earlier sharding decides otherwise
comm.mesh @mesh <dp = 2, tp = 2>

// CHECK: nn.add {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {dp}]>]}
func.func @f(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {dp}]>},
             %y: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  %0 = nn.add %x, %y : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
