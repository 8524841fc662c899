// RUN: braid-opt %s -split-input-file -verify-diagnostics

// L1
rt.procedure @l1(%x: memref<4xf32>, %y: memref<4xf32> {rt.result}) {
  // expected-error @below {{'rt.launch' op references unknown kernel @nobody}}
  rt.launch @nobody rows 4 ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
rt.procedure @l1_count(%x: memref<4xf32>, %y: memref<4xf32> {rt.result}) {
  // expected-error @below {{expects 1 inputs and 1 outputs for @id, got 2 and 1}}
  rt.launch @id rows 4 ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----

// L2
rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
func.func @l2(%x: tensor<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{expects inputs and outputs to be all tensors or all memory}}
  rt.launch @id rows 4 ins(%x : tensor<4xf32>) outs(%y : memref<4xf32>)
  return
}

// -----

// L3
rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
func.func @l3(%x: tensor<2x4xf32>) {
  // expected-error @below {{expects input 0 to be the kernel's 'tensor<?xf32>' with 7 rows, got 'tensor<2x4xf32>'}}
  %0 = rt.launch @id rows 7 ins(%x : tensor<2x4xf32>) -> tensor<7xf32>
  return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
rt.procedure @l3_memory(%x: memref<2x4xf32>, %y: memref<8xf32> {rt.result}) {
  // expected-error @below {{expects input 0 to be the kernel's 'tensor<?xf32>' with 8 rows, got 'memref<2x4xf32>'}}
  rt.launch @id rows 8 ins(%x : memref<2x4xf32>) outs(%y : memref<8xf32>)
  rt.return
}

// -----

// L4
func.func @l4(%x: tensor<0xf32>) {
  // expected-error @below {{attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = rt.launch @id rows 0 ins(%x : tensor<0xf32>) -> tensor<0xf32>
  return
}

// -----

// D1
rt.procedure @d1(%x: memref<4x8xf32>, %w: memref<3x8xf32>, %o: memref<4x4xf32> {rt.result}) {
  // expected-error @below {{'rt.product' op expects lhs [m..., k], rhs [n, k], bias [n] and out [m..., n], got 'memref<4x8xf32>', 'memref<3x8xf32>', 'memref<4x4xf32>'}}
  rt.product ins(%x, %w : memref<4x8xf32>, memref<3x8xf32>) outs(%o : memref<4x4xf32>)
  rt.return
}

// -----

// D2
rt.procedure @d2(%x: memref<4x8xf32>, %w: memref<3x8xbf16>, %o: memref<4x3xf32> {rt.result}) {
  // expected-error @below {{'rt.product' op expects one element type}}
  rt.product ins(%x, %w : memref<4x8xf32>, memref<3x8xbf16>) outs(%o : memref<4x3xf32>)
  rt.return
}

// -----

// T1
rt.procedure @t1(%q: memref<1x2x3x4xf32>, %k: memref<1x5x2x4xf32>, %o: memref<1x2x3x4xf32> {rt.result}) {
  // expected-error @below {{'rt.attention' op expects query [b, s, h, d], key [b, t, g, d], value [b, t, g, e] and out [b, s, h, e] with g dividing h}}
  rt.attention ins(%q, %k, %k : memref<1x2x3x4xf32>, memref<1x5x2x4xf32>, memref<1x5x2x4xf32>) outs(%o : memref<1x2x3x4xf32>) scale 1.0
  rt.return
}

// -----

// No heads of keys at all.
rt.procedure @attention_without_heads(%q: memref<1x2x0x4xf32>, %o: memref<1x2x0x4xf32> {rt.result}) {
  // expected-error @below {{'rt.attention' op expects query [b, s, h, d], key [b, t, g, d], value [b, t, g, e] and out [b, s, h, e] with g dividing h}}
  rt.attention ins(%q, %q, %q : memref<1x2x0x4xf32>, memref<1x2x0x4xf32>, memref<1x2x0x4xf32>) outs(%o : memref<1x2x0x4xf32>) scale 1.0
  rt.return
}

// -----

// T2
rt.procedure @t2(%q: memref<1x2x2x4xf32>, %k: memref<1x5x2x4xf16>, %o: memref<1x2x2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.attention' op expects one element type}}
  rt.attention ins(%q, %k, %k : memref<1x2x2x4xf32>, memref<1x5x2x4xf16>, memref<1x5x2x4xf16>) outs(%o : memref<1x2x2x4xf32>) scale 1.0
  rt.return
}

// -----

// T3
rt.procedure @t3(%q: memref<1x2x2x4xf32>, %m: memref<1x2xf32>, %o: memref<1x2x2x4xf32> {rt.result}) {
  // expected-error @below {{expects a mask of shape [1, 2] and i32 or i64, got 'memref<1x2xf32>'}}
  rt.attention ins(%q, %q, %q : memref<1x2x2x4xf32>, memref<1x2x2x4xf32>, memref<1x2x2x4xf32>) mask(%m : memref<1x2xf32>)
      outs(%o : memref<1x2x2x4xf32>) scale 1.0
  rt.return
}

// -----

// A1
rt.procedure @a1(%c: memref<4x2xf32> {rt.result}, %s: memref<4x2xf32> {rt.result}) {
  // expected-error @below {{'rt.rotary_table' op expects tables [s, 1] of one type, with at least one frequency, got 'memref<4x2xf32>' and 'memref<4x2xf32>'}}
  rt.rotary_table [1.0] outs(%c, %s : memref<4x2xf32>, memref<4x2xf32>)
  rt.return
}

// -----

// A1
rt.procedure @a1_offset(%p: memref<3xi64>, %c: memref<2x4x1xf32> {rt.result}, %s: memref<2x4x1xf32> {rt.result}) {
  // expected-error @below {{expects position_offset [b] of i32 or i64 and tables [b, s, 1] of one type, with at least one frequency, got 'memref<3xi64>', 'memref<2x4x1xf32>' and 'memref<2x4x1xf32>'}}
  rt.rotary_table [1.0] position_offset(%p : memref<3xi64>) outs(%c, %s : memref<2x4x1xf32>, memref<2x4x1xf32>)
  rt.return
}

// -----

// A2
rt.procedure @a2(%c: memref<4x1xf32> {rt.result}, %s: memref<4x1xf32> {rt.result}) {
  // expected-error @below {{'rt.rotary_table' op expects finite frequencies and scale, got}}
  rt.rotary_table [0x7FF0000000000000] outs(%c, %s : memref<4x1xf32>, memref<4x1xf32>)
  rt.return
}

// -----

// O1
rt.procedure @o1(%x: memref<2x4x3x6xf32>, %c: memref<4x2xf32>, %o: memref<2x4x3x6xf32> {rt.result}) {
  // expected-error @below {{'rt.rotary' op expects input and out [b, s, h, 2 * n] and tables [s, n] or [b, s, n], got 'memref<2x4x3x6xf32>', 'memref<2x4x3x6xf32>', 'memref<4x2xf32>' and 'memref<4x2xf32>'}}
  rt.rotary ins(%x, %c, %c : memref<2x4x3x6xf32>, memref<4x2xf32>, memref<4x2xf32>) outs(%o : memref<2x4x3x6xf32>)
  rt.return
}

// -----

// O2
rt.procedure @o2(%x: memref<2x4x3x6xf32>, %c: memref<4x3xf16>, %o: memref<2x4x3x6xf32> {rt.result}) {
  // expected-error @below {{'rt.rotary' op expects one element type}}
  rt.rotary ins(%x, %c, %c : memref<2x4x3x6xf32>, memref<4x3xf16>, memref<4x3xf16>) outs(%o : memref<2x4x3x6xf32>)
  rt.return
}

// -----

// I1
rt.procedure @i1(%i: memref<2x4xi64>, %o: memref<2x4xi32> {rt.result}) {
  // expected-error @below {{'rt.position_ids' op expects ids and out [b, s] of one type, i32 or i64, got 'memref<2x4xi64>' and 'memref<2x4xi32>'}}
  rt.position_ids ins(%i : memref<2x4xi64>) padding 1 outs(%o : memref<2x4xi32>)
  rt.return
}

// -----

// G1
rt.procedure @g1(%t: memref<9x4xf32>, %i: memref<3xi64>, %o: memref<2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.gather' op expects source [n, h], ids [i...] of i32 or i64 and out [i..., h]}}
  rt.gather ins(%t, %i : memref<9x4xf32>, memref<3xi64>) outs(%o : memref<2x4xf32>)
  rt.return
}

// -----

// G3
rt.procedure @g3(%t: memref<9x4xf32>, %i: memref<2xi64>, %o: memref<2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.gather' op expects 'rows' of 1 to 9, got 10}}
  rt.gather ins(%t, %i : memref<9x4xf32>, memref<2xi64>) outs(%o : memref<2x4xf32>) rows 10
  rt.return
}

// -----

// G3: of the whole table
comm.mesh @mesh <tp = 2>
rt.procedure @g3_part(%t: memref<9x4xf32>, %i: memref<2xi64>, %o: memref<2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.gather' op expects 'rows' of 1 to 18, got 19}}
  rt.gather ins(%t, %i : memref<9x4xf32>, memref<2xi64>) outs(%o : memref<2x4xf32>) rows 19 over <@mesh, {tp}>
  rt.return
}

// -----

// G2
comm.mesh @mesh <tp = 2>
rt.procedure @g2(%t: memref<9x4xf32>, %i: memref<2xi64>, %o: memref<2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.gather' op unknown axis 'pp' in mesh 'mesh'}}
  rt.gather ins(%t, %i : memref<9x4xf32>, memref<2xi64>) outs(%o : memref<2x4xf32>) over <@mesh, {pp}>
  rt.return
}

// -----

// Y1
rt.procedure @y1(%x: memref<4xf32>, %y: memref<5xf32> {rt.result}) {
  // expected-error @below {{'rt.copy' op expects one shape and element type, got 'memref<4xf32>' and 'memref<5xf32>'}}
  rt.copy ins(%x : memref<4xf32>) outs(%y : memref<5xf32>)
  rt.return
}

// -----

// S1
comm.mesh @mesh <tp = 2>
rt.procedure @s1(%x: memref<4xf32>, %y: memref<4xf32> {rt.result}) {
  // expected-error @below {{'rt.local_slice' op expects dest to be source with dimension 0 divided by 2, got 'memref<4xf32>' and 'memref<4xf32>'}}
  rt.local_slice ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) dim 0 over <@mesh, {tp}>
  rt.return
}

// -----

rt.procedure @s1_mesh(%x: memref<4xf32>, %y: memref<2xf32> {rt.result}) {
  // expected-error @below {{references unknown mesh @mesh}}
  rt.local_slice ins(%x : memref<4xf32>) outs(%y : memref<2xf32>) dim 0 over <@mesh, {tp}>
  rt.return
}
