// RUN: braid-opt %s -split-input-file -verify-diagnostics

rt.procedure @rank(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects the source's rank, element type and space, got 'memref<8x16xf32>' and 'memref<16xf32>' [rt.subview_c2]}}
  %0 = rt.subview %x at [0, 0] : memref<8x16xf32> to memref<16xf32>
  rt.return
}

// -----

rt.procedure @strides(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects the source's strides, got 'memref<8x16xf32>' and 'memref<8x4xf32>' [rt.subview_c2]}}
  %0 = rt.subview %x at [0, 4] : memref<8x16xf32> to memref<8x4xf32>
  rt.return
}

// -----

rt.procedure @offsets(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects 2 offsets, got 1 [rt.subview_c1]}}
  %0 = rt.subview %x at [0] : memref<8x16xf32> to memref<4x16xf32>
  rt.return
}

// -----

rt.procedure @outside(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects to lie inside of the source in dimension 0, got 4 elements from 5 of 8 [rt.subview_c1]}}
  %0 = rt.subview %x at [5, 0] : memref<8x16xf32> to memref<4x16xf32>
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @parts(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects 2 parts of 4 in the 7 elements of dimension 0 [rt.subview_c1]}}
  %0 = rt.subview %x at [1, 0] part 0 over <@mesh, {tp}> : memref<8x16xf32> to memref<4x16xf32>
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @part_of_nothing(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects 'part' with a group, and a shift only with both [rt.subview_c3]}}
  %0 = rt.subview %x at [0, 0] part 0 : memref<8x16xf32> to memref<4x16xf32>
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @no_dimension(%x: memref<8x16xf32>) {
  // expected-error @below {{'rt.subview' op expects 'part' to be a dimension, got 2 [rt.subview_c3]}}
  %0 = rt.subview %x at [0, 0] part 2 over <@mesh, {tp}> : memref<8x16xf32> to memref<4x16xf32>
  rt.return
}

// -----

comm.mesh @mesh <dp = 2, tp = 2>
rt.procedure @part_of_part(%x: memref<8x16xf32>) {
  %0 = rt.subview %x at [0, 0] part 0 over <@mesh, {tp}> : memref<8x16xf32> to memref<4x16xf32>
  %1 = rt.view %0 : memref<4x16xf32> to memref<4x4x4xf32>
  // expected-error @below {{'rt.subview' op expects its source not to be a part by rank itself [rt.subview_c4]}}
  %2 = rt.subview %1 at [0, 0, 0] part 1 over <@mesh, {dp}> : memref<4x4x4xf32> to memref<4x2x4xf32, strided<[16, 4, 1]>>
  rt.return
}

// -----

rt.procedure @reshape(%x: memref<8x16xf32>) {
  %0 = rt.subview %x at [0, 0] : memref<8x16xf32> to memref<8x4xf32, strided<[16, 1]>>
  // expected-error @below {{'rt.view' op expects a shape that strides of the source can walk, got 'memref<8x4xf32, strided<[16, 1]>>' and 'memref<32xf32>' [rt.view_c2]}}
  %1 = rt.view %0 : memref<8x4xf32, strided<[16, 1]>> to memref<32xf32>
  rt.return
}

// -----

rt.procedure @reshaped_otherwise(%x: memref<8x16xf32>) {
  %0 = rt.subview %x at [0, 0] : memref<8x16xf32> to memref<8x4xf32, strided<[16, 1]>>
  // expected-error @below {{'rt.view' op expects 'memref<8x2x2xf32, strided<[16, 2, 1]>>', got 'memref<8x2x2xf32, strided<[16, 4, 1]>>' [rt.view_c2]}}
  %1 = rt.view %0 : memref<8x4xf32, strided<[16, 1]>> to memref<8x2x2xf32, strided<[16, 4, 1]>>
  rt.return
}

// -----

rt.procedure @both(%x: memref<4xf32>, %e: !rt.event) -> !rt.event {
  // expected-error @below {{'rt.return' op expects 1 events, got 0 [rt.return_c1]}}
  rt.return
}

// -----

// expected-error @below {{'rt.procedure' op expects argument 0 not to be both rt.result and rt.inout [rt.procedure_c6]}}
rt.procedure @result_and_inout(%x: memref<4xf32> {rt.result, rt.inout}) {
  rt.return
}

// -----

// expected-error @below {{'rt.procedure' op expects an entry to take and return no events [rt.procedure_c4]}}
rt.procedure entry @entry(%e: !rt.event) {
  rt.return
}

// -----

rt.procedure @f(%x: memref<4xf32>, %e: !rt.event) -> !rt.event {
  rt.return %e : !rt.event
}
rt.procedure @g(%x: memref<4xf32>, %e: !rt.event) {
  // expected-error @below {{'rt.call' op expects 1 events from @f, got 0 [rt.call_c1]}}
  rt.call @f(%x, %e) : memref<4xf32>, !rt.event
  rt.return
}

// -----

rt.procedure @f(%x: memref<4xf32>, %e: !rt.event) {
  rt.return
}
rt.procedure @g(%x: memref<4xf32>) {
  // expected-error @below {{'rt.call' op expects argument 1 to be of type '!rt.event', got 'memref<4xf32>' [rt.call_c1]}}
  rt.call @f(%x, %x) : memref<4xf32>, memref<4xf32>
  rt.return
}

// -----

rt.procedure @f(%x: memref<4xf32, #rt.space<symmetric>>) {
  rt.return
}
rt.procedure @g(%x: memref<4xf32>) {
  // expected-error @below {{'rt.call' op expects argument 0 to be symmetric memory, got 'memref<4xf32>' [rt.call_c2]}}
  rt.call @f(%x) : memref<4xf32>
  rt.return
}
