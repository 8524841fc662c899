// RUN: braid-opt %s --split-input-file --verify-diagnostics

// comm.all_to_all_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects at least one value [comm.all_to_all_c1]}}
  "comm.all_to_all"() <{split_dim = 0 : i64, concat_dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.all_to_all_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects as many results as operands, got 1 and 2 [comm.all_to_all_c2]}}
  %0 = comm.all_to_all(%x, %x) split 0 concat 1 over <@mesh, {tp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<2x64xf32>
  return
}

// -----

// comm.all_to_all_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op unknown axis 'pp' in mesh 'mesh' [comm.all_to_all_c3]}}
  %0 = comm.all_to_all(%x) split 0 concat 1 over <@mesh, {pp}> : tensor<8x16xf32> -> tensor<2x64xf32>
  return
}

// -----

// comm.all_to_all_c4: split
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects 'split' in [0, 2), got 2 [comm.all_to_all_c4]}}
  %0 = comm.all_to_all(%x) split 2 concat 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<2x64xf32>
  return
}

// -----

// comm.all_to_all_c4: concat
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects 'concat' in [0, 2), got -1 [comm.all_to_all_c4]}}
  %0 = comm.all_to_all(%x) split 0 concat -1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<2x64xf32>
  return
}

// -----

// comm.all_to_all_c5: divides
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<6xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects dimension 0 of size 6 to divide over 4 ranks [comm.all_to_all_c5]}}
  %0 = comm.all_to_all(%c) split 0 concat 0 over <@mesh, {tp}> : tensor<6xf32> -> tensor<6xf32>
  return
}

// -----

// comm.all_to_all_c5: type
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_to_all' op expects a result of type 'tensor<2x64xf32>', got 'tensor<32x4xf32>' [comm.all_to_all_c5]}}
  %0 = comm.all_to_all(%x) split 0 concat 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<32x4xf32>
  return
}

// -----

// comm.reduce_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce' op expects at least one value [comm.reduce_c1]}}
  "comm.reduce"() <{kind = #comm<reduce sum>, root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.reduce_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce' op references unknown mesh @other [comm.reduce_c3]}}
  %0 = comm.reduce sum(%x) to 0 over <@other, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.reduce_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.reduce' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xcomplex<f32>>'}}
  %0 = comm.reduce sum(%c) to 0 over <@mesh, {tp}> : tensor<4xcomplex<f32>>
  return
}

// -----

// comm.reduce_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+2 {{'comm.reduce' op inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>'}}
  // expected-error @+1 {{'comm.reduce' op failed to infer returned types}}
  %0 = "comm.reduce"(%x) <{kind = #comm<reduce sum>, root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x8xf32>
  return
}

// -----

// comm.reduce_c6: root, too large
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce' op expects 'root' to be a position in [0, 4), got 4 [comm.reduce_c6]}}
  %0 = comm.reduce sum(%x) to 4 over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.reduce_c6: root, negative
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce' op expects 'root' to be a position in [0, 4), got -1 [comm.reduce_c6]}}
  %0 = comm.reduce sum(%x) to -1 over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.broadcast_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.broadcast' op expects at least one value [comm.broadcast_c1]}}
  "comm.broadcast"() <{root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.broadcast_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.broadcast' op references unknown mesh @other [comm.broadcast_c3]}}
  %0 = comm.broadcast (%x) from 0 over <@other, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.broadcast_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+2 {{'comm.broadcast' op inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>'}}
  // expected-error @+1 {{'comm.broadcast' op failed to infer returned types}}
  %0 = "comm.broadcast"(%x) <{root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x8xf32>
  return
}

// -----

// comm.broadcast_c5: root, too large
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.broadcast' op expects 'root' to be a position in [0, 4), got 4 [comm.broadcast_c5]}}
  %0 = comm.broadcast (%x) from 4 over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.broadcast_c5: root, negative
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.broadcast' op expects 'root' to be a position in [0, 4), got -1 [comm.broadcast_c5]}}
  %0 = comm.broadcast (%x) from -1 over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.permute_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects at least one value [comm.permute_c1]}}
  "comm.permute"() <{pairs = array<i64: 0, 1>, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.permute_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op sub-axis (1)3 does not divide axis 'tp' of size 4 [comm.permute_c3]}}
  %0 = comm.permute(%x) pairs [0 -> 1] over <@mesh, {tp:(1)3}> : tensor<8x16xf32>
  return
}

// -----

// comm.permute_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.permute' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xcomplex<f32>>'}}
  %0 = comm.permute(%c) pairs [0 -> 1] over <@mesh, {tp}> : tensor<4xcomplex<f32>>
  return
}

// -----

// comm.permute_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+2 {{'comm.permute' op inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>'}}
  // expected-error @+1 {{'comm.permute' op failed to infer returned types}}
  %0 = "comm.permute"(%x) <{pairs = array<i64: 0, 1>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x8xf32>
  return
}

// -----

// comm.permute_c6: position
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects every position of 'pairs' to be in [0, 4), got 4 [comm.permute_c6]}}
  %0 = comm.permute(%x) pairs [0 -> 4] over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.permute_c6: odd
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects 'pairs' to hold two positions for each pair, got 3 positions [comm.permute_c6]}}
  %0 = "comm.permute"(%x) <{pairs = array<i64: 0, 1, 2>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return
}

// -----

// comm.permute_c7: source
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects position 0 to be the source of one pair [comm.permute_c7]}}
  %0 = comm.permute(%x) pairs [0 -> 1, 0 -> 2] over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.permute_c7: target
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects position 1 to be the target of one pair [comm.permute_c7]}}
  %0 = comm.permute(%x) pairs [0 -> 1, 2 -> 1] over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.reduce_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce' op expects as many results as operands, got 0 and 1 [comm.reduce_c2]}}
  "comm.reduce"(%x) <{kind = #comm<reduce sum>, root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.broadcast_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.broadcast' op expects as many results as operands, got 0 and 1 [comm.broadcast_c2]}}
  "comm.broadcast"(%x) <{root = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.permute_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.permute' op expects as many results as operands, got 0 and 1 [comm.permute_c2]}}
  "comm.permute"(%x) <{pairs = array<i64: 0, 1>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}
