// RUN: braid-opt %s --split-input-file --verify-diagnostics

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

// D1
// expected-error @+1 {{'func.func' op expects 'nn.entry' to be a unit attribute of a function with a body}}
func.func @entry() attributes {nn.entry = 1 : i64} { return }

// -----

// D1
// expected-error @+1 {{'func.func' op expects 'nn.entry' to be a unit attribute of a function with a body}}
func.func private @entry() attributes {nn.entry}

// -----

// D1
// expected-error @+1 {{'builtin.module' op expects 'nn.entry' to be a unit attribute of a function with a body}}
module attributes {nn.entry} {}

// -----

// D2
// expected-error @+1 {{'func.func' op expects 'nn.name' to be a string that is not empty, got 3 : i64}}
func.func @name(%x: tensor<f32> {nn.name = 3 : i64}) attributes {nn.entry} { return }

// -----

// D2
// expected-error @+1 {{'func.func' op expects 'nn.name' to be a string that is not empty, got ""}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) -> (tensor<f32> {nn.name = ""}) attributes {nn.entry} { return %x : tensor<f32> }

// -----

// D2
// expected-error @+1 {{'func.func' op expects 'nn.name' on arguments and results of an entry only}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) { return }

// -----

// D3
// expected-error @+1 {{'func.func' op expects 'nn.name' on every argument of an entry, argument 1 has none}}
func.func @name(%x: tensor<f32> {nn.name = "x"}, %y: tensor<f32>) attributes {nn.entry} { return }

// -----

// D3
// expected-error @+1 {{'func.func' op expects 'nn.name' on every result of an entry, result 0 has none}}
func.func @name(%x: tensor<f32> {nn.name = "x"}) -> tensor<f32> attributes {nn.entry} { return %x : tensor<f32> }

// -----

// D3
// expected-error @+1 {{'func.func' op expects different names for its arguments, got 'x' twice}}
func.func @name(%x: tensor<f32> {nn.name = "x"}, %y: tensor<f32> {nn.name = "x"}) attributes {nn.entry} { return }

// -----

// expected-error @+1 {{'func.func' op has unknown attribute 'nn.nmae' of the nn dialect}}
func.func @name(%x: tensor<f32> {nn.nmae = "x"}) { return }

// -----

// expected-error @+1 {{'func.func' op has unknown attribute 'nn.etnry' of the nn dialect}}
func.func @name() attributes {nn.etnry} { return }

// -----

//===----------------------------------------------------------------------===//
// #nn.slice
//===----------------------------------------------------------------------===//

// L1
// expected-error @+1 {{expects the name of a checkpoint's tensor}}
func.func private @slice() attributes {s = #nn.slice<""[4]>}

// -----

// L2
// expected-error @+1 {{expects lists of the rank of tensor 'w', which is 2}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] from [1]>}

// -----

// L2
// expected-error @+1 {{expects lists of the rank of tensor 'w', which is 2}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 0, 2]>}

// -----

// L3
// expected-error @+1 {{expects a permutation of 2 dimensions, got [1, 1]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 1]>}

// -----

// L3
// expected-error @+1 {{expects a permutation of 2 dimensions, got [0, 2]}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [0, 2]>}

// -----

// L4
// expected-error @+1 {{expects a static shape for tensor 'w'}}
func.func private @slice() attributes {s = #nn.slice<"w"[-4] size [1]>}

// -----

// L4
// expected-error @+1 {{expects a part of tensor 'w', got offset 0 and size 0 in dimension 0 of size 4}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] size [0]>}

// -----

// L4: dimension 1 of the permuted tensor is the tensor's first.
// expected-error @+1 {{expects a part of tensor 'w', got offset 2 and size 3 in dimension 1 of size 4}}
func.func private @slice() attributes {s = #nn.slice<"w"[4, 8] permuted [1, 0] from [0, 2] size [8, 3]>}

// -----

// L4: the end must not wrap around.
// expected-error @+1 {{got offset 9223372036854775807 and size 4 in dimension 0 of size 4}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] from [9223372036854775807]>}

// -----

// L5
// expected-error @+1 {{expects destination offsets of at least 0, got -1}}
func.func private @slice() attributes {s = #nn.slice<"w"[4] to [-1]>}

// -----

//===----------------------------------------------------------------------===//
// nn.parameter
//===----------------------------------------------------------------------===//

func.func @parameter() {
  // C1
  // expected-error @+1 {{'nn.parameter' op expects a name}}
  %0 = nn.parameter "" slices [] : tensor<4xf32>
  return
}

// -----

func.func @parameter() {
  // C2
  // expected-error @+1 {{'nn.parameter' op expects slices of rank 2, got tensor 'w' of rank 1}}
  %0 = nn.parameter "p" slices ["w"[4]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C2
  // expected-error @+1 {{'nn.parameter' op expects the slice of tensor 'w' inside of shape [4, 4], got offset 1 and size 4 in dimension 0}}
  %0 = nn.parameter "p" slices ["w"[4, 4] to [1, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C3
  // expected-error @+1 {{'nn.parameter' op expects slices that do not overlap, got tensors 'a' and 'b' in one place}}
  %0 = nn.parameter "p" slices ["a"[3, 4], "b"[2, 4] to [2, 0]] : tensor<4x4xf32>
  return
}

// -----

func.func @parameter() {
  // C4
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together}}
  %0 = nn.parameter "w" of tensor<8xf32> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C4
  // expected-error @+1 {{'nn.parameter' op expects 'global_type' and 'sharding' together}}
  %0 = nn.parameter "w" sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C5
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<8xbf16>'}}
  %0 = nn.parameter "w" of tensor<8xbf16> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C5
  // expected-error @+1 {{'nn.parameter' op expects a statically shaped tensor of 'f32' as global type, got 'tensor<?xf32>'}}
  %0 = nn.parameter "w" slices [] of tensor<?xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects a sharding without partial axes}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}], partial = [tp = sum]> : tensor<8xf32>
  return
}

// -----

func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op references unknown mesh @mesh}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{}]> : tensor<8xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects a sharding of 1 dimensions, got 2}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}, {}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op dimension 0 of size 7 does not divide over 'tp' (2 shards)}}
  %0 = nn.parameter "w" of tensor<7xf32> sharded <@mesh, [{tp}]> : tensor<4xf32>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @parameter() {
  // C6
  // expected-error @+1 {{'nn.parameter' op expects result type 'tensor<4xf32>', got 'tensor<8xf32>'}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp}]> : tensor<8xf32>
  return
}

// -----

func.func @parameter() {
  // expected-error @+1 {{expects normal, ones or zeros, got 'random'}}
  %0 = nn.parameter "w" init random : tensor<4xf32>
  return
}

// -----

// nn.embedding C3
comm.mesh @mesh <tp = 2>
func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // expected-error @+1 {{'nn.embedding' op unknown axis 'pp' in mesh 'mesh'}}
  %0 = nn.embedding %ids, %table over <@mesh, {pp}> : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xf32>
  return
}

// -----

// nn.parameter C6
comm.mesh @mesh <tp = 2>
func.func @open() {
  // expected-error @+1 {{'nn.parameter' op expects a sharding without open dimensions, got #comm.sharding<@mesh, [{tp, ?}]>}}
  %0 = nn.parameter "w" of tensor<8xf32> sharded <@mesh, [{tp, ?}]> : tensor<4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.embedding
//===----------------------------------------------------------------------===//

func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // C1
  // expected-error @+1 {{'nn.embedding' op expects a result of shape [2, 3, 4], got [3, 2, 4]}}
  %0 = nn.embedding %ids, %table : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<3x2x4xf32>
  return
}

// -----

func.func @embedding(%ids: tensor<2x3xi64>, %table: tensor<10x4xf32>) {
  // C2
  // expected-error @+1 {{'nn.embedding' op expects one element type, got 'f32' and 'bf16'}}
  %0 = nn.embedding %ids, %table : tensor<2x3xi64>, tensor<10x4xf32> -> tensor<2x3x4xbf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.linear
//===----------------------------------------------------------------------===//

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x5xf32>) {
  // C1
  // expected-error @+1 {{'nn.linear' op expects an input whose last dimension is 5 as the weight's second, got shape [2, 4]}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x5xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @linear(%x: tensor<f32>, %w: tensor<6x5xf32>) {
  // C1
  // expected-error @+1 {{'nn.linear' op expects an input whose last dimension is 5 as the weight's second, got shape []}}
  %0 = nn.linear %x, %w : tensor<f32>, tensor<6x5xf32> -> tensor<6xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>, %b: tensor<4xf32>) {
  // C2
  // expected-error @+1 {{'nn.linear' op expects a bias of shape [6], got [4]}}
  %0 = nn.linear %x, %w bias %b : tensor<4xf32> : tensor<2x4xf32>, tensor<6x4xf32> -> tensor<2x6xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xf32>) {
  // C3
  // expected-error @+1 {{'nn.linear' op expects a result of shape [2, 6], got [2, 4]}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @linear(%x: tensor<2x4xf32>, %w: tensor<6x4xbf16>) {
  // C4
  // expected-error @+1 {{'nn.linear' op expects one element type, got 'f32' and 'bf16'}}
  %0 = nn.linear %x, %w : tensor<2x4xf32>, tensor<6x4xbf16> -> tensor<2x6xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.split_heads, nn.merge_heads
//===----------------------------------------------------------------------===//

func.func @split(%x: tensor<2x3x8xf32>) {
  // C1
  // expected-error @+1 {{'nn.split_heads' op expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got [2, 3, 8] and [2, 3, 2, 3]}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x3xf32>
  return
}

// -----

func.func @split(%x: tensor<2x3x8xf32>) {
  // C1
  // expected-error @+1 {{got [2, 3, 8] and [3, 2, 2, 4]}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<3x2x2x4xf32>
  return
}

// -----

func.func @split(%x: tensor<2x3x8xf32>) {
  // C2
  // expected-error @+1 {{'nn.split_heads' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.split_heads %x : tensor<2x3x8xf32> -> tensor<2x3x2x4xf16>
  return
}

// -----

func.func @merge(%x: tensor<2x3x2x4xf32>) {
  // C1
  // expected-error @+1 {{'nn.merge_heads' op expects [batch, seq, heads * head_dim] and [batch, seq, heads, head_dim], got [2, 3, 6] and [2, 3, 2, 4]}}
  %0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x6xf32>
  return
}

// -----

func.func @merge(%x: tensor<2x3x2x4xf32>) {
  // C2
  // expected-error @+1 {{'nn.merge_heads' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.merge_heads %x : tensor<2x3x2x4xf32> -> tensor<2x3x8xf16>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.attention
//===----------------------------------------------------------------------===//

func.func @attention(%q: tensor<1x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // C1
  // expected-error @+1 {{'nn.attention' op expects one batch size, got 1, 2 and 2}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<1x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<1x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x4x8xf32>) {
  // C2
  // expected-error @+1 {{'nn.attention' op expects key and value of one sequence length and number of heads, got [2, 5, 2, 8] and [2, 5, 4, 8]}}
  %0 = nn.attention %q, %k, %v scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x4x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x6xf32>) {
  // C3
  // expected-error @+1 {{'nn.attention' op expects query and key of one head_dim, got 8 and 6}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x6xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x6xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x3x8xf32>) {
  // C4
  // expected-error @+1 {{'nn.attention' op expects query heads to be a multiple of key heads, got 4 and 3}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x3x8xf32>, tensor<2x5x3x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %v: tensor<2x5x2x6xf32>) {
  // C5
  // expected-error @+1 {{'nn.attention' op expects a result of shape [2, 3, 4, 6], got [2, 3, 4, 8]}}
  %0 = nn.attention %q, %k, %v scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x6xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xbf16>) {
  // C6
  // expected-error @+1 {{'nn.attention' op expects one element type, got 'f32' and 'bf16'}}
  %0 = nn.attention %q, %k, %k scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xbf16>, tensor<2x5x2x8xbf16> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %m: tensor<2x3xi64>) {
  // C7
  // expected-error @+1 {{'nn.attention' op expects a mask of shape [2, 5], got [2, 3]}}
  %0 = nn.attention %q, %k, %k mask %m : tensor<2x3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %l: tensor<3xi64>) {
  // C8
  // expected-error @+1 {{'nn.attention' op expects valid_length of shape [2], got [3]}}
  %0 = nn.attention %q, %k, %k valid_length %l : tensor<3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %o: tensor<3xi64>) {
  // C8
  // expected-error @+1 {{'nn.attention' op expects position_offset of shape [2], got [3]}}
  %0 = nn.attention causal %q, %k, %k position_offset %o : tensor<3xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>, %o: tensor<2xi64>) {
  // C9
  // expected-error @+1 {{'nn.attention' op expects position_offset with causal attention only}}
  %0 = nn.attention %q, %k, %k position_offset %o : tensor<2xi64> scale 0.5 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // C10
  // expected-error @+1 {{'nn.attention' op expects scale to be positive and finite, got 0}}
  %0 = nn.attention %q, %k, %k scale 0.0 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

func.func @attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x5x2x8xf32>) {
  // C10
  // expected-error @+1 {{'nn.attention' op expects scale to be positive and finite, got +Inf}}
  %0 = nn.attention %q, %k, %k scale 0x7FF0000000000000 : tensor<2x3x4x8xf32>, tensor<2x5x2x8xf32>, tensor<2x5x2x8xf32> -> tensor<2x3x4x8xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.layer_norm
//===----------------------------------------------------------------------===//

func.func @layer_norm(%x: tensor<f32>, %w: tensor<4xf32>) {
  // C1
  // expected-error @+1 {{'nn.layer_norm' op expects an input of at least one dimension}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<f32>, tensor<4xf32>, tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<2xf32>, %b: tensor<4xf32>) {
  // C1
  // expected-error @+1 {{'nn.layer_norm' op expects a weight of shape [4], got [2]}}
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x4xf32>, tensor<2xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<2xf32>) {
  // C1
  // expected-error @+1 {{'nn.layer_norm' op expects a bias of shape [4], got [2]}}
  %0 = nn.layer_norm %x, %w, %b epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // C2
  // expected-error @+1 {{'nn.layer_norm' op expects result type 'tensor<2x4xf32>', got 'tensor<4x4xf32>'}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf16>) {
  // C3
  // expected-error @+1 {{'nn.layer_norm' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.layer_norm %x, %w, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf16>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // C4
  // expected-error @+1 {{'nn.layer_norm' op expects epsilon to be positive and finite, got -1}}
  %0 = nn.layer_norm %x, %w, %w epsilon -1.0 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

//===----------------------------------------------------------------------===//
// nn.gelu, nn.add
//===----------------------------------------------------------------------===//

func.func @gelu(%x: tensor<2x4xf32>) {
  // expected-error @+1 {{'nn.gelu' op requires the same type for all operands and results}}
  %0 = "nn.gelu"(%x) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<2xf32>) {
  // C1
  // expected-error @+1 {{'nn.add' op expects the second operand's shape at the end of the first one's, got [2] and [2, 4]}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @add(%x: tensor<4xf32>, %y: tensor<2x4xf32>) {
  // C1
  // expected-error @+1 {{'nn.add' op expects the second operand's shape at the end of the first one's, got [2, 4] and [4]}}
  %0 = nn.add %x, %y : tensor<4xf32>, tensor<2x4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {
  // C2
  // expected-error @+1 {{'nn.add' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>'}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @add(%x: tensor<2x4xf32>, %y: tensor<4xf16>) {
  // C3
  // expected-error @+1 {{'nn.add' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.add %x, %y : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

// Types that the dialect does not have.
func.func @types(%x: tensor<2x?xf32>, %y: tensor<4xf64>) {
  // expected-error @+1 {{'nn.add' op operand #0 must be statically shaped tensor of f32, bf16 or f16 values, but got 'tensor<2x?xf32>'}}
  %0 = nn.add %x, %y : tensor<2x?xf32>, tensor<4xf64> -> tensor<2x?xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<f32>, %w: tensor<4xf32>) {
  // C1
  // expected-error @+1 {{'nn.rms_norm' op expects an input of at least one dimension}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<f32>, tensor<4xf32> -> tensor<f32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<3xf32>) {
  // C1
  // expected-error @+1 {{'nn.rms_norm' op expects a weight of shape [4], got [3]}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<3xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // C2
  // expected-error @+1 {{'nn.rms_norm' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>'}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf16>) {
  // C3
  // expected-error @+1 {{'nn.rms_norm' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.rms_norm %x, %w epsilon 1.0e-5 : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @rms_norm(%x: tensor<2x4xf32>, %w: tensor<4xf32>) {
  // C4
  // expected-error @+1 {{'nn.rms_norm' op expects epsilon to be positive and finite, got 0}}
  %0 = nn.rms_norm %x, %w epsilon 0.0 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @softmax(%x: tensor<f32>) {
  // C1
  // expected-error @+1 {{'nn.softmax' op expects an input of at least one dimension}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<2xf32>) {
  // C1
  // expected-error @+1 {{'nn.mul' op expects the second operand's shape at the end of the first one's, got [2] and [2, 4]}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<2xf32> -> tensor<2x4xf32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {
  // C2
  // expected-error @+1 {{'nn.mul' op expects result type 'tensor<2x4xf32>', got 'tensor<4xf32>'}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @mul(%x: tensor<2x4xf32>, %y: tensor<4xf16>) {
  // C3
  // expected-error @+1 {{'nn.mul' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.mul %x, %y : tensor<2x4xf32>, tensor<4xf16> -> tensor<2x4xf32>
  return
}

// -----

func.func @rotary_table() {
  // C1
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [seq, 2], got [8, 3]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] : tensor<8x3xf32>
  return
}

// -----

func.func @rotary_table() {
  // C1
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [seq, 2], got [1, 8, 2]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] : tensor<1x8x2xf32>
  return
}

// -----

func.func @rotary_table(%o: tensor<2xi64>) {
  // C1
  // expected-error @+1 {{'nn.rotary_table' op expects tables of shape [batch, seq, 2], got [8, 2]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<2xi64> : tensor<8x2xf32>
  return
}

// -----

func.func @rotary_table(%o: tensor<3xi64>) {
  // C2
  // expected-error @+1 {{'nn.rotary_table' op expects position_offset of shape [2], got [3]}}
  %0, %1 = nn.rotary_table [1.0, 0.5] position_offset %o : tensor<3xi64> : tensor<2x8x2xf32>
  return
}

// -----

func.func @rotary_table() {
  // C3
  // expected-error @+1 {{'nn.rotary_table' op expects at least one frequency}}
  %0, %1 = nn.rotary_table [] : tensor<8x0xf32>
  return
}

// -----

func.func @rotary_table() {
  // C3
  // expected-error @+1 {{'nn.rotary_table' op expects frequencies of at least 0 that are finite, got -1}}
  %0, %1 = nn.rotary_table [-1.0] : tensor<8x1xf32>
  return
}

// -----

func.func @rotary_table() {
  // C4
  // expected-error @+1 {{'nn.rotary_table' op expects scale to be positive and finite, got 0}}
  %0, %1 = nn.rotary_table [1.0] scale 0.0 : tensor<8x1xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x5xf32>, %t: tensor<2x2xf32>) {
  // C1
  // expected-error @+1 {{'nn.rotary' op expects an even head_dim, got 5}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x5xf32>, tensor<2x2xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x4xf32>, %t: tensor<3x2xf32>) {
  // C2
  // expected-error @+1 {{'nn.rotary' op expects tables of shape [2, 2] or [1, 2, 2], got [3, 2]}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x4xf32>, tensor<3x2xf32>
  return
}

// -----

func.func @rotary(%x: tensor<1x2x3x4xf32>, %t: tensor<2x2xf16>) {
  // C3
  // expected-error @+1 {{'nn.rotary' op expects one element type, got 'f32' and 'f16'}}
  %0 = nn.rotary %x, %t, %t : tensor<1x2x3x4xf32>, tensor<2x2xf16>
  return
}
