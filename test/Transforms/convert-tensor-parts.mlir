// RUN: braid-opt %s --split-input-file --braid-convert-tensor-parts | FileCheck %s
// RUN: braid-opt %S/Inputs/tensor-parts.mlir --test-equivalence="pipeline=builtin.module(braid-convert-tensor-parts) seed=3" | FileCheck %s --check-prefix=SAME
// RUN: braid-opt %S/Inputs/tensor-parts.mlir --braid-pipeline="mesh=dp=2 strategy=dp stop-after=scheduled" | FileCheck %s --check-prefix=GONE

// SAME: equivalent on 1 and 1 ranks:
// GONE-NOT: tensor.{{extract|insert|concat}}

// Dimensions that are whole need no slice.
// CHECK-LABEL: func.func @extract
// CHECK-SAME: (%[[X:.*]]: tensor<2x9x4xf32>)
// CHECK-NEXT: %[[A:.*]] = nn.slice %[[X]] dim 1 from 4 size 3 : tensor<2x9x4xf32> -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[B:.*]] = nn.slice %[[A]] dim 2 from 1 size 2 : tensor<2x3x4xf32> -> tensor<2x3x2xf32>
// CHECK-NEXT: return %[[B]], %[[X]]
func.func @extract(%x: tensor<2x9x4xf32>) -> (tensor<2x3x2xf32>, tensor<2x9x4xf32>) {
  %0 = tensor.extract_slice %x[0, 4, 1] [2, 3, 2] [1, 1, 1] : tensor<2x9x4xf32> to tensor<2x3x2xf32>
  %1 = tensor.extract_slice %x[0, 0, 0] [2, 9, 4] [1, 1, 1] : tensor<2x9x4xf32> to tensor<2x9x4xf32>
  return %0, %1 : tensor<2x3x2xf32>, tensor<2x9x4xf32>
}

// -----

// Dropped dimensions of size 1.
// CHECK-LABEL: func.func @extract_row
// CHECK: %[[A:.*]] = nn.slice %{{.*}} dim 0 from 1 size 1 : tensor<2x9xf32> -> tensor<1x9xf32>
// CHECK-NEXT: %[[B:.*]] = tensor.collapse_shape %[[A]] {{\[\[0, 1\]\]}} : tensor<1x9xf32> into tensor<9xf32>
// CHECK-NEXT: %[[C:.*]] = nn.slice %{{.*}} dim 0 from 0 size 1
// CHECK-NEXT: %[[D:.*]] = nn.slice %[[C]] dim 1 from 8 size 1
// CHECK-NEXT: %[[E:.*]] = tensor.collapse_shape %[[D]] [] : tensor<1x1xf32> into tensor<f32>
// CHECK-NEXT: return %[[B]], %[[E]]
func.func @extract_row(%x: tensor<2x9xf32>) -> (tensor<9xf32>, tensor<f32>) {
  %0 = tensor.extract_slice %x[1, 0] [1, 9] [1, 1] : tensor<2x9xf32> to tensor<9xf32>
  %1 = tensor.extract_slice %x[0, 8] [1, 1] [1, 1] : tensor<2x9xf32> to tensor<f32>
  return %0, %1 : tensor<9xf32>, tensor<f32>
}

// -----

// Around the part in the first dimension, and around it in the second within its rows.
// CHECK-LABEL: func.func @insert
// CHECK-SAME: (%[[P:.*]]: tensor<1x2xi64>, %[[Y:.*]]: tensor<3x4xi64>)
// CHECK-DAG: %[[ABOVE:.*]] = nn.slice %[[Y]] dim 0 from 0 size 1
// CHECK-DAG: %[[ROW:.*]] = nn.slice %[[Y]] dim 0 from 1 size 1
// CHECK-DAG: %[[LEFT:.*]] = nn.slice %[[ROW]] dim 1 from 0 size 2
// CHECK: %[[FULL:.*]] = nn.concat %[[LEFT]], %[[P]] dim 1 : tensor<1x2xi64>, tensor<1x2xi64> -> tensor<1x4xi64>
// CHECK: %[[BELOW:.*]] = nn.slice %[[Y]] dim 0 from 2 size 1
// CHECK: %[[R:.*]] = nn.concat %[[ABOVE]], %[[FULL]], %[[BELOW]] dim 0 : tensor<1x4xi64>, tensor<1x4xi64>, tensor<1x4xi64> -> tensor<3x4xi64>
// CHECK-NEXT: return %[[R]]
func.func @insert(%p: tensor<1x2xi64>, %y: tensor<3x4xi64>) -> tensor<3x4xi64> {
  %0 = tensor.insert_slice %p into %y[1, 2] [1, 2] [1, 1] : tensor<1x2xi64> into tensor<3x4xi64>
  return %0 : tensor<3x4xi64>
}

// -----

// An added dimension; and a part that replaces all.
// CHECK-LABEL: func.func @insert_row
// CHECK-SAME: (%[[P:.*]]: tensor<4xf32>, %[[Q:.*]]: tensor<2x4xf32>, %[[Y:.*]]: tensor<2x4xf32>)
// CHECK: %[[E:.*]] = tensor.expand_shape %[[P]] {{\[\[0, 1\]\]}} output_shape [1, 4] : tensor<4xf32> into tensor<1x4xf32>
// CHECK: %[[R:.*]] = nn.concat %[[E]], %{{.*}} dim 0 : tensor<1x4xf32>, tensor<1x4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: return %[[R]], %[[Q]]
func.func @insert_row(%p: tensor<4xf32>, %q: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = tensor.insert_slice %p into %y[0, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<2x4xf32>
  %1 = tensor.insert_slice %q into %y[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// CHECK-LABEL: func.func @concat
// CHECK-SAME: (%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: nn.concat %[[A]], %[[B]] dim 1 : tensor<2x3xf32>, tensor<2x4xf32> -> tensor<2x7xf32>
func.func @concat(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) -> tensor<2x7xf32> {
  %0 = tensor.concat dim(1) %a, %b : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x7xf32>
  return %0 : tensor<2x7xf32>
}

// -----

// Stated shardings stay, and so does that of a value of which a part is all.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @sharded
// CHECK: nn.slice %{{.*}} dim 0 from 0 size 4 {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]}
// CHECK: nn.slice %{{.*}} dim 0 from 0 size 8 {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]}
func.func @sharded(%x: tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>}) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %0 = tensor.extract_slice %x[0, 0] [4, 4] [1, 1] {comm.shardings = [#comm.sharding<@mesh, [{tp}, {}]>]} : tensor<8x4xf32> to tensor<4x4xf32>
  %1 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} : tensor<8x4xf32> to tensor<8x4xf32>
  return %0, %1 : tensor<4x4xf32>, tensor<8x4xf32>
}
