// RUN: braid-opt %s -split-input-file -verify-diagnostics

// P1
// expected-error @below {{'rt.procedure' op expects argument 0 to be statically shaped, contiguous memory without a space, got 'memref<?x4xf32>'}}
rt.procedure @p1(%x: memref<?x4xf32>) {
  rt.return
}

// -----

// expected-error @below {{'rt.procedure' op argument 0: expects at most 2^48 elements, got 'memref<4294967296x4294967296xf32>'}}
rt.procedure @p1_bounded(%x: memref<4294967296x4294967296xf32>) {
  rt.return
}

// -----

rt.procedure @bounded() {
  // expected-error @below {{'rt.alloc' op result #0 must be statically shaped, strided memory of at most 2^48 f32, f16, bf16, f64, i32, i64 or i8, but got 'memref<9223372036854775807xf32, #rt.space<local>>'}}
  %0 = rt.alloc : memref<9223372036854775807xf32, #rt.space<local>>
  rt.return
}

// -----

// V4
rt.procedure @v4(
  // expected-error @below {{expects at most 2^48 elements, got 'tensor<562949953421312xf32>'}}
  %x: memref<16xf32> {rt.operand = #rt.value<"x" of tensor<562949953421312xf32>>}) attributes {entry} {
  rt.return
}

// -----

rt.procedure @v4_padded(
  // expected-error @below {{expects a statically shaped type, got 'tensor<?xf32>'}}
  %x: memref<16xf32> {rt.result = #rt.value<"x" of tensor<4xf32> padded tensor<?xf32>>}) attributes {entry} {
  rt.return
}

// -----

rt.procedure @v4_parameter(
  // expected-error @below {{expects at most 2^48 elements, got 'tensor<562949953421312xf32>'}}
  %x: memref<16xf32> {rt.parameter = #rt.parameter<"x" of tensor<562949953421312xf32> init normal slices []>}) attributes {entry} {
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

// Sums that wrap around are refused.
rt.procedure @p5_end() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{expects to end within the frame's 64 bytes of local memory, got 9223372036854775872}}
  %0 = rt.alloc at 9223372036854775744 : memref<32xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @p5_event() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects an event below 1, got 1}}
  %0 = rt.record on compute event 1
  rt.return
}

// -----

rt.procedure @p5_event() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects an event below 1, got 18446744073709551615}}
  %0 = rt.record on compute event -1
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

// F2
// expected-error @below {{expects at most 2^31 - 1 events, got 2147483648}}
rt.procedure @f2() frame <local 0, symmetric 0, events 2147483648> {
  rt.return
}

// -----

// V1
// expected-error @below {{expects a name}}
rt.procedure entry @v1(%x: memref<4xf32> {rt.operand = #rt.value<"" of tensor<4xf32>>}) {
  rt.return
}

// -----

// V3
// expected-error @below {{expects a padded type of which 'tensor<4xf32>' is the beginning, got 'tensor<3xf32>'}}
rt.procedure entry @v3(%x: memref<4xf32> {rt.result = #rt.value<"x" of tensor<4xf32> padded tensor<3xf32>>}) {
  rt.return
}

// -----

// V5
// expected-error @below {{expects default and bound of type 'i64', got 1 : i32}}
rt.procedure entry @v5(%x: memref<4xi64> {rt.operand = #rt.value<"x" of tensor<4xi64> default 1 : i32>}) {
  rt.return
}

// -----

// V5
// expected-error @below {{expects a bound of at least 1, and a default of 0 or more below it}}
rt.procedure entry @v5(%x: memref<4xi64> {rt.operand = #rt.value<"x" of tensor<4xi64> default 2 : i64 below 2 : i64>}) {
  rt.return
}

// -----

// V5
// expected-error @below {{expects neither default nor bound of argument 0, which is a result}}
rt.procedure entry @v5(%x: memref<4xi64> {rt.result = #rt.value<"x" of tensor<4xi64> below 2 : i64>}) {
  rt.return
}

// -----

// V3
// expected-error @below {{expects no padded type of operand 0}}
rt.procedure entry @v3_operand(%x: memref<6xf32> {rt.operand = #rt.value<"x" of tensor<5xf32> padded tensor<6xf32>>}) {
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
