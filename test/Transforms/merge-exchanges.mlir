// RUN: braid-opt %s --braid-merge-collectives | FileCheck %s
// RUN: braid-opt %s --braid-merge-collectives --braid-unmerge-collectives | FileCheck %s --check-prefix=UNMERGED
// RUN: braid-opt %s --braid-remove-dead-collectives | FileCheck %s --check-prefix=DEAD
// RUN: braid-opt %s --braid-merge-collectives --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

comm.mesh @mesh <tp = 2>

// CHECK-LABEL: func.func @exchanges
// UNMERGED-LABEL: func.func @exchanges
// DEAD-LABEL: func.func @exchanges
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[Y:.*]]: tensor<2xf32>
func.func @exchanges(%x: tensor<4x8xf32>, %y: tensor<2xf32>) -> (tensor<8x4xf32>, tensor<4x1xf32>, tensor<4x8xf32>, tensor<2xf32>) {
  %z = tensor.expand_shape %y [[0, 1]] output_shape [2, 1] : tensor<2xf32> into tensor<2x1xf32>
  %w = tensor.concat dim(1) %z, %z : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  // CHECK: %[[A:.*]]:2 = comm.all_to_all(%[[X]], %{{.*}}) split 1 concat 0 over <@mesh, {tp}> : tensor<4x8xf32>, tensor<2x2xf32> -> tensor<8x4xf32>, tensor<4x1xf32>
  // UNMERGED-COUNT-2: comm.all_to_all({{[^,]*}}) split 1
  %0 = comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = comm.all_to_all(%w) split 1 concat 0 over <@mesh, {tp}> : tensor<2x2xf32> -> tensor<4x1xf32>
  // CHECK: %[[P:.*]]:2 = comm.permute(%[[X]], %[[Y]]) pairs [0 -> 1] over <@mesh, {tp}>
  // UNMERGED-COUNT-2: comm.permute({{[^,]*}}) pairs
  %2 = comm.permute(%x) pairs [0 -> 1] over <@mesh, {tp}> : tensor<4x8xf32>
  %3 = comm.permute(%y) pairs [0 -> 1] over <@mesh, {tp}> : tensor<2xf32>
  // Different roots are not merged.
  // CHECK-COUNT-2: comm.broadcast
  // DEAD-NOT: comm.{{broadcast|reduce}}
  %4 = comm.broadcast(%x) from 0 over <@mesh, {tp}> : tensor<4x8xf32>
  %5 = comm.broadcast(%y) from 1 over <@mesh, {tp}> : tensor<2xf32>
  %6 = comm.reduce sum(%y) to 1 over <@mesh, {tp}> : tensor<2xf32>
  return %0, %1, %2, %3 : tensor<8x4xf32>, tensor<4x1xf32>, tensor<4x8xf32>, tensor<2xf32>
}

// Neither merged nor split: counts determine how the other values travel, and every send matches one receive.
// CHECK-LABEL: func.func @dependent
// UNMERGED-LABEL: func.func @dependent
// DEAD-LABEL: func.func @dependent
func.func @dependent(%x: tensor<4x8xf32>, %y: tensor<4x2x3xi64>, %c: tensor<4xi32>) -> tensor<4xi32> {
  // CHECK-COUNT-2: comm.all_to_all_v(%{{[^,]*}}) counts
  // UNMERGED-COUNT-2: comm.all_to_all_v
  // DEAD: comm.all_to_all_v
  // DEAD-NOT: comm.all_to_all_v
  // REMARK: comm.all_to_all_v: its values are not independent of each other
  %0, %n = comm.all_to_all_v(%x) counts %c : tensor<4xi32> over <@mesh, {tp}> : tensor<4x8xf32>
  %1, %m = comm.all_to_all_v(%y) counts %c : tensor<4xi32> over <@mesh, {tp}> : tensor<4x2x3xi64>
  // CHECK-COUNT-2: comm.send(%{{[^,]*}}) pairs
  // CHECK-COUNT-2: comm.recv pairs
  // UNMERGED: comm.send(%{{.*}}, %{{.*}}) pairs
  // DEAD-COUNT-2: comm.send
  // DEAD-COUNT-2: comm.recv
  // DEAD: comm.send
  // DEAD: comm.recv
  comm.send(%x) pairs [0 -> 1] over <@mesh, {tp}> : tensor<4x8xf32>
  comm.send(%y) pairs [0 -> 1] over <@mesh, {tp}> : tensor<4x2x3xi64>
  %2 = comm.recv pairs [0 -> 1] over <@mesh, {tp}> : tensor<4x8xf32>
  %3 = comm.recv pairs [0 -> 1] over <@mesh, {tp}> : tensor<4x2x3xi64>
  comm.send(%x, %y) pairs [0 -> 1] over <@mesh, {tp}> tag 1 : tensor<4x8xf32>, tensor<4x2x3xi64>
  %4:2 = comm.recv pairs [0 -> 1] over <@mesh, {tp}> tag 1 : tensor<4x8xf32>, tensor<4x2x3xi64>
  return %n : tensor<4xi32>
}
