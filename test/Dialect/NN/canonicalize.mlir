// RUN: braid-opt %s --canonicalize --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @split_of_merge
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4x8xf32>)
// CHECK-NEXT: return %[[X]]
func.func @split_of_merge(%x: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %0 = nn.merge_heads %x : tensor<2x3x4x8xf32> -> tensor<2x3x32xf32>
  %1 = nn.split_heads %0 : tensor<2x3x32xf32> -> tensor<2x3x4x8xf32>
  return %1 : tensor<2x3x4x8xf32>
}

// The number of heads changes, so the value is not the same.
// CHECK-LABEL: func.func @split_otherwise
// CHECK: nn.merge_heads
// CHECK: nn.split_heads
func.func @split_otherwise(%x: tensor<2x3x4x8xf32>) -> tensor<2x3x8x4xf32> {
  %0 = nn.merge_heads %x : tensor<2x3x4x8xf32> -> tensor<2x3x32xf32>
  %1 = nn.split_heads %0 : tensor<2x3x32xf32> -> tensor<2x3x8x4xf32>
  return %1 : tensor<2x3x8x4xf32>
}

// CHECK-LABEL: func.func @merge_of_split
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x32xf32>)
// CHECK-NEXT: return %[[X]]
func.func @merge_of_split(%x: tensor<2x3x32xf32>) -> tensor<2x3x32xf32> {
  %0 = nn.split_heads %x : tensor<2x3x32xf32> -> tensor<2x3x4x8xf32>
  %1 = nn.merge_heads %0 : tensor<2x3x4x8xf32> -> tensor<2x3x32xf32>
  return %1 : tensor<2x3x32xf32>
}

// An unused parameter is removed.
// CHECK-LABEL: func.func @unused
// CHECK-NEXT: return
func.func @unused() {
  %0 = nn.parameter "w" : tensor<4xf32>
  return
}
