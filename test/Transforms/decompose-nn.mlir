// RUN: braid-opt %s --braid-decompose-nn | FileCheck %s
// RUN: braid-opt %s --braid-decompose-nn=rows-only | FileCheck %s --check-prefix=ROWS

// CHECK-DAG: #[[RC:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[R:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[C:.*]] = affine_map<(d0, d1) -> (d1)>

//===----------------------------------------------------------------------===//
// Row operations: domains (row, column), (row, reduced column) and (row).
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @add
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[Y:.*]]: tensor<4xf32>)
func.func @add(%x: tensor<2x4xf32>, %y: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<2x4xf32>
  // CHECK: %[[G:.*]] = linalg.generic {indexing_maps = [#[[RC]], #[[C]], #[[RC]]], iterator_types = ["parallel", "parallel"]}
  // CHECK-SAME: ins(%[[X]], %[[Y]] : {{.*}}) outs(%[[E]] : {{.*}})
  // CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32):
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]] fastmath<reassoc,contract> : f32
  // CHECK-NEXT: linalg.yield %[[S]] : f32
  // CHECK: return %[[G]]
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// Storage in bf16, arithmetic in f32.
// CHECK-LABEL: func.func @add_bf16
func.func @add_bf16(%x: tensor<2x4xbf16>, %y: tensor<2x4xbf16>) -> tensor<2x4xbf16> {
  // CHECK: ^bb0(%[[A:.*]]: bf16, %[[B:.*]]: bf16, %{{.*}}: bf16):
  // CHECK-NEXT: %[[A32:.*]] = arith.extf %[[A]] : bf16 to f32
  // CHECK-NEXT: %[[B32:.*]] = arith.extf %[[B]] : bf16 to f32
  // CHECK-NEXT: %[[S:.*]] = arith.addf %[[A32]], %[[B32]] fastmath<reassoc,contract> : f32
  // CHECK-NEXT: %[[S16:.*]] = arith.truncf %[[S]] : f32 to bf16
  // CHECK-NEXT: linalg.yield %[[S16]] : bf16
  %0 = nn.add %x, %y : tensor<2x4xbf16>, tensor<2x4xbf16> -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// CHECK-LABEL: func.func @gelu_erf
func.func @gelu_erf(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: ^bb0(%[[X:.*]]: f32, %{{.*}}: f32):
  // CHECK: %[[HALF:.*]] = arith.mulf %[[X]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: arith.constant 0.707106769 : f32
  // CHECK: %[[ERF:.*]] = math.erf %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: %[[P:.*]] = arith.addf %[[ERF]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: arith.mulf %[[HALF]], %[[P]] fastmath<reassoc,contract> : f32
  %0 = nn.activation gelu %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @gelu_tanh
func.func @gelu_tanh(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: arith.constant 4.471500e-02 : f32
  // CHECK: arith.constant 0.797884583 : f32
  // CHECK: math.tanh %{{.*}} fastmath<reassoc,contract> : f32
  %0 = nn.activation gelu_tanh %x : tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// A clamp that keeps NaN.
// CHECK-LABEL: func.func @hardswish
func.func @hardswish(%x: tensor<2x4xbf16>) -> tensor<2x4xbf16> {
  // CHECK: %[[X:.*]] = arith.extf %{{.*}} : bf16 to f32
  // CHECK: %[[SHIFTED:.*]] = arith.addf %[[X]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: %[[LOW:.*]] = arith.maximumf %[[SHIFTED]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: %[[CLAMPED:.*]] = arith.minimumf %[[LOW]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: %[[GATE:.*]] = arith.mulf %[[CLAMPED]], %{{.*}} fastmath<reassoc,contract> : f32
  // CHECK: arith.mulf %[[X]], %[[GATE]] fastmath<reassoc,contract> : f32
  %0 = nn.activation hardswish %x : tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

// The mean, then the variance around it; both are kept in f32.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xbf16>, %[[W:.*]]: tensor<4xbf16>, %[[B:.*]]: tensor<4xbf16>)
func.func @layer_norm(%x: tensor<2x4xbf16>, %w: tensor<4xbf16>, %b: tensor<4xbf16>) -> tensor<2x4xbf16> {
  // CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
  // CHECK: %[[E:.*]] = tensor.empty() : tensor<2xf32>
  // CHECK: %[[Z:.*]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[E]] : tensor<2xf32>)
  // CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [#[[RC]], #[[R]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]] : {{.*}}) outs(%[[Z]] : {{.*}})
  // CHECK: ^bb0(%[[IN:.*]]: bf16, %[[ACC:.*]]: f32):
  // CHECK: %[[WIDE:.*]] = arith.extf %[[IN]] : bf16 to f32
  // CHECK: arith.addf %[[ACC]], %[[WIDE]]
  // CHECK: %[[MEAN:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[SUM]] : tensor<2xf32>)
  // CHECK: arith.constant 4.000000e+00 : f32
  // CHECK: arith.divf
  // CHECK: %[[SQUARES:.*]] = linalg.generic {indexing_maps = [#[[RC]], #[[R]], #[[R]]], iterator_types = ["parallel", "reduction"]} ins(%[[X]], %[[MEAN]] : {{.*}})
  // CHECK: %[[D:.*]] = arith.subf
  // CHECK: arith.mulf %[[D]], %[[D]]
  // CHECK: %[[RSTD:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[SQUARES]] : tensor<2xf32>)
  // CHECK: arith.constant 9.99999974E-6 : f32
  // CHECK: math.rsqrt
  // CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [#[[RC]], #[[R]], #[[R]], #[[C]], #[[C]], #[[RC]]], iterator_types = ["parallel", "parallel"]} ins(%[[X]], %[[MEAN]], %[[RSTD]], %[[W]], %[[B]] : {{.*}})
  // CHECK: arith.truncf
  // CHECK: return %[[Y]] : tensor<2x4xbf16>
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x4xbf16>, tensor<4xbf16>, tensor<4xbf16> -> tensor<2x4xbf16>
  return %0 : tensor<2x4xbf16>
}

//===----------------------------------------------------------------------===//
// Other operations.
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @linear
// CHECK-SAME: (%[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<6x4xf32>, %[[B:.*]]: tensor<6xf32>)
// ROWS-LABEL: func.func @linear
func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<2x6xf32> {
  // CHECK: %[[P:.*]] = linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]] : {{.*}})
  // CHECK: arith.mulf
  // CHECK: arith.addf
  // CHECK: linalg.generic {indexing_maps = [#[[RC]], #[[C]], #[[RC]]], {{.*}} ins(%[[P]], %[[B]] : {{.*}})
  // ROWS: nn.linear
  %p0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x4xf32> -> tensor<2x6xf32>
  %0 = nn.add %p0, %b : tensor<2x6xf32>, tensor<6xf32> -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// CHECK-LABEL: func.func @linear_f16
func.func @linear_f16(%x: tensor<2x4xf16>, %w: tensor<6x4xf16>) -> tensor<2x6xf16> {
  // Accumulated in f32, rounded once.
  // CHECK: -> tensor<2x6xf32>
  // CHECK: arith.truncf %{{.*}} : f32 to f16
  // CHECK: -> tensor<2x6xf16>
  %0 = nn.linear %x, %w : tensor<2x4xf16>, tensor<6x4xf16> -> tensor<2x6xf16>
  return %0 : tensor<2x6xf16>
}

// CHECK-LABEL: func.func @embedding
// CHECK-SAME: (%[[IDS:.*]]: tensor<3xi64>, %[[T:.*]]: tensor<10x4xf32>)
// ROWS-LABEL: func.func @embedding
func.func @embedding(%ids: tensor<3xi64>, %table: tensor<10x4xf32>) -> tensor<3x4xf32> {
  // CHECK: linalg.generic {indexing_maps = [#[[R]], #[[RC]]], {{.*}} ins(%[[IDS]] : tensor<3xi64>)
  // CHECK: %[[ROW:.*]] = arith.index_cast %{{.*}} : i64 to index
  // CHECK: %[[COLUMN:.*]] = linalg.index 1
  // CHECK: tensor.extract %[[T]][%[[ROW]], %[[COLUMN]]]
  // ROWS: nn.embedding
  %0 = nn.embedding %ids, %table : tensor<3xi64>, tensor<10x4xf32> -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @heads
// ROWS-LABEL: func.func @heads
func.func @heads(%x: tensor<2x3x8xf32>, %y: tensor<2x3x2x4xf32>) -> (tensor<2x3x2x4xf32>, tensor<2x3x8xf32>) {
  // CHECK: tensor.expand_shape {{.*}} {{\[\[}}0], [1], [2, 3]] output_shape [2, 3, 2, 4]
  // CHECK: tensor.collapse_shape {{.*}} {{\[\[}}0], [1], [2, 3]]
  // ROWS: nn.split_heads
  // ROWS: nn.merge_heads
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf32>
  %1 = nn.merge_heads %y : tensor<2x3x2x4xf32> -> tensor<2x3x8xf32>
  return %0, %1 : tensor<2x3x2x4xf32>, tensor<2x3x8xf32>
}

// CHECK-LABEL: func.func @attention
// ROWS-LABEL: func.func @attention
func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x6xf32>, %mask: tensor<2x5xi32>,
                     %length: tensor<2xi64>, %offset: tensor<2xi32>) -> tensor<2x3x4x6xf32> {
  // Grouped heads become a separate dimension.
  // CHECK: tensor.expand_shape %{{.*}} output_shape [2, 3, 2, 2, 8]
  // CHECK: -> tensor<2x2x2x3x5xf32>
  // CHECK: ^bb0(%[[DOT:.*]]: f32, %[[M:.*]]: i32, %[[L:.*]]: i64, %[[O:.*]]: i32, %{{.*}}: f32):
  // CHECK: %[[VISIBLE:.*]] = arith.cmpi ne, %[[M]]
  // CHECK: %[[KEY:.*]] = linalg.index 4
  // CHECK: %[[LAST:.*]] = arith.index_cast %[[L]]
  // CHECK: arith.cmpi slt, %[[KEY]], %[[LAST]]
  // CHECK: linalg.index 3
  // CHECK: arith.addi
  // CHECK: arith.cmpi sle
  // CHECK: arith.constant 2.500000e-01 : f32
  // CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
  // CHECK: arith.maximumf
  // CHECK: math.exp
  // CHECK: tensor.collapse_shape %{{.*}} into tensor<2x3x4x6xf32>
  // ROWS: nn.attention
  %0 = nn.attention causal %q, %k, %v mask %mask : tensor<2x5xi32> valid_length %length : tensor<2xi64>
      position_offset %offset : tensor<2xi32> scale 0.25
      : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x6xf32>
  return %0 : tensor<2x3x4x6xf32>
}

// Parameters are not decomposed.
// CHECK-LABEL: func.func @parameter
func.func @parameter() -> tensor<4xf32> {
  // CHECK: nn.parameter "w"
  %0 = nn.parameter "w" : tensor<4xf32>
  return %0 : tensor<4xf32>
}
