// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s

// Cases after the tests of Shardy's basic propagation (openxla.org/shardy). A matmul is nn.linear, whose weight has its outputs
// first. Features without a counterpart here are omitted: priorities by user, sharding groups, barriers, manual computation,
// several meshes in a module, tokens, dimensions that do not divide.

comm.mesh @mesh <a = 2, b = 2, c = 2>

// Sideways to the other operand of an addition, and on to the contracted dimension of a weight.
// CHECK-LABEL: func.func @simple
// CHECK-SAME: (%{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>},
// CHECK-SAME: %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>},
// CHECK-SAME: %{{[^:]*}}: tensor<16x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {b}]>})
// CHECK-SAME: -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>})
func.func @simple(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}, %y: tensor<8x8xf32>,
                  %w: tensor<16x8xf32>) -> tensor<8x16xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {b}]>]
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}], partial = [b = sum]>]
  %1 = nn.linear %0, %w : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// A closed dimension takes no axes.
// CHECK-LABEL: func.func @closed_dim
func.func @closed_dim(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                      %w: tensor<16x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b}, {}]>}) -> tensor<8x16xf32> {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {b}]>]
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {?}]>]} : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// Several axes, and an open dimension that lacks one of them.
// CHECK-LABEL: func.func @multi_axes
// CHECK-SAME: %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}, {}]>}, %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}, {}]>}
func.func @multi_axes(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}, {}]>},
                      %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, ?}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{b, a}, {}]>]
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Where operands agree on the first axis only, Shardy propagates that one and leaves the operation to a later pass. Here the
// operation is decided at once: moving either operand costs the same bytes, so the first operand's sharding is kept.
// CHECK-LABEL: func.func @multi_axes_conflict
func.func @multi_axes_conflict(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, a}, {}]>},
                               %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, c}, {}]>}) -> tensor<8x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{b, a}, {}]>]
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// A result that uses an axis in another dimension takes the remaining ones; the open operand takes both.
// CHECK-LABEL: func.func @some_axes_incompatible
// CHECK-SAME: %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {}]>}, %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}
func.func @some_axes_incompatible(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {}]>}, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {b}]>]
  %0 = nn.add %x, %y {comm.shardings = [#comm.sharding<@mesh, [{?}, {b}]>]} : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// Arguments and results of functions update each other.
// CHECK-LABEL: func.func @both_updated
// CHECK-SAME: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>})
func.func @both_updated(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {b, ?}]>}) {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {b}]>]
  %0 = nn.add %x, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @direct_return
// CHECK-SAME: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>})
func.func @direct_return(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {b, ?}]>}) {
  return %x : tensor<8x8xf32>
}
// An axis in use along another dimension stays as it is, and so do axes that continue differently.
// CHECK-LABEL: func.func @direct_return_used_axes
// CHECK-SAME: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {}]>})
func.func @direct_return_used_axes(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {b, ?}]>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b, ?}, {?}]>}) {
  return %x : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @direct_return_prefix
// CHECK-SAME: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {}]>}) -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, c}, {}]>})
func.func @direct_return_prefix(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b, ?}, {?}]>})
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, c, ?}, {?}]>}) {
  return %x : tensor<8x8xf32>
}
// From the function's result through a matmul to both operands.
// CHECK-LABEL: func.func @func_out_sharding
// CHECK-SAME: %{{[^:]*}}: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}, %{{[^:]*}}: tensor<16x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b}, {}]>}
func.func @func_out_sharding(%x: tensor<8x8xf32>, %w: tensor<16x8xf32>)
    -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {b}]>]
  %0 = nn.linear %x, %w : tensor<8x8xf32>, tensor<16x8xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}

// -----

// To and from an operation of two results; the reduction loop is not sharded.
comm.mesh @mesh <a = 2, b = 2>
#in = affine_map<(i, j, k) -> (i, j, k)>
#out = affine_map<(i, j, k) -> (i, k)>

// CHECK-LABEL: func.func @to_multi_result_op
// CHECK-SAME: -> (tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {b}]>}, tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {b}]>})
func.func @to_multi_result_op(%x: tensor<4x64x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {b}]>},
                              %y: tensor<4x64x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {b}]>}) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: tensor.empty() {comm.shardings = [#comm.sharding<@mesh, [{}, {b}]>]}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{}, {b}]>, #comm.sharding<@mesh, [{}, {b}]>]}
  %0, %1 = linalg.generic {indexing_maps = [#in, #in, #out, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : tensor<4x64x8xf32>, tensor<4x64x8xf32>) outs(%z, %z : tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %c, %a : f32
    %t = arith.addf %d, %b : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}
// CHECK-LABEL: func.func @from_multi_result_op
// CHECK-SAME: %{{[^:]*}}: tensor<4x64x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {b}]>}, %{{[^:]*}}: tensor<4x64x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}, {b}]>}
func.func @from_multi_result_op(%x: tensor<4x64x8xf32>, %y: tensor<4x64x8xf32>)
    -> (tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {b, ?}]>}, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  %0, %1 = linalg.generic {indexing_maps = [#in, #in, #out, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : tensor<4x64x8xf32>, tensor<4x64x8xf32>) outs(%z, %z : tensor<4x8xf32>, tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %c, %a : f32
    %t = arith.addf %d, %b : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

comm.mesh @mesh <a = 16, b = 2>

// The common prefix of both axis lists is a sub-axis; the sharding stated for the second dimension keeps a:(4)2.
// CHECK-LABEL: func.func @compatible_prefix
// CHECK-SAME: %{{[^:]*}}: tensor<32x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)4}, {a:(4)2}]>}
func.func @compatible_prefix(%x: tensor<32x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)4, ?}, {?}]>},
                             %y: tensor<32x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)2, ?}, {a:(4)2, ?}]>}) -> tensor<32x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a:(1)4}, {a:(4)2}]>]
  %0 = nn.add %x, %y : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}
// An open sub-axis grows to the full axis if it is the major sub-axis.
// CHECK-LABEL: func.func @full_to_sub_axis
func.func @full_to_sub_axis(%x: tensor<32x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {}]>}) -> tensor<32x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
  %0 = nn.add %x, %x {comm.shardings = [#comm.sharding<@mesh, [{a:(1)2, ?}, {}]>]} : tensor<32x8xf32>, tensor<32x8xf32> -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}
// CHECK-LABEL: func.func @open_sub_axis_grows
// CHECK-SAME: %{{[^:]*}}: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)4}, {}]>}, %{{[^:]*}}: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)4}, {}]>}
func.func @open_sub_axis_grows(%x: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)4}, {}]>},
                               %y: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)2, ?}, {?}]>}) -> tensor<64x64xf32> {
  %0 = nn.add %x, %y : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// Sub-axes without a common factorization cannot be in one sharding. The result's sharding is kept, as in Shardy.
comm.mesh @mesh <x = 6>

// CHECK-LABEL: func.func @sub_axes_cannot_coexist
func.func @sub_axes_cannot_coexist(%x: tensor<12x12xf32> {comm.sharding = #comm.sharding<@mesh, [{x:(1)2}, {}]>})
    -> (tensor<12x12xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {x:(3)2}]>}) {
  // CHECK: nn.activation {{.*}} [#comm.sharding<@mesh, [{}, {x:(3)2}]>]
  %0 = nn.activation gelu %x : tensor<12x12xf32>
  return %0 : tensor<12x12xf32>
}
