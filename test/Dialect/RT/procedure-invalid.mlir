// RUN: braid-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'rt.procedure' op expects argument 0 to be statically shaped, contiguous memory without a space or symmetric, or an event behind all memory, got 'memref<?x4xf32>' [rt.procedure_c1]}}
rt.procedure @procedure_c1(%x: memref<?x4xf32>) {
  rt.return
}

// -----

// expected-error @below {{'rt.procedure' op argument 0: expects at most 2^48 elements, got 'memref<4294967296x4294967296xf32>' [rt.procedure_c1]}}
rt.procedure @procedure_c1_bounded(%x: memref<4294967296x4294967296xf32>) {
  rt.return
}

// -----

rt.procedure @bounded() {
  // expected-error @below {{'rt.alloc' op result #0 must be statically shaped memory of at most 2^48 f32, f16, bf16, f64, i32, i64 or i8 with static strides and no offset, but got 'memref<9223372036854775807xf32, #rt.space<local>>'}}
  %0 = rt.alloc : memref<9223372036854775807xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @value_c2(
  // expected-error @below {{expects at most 2^48 elements, got 'tensor<562949953421312xf32>' [rt.value_c2]}}
  %x: memref<16xf32> {rt.operand = #rt.value<"x" of tensor<562949953421312xf32>>}) attributes {entry} {
  rt.return
}

// -----

rt.procedure @value_c2_padded(
  // expected-error @below {{expects a statically shaped type, got 'tensor<?xf32>' [rt.value_c2]}}
  %x: memref<16xf32> {rt.result = #rt.value<"x" of tensor<4xf32> padded tensor<?xf32>>}) attributes {entry} {
  rt.return
}

// -----

rt.procedure @parameter_c2(
  // expected-error @below {{expects at most 2^48 elements, got 'tensor<562949953421312xf32>' [rt.parameter_c2]}}
  %x: memref<16xf32> {rt.parameter = #rt.parameter<"x" of tensor<562949953421312xf32> init normal slices []>}) attributes {entry} {
  rt.return
}

// -----

// expected-error @below {{expects argument 0 to be statically shaped, contiguous memory without a space or symmetric, or an event behind all memory, got 'memref<4xf32, #rt.space<local>>' [rt.procedure_c1]}}
rt.procedure @procedure_c1_space(%x: memref<4xf32, #rt.space<local>>) {
  rt.return
}

// -----

// expected-error @below {{expects rt.result arguments instead of function results other than events [rt.procedure_c1]}}
rt.procedure @procedure_c1_results(%x: memref<4xf32>) -> memref<4xf32> {
  rt.return
}

// -----

rt.procedure @procedure_c2(%x: memref<4xf32>) {
  // expected-error @below {{'memref.alloc' op is not a command: rt.procedure holds rt operations on memory only [rt.procedure_c2]}}
  %0 = memref.alloc() : memref<4xf32>
  rt.return
}

// -----

rt.procedure @procedure_c3(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{'rt.copy' op expects to write buffers and arguments with rt.result, rt.inout or rt.state only, got argument 1 [rt.procedure_c3]}}
  rt.copy ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----

// expected-error @below {{expects argument 0 of an entry to have one of rt.parameter, rt.state, rt.operand and rt.result, got 0 [rt.procedure_c4]}}
rt.procedure entry @procedure_c4(%x: memref<4xf32>) {
  rt.return
}

// -----

// expected-error @below {{expects parameters, then states, then operands, then results; argument 1 is out of order [rt.procedure_c4]}}
rt.procedure entry @procedure_c4_order(%y: memref<4xf32> {rt.result = #rt.value<"y" of tensor<4xf32>>},
                             %x: memref<4xf32> {rt.operand = #rt.value<"x" of tensor<4xf32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects argument 0 to be a shard of 'tensor<4xi32>', got 'memref<4xf32>' [rt.procedure_c4]}}
rt.procedure entry @procedure_c4_type(%x: memref<4xf32> {rt.operand = #rt.value<"x" of tensor<4xi32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects 'rt.result' of argument 0 to be #rt.value, got unit}}
rt.procedure entry @procedure_c4_value(%x: memref<4xf32> {rt.result}) {
  rt.return
}

// -----

rt.procedure @procedure_c5() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{'rt.alloc' op expects 'offset' in a procedure with a frame [rt.procedure_c5]}}
  %0 = rt.alloc : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @procedure_c5_none() {
  // expected-error @below {{expects no 'offset' in a procedure without a frame [rt.procedure_c5]}}
  %0 = rt.alloc at 0 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @procedure_c5_end() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{expects to end within the frame's 64 bytes of local memory, got 80 [rt.procedure_c5]}}
  %0 = rt.alloc at 64 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----

// An offset whose sum with the size wraps is out of bounds too.
rt.procedure @procedure_c5_end() frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{expects to end within the frame's 64 bytes of local memory, got 9223372036854775872 [rt.procedure_c5]}}
  %0 = rt.alloc at 9223372036854775744 : memref<32xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @procedure_c5_event() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects an event below 1, got 1 [rt.procedure_c5]}}
  %0 = rt.record on compute event 1
  rt.return
}

// -----

rt.procedure @procedure_c5_event() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects an event below 1, got 18446744073709551615 [rt.procedure_c5]}}
  %0 = rt.record on compute event -1
  rt.return
}

// -----

rt.procedure @callee() {
  rt.return
}
rt.procedure @procedure_c5_call() frame <local 0, symmetric 0, events 1> {
  // expected-error @below {{expects 'base' in a procedure with a frame [rt.procedure_c5]}}
  rt.call @callee()
  rt.return
}

// -----

// expected-error @below {{expects no negative extent, got <local -1, symmetric 0, events 0> [rt.frame_c1]}}
rt.procedure @frame_c1() frame <local -1, symmetric 0, events 0> {
  rt.return
}

// -----

// expected-error @below {{expects at most 2^31 - 1 events, got 2147483648 [rt.frame_c2]}}
rt.procedure @frame_c2() frame <local 0, symmetric 0, events 2147483648> {
  rt.return
}

// -----

// expected-error @below {{expects a name [rt.value_c1]}}
rt.procedure entry @value_c1(%x: memref<4xf32> {rt.operand = #rt.value<"" of tensor<4xf32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects a padded type that begins with 'tensor<4xf32>', got 'tensor<3xf32>' [rt.value_c3]}}
rt.procedure entry @value_c3(%x: memref<4xf32> {rt.result = #rt.value<"x" of tensor<4xf32> padded tensor<3xf32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects default and bound of type 'i64', got 1 : i32 [rt.value_c5]}}
rt.procedure entry @value_c5(%x: memref<4xi64> {rt.operand = #rt.value<"x" of tensor<4xi64> default 1 : i32>}) {
  rt.return
}

// -----

// expected-error @below {{expects a bound of at least 1, and a default of 0 or more below it [rt.value_c5]}}
rt.procedure entry @value_c5(%x: memref<4xi64> {rt.operand = #rt.value<"x" of tensor<4xi64> default 2 : i64 below 2 : i64>}) {
  rt.return
}

// -----

// expected-error @below {{expects neither default nor bound of argument 0, which is a result [rt.value_c6]}}
rt.procedure entry @value_c6(%x: memref<4xi64> {rt.result = #rt.value<"x" of tensor<4xi64> below 2 : i64>}) {
  rt.return
}

// -----

// expected-error @below {{expects no padded type of operand 0 [rt.value_c4]}}
rt.procedure entry @value_c4_operand(%x: memref<6xf32> {rt.operand = #rt.value<"x" of tensor<5xf32> padded tensor<6xf32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects a name [rt.parameter_c1]}}
rt.procedure entry @parameter_c1(%x: memref<4xf32> {rt.parameter = #rt.parameter<"" of tensor<4xf32> init ones slices []>}) {
  rt.return
}

// -----

// expected-error @below {{expects slices to be #nn.slice, got 1 : i64 [rt.parameter_c3]}}
rt.procedure entry @parameter_c3(%x: memref<4xf32> {rt.parameter = #rt.parameter<"w" of tensor<4xf32> init ones slices [1]>}) {
  rt.return
}

// -----

rt.procedure @alloc_c1() {
  // expected-error @below {{'rt.alloc' op expects contiguous memory with a #rt.space, got 'memref<4xf32>' [rt.alloc_c1]}}
  %0 = rt.alloc : memref<4xf32>
  rt.return
}

// -----

rt.procedure @alloc_c2() frame <local 128, symmetric 0, events 0> {
  // expected-error @below {{expects an offset that is a multiple of 64, got 32 [rt.alloc_c2]}}
  %0 = rt.alloc at 32 : memref<4xf32, #rt.space<local>>
  rt.return
}

// -----

rt.procedure @view_c1(%x: memref<4xf32>) {
  // expected-error @below {{'rt.view' op expects memory of one size, element type and space, got 'memref<4xf32>' and 'memref<5xf32>' [rt.view_c1]}}
  %0 = rt.view %x : memref<4xf32> to memref<5xf32>
  rt.return
}

// -----

rt.procedure @call_c1() {
  // expected-error @below {{'rt.call' op references unknown procedure @nobody [rt.call_c1]}}
  rt.call @nobody()
  rt.return
}

// -----

rt.procedure entry @callee() {
  rt.return
}
rt.procedure @call_c1_entry() {
  // expected-error @below {{expects a procedure that is not an entry, got @callee [rt.call_c1]}}
  rt.call @callee()
  rt.return
}

// -----

rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
rt.procedure @call_c1_count() {
  // expected-error @below {{expects 1 arguments for @callee, got 0 [rt.call_c1]}}
  rt.call @callee()
  rt.return
}

// -----

rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
rt.procedure @call_c1_type(%x: memref<5xf32>) {
  // expected-error @below {{expects argument 0 of the shape and element type of 'memref<4xf32>', got 'memref<5xf32>' [rt.call_c1]}}
  rt.call @callee(%x) : memref<5xf32>
  rt.return
}

// -----

rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
// expected-error @below {{contiguous memory without a space or symmetric, or an event behind all memory, got 'memref<4xf32, strided<[2]>>' [rt.procedure_c1]}}
rt.procedure @strided(%x: memref<4xf32, strided<[2]>>) {
  rt.call @callee(%x) : memref<4xf32, strided<[2]>>
  rt.return
}

// -----

rt.procedure @callee(%x: memref<4xf32>) {
  rt.return
}
func.func @call_c2(%x: memref<4xf32, strided<[2]>>) {
  // expected-error @below {{'rt.call' op expects argument 0 to be contiguous, got 'memref<4xf32, strided<[2]>>' [rt.call_c2]}}
  rt.call @callee(%x) : memref<4xf32, strided<[2]>>
  return
}

// -----

// A state is neither an operand with a default nor a result.
// expected-error @below {{expects neither default nor bound of argument 0, which is a state [rt.value_c6]}}
rt.procedure entry @defaults(%s: memref<4xi32> {rt.state = #rt.value<"s" of tensor<4xi32> default 1 : i32>}) {
  rt.return
}

// -----

// expected-error @below {{expects parameters, then states, then operands, then results; argument 1 is out of order [rt.procedure_c4]}}
rt.procedure entry @order(%x: memref<4xf32> {rt.operand = #rt.value<"x" of tensor<4xf32>>},
                          %s: memref<4xf32> {rt.state = #rt.value<"s" of tensor<4xf32>>}) {
  rt.return
}

// -----

// expected-error @below {{expects argument 0 of an entry to have one of rt.parameter, rt.state, rt.operand and rt.result, got 2 [rt.procedure_c4]}}
rt.procedure entry @both(%s: memref<4xf32> {rt.state = #rt.value<"s" of tensor<4xf32>>, rt.operand = #rt.value<"s" of tensor<4xf32>>}) {
  rt.return
}
