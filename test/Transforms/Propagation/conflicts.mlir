// RUN: braid-opt %s --braid-propagate-shardings --split-input-file | FileCheck %s

// Conflicting shardings: cases after the tests of Shardy's aggressive and op-priority propagation, decided by bytes.

comm.mesh @mesh <a = 2, b = 2, c = 2>

// Operands disagree about the contracted dimension, and about which operand's rows have an axis. Shardy keeps both outer
// dimensions, which sends 224 kB in gathers; one outer dimension and a sum send 152 kB.
// CHECK-LABEL: func.func @contracting_against_outer
func.func @contracting_against_outer(%x: tensor<256x512xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b, c}]>},
                                     %w: tensor<128x512xf32> {comm.sharding = #comm.sharding<@mesh, [{c, b}, {a}]>}) -> tensor<256x128xf32> {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}], partial = [b = sum, c = sum]>]
  %0 = nn.linear %x, %w : tensor<256x512xf32>, tensor<128x512xf32> -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32>
}
// The result's dimension goes to the open weight, and the input is gathered.
// CHECK-LABEL: func.func @two_outer_dims
// CHECK-SAME: %{{[^:]*}}: tensor<256x512xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}, %{{[^:]*}}: tensor<128x512xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}
func.func @two_outer_dims(%x: tensor<256x512xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>}, %w: tensor<128x512xf32>)
    -> (tensor<256x128xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {a}]>]
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{}, {a}]>]} : tensor<256x512xf32>, tensor<128x512xf32> -> tensor<256x128xf32>
  return %0 : tensor<256x128xf32>
}
// The larger operand stays where it is.
// CHECK-LABEL: func.func @different_sizes
func.func @different_sizes(%x: tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {?}]>},
                           %w: tensor<16x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a, c}, {?}]>}) -> tensor<8x16xf32> {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {a, c}]>]
  %0 = nn.linear %x, %w : tensor<8x4xf32>, tensor<16x4xf32> -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
// Of two equal operands the first one's sharding is kept.
// CHECK-LABEL: func.func @same_sizes
func.func @same_sizes(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                      %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}) -> tensor<8x8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// A closed result also takes no axes from its operands.
// CHECK-LABEL: func.func @closed_result
// CHECK-SAME: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}, %{{[^:]*}}: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{}]>}
func.func @closed_result(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{}]>]
  %0 = nn.add %x, %y {comm.shardings = [#comm.sharding<@mesh, [{}]>]} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
// A result that is closed with the first of two axes passes on only that one.
// CHECK-LABEL: func.func @closed_result_prefix
// CHECK-SAME: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}]>}, %{{[^:]*}}: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}
func.func @closed_result_prefix(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}]>}, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}]>]
  %0 = nn.add %x, %y {comm.shardings = [#comm.sharding<@mesh, [{a}]>]} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Elementwise operations come before contractions: the result's sharding reaches the matmul's result first. Shardy gives the
// matmul that sharding too, which gathers the rows (128 bytes); exchanging its result sends 64 bytes.
// CHECK-LABEL: func.func @elementwise_first
func.func @elementwise_first(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>}, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {a, ?}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
  %0 = nn.linear %x, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{}, {a}]>]
  %1 = nn.add %0, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{}, {a}]>]
  %2 = nn.add %1, %1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
// CHECK-LABEL: func.func @elementwise_first_below
func.func @elementwise_first_below(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>}, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {a, ?}]>}) {
  // CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
  %0 = nn.add %x, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = nn.add %w, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
  %2 = nn.linear %0, %1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// The weight asks for a sum over a, the result for rows over a. Shardy prefers factors that pass through, which gathers the
// weight (16,384 bytes); scattering the sum over the rows sends 512.
comm.mesh @mesh <a = 2, b = 2>
// CHECK-LABEL: func.func @outer_before_contracted
func.func @outer_before_contracted(%x: tensor<32x1024xf32>, %w: tensor<16x1024xf32> {comm.sharding = #comm.sharding<@mesh, [{b, ?}, {a, ?}]>})
    -> (tensor<32x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {b, ?}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {b}], partial = [a = sum]>]
  %0 = nn.linear %x, %w : tensor<32x1024xf32>, tensor<16x1024xf32> -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

// Broadcasts propagate from their results first: the conflict is resolved where the value is small, by a gather of 64 bytes
// instead of an exchange of 4096.
comm.mesh @mesh <a = 2, b = 2>
// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<32xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>})
    -> (tensor<32x16x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {a}, {}]>}) {
  %e = tensor.empty() : tensor<32x16xf32>
  // CHECK: linalg.broadcast {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {a}]>]}
  %0 = linalg.broadcast ins(%x : tensor<32xf32>) outs(%e : tensor<32x16xf32>) dimensions = [1]
  %f = tensor.empty() : tensor<32x16x8xf32>
  // CHECK: linalg.broadcast {{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {a}, {}]>]}
  %1 = linalg.broadcast ins(%0 : tensor<32x16xf32>) outs(%f : tensor<32x16x8xf32>) dimensions = [2]
  return %1 : tensor<32x16x8xf32>
}

// -----

// Four rows, a large weight: the rows are moved to match the weight.
comm.mesh @mesh <x = 4>
// CHECK-LABEL: func.func @weight_stays
func.func @weight_stays(%x: tensor<4x4096xf32> {comm.sharding = #comm.sharding<@mesh, [{x}, {}]>},
                        %w: tensor<4096x4096xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {x}]>})
    -> (tensor<4x4096xf32> {comm.sharding = #comm.sharding<@mesh, [{x}, {}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {}], partial = [x = sum]>]
  %0 = nn.linear %x, %w : tensor<4x4096xf32>, tensor<4096x4096xf32> -> tensor<4x4096xf32>
  return %0 : tensor<4x4096xf32>
}
// Many rows, a small weight: the weight is moved to match the rows.
// CHECK-LABEL: func.func @rows_stay
func.func @rows_stay(%x: tensor<4096x64xf32> {comm.sharding = #comm.sharding<@mesh, [{x}, {}]>},
                     %w: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {x}]>})
    -> (tensor<4096x64xf32> {comm.sharding = #comm.sharding<@mesh, [{x}, {}]>}) {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{x}, {}]>]
  %0 = nn.linear %x, %w : tensor<4096x64xf32>, tensor<64x64xf32> -> tensor<4096x64xf32>
  return %0 : tensor<4096x64xf32>
}

// -----

// A sharding stated for a sum applies after the reduction, also beside an axis that shards the batch.
comm.mesh @mesh <dp = 4, tp = 2>
// CHECK-LABEL: func.func @sum_beside_batch
func.func @sum_beside_batch(%x: tensor<8x32xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp}]>},
                            %w: tensor<16x32xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>}) -> tensor<8x16xf32> {
  // CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{dp}, {}], partial = [tp = sum]>]
  %0 = nn.linear %x, %w {comm.shardings = [#comm.sharding<@mesh, [{dp, tp}, {}]>]} : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
  // CHECK: nn.activation {{.*}} [#comm.sharding<@mesh, [{dp, tp}, {}]>]
  %1 = nn.activation gelu %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

// Two results state different shardings: the operation has one of them; the other result is moved for its users.
comm.mesh @mesh <a = 2, b = 2>
#in = affine_map<(i, j, k) -> (i, j, k)>
#out = affine_map<(i, j, k) -> (i, k)>
// CHECK-LABEL: func.func @two_results
// CHECK-SAME: -> (tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {a}]>}, tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {b}]>})
func.func @two_results(%x: tensor<4x8x8xf32>, %y: tensor<4x8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: linalg.generic {{.*}} attrs = {comm.shardings = [#comm.sharding<@mesh, [{}, {a}]>, #comm.sharding<@mesh, [{}, {a}]>]}
  %0, %1 = linalg.generic {indexing_maps = [#in, #in, #out, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %y : tensor<4x8x8xf32>, tensor<4x8x8xf32>) outs(%z, %z : tensor<4x8xf32>, tensor<4x8xf32>)
      attrs = {comm.shardings = [#comm.sharding<@mesh, [{?}, {a}]>, #comm.sharding<@mesh, [{?}, {b}]>]} {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    %s = arith.addf %c, %a : f32
    %t = arith.addf %d, %b : f32
    linalg.yield %s, %t : f32, f32
  } -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A call's result has the sharding that its callee returns, whatever its users want or the call states.
comm.mesh @mesh <a = 2, b = 2>
func.func private @g(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = nn.activation gelu %x : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
// CHECK-LABEL: func.func @two_calls
// CHECK: call @g({{.*}}) {comm.shardings = [#comm.sharding<@mesh, [{a}, {}]>]}
// CHECK: call @g({{.*}}) {comm.shardings = [#comm.sharding<@mesh, [{a}, {}]>]}
func.func @two_calls(%x: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
                     %y: tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{b}, {}]>})
    -> (tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>},
        tensor<64x64xf32> {comm.sharding = #comm.sharding<@mesh, [{b}, {}]>}) {
  %0 = func.call @g(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = func.call @g(%y) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
func.func private @h(%x: tensor<8x16xf32>) -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {}]>}) {
  return %x : tensor<8x16xf32>
}
// CHECK-LABEL: func.func @stated_call
// CHECK: call @h({{.*}}) {comm.shardings = [#comm.sharding<@mesh, [{a}, {}]>]}
// CHECK: nn.activation {{.*}} [#comm.sharding<@mesh, [{a}, {b}]>]
func.func @stated_call(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = func.call @h(%x) {comm.shardings = [#comm.sharding<@mesh, [{}, {b}]>]} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = nn.activation gelu %0 : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// -----

comm.mesh @mesh <a = 2, b = 2, c = 2, d = 2>
// The batch axis of the closed result propagates to the open operand, also if the other operand uses an axis for its rows.
// CHECK-LABEL: func.func @partial_conflict_across_factors
// CHECK-SAME: %{{[^:]*}}: tensor<4x4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{a, b}, {}, {}]>}
// CHECK: linalg.batch_matmul {comm.shardings = [#comm.sharding<@mesh, [{a, b}, {}, {}]>]}
func.func @partial_conflict_across_factors(%x: tensor<4x8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{a}, {b}, {}]>}, %y: tensor<4x4x16xf32>, %e: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {
  %0 = linalg.batch_matmul {comm.shardings = [#comm.sharding<@mesh, [{a, b}, {}, {}]>]} ins(%x, %y : tensor<4x8x4xf32>, tensor<4x4x16xf32>) outs(%e : tensor<4x8x16xf32>) -> tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}
// Rows against columns over a and b, and the sum over d and c against a batch over d. Shardy keeps the batch. Here the sharding
// that the result states applies after the sum is complete. Both keep the columns.
// CHECK-LABEL: func.func @several_conflicts
// CHECK-SAME: %{{[^:]*}}: tensor<2x8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {a, b}, {d, c}]>}
// CHECK-SAME: -> (tensor<2x8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{d}, {}, {b, a}]>})
// CHECK: linalg.batch_matmul {comm.shardings = [#comm.sharding<@mesh, [{}, {}, {b, a}], partial = [d = sum, c = sum]>]}
func.func @several_conflicts(%x: tensor<2x8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {a, b}, {?}]>},
                             %y: tensor<2x4x16xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {d, c}, {b, a}]>}) -> tensor<2x8x16xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x8x16xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  %0 = linalg.batch_matmul {comm.shardings = [#comm.sharding<@mesh, [{d}, {?}, {?}]>]} ins(%x, %y : tensor<2x8x4xf32>, tensor<2x4x16xf32>) outs(%f : tensor<2x8x16xf32>) -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}
// Closed dimensions without an axis do not conflict.
// CHECK-LABEL: func.func @no_conflict_closed
// CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a}, {b, c}]>]
func.func @no_conflict_closed(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {b}]>},
                              %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {b, c, ?}]>}) -> tensor<8x8xf32> {
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// A conflict within rows and one between rows and columns: moving the first operand to the second sends 32 bytes, the other way
// 128. Shardy keeps the columns and leaves the rows to be decided later.
// CHECK-LABEL: func.func @within_and_across
// CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{b}, {a}]>]
func.func @within_and_across(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>},
                             %y: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{b, ?}, {a, ?}]>}) -> tensor<8x8xf32> {
  %0 = nn.add %x, %y : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
// The first matmul keeps the rows of its input, the second has the sharding that its users want.
// CHECK-LABEL: func.func @chained
// CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{a}, {}]>]
// CHECK: nn.linear {{.*}} [#comm.sharding<@mesh, [{}, {a}]>]
// CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{}, {a}]>]
func.func @chained(%x: tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{a, ?}, {?}]>}, %w: tensor<8x8xf32>)
    -> (tensor<8x8xf32> {comm.sharding = #comm.sharding<@mesh, [{?}, {a, ?}]>}) {
  %0 = nn.linear %x, %w : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = nn.linear %0, %0 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %2 = nn.add %1, %1 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// A closed sub-axis takes no other sub-axis of its axis and passes none on.
comm.mesh @mesh <a = 4>
// CHECK-LABEL: func.func @closed_sub_axis
// CHECK-SAME: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}, %{{[^:]*}}: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a:(1)2}]>}
// CHECK: nn.add {{.*}} [#comm.sharding<@mesh, [{a:(1)2}]>]
func.func @closed_sub_axis(%x: tensor<8xf32> {comm.sharding = #comm.sharding<@mesh, [{a}]>}, %y: tensor<8xf32>) -> tensor<8xf32> {
  %0 = nn.add %x, %y {comm.shardings = [#comm.sharding<@mesh, [{a:(1)2}]>]} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
