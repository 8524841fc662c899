// RUN: braid-opt %s --split-input-file --braid-assign-buffers --verify-diagnostics

// A kernel that adds to its output reads it.
rt.kernel @add(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> attributes {library = "matmul", scalars = [0, 1, 1]}
rt.procedure @unwritten(%x: memref<4x8xf32>, %w: memref<8x8xf32>, %y: memref<4x8xf32> {rt.result}) {
  // expected-note @+1 {{the memory}}
  %0 = rt.alloc : memref<4x8xf32, #rt.space<local>>
  // expected-error @+1 {{'rt.launch' op (launch of @add on the compute queue) reads memory that nothing has written before}}
  rt.launch @add rows 4 ins(%x, %w : memref<4x8xf32>, memref<8x8xf32>) outs(%0 : memref<4x8xf32, #rt.space<local>>)
  rt.copy ins(%0 : memref<4x8xf32, #rt.space<local>>) outs(%y : memref<4x8xf32>)
  rt.return
}

// -----

rt.kernel @add(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> attributes {library = "matmul", scalars = [0, 1, 1]}
rt.procedure @over_an_input(%x: memref<4x8xf32>, %w: memref<8x8xf32>, %y: memref<4x8xf32> {rt.result}) {
  rt.copy ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
  // expected-error @+1 {{'rt.launch' op writes memory that it reads, and cannot run in place}}
  rt.launch @add rows 4 ins(%y, %w : memref<4x8xf32>, memref<8x8xf32>) outs(%y : memref<4x8xf32>)
  rt.return
}
