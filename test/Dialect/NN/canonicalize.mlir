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

// CHECK-LABEL: func.func @slice_of_all
// CHECK-SAME: (%[[X:.*]]: tensor<2x6xf32>)
// CHECK-NEXT: return %[[X]]
func.func @slice_of_all(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %0 = nn.slice %x dim 1 from 0 size 6 : tensor<2x6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @slice_of_slice
// CHECK-SAME: (%[[X:.*]]: tensor<2x9xf32>)
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[X]] dim 1 from 3 size 2 : tensor<2x9xf32> -> tensor<2x2xf32>
// CHECK-NEXT: return %[[S]]
func.func @slice_of_slice(%x: tensor<2x9xf32>) -> tensor<2x2xf32> {
  %0 = nn.slice %x dim 1 from 1 size 7 : tensor<2x9xf32> -> tensor<2x7xf32>
  %1 = nn.slice %0 dim 1 from 2 size 4 : tensor<2x7xf32> -> tensor<2x4xf32>
  %2 = nn.slice %1 dim 1 from 0 size 2 : tensor<2x4xf32> -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @slice_along_another_dimension
// CHECK: nn.slice %{{.*}} dim 1 from 1 size 7
// CHECK: nn.slice %{{.*}} dim 0 from 1 size 1
func.func @slice_along_another_dimension(%x: tensor<2x9xf32>) -> tensor<1x7xf32> {
  %0 = nn.slice %x dim 1 from 1 size 7 : tensor<2x9xf32> -> tensor<2x7xf32>
  %1 = nn.slice %0 dim 0 from 1 size 1 : tensor<2x7xf32> -> tensor<1x7xf32>
  return %1 : tensor<1x7xf32>
}

// The first is a part of the second input, the second is all of it. The third lies in two inputs.
// CHECK-LABEL: func.func @slice_of_concat
// CHECK-SAME: (%[[A:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-DAG: %[[C:.*]] = nn.concat %[[A]], %[[B]] dim 0
// CHECK-DAG: %[[P:.*]] = nn.slice %[[B]] dim 0 from 1 size 2 : tensor<4xf32> -> tensor<2xf32>
// CHECK-DAG: %[[BOTH:.*]] = nn.slice %[[C]] dim 0 from 2 size 2 : tensor<7xf32> -> tensor<2xf32>
// CHECK: return %[[P]], %[[B]], %[[BOTH]]
func.func @slice_of_concat(%a: tensor<3xf32>, %b: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>, tensor<2xf32>) {
  %0 = nn.concat %a, %b dim 0 : tensor<3xf32>, tensor<4xf32> -> tensor<7xf32>
  %1 = nn.slice %0 dim 0 from 4 size 2 : tensor<7xf32> -> tensor<2xf32>
  %2 = nn.slice %0 dim 0 from 3 size 4 : tensor<7xf32> -> tensor<4xf32>
  %3 = nn.slice %0 dim 0 from 2 size 2 : tensor<7xf32> -> tensor<2xf32>
  return %1, %2, %3 : tensor<2xf32>, tensor<4xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @concat_of_one
// CHECK-SAME: (%[[X:.*]]: tensor<2x6xf32>)
// CHECK-NEXT: return %[[X]]
func.func @concat_of_one(%x: tensor<2x6xf32>) -> tensor<2x6xf32> {
  %0 = nn.concat %x dim 0 : tensor<2x6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @concat_of_adjacent_slices
// CHECK-SAME: (%[[X:.*]]: tensor<9xf32>)
// CHECK-NEXT: %[[S:.*]] = nn.slice %[[X]] dim 0 from 1 size 7 : tensor<9xf32> -> tensor<7xf32>
// CHECK-NEXT: return %[[S]], %[[X]]
func.func @concat_of_adjacent_slices(%x: tensor<9xf32>) -> (tensor<7xf32>, tensor<9xf32>) {
  %a = nn.slice %x dim 0 from 0 size 1 : tensor<9xf32> -> tensor<1xf32>
  %b = nn.slice %x dim 0 from 1 size 4 : tensor<9xf32> -> tensor<4xf32>
  %c = nn.slice %x dim 0 from 5 size 3 : tensor<9xf32> -> tensor<3xf32>
  %d = nn.slice %x dim 0 from 8 size 1 : tensor<9xf32> -> tensor<1xf32>
  %0 = nn.concat %b, %c dim 0 : tensor<4xf32>, tensor<3xf32> -> tensor<7xf32>
  %1 = nn.concat %a, %b, %c, %d dim 0 : tensor<1xf32>, tensor<4xf32>, tensor<3xf32>, tensor<1xf32> -> tensor<9xf32>
  return %0, %1 : tensor<7xf32>, tensor<9xf32>
}

// Order counts, and so does the dimension.
// CHECK-LABEL: func.func @concat_of_other_slices
// CHECK-COUNT-4: nn.slice
// CHECK: nn.concat
// CHECK: nn.concat
func.func @concat_of_other_slices(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x2xf32>) {
  %a = nn.slice %x dim 0 from 0 size 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  %b = nn.slice %x dim 0 from 2 size 2 : tensor<4x4xf32> -> tensor<2x4xf32>
  %c = nn.slice %x dim 1 from 0 size 2 : tensor<4x4xf32> -> tensor<4x2xf32>
  %d = nn.slice %x dim 1 from 2 size 2 : tensor<4x4xf32> -> tensor<4x2xf32>
  %0 = nn.concat %b, %a dim 0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>
  %1 = nn.concat %c, %d dim 0 : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<8x2xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<8x2xf32>
}

// CHECK-LABEL: func.func @concat_of_concat
// CHECK-SAME: (%[[A:.*]]: tensor<3xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[C:.*]] = nn.concat %[[A]], %[[B]], %[[A]], %[[B]] dim 0
// CHECK-NEXT: return %[[C]]
func.func @concat_of_concat(%a: tensor<3xf32>, %b: tensor<4xf32>) -> tensor<14xf32> {
  %0 = nn.concat %b, %a dim 0 : tensor<4xf32>, tensor<3xf32> -> tensor<7xf32>
  %1 = nn.concat %a, %0, %b dim 0 : tensor<3xf32>, tensor<7xf32>, tensor<4xf32> -> tensor<14xf32>
  return %1 : tensor<14xf32>
}

// The inner one is a value of its own.
// CHECK-LABEL: func.func @concat_of_used_concat
// CHECK: %[[C:.*]] = nn.concat
// CHECK: nn.concat %[[C]], %[[C]]
func.func @concat_of_used_concat(%a: tensor<3xf32>, %b: tensor<4xf32>) -> tensor<14xf32> {
  %0 = nn.concat %b, %a dim 0 : tensor<4xf32>, tensor<3xf32> -> tensor<7xf32>
  %1 = nn.concat %0, %0 dim 0 : tensor<7xf32>, tensor<7xf32> -> tensor<14xf32>
  return %1 : tensor<14xf32>
}
