// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s

// Cases after the reshapes in the tests of Shardy's basic propagation. A dimension of several factors takes the axes of the
// major one first, and those of the next only if the major one is sharded completely.

comm.mesh @mesh <a = 2, b = 2>

// CHECK-LABEL: func.func @merge_major_only
func.func @merge_major_only(%x: tensor<2x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}) -> tensor<8xf32> {
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{a}]>]
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %0 : tensor<8xf32>
}
// CHECK-LABEL: func.func @merge_major_complete
func.func @merge_major_complete(%x: tensor<2x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) -> tensor<8xf32> {
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{a, b}]>]
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %0 : tensor<8xf32>
}
// The minor dimension is gathered: a collapsed dimension cannot express its sharding.
// CHECK-LABEL: func.func @merge_major_partly
func.func @merge_major_partly(%x: tensor<4x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) -> tensor<16xf32> {
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{a}]>]
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  return %0 : tensor<16xf32>
}
// CHECK-LABEL: func.func @split_both
func.func @split_both(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}]>}) -> tensor<2x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{b}, {a}]>]
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @split_major_only
func.func @split_major_only(%x: tensor<16xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}]>}) -> tensor<4x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{b, a}, {}]>]
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// Dimensions of size 1 do not block propagation.
// CHECK-LABEL: func.func @split_over_one
func.func @split_over_one(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}]>}) -> tensor<2x1x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a}, {}, {b}]>]
  %0 = tensor.expand_shape %x [[0, 1, 2]] output_shape [2, 1, 4] : tensor<8xf32> into tensor<2x1x4xf32>
  return %0 : tensor<2x1x4xf32>
}

// -----

comm.mesh @mesh <a = 4, b = 2, c = 2>

// An axis is split where it is larger than the factor.
// CHECK-LABEL: func.func @one_axis_both_factors
func.func @one_axis_both_factors(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}) -> tensor<2x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)2}, {a:(2)2}]>]
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
// One reshape splits, the next merges.
// CHECK-LABEL: func.func @split_and_merge
func.func @split_and_merge(%x: tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{c, a}, {b}]>}) -> tensor<2x16xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{c}, {a}, {b}]>]
  %0 = tensor.expand_shape %x [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{c}, {a, b}]>]
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<2x4x4xf32> into tensor<2x16xf32>
  return %1 : tensor<2x16xf32>
}

// -----

comm.mesh @mesh <a = 16, b = 2>

// CHECK-LABEL: func.func @split_twice
func.func @split_twice(%x: tensor<32xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}) -> tensor<2x4x4xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)8}, {a:(8)2}]>]
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [8, 4] : tensor<32xf32> into tensor<8x4xf32>
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a:(1)8}, {a:(8)2}]>]
  %1 = nn.add %0, %0 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)2}, {a:(2)4}, {a:(8)2}]>]
  %2 = tensor.expand_shape %1 [[0, 1], [2]] output_shape [2, 4, 4] : tensor<8x4xf32> into tensor<2x4x4xf32>
  return %2 : tensor<2x4x4xf32>
}
// Consecutive sub-axes of an axis are merged to one.
// CHECK-LABEL: func.func @split_then_merge
func.func @split_then_merge(%x: tensor<32xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}) -> tensor<32xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)4}, {a:(4)2}, {a:(8)2}]>]
  %0 = tensor.expand_shape %x [[0, 1, 2]] output_shape [4, 2, 4] : tensor<32xf32> into tensor<4x2x4xf32>
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)4}, {a:(4)4}]>]
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<4x2x4xf32> into tensor<4x8xf32>
  // CHECK: tensor.collapse_shape {{.*}} [#comm.sharding<@mesh, [{a}]>]
  %2 = tensor.collapse_shape %1 [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
  return %2 : tensor<32xf32>
}

// -----

// Axes are used as far as they divide a factor: 2 of an axis of 6 for a factor of 8. The rest is gathered. (Shardy pads and may
// shard further.)
comm.mesh @mesh <a = 6, b = 2>

// CHECK-LABEL: func.func @does_not_divide
func.func @does_not_divide(%x: tensor<2x96xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {a}]>}) -> tensor<2x8x12xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{b}, {a:(1)2}, {}]>]
  %0 = tensor.expand_shape %x [[0], [1, 2]] output_shape [2, 8, 12] {comm.shardings = [#comm.sharding<@mesh, [{b}, {?}, {?}]>]} : tensor<2x96xf32> into tensor<2x8x12xf32>
  return %0 : tensor<2x8x12xf32>
}
// CHECK-LABEL: func.func @fits_both
func.func @fits_both(%x: tensor<24xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}) -> tensor<2x12xf32> {
  // CHECK: tensor.expand_shape {{.*}} [#comm.sharding<@mesh, [{a:(1)2}, {a:(2)3}]>]
  %0 = tensor.expand_shape %x [[0, 1]] output_shape [2, 12] : tensor<24xf32> into tensor<2x12xf32>
  return %0 : tensor<2x12xf32>
}
