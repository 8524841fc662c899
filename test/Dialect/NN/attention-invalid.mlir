// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// nn.split_heads, nn.merge_heads
//===----------------------------------------------------------------------===//

func.func @split(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'nn.split_heads' op expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got [2, 3, 8] and [2, 3, 2, 3] [nn.split_heads_c1]}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x3xf32>
  return
}

// -----

func.func @split(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{got [2, 3, 8] and [3, 2, 2, 4] [nn.split_heads_c1]}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<3x2x2x4xf32>
  return
}

// -----

func.func @split(%x: tensor<2x3x8xf32>) {
  // expected-error @+1 {{'nn.split_heads' op expects one element type, got 'f32' and 'f16' [nn.split_heads_c2]}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf16>
  return
}

// -----

func.func @merge(%x: tensor<2x3x2x4xf32>) {
  // expected-error @+1 {{'nn.merge_heads' op expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got [2, 3, 6] and [2, 3, 2, 4] [nn.merge_heads_c1]}}
  %0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x6xf32>
  return
}

// -----

func.func @merge(%x: tensor<2x3x2x4xf32>) {
  // expected-error @+1 {{'nn.merge_heads' op expects one element type, got 'f32' and 'f16' [nn.merge_heads_c2]}}
  %0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x8xf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.attention
//===----------------------------------------------------------------------===//

func.func @attention(%q: tensor<1x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects one batch size, got 1, 2 and 2 [nn.attention_c1]}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<1x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x4x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects key and value of one sequence length and number of heads, got [2, 5, 2, 8] and [2, 5, 4, 8] [nn.attention_c2]}}
  %0 = nn.attention %q, %k, %v scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x4x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x6xf32>) {
  // expected-error @+1 {{'nn.attention' op expects query and key of one head_dim, got 8 and 6 [nn.attention_c3]}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x6xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x3x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects query heads to be a multiple of key heads, got 4 and 3 [nn.attention_c4]}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x6xf32>) {
  // expected-error @+1 {{'nn.attention' op expects a result of shape [2, 3, 4, 6], got [2, 3, 4, 8] [nn.attention_c5]}}
  %0 = nn.attention %q, %k, %v scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xbf16>) {
  // expected-error @+1 {{'nn.attention' op expects one element type, got 'f32' and 'bf16' [nn.attention_c6]}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %m: tensor<2x3xi64>) {
  // expected-error @+1 {{'nn.attention' op expects a mask of shape [2, 5], got [2, 3] [nn.attention_c7]}}
  %0 = nn.attention %q, %k, %k mask %m : tensor<2x3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %l: tensor<3xi64>) {
  // expected-error @+1 {{'nn.attention' op expects valid_length of shape [2], got [3] [nn.attention_c8]}}
  %0 = nn.attention %q, %k, %k valid_length %l : tensor<3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %o: tensor<3xi64>) {
  // expected-error @+1 {{'nn.attention' op expects position_offset of shape [2], got [3] [nn.attention_c8]}}
  %0 = nn.attention causal %q, %k, %k position_offset %o : tensor<3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %o: tensor<2xi64>) {
  // expected-error @+1 {{'nn.attention' op expects position_offset with causal attention only [nn.attention_c9]}}
  %0 = nn.attention %q, %k, %k position_offset %o : tensor<2xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects scale to be positive and finite, got 0 [nn.attention_c10]}}
  %0 = nn.attention %q, %k, %k scale 0.0 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // expected-error @+1 {{'nn.attention' op expects scale to be positive and finite, got +Inf [nn.attention_c10]}}
  %0 = nn.attention %q, %k, %k scale 0x7FF0000000000000 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @rotary_table() {
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [seq, 2], got [8, 3] [nn.rotary_table_c1]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] : tensor<8x3xf32>
  return
}

// -----

func.func @rotary_table() {
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [seq, 2], got [1, 8, 2] [nn.rotary_table_c1]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] : tensor<1x8x2xf32>
  return
}

// -----

func.func @rotary_table(%o: tensor<2xi64>) {
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [batch, seq, 2], got [8, 2] [nn.rotary_table_c1]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<2xi64> : tensor<8x2xf32>
  return
}

// -----

func.func @rotary_table(%o: tensor<3xi64>) {
  // expected-error @+1 {{'nn.rotary_table' op expects position_offset of shape [2], got [3] [nn.rotary_table_c2]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<3xi64> : tensor<2x8x2xf32>
  return
}

// -----

func.func @rotary_table() {
  // expected-error @+1 {{'nn.rotary_table' op expects at least one frequency [nn.rotary_table_c3]}}
  %0, %1 = nn.rotary_table [] : tensor<8x0xf32>
  return
}

// -----

func.func @rotary_table() {
  // expected-error @+1 {{'nn.rotary_table' op expects frequencies of at least 0 that are finite, got -1.000000e+00 [nn.rotary_table_c3]}}
  %0, %1 = nn.rotary_table [-1.0] : tensor<8x1xf32>
  return
}

// -----

func.func @rotary_table() {
  // expected-error @+1 {{'nn.rotary_table' op expects scale to be positive and finite, got 0.000000e+00 [nn.rotary_table_c4]}}
  %0, %1 = nn.rotary_table [1.0] scale 0.0 : tensor<8x1xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x5xf32>, %t: tensor<2x2xf32>) {
  // expected-error @+1 {{'nn.rotary' op expects an even head_dim, got 5 [nn.rotary_c1]}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x5xf32>, tensor<2x2xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x4xf32>, %t: tensor<3x2xf32>) {
  // expected-error @+1 {{'nn.rotary' op expects tables of shape [2, 2] or [1, 2, 2], got [3, 2] [nn.rotary_c2]}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x4xf32>, tensor<3x2xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x4xf32>, %t: tensor<2x2xf16>) {
  // expected-error @+1 {{'nn.rotary' op expects one element type, got 'f32' and 'f16' [nn.rotary_c3]}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x4xf32>, tensor<2x2xf16>
  return
}
