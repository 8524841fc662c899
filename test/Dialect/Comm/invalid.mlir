// RUN: braid-opt %s --split-input-file --verify-diagnostics -o /dev/null

// Titles name the constraint in the documentation of the operation or of the dialect.

// comm.all_reduce_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op expects at least one value [comm.all_reduce_c1]}}
  "comm.all_reduce"() <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.all_reduce_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op expects as many results as operands, got 0 and 1 [comm.all_reduce_c2]}}
  "comm.all_reduce"(%x) <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.reduce_scatter_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects at least one value [comm.reduce_scatter_c1]}}
  "comm.reduce_scatter"() <{kind = #comm<reduce sum>, dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.reduce_scatter_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects as many results as operands, got 0 and 1 [comm.reduce_scatter_c2]}}
  "comm.reduce_scatter"(%x) <{kind = #comm<reduce sum>, dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.all_gather_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects at least one value [comm.all_gather_c1]}}
  "comm.all_gather"() <{dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.all_gather_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects as many results as operands, got 0 and 1 [comm.all_gather_c2]}}
  "comm.all_gather"(%x) <{dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.all_reduce_c3: mesh
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op references unknown mesh @other [comm.all_reduce_c3]}}
  %0 = comm.all_reduce sum(%x) over <@other, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce_c3: axis
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op unknown axis 'pp' in mesh 'mesh' [comm.all_reduce_c3]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {pp}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce_c3: sub-axis
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op sub-axis (1)3 does not divide axis 'tp' of size 4 [comm.all_reduce_c3]}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp:(1)3}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.all_reduce' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xcomplex<f32>>'}}
  %0 = comm.all_reduce sum(%c) over <@mesh, {tp}> : tensor<4xcomplex<f32>>
  return
}

// -----

// comm.all_reduce_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+2 {{'comm.all_reduce' op inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>'}}
  // expected-error @+1 {{'comm.all_reduce' op failed to infer returned types}}
  %0 = "comm.all_reduce"(%x) <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x8xf32>
  return
}

// -----

// comm.all_reduce: reduction
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{expects sum, max or min, got 'prod'}}
  %0 = comm.all_reduce prod(%x) over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.reduce_scatter_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op unknown axis 'pp' in mesh 'mesh' [comm.reduce_scatter_c3]}}
  %0 = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {pp}> : tensor<8x16xf32> -> tensor<2x16xf32>
  return
}

// -----

// comm.reduce_scatter_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.reduce_scatter' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xcomplex<f32>>'}}
  %0 = comm.reduce_scatter sum(%c) dim 0 over <@mesh, {tp}> : tensor<4xcomplex<f32>> -> tensor<1xcomplex<f32>>
  return
}

// -----

// comm.reduce_scatter_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects 'dim' in [0, 2), got 2 [comm.reduce_scatter_c5]}}
  %0 = comm.reduce_scatter sum(%x) dim 2 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.reduce_scatter_c6: divides
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<6xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects dimension 0 of size 6 to divide over 4 ranks [comm.reduce_scatter_c6]}}
  %0 = comm.reduce_scatter sum(%c) dim 0 over <@mesh, {tp}> : tensor<6xf32> -> tensor<1xf32>
  return
}

// -----

// comm.reduce_scatter_c6: type
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects a result of type 'tensor<8x4xf32>', got 'tensor<2x16xf32>' [comm.reduce_scatter_c6]}}
  %0 = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<2x16xf32>
  return
}

// -----

// comm.all_gather_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op references unknown mesh @other [comm.all_gather_c3]}}
  %0 = comm.all_gather(%x) dim 0 over <@other, {tp}> : tensor<8x16xf32> -> tensor<32x16xf32>
  return
}

// -----

// comm.all_gather_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects 'dim' in [0, 2), got -1 [comm.all_gather_c4]}}
  %0 = comm.all_gather(%x) dim -1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.all_gather_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects a result of type 'tensor<8x32xf32>', got 'tensor<16x16xf32>' [comm.all_gather_c5]}}
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {dp}> : tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.part_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.part' op unknown axis 'pp' in mesh 'mesh' [comm.part_c1]}}
  %0 = comm.part %x dim 0 over <@mesh, {pp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.part_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.part' op expects 'dim' in [0, 2), got 7 [comm.part_c2]}}
  %0 = comm.part %x dim 7 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.part_c3: divides
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<6xf32>) {
  // expected-error @+1 {{'comm.part' op expects dimension 0 of size 6 to divide over 4 ranks [comm.part_c3]}}
  %0 = comm.part %c dim 0 over <@mesh, {tp}> : tensor<6xf32> -> tensor<1xf32>
  return
}

// -----

// comm.part_c3: type
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.part' op expects a result of type 'tensor<2x16xf32>', got 'tensor<8x4xf32>' [comm.part_c3]}}
  %0 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x4xf32>
  return
}

// -----

// comm.assemble_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op unknown axis 'pp' in mesh 'mesh' [comm.assemble_c1]}}
  %0 = comm.assemble %x, %x shifts [0, 1] dim 0 over <@mesh, {pp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.assemble_c2: operands
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects 2 operands and shifts, got 1 and 2 [comm.assemble_c2]}}
  %0 = comm.assemble %x shifts [0, 1] dim 0 over <@mesh, {dp}> : tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.assemble_c2: shifts
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects 2 operands and shifts, got 2 and 3 [comm.assemble_c2]}}
  %0 = comm.assemble %x, %x shifts [0, 1, 2] dim 0 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.assemble_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects shifts that differ modulo 2, got -1 again [comm.assemble_c3]}}
  %0 = comm.assemble %x, %x shifts [3, -1] dim 0 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.assemble_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects 'dim' in [0, 2), got 2 [comm.assemble_c4]}}
  %0 = comm.assemble %x, %x shifts [0, 1] dim 2 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.assemble_c5: result
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects a result of type 'tensor<16x16xf32>', got 'tensor<8x32xf32>' [comm.assemble_c5]}}
  %0 = comm.assemble %x, %x shifts [0, 1] dim 0 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x32xf32>
  return
}

// -----

// comm.assemble_c5: operands of different types
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>, %y: tensor<3x16xf32>) {
  // expected-error @+1 {{'comm.assemble' op expects a result of type 'tensor<6x16xf32>', got 'tensor<16x16xf32>' [comm.assemble_c5]}}
  %0 = comm.assemble %x, %y shifts [0, 1] dim 0 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<3x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// Values whose bytes are unknown or too many.
comm.mesh @mesh <tp = 2>
func.func @index(%x: tensor<4xindex>) {
  // expected-error @+1 {{'comm.all_reduce' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xindex>'}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4xindex>
  return
}

// -----

comm.mesh @mesh <tp = 2>
func.func @wide(%x: tensor<4xi65>) {
  // expected-error @+1 {{'comm.all_reduce' op operand #0 must be variadic of statically shaped tensor of at most 2^48 integers or floats of at most 64 bits, but got 'tensor<4xi65>'}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<4xi65>
  return
}

// -----

// The expected size exceeds 64 bits, so the message shows the largest 64-bit number.
comm.mesh @mesh <tp = 131072>
func.func @gathered(%x: tensor<281474976710656xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects a result of type 'tensor<9223372036854775807xf32>', got 'tensor<281474976710656xf32>' [comm.all_gather_c5]}}
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<281474976710656xf32> -> tensor<281474976710656xf32>
  return
}
