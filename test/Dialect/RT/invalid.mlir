// RUN: braid-opt %s -split-input-file -verify-diagnostics

// P1
// expected-error @below {{'rt.procedure' op expects argument 0 to be statically shaped, contiguous memory without a space, got 'memref<?x4xf32>'}}
rt.procedure @p1(%x: memref<?x4xf32>) {
  rt.return
}

// -----
// expected-error @below {{expects argument 0 to be statically shaped, contiguous memory without a space, got 'memref<4xf32, #rt.space<local>>'}}
rt.procedure @p1_space(%x: memref<4xf32, #rt.space<local>>) {
  rt.return
}

// -----
// expected-error @below {{expects no function results: what a procedure gives is an rt.result argument}}
rt.procedure @p1_results(%x: memref<4xf32>) -> memref<4xf32> {
  rt.return
}

// -----
// P2
rt.procedure @p2(%x: memref<4xf32>) {
  // expected-error @below {{'memref.alloc' op is not a command: rt.procedure holds rt operations on memory only}}
  %0 = memref.alloc() : memref<4xf32>
  rt.return
}

// -----
// P3
rt.procedure @p3(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{'rt.copy' op expects to write rt.result arguments and buffers only, got argument 1}}
  rt.copy ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----
// P4
// expected-error @below {{expects argument 0 of an entry to have one of rt.parameter, rt.operand and rt.result, got 0}}
rt.procedure entry @p4(%x: memref<4xf32>) {
  rt.return
}

// -----
// expected-error @below {{expects parameters, then operands, then results; argument 1 is out of order}}
rt.procedure entry @p4_order(%y: memref<4xf32> {rt.result = #rt.value<"y" of tensor<4xf32>>},
                             %x: memref<4xf32> {rt.operand = #rt.value<"x" of tensor<4xf32>>}) {
  rt.return
}

// -----
// expected-error @below {{expects argument 0 to be a part of 'tensor<4xi32>', got 'memref<4xf32>'}}
rt.procedure entry @p4_type(%x: memref<4xf32> {rt.operand = #rt.value<"x" of tensor<4xi32>>}) {
  rt.return
}

// -----
// expected-error @below {{expects 'rt.result' of argument 0 to be #rt.value, got unit}}
rt.procedure entry @p4_value(%x: memref<4xf32> {rt.result}) {
  rt.return
}

// -----
// P5
rt.procedure @p5() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{'rt.alloc' op expects an offset in a procedure with a frame}}
  %0 = rt.alloc : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----
rt.procedure @p5_none() {
  // expected-error @below {{expects no offset in a procedure without a frame}}
  %0 = rt.alloc at 0 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----
rt.procedure @p5_end() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{expects to end within the frame's 64 bytes of local memory, got 80}}
  %0 = rt.alloc at 64 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----
rt.procedure @p5_event() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects an event below 1, got 1}}
  %0 = rt.record on compute event 1
  rt.return
}

// -----
rt.procedure @callee() {
  rt.return
}
rt.procedure @p5_call() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects a place for the callee's frame in a procedure with a frame}}
  rt.call @callee()
  rt.return
}

// -----
// F1
// expected-error @below {{expects no negative extent, got <local -1, symmetric 0, events 0>}}
rt.procedure @f1() frame <local -1, symmetric 0, events 0> {
  rt.return
}

// -----
// V1
// expected-error @below {{expects a name}}
rt.procedure entry @v1(%x: memref<4xf32> {rt.operand = #rt.value<"" of tensor<4xf32>>}) {
  rt.return
}

// -----
// V2
// expected-error @below {{expects slices to be #nn.slice, got 1 : i64}}
rt.procedure entry @v2(%x: memref<4xf32> {rt.parameter = #rt.parameter<"w" of tensor<4xf32> init ones slices [1]>}) {
  rt.return
}

// -----
// A1
rt.procedure @a1() {
  // expected-error @below {{'rt.alloc' op expects contiguous memory with a #rt.space, got 'memref<4xf32>'}}
  %0 = rt.alloc : memref<4xf32>
  rt.return
}

// -----
// A2
rt.procedure @a2() frame <local 128, symmetric 0, events 0> {
  // expected-error @below {{expects an offset that is a multiple of 64, got 32}}
  %0 = rt.alloc at 32 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----
// W1
rt.procedure @w1(%x: memref<4xf32>) {
  // expected-error @below {{'rt.view' op expects contiguous memory of one size, element type and space, got 'memref<4xf32>' and 'memref<5xf32>'}}
  %0 = rt.view %x : memref<4xf32> to memref<5xf32>
  rt.return
}

// -----
// C1
rt.procedure @c1() {
  // expected-error @below {{'rt.call' op references unknown procedure @nobody}}
  rt.call @nobody()
  rt.return
}

// -----
rt.procedure entry @callee() {
  rt.return
}
rt.procedure @c1_entry() {
  // expected-error @below {{expects a procedure that is not an entry, got @callee}}
  rt.call @callee()
  rt.return
}

// -----
rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
rt.procedure @c1_count() {
  // expected-error @below {{expects 1 arguments for @callee, got 0}}
  rt.call @callee()
  rt.return
}

// -----
rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
rt.procedure @c1_type(%x: memref<5xf32>) {
  // expected-error @below {{expects argument 0 to be contiguous memory like 'memref<4xf32>', got 'memref<5xf32>'}}
  rt.call @callee(%x) : memref<5xf32>
  rt.return
}

// -----
// C2
rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
// expected-error @below {{contiguous memory without a space, got 'memref<4xf32, strided<[2]>>'}}
rt.procedure @c2(%x: memref<4xf32, strided<[2]>>) {
  rt.call @callee(%x) : memref<4xf32, strided<[2]>>
  rt.return
}

// -----
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
// T2
rt.procedure @t2(%q: memref<1x2x2x4xf32>, %k: memref<1x5x2x4xf16>, %o: memref<1x2x2x4xf32> {rt.result}) {
  // expected-error @below {{'rt.attention' op expects one element type}}
  rt.attention ins(%q, %k, %k : memref<1x2x2x4xf32>, memref<1x5x2x4xf16>, memref<1x5x2x4xf16>) outs(%o : memref<1x2x2x4xf32>) scale 1.0
  rt.return
}

// -----
// T3
rt.procedure @t3(%q: memref<1x2x2x4xf32>, %m: memref<1x2xi32>, %o: memref<1x2x2x4xf32> {rt.result}) {
  // expected-error @below {{expects a mask of shape [1, 2] and i64, got 'memref<1x2xi32>'}}
  rt.attention ins(%q, %q, %q : memref<1x2x2x4xf32>, memref<1x2x2x4xf32>, memref<1x2x2x4xf32>) mask(%m : memref<1x2xi32>)
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
  // expected-error @below {{expects position_offset [b] of i64 and tables [b, s, 1] of one type, with at least one frequency, got 'memref<3xi64>', 'memref<2x4x1xf32>' and 'memref<2x4x1xf32>'}}
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

// -----
// R1
comm.mesh @mesh <tp = 2>
rt.procedure @r1() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op expects at least one input and as many outputs, got 2 and 1}}
  %d = rt.start all_reduce with sum ins(%a, %a : memref<4xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>)
      outs(%a : memref<4xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R2
comm.mesh @mesh <tp = 2>
rt.procedure @r2() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<local>>
  // expected-error @below {{expects contiguous symmetric memory, got 'memref<4xf32, #rt.space<local>>'}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<local>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R3
comm.mesh @mesh <tp = 2>
rt.procedure @r3() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs of all_gather over 2 ranks to fit its inputs}}
  %d = rt.start all_gather ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      dim 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
comm.mesh @mesh <tp = 2>
rt.procedure @r3_dim() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'dim' for all_reduce}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
      dim 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R4
comm.mesh @mesh <tp = 2>
rt.procedure @r4() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects a reduction for all_reduce}}
  %d = rt.start all_reduce ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R5
comm.mesh @mesh <tp = 2>
rt.procedure @r5() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects its event to be waited for by exactly one rt.wait}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.return
}

// -----
// N1
rt.procedure @n1() {
  %e = rt.record on communication
  // expected-error @below {{'rt.wait' op expects the event of an rt.start}}
  rt.wait %e
  rt.return
}

// -----
// E1
rt.procedure @e1() {
  %e = rt.record on compute
  // expected-error @below {{'rt.await' op expects the event of an rt.record on another queue}}
  rt.await %e on compute
  rt.return
}

// -----
// R3
comm.mesh @mesh <tp = 2>
rt.procedure @r3_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs of all_to_all over 2 ranks to fit its inputs}}
  %d = rt.start all_to_all ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) dim 0 concat 1
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R4
comm.mesh @mesh <tp = 2>
rt.procedure @r4_broadcast() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no reduction for broadcast}}
  %d = rt.start broadcast with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) root 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'concat' for all_to_all}}
  %d = rt.start all_to_all ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) dim 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_no_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'concat' for all_reduce}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) concat 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_root() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'root' for reduce}}
  %d = rt.start reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_pairs() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' for permute}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_root() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'root' to be a position below 2, got 2}}
  %d = rt.start broadcast ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) root 2
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_pairs() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' to hold positions below 2, got 2}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 2]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_odd() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' to hold sources and targets in turn, got 1 positions}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_source() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects position 0 to be the source of one pair}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 1, 0, 0]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----
// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_target() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects position 1 to be the target of one pair}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 1, 1, 1]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R1
comm.mesh @mesh <tp = 2>
rt.procedure @r1_counts() {
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  // expected-error @below {{expects at least one value beside the counts}}
  %d = rt.start all_to_all_v ins(%c : memref<4xi32, #rt.space<symmetric>>) outs(%e : memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R1
comm.mesh @mesh <tp = 2>
rt.procedure @r1_send() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects inputs and no outputs, got 1 and 1 values}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] channel 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R1
comm.mesh @mesh <tp = 2>
rt.procedure @r1_recv() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs and no inputs, got 1 and 1 values}}
  %d = rt.start recv ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] channel 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_channel() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'channel' for send}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_no_channel() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'channel' for permute}}
  %d = rt.start permute ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] channel 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R6
comm.mesh @mesh <tp = 2>
rt.procedure @r6_recv_pairs() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' for recv}}
  %d = rt.start recv outs(%a : memref<4x2xf32, #rt.space<symmetric>>) channel 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R7
comm.mesh @mesh <tp = 2>
rt.procedure @r7_itself() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no position to send to itself, got 1}}
  %d = rt.start recv outs(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [1, 1] channel 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R8
comm.mesh @mesh <tp = 2>
rt.procedure @r8_counts_type() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects counts of rank 1 of i32 or i64 as last value, got 'memref<4xf32, #rt.space<symmetric>>'}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<4x2xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>) outs(%b, %e : memref<4x2xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R8
comm.mesh @mesh <tp = 2>
rt.procedure @r8_blocks() {
  %a = rt.alloc : memref<6x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<6x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  // expected-error @below {{expects values of 4 blocks by one capacity, got 'memref<6x2xf32, #rt.space<symmetric>>'}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<6x2xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) outs(%b, %e : memref<6x2xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R8
comm.mesh @mesh <tp = 2>
rt.procedure @r8_capacity() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %f = rt.alloc : memref<4x3xf32, #rt.space<symmetric>>
  %g = rt.alloc : memref<4x3xf32, #rt.space<symmetric>>
  // expected-error @below {{expects values of 4 blocks by one capacity, got 'memref<4x3xf32, #rt.space<symmetric>>'}}
  %d = rt.start all_to_all_v ins(%a, %f, %c : memref<4x2xf32, #rt.space<symmetric>>, memref<4x3xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) outs(%b, %g, %e : memref<4x2xf32, #rt.space<symmetric>>, memref<4x3xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R8
comm.mesh @mesh <tp = 2>
rt.procedure @r8_divides() {
  %a = rt.alloc : memref<3x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<3x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<3xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<3xi32, #rt.space<symmetric>>
  // expected-error @below {{expects 3 blocks to divide over 2 ranks}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<3x2xf32, #rt.space<symmetric>>, memref<3xi32, #rt.space<symmetric>>) outs(%b, %e : memref<3x2xf32, #rt.space<symmetric>>, memref<3xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// R9
comm.mesh @mesh <tp = 2>
rt.procedure @r9_channel() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{attribute 'channel' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] channel -1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}
