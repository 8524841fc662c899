// RUN: braid-opt %s --split-input-file --verify-diagnostics

// comm.all_to_all_v_c1
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op expects at least one value [comm.all_to_all_v_c1]}}
  %n = "comm.all_to_all_v"(%c) <{group = #comm.group<@mesh, {ep}>}> : (tensor<8xi32>) -> tensor<8xi32>
  return
}

// -----

// comm.all_to_all_v_c2: blocks
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<4xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op expects values of 4 blocks by capacity, as many blocks as counts, got 'tensor<8x16x4xf32>' [comm.all_to_all_v_c2]}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<4xi32> over <@mesh, {ep}> : tensor<8x16x4xf32>
  return
}

// -----

// comm.all_to_all_v_c2: dimensions
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op expects values of 8 blocks by capacity, as many blocks as counts, got 'tensor<8xf32>' [comm.all_to_all_v_c2]}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xi32> over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.all_to_all_v_c2: capacity
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16xf32>, %y: tensor<8x12xf32>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op expects values of one capacity, got 16 and 12 [comm.all_to_all_v_c2]}}
  %r:2, %n = comm.all_to_all_v(%x, %y) counts %c : tensor<8xi32> over <@mesh, {ep}> : tensor<8x16xf32>, tensor<8x12xf32>
  return
}

// -----

// comm.all_to_all_v: type of the counts
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<8xf32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op operand #1 must be statically shaped tensor of rank 1 of at most 2^48 i32 or i64, but got 'tensor<8xf32>'}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xf32> over <@mesh, {ep}> : tensor<8x16x4xf32>
  return
}

// -----

// comm.all_to_all_v_c3
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op unknown axis 'tp' in mesh 'mesh' [comm.all_to_all_v_c3]}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xi32> over <@mesh, {tp}> : tensor<8x16x4xf32>
  return
}

// -----

// comm.all_to_all_v_c3: mesh
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op references unknown mesh @other [comm.all_to_all_v_c3]}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xi32> over <@other, {tp}> : tensor<8x16x4xf32>
  return
}

// -----

// comm.all_to_all_v_c4
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<6x16xf32>, %c: tensor<6xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op expects 6 blocks to divide over 4 ranks [comm.all_to_all_v_c4]}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<6xi32> over <@mesh, {ep}> : tensor<6x16xf32>
  return
}

// -----

// comm.all_to_all_v_c5
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16x4xf32>, %c: tensor<8xi32>) {
  // expected-error @+2 {{'comm.all_to_all_v' op inferred type(s) 'tensor<8x16x4xf32>', 'tensor<8xi32>' are incompatible with return type(s) of operation 'tensor<8x16x4xf64>', 'tensor<8xi32>'}}
  // expected-error @+1 {{'comm.all_to_all_v' op failed to infer returned types}}
  %r, %n = "comm.all_to_all_v"(%x, %c) <{group = #comm.group<@mesh, {ep}>}> : (tensor<8x16x4xf32>, tensor<8xi32>) -> (tensor<8x16x4xf64>, tensor<8xi32>)
  return
}

// -----

// comm.all_to_all_v_c6
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8x16xcomplex<f32>>, %c: tensor<8xi32>) {
  // expected-error @+1 {{'comm.all_to_all_v' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<8x16xcomplex<f32>>'}}
  %r, %n = comm.all_to_all_v(%x) counts %c : tensor<8xi32> over <@mesh, {ep}> : tensor<8x16xcomplex<f32>>
  return
}

// -----

// comm.send_c1
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects at least one value [comm.send_c1]}}
  "comm.send"() <{pairs = array<i64: 0, 1>, group = #comm.group<@mesh, {ep}>}> : () -> ()
  return
}

// -----

// comm.send_c2
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op unknown axis 'tp' in mesh 'mesh' [comm.send_c2]}}
  comm.send(%x) pairs [0 -> 1] over <@mesh, {tp}> : tensor<8xf32>
  return
}

// -----

// comm.send_c2: mesh
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op references unknown mesh @other [comm.send_c2]}}
  comm.send(%x) pairs [0 -> 1] over <@other, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c2: sub-axis
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op sub-axis (1)3 does not divide axis 'ep' of size 4 [comm.send_c2]}}
  comm.send(%x) pairs [0 -> 1] over <@mesh, {ep:(1)3}> : tensor<8xf32>
  return
}

// -----

// comm.send_c3
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xcomplex<f32>>) {
  // expected-error @+1 {{'comm.send' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<8xcomplex<f32>>'}}
  comm.send(%x) pairs [0 -> 1] over <@mesh, {ep}> : tensor<8xcomplex<f32>>
  return
}

// -----

// comm.send_c4: not a position of the group
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects every position of 'pairs' to be in [0, 4), got 4 [comm.send_c4]}}
  comm.send(%x) pairs [0 -> 4] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c4: the largest and smallest integers
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects every position of 'pairs' to be in [0, 4), got 9223372036854775807 [comm.send_c4]}}
  comm.send(%x) pairs [0 -> 9223372036854775807] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c4: odd number of positions
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects 'pairs' to hold two positions for each pair, got 3 positions [comm.send_c4]}}
  "comm.send"(%x) <{pairs = array<i64: 0, 1, 2>, group = #comm.group<@mesh, {ep}>}> : (tensor<8xf32>) -> ()
  return
}

// -----

// comm.send_c5: source
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects position 0 to be the source of one pair [comm.send_c5]}}
  comm.send(%x) pairs [0 -> 1, 0 -> 2] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c5: target
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects position 2 to be the target of one pair [comm.send_c5]}}
  comm.send(%x) pairs [0 -> 2, 1 -> 2] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c6
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op expects no position to send to itself, got 1 -> 1 [comm.send_c6]}}
  comm.send(%x) pairs [0 -> 2, 1 -> 1] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.send_c7
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.send' op attribute 'tag' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  comm.send(%x) pairs [0 -> 1] over <@mesh, {ep}> tag -1 : tensor<8xf32>
  return
}

// -----

// comm.recv_c1
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects at least one value [comm.recv_c1]}}
  "comm.recv"() <{pairs = array<i64: 0, 1>, group = #comm.group<@mesh, {ep}>}> : () -> ()
  return
}

// -----

// comm.recv_c2
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op unknown axis 'tp' in mesh 'mesh' [comm.recv_c2]}}
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {tp}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c2: mesh
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op references unknown mesh @other [comm.recv_c2]}}
  %0 = comm.recv pairs [0 -> 1] over <@other, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c2: sub-axis
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op sub-axis (1)3 does not divide axis 'ep' of size 4 [comm.recv_c2]}}
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {ep:(1)3}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c3
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xcomplex<f32>>) {
  // expected-error @+1 {{'comm.recv' op result #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<8xcomplex<f32>>'}}
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {ep}> : tensor<8xcomplex<f32>>
  return
}

// -----

// comm.recv_c4: not a position of the group
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects every position of 'pairs' to be in [0, 4), got 4 [comm.recv_c4]}}
  %0 = comm.recv pairs [0 -> 4] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c4: odd number of positions
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects 'pairs' to hold two positions for each pair, got 3 positions [comm.recv_c4]}}
  %0 = "comm.recv"() <{pairs = array<i64: 0, 1, 2>, group = #comm.group<@mesh, {ep}>}> : () -> tensor<8xf32>
  return
}

// -----

// comm.recv_c5: source
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects position 0 to be the source of one pair [comm.recv_c5]}}
  %0 = comm.recv pairs [0 -> 1, 0 -> 2] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c5: target
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects position 2 to be the target of one pair [comm.recv_c5]}}
  %0 = comm.recv pairs [0 -> 2, 1 -> 2] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c6
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op expects no position to send to itself, got 1 -> 1 [comm.recv_c6]}}
  %0 = comm.recv pairs [0 -> 2, 1 -> 1] over <@mesh, {ep}> : tensor<8xf32>
  return
}

// -----

// comm.recv_c7
comm.mesh @mesh <dp = 2, ep = 4>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{'comm.recv' op attribute 'tag' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {ep}> tag -1 : tensor<8xf32>
  return
}
