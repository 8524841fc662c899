// RUN: braid-opt %s --split-input-file | braid-opt --split-input-file | FileCheck %s
// RUN: braid-opt %s --split-input-file --mlir-print-op-generic | braid-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @parameters
func.func @parameters() {
  // Slices are not printed if they are one full tensor of the parameter's name.
  // CHECK: nn.parameter "encoder.w" : tensor<384x1536xf32>
  %0 = nn.parameter "encoder.w" : tensor<384x1536xf32>
  // CHECK: nn.parameter "encoder.w" : tensor<8xbf16>
  %1 = nn.parameter "encoder.w" slices ["encoder.w"[8]] init normal : tensor<8xbf16>
  // CHECK: nn.parameter "norm" init ones : tensor<8xf32>
  %2 = nn.parameter "norm" init ones : tensor<8xf32>
  // CHECK: nn.parameter "positions" slices ["positions"[512, 384] size [128, 384]] : tensor<128x384xf32>
  %3 = nn.parameter "positions" slices ["positions"[512, 384] size [128, 384]] : tensor<128x384xf32>
  // CHECK: nn.parameter "qk" slices ["q"[8, 4], "k"[4, 8] permuted [1, 0] to [8, 0]] init zeros {tied} : tensor<16x4xf16>
  %4 = nn.parameter "qk" slices ["q"[8, 4], "k"[4, 8] permuted [1, 0] to [8, 0]] init zeros {tied} : tensor<16x4xf16>
  // CHECK: nn.parameter "part" slices ["w"[4, 8] permuted [1, 0] from [2, 1] to [0, 1] size [6, 3]] : tensor<6x4xf32>
  %5 = nn.parameter "part" slices ["w"[4, 8] permuted [1, 0] from [2, 1] to [0, 1] size [6, 3]] : tensor<6x4xf32>
  // CHECK: nn.parameter "nothing" slices [] : tensor<4xf32>
  %6 = nn.parameter "nothing" slices [] : tensor<4xf32>
  // CHECK: nn.parameter "scalar" : tensor<f32>
  %7 = nn.parameter "scalar" : tensor<f32>
  return
}

// CHECK-LABEL: func.func private @slice_attribute
// CHECK-SAME: #nn.slice<"w"[4, 8] permuted [1, 0] from [2, 0] size [6, 4]>
func.func private @slice_attribute() attributes {test = #nn.slice<"w"[4, 8] permuted [1, 0] from [2, 0] to [0, 0] size [6, 4]>}

// CHECK-LABEL: func.func @encoder
func.func @encoder(%ids: tensor<2x8xi64>, %mask: tensor<2x8xi32>, %table: tensor<100x16xf32>, %positions: tensor<8x16xf32>,
                   %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<2x8x16xf32> {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} role "embedding.word" : tensor<2x8xi64>, tensor<100x16xf32> -> tensor<2x8x16xf32>
  %0 = nn.embedding %ids, %table role "embedding.word" : tensor<2x8xi64>, tensor<100x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.embedding %{{.*}}, %{{.*}} rows 99 role "embedding.word" : tensor<2x8xi64>, tensor<100x16xf32> -> tensor<2x8x16xf32>
  %padded = nn.embedding %ids, %table rows 99 role "embedding.word" : tensor<2x8xi64>, tensor<100x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x16xf32>
  %1 = nn.add %0, %positions : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.layer_norm %{{.*}}, %{{.*}}, %{{.*}} epsilon 9.9999999999999998E-13 : tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %2 = nn.layer_norm %1, %b, %b epsilon 1.0e-12 : tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.linear %{{.*}}, %{{.*}} role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.add %{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %p3 = nn.linear %2, %w role "attention.query" : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  %3 = nn.add %p3, %b : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.linear %{{[^ ]*}}, %{{[^ ]*}} : tensor<2x8x16xf32>
  %4 = nn.linear %2, %w : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.split_heads %{{.*}} : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  %5 = nn.split_heads %3 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  // CHECK: nn.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : tensor<2x8xi32> scale 5.000000e-01 : tensor<2x8x4x4xf32>
  %6 = nn.attention %5, %5, %5 mask %mask : tensor<2x8xi32> scale 0.5
      : tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32>, tensor<2x8x4x4xf32> -> tensor<2x8x4x4xf32>
  // CHECK: nn.merge_heads %{{.*}} : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  %7 = nn.merge_heads %6 : tensor<2x8x4x4xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.activation gelu %{{.*}} : tensor<2x8x16xf32>
  %8 = nn.activation gelu %7 : tensor<2x8x16xf32>
  // CHECK: nn.activation gelu_tanh %{{.*}} : tensor<2x8x16xf32>
  %9 = nn.activation gelu_tanh %8 : tensor<2x8x16xf32>
  // CHECK: nn.activation leaky_relu %{{.*}} : tensor<2x8x16xf32>
  %10 = nn.activation leaky_relu %9 : tensor<2x8x16xf32>
  return %10 : tensor<2x8x16xf32>
}

// Grouped heads, another value dimension, and every optional operand.
// CHECK-LABEL: func.func @decoder_attention
func.func @decoder_attention(%q: tensor<2x3x8x4xbf16>, %k: tensor<2x16x2x4xbf16>, %v: tensor<2x16x2x6xbf16>,
                             %mask: tensor<2x16xi64>, %length: tensor<2xi32>, %offset: tensor<2xi64>) -> tensor<2x3x8x6xbf16> {
  // CHECK: nn.attention causal %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : tensor<2x16xi64> valid_length %{{.*}} : tensor<2xi32> position_offset %{{.*}} : tensor<2xi64> scale 5.000000e-01
  %0 = nn.attention causal %q, %k, %v mask %mask : tensor<2x16xi64> valid_length %length : tensor<2xi32>
      position_offset %offset : tensor<2xi64> scale 0.5
      : tensor<2x3x8x4xbf16>, tensor<2x16x2x4xbf16>, tensor<2x16x2x6xbf16> -> tensor<2x3x8x6xbf16>
  return %0 : tensor<2x3x8x6xbf16>
}

// CHECK-LABEL: func.func @roberta
func.func @roberta(%ids: tensor<2x8xi64>) -> tensor<2x8xi64> {
  // CHECK: nn.position_ids %{{.*}} padding 1 : tensor<2x8xi64>
  %0 = nn.position_ids %ids padding 1 : tensor<2x8xi64>
  return %0 : tensor<2x8xi64>
}

// CHECK-LABEL: func.func @llama
func.func @llama(%x: tensor<2x8x16xf32>, %w: tensor<16xf32>, %offset: tensor<2xi64>) -> tensor<2x8x4x4xf32> {
  // CHECK: nn.rms_norm %{{.*}}, %{{.*}} epsilon 1.000000e-05 : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.activation silu %{{.*}} : tensor<2x8x16xf32>
  %1 = nn.activation silu %0 : tensor<2x8x16xf32>
  // CHECK: nn.mul %{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %2 = nn.mul %1, %0 : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  // CHECK: nn.softmax %{{.*}} : tensor<2x8x16xf32>
  %3 = nn.softmax %2 : tensor<2x8x16xf32>
  %4 = nn.split_heads %3 : tensor<2x8x16xf32> -> tensor<2x8x4x4xf32>
  // CHECK: %[[COS:.*]], %[[SIN:.*]] = nn.rotary_table [1.000000e+00, 1.000000e-02] : tensor<8x2xf32>
  %cos, %sin = nn.rotary_table [1.0, 0.01] : tensor<8x2xf32>
  // CHECK: nn.rotary %{{.*}}, %[[COS]], %[[SIN]] : tensor<2x8x4x4xf32>, tensor<8x2xf32>
  %5 = nn.rotary %4, %cos, %sin : tensor<2x8x4x4xf32>, tensor<8x2xf32>
  // CHECK: nn.rotary_table [1.000000e+00, 1.000000e-02] position_offset %{{.*}} : tensor<2xi64> scale 1.200000e+00 : tensor<2x8x2xf32>
  %c, %s = nn.rotary_table [1.0, 0.01] position_offset %offset : tensor<2xi64> scale 1.2 : tensor<2x8x2xf32>
  %6 = nn.rotary %5, %c, %s : tensor<2x8x4x4xf32>, tensor<2x8x2xf32>
  return %6 : tensor<2x8x4x4xf32>
}

// CHECK-LABEL: func.func @main
// CHECK-SAME: nn.name = "hidden"
// CHECK-SAME: nn.name = "out"
// CHECK-SAME: attributes {nn.entry}
func.func @main(%x: tensor<4xf32> {nn.name = "hidden"}) -> (tensor<4xf32> {nn.name = "out"}) attributes {nn.entry} {
  return %x : tensor<4xf32>
}

// -----

comm.mesh @mesh <dp = 2, tp = 2>

// CHECK-LABEL: func.func @part
func.func @part(%ids: tensor<2x8xi64>, %table: tensor<50x16xf32>) -> tensor<2x8x16xf32> {
  // CHECK: nn.embedding %{{.*}}, %{{.*}} over <@mesh, {tp}> role "embedding.word" : tensor<2x8xi64>, tensor<50x16xf32> -> tensor<2x8x16xf32>
  %0 = nn.embedding %ids, %table over <@mesh, {tp}> role "embedding.word" : tensor<2x8xi64>, tensor<50x16xf32> -> tensor<2x8x16xf32>
  return %0 : tensor<2x8x16xf32>
}


// CHECK-LABEL: func.func @partitioned
func.func @partitioned() {
  // CHECK: nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{tp}, {}]> : tensor<192x384xf32>
  %0 = nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{tp}, {}]> : tensor<192x384xf32>
  // CHECK: nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{dp, tp}, {}]> : tensor<96x384xf32>
  %1 = nn.parameter "w" of tensor<384x384xf32> sharded <@mesh, [{dp, tp}, {}]> : tensor<96x384xf32>
  // CHECK: nn.parameter "w" init ones {note} stored <@mesh, [{dp, tp}, {}]> : tensor<384x384xf32>
  %2 = nn.parameter "w" init ones {note} stored <@mesh, [{dp, tp}, {}]> : tensor<384x384xf32>
  return
}
