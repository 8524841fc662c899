// RUN: braid-opt %s -split-input-file -verify-diagnostics

rt.procedure @launch_c1(%x: memref<4xf32>, %y: memref<4xf32> {rt.result}) {
  // expected-error @below {{'rt.launch' op references unknown kernel @nobody [rt.launch_c1]}}
  rt.launch @nobody rows 4 ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
rt.procedure @launch_c1_count(%x: memref<4xf32>, %y: memref<4xf32> {rt.result}) {
  // expected-error @below {{expects 1 inputs and 1 outputs for @id, got 2 and 1 [rt.launch_c1]}}
  rt.launch @id rows 4 ins(%x, %x : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
  rt.return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
func.func @launch_c2(%x: tensor<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{expects inputs and outputs to be all tensors or all memory [rt.launch_c2]}}
  rt.launch @id rows 4 ins(%x : tensor<4xf32>) outs(%y : memref<4xf32>)
  return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
func.func @launch_c3(%x: tensor<2x4xf32>) {
  // expected-error @below {{expects input 0 to be the kernel's 'tensor<?xf32>' with 7 rows, got 'tensor<2x4xf32>' [rt.launch_c3]}}
  %0 = rt.launch @id rows 7 ins(%x : tensor<2x4xf32>) -> tensor<7xf32>
  return
}

// -----

rt.kernel @id(%x: tensor<?xf32>) -> tensor<?xf32> {
  rt.yield %x : tensor<?xf32>
}
rt.procedure @launch_c3_memory(%x: memref<2x4xf32>, %y: memref<8xf32> {rt.result}) {
  // expected-error @below {{expects input 0 to be the kernel's 'tensor<?xf32>' with 8 rows, got 'memref<2x4xf32>' [rt.launch_c3]}}
  rt.launch @id rows 8 ins(%x : memref<2x4xf32>) outs(%y : memref<8xf32>)
  rt.return
}

// -----

// rt.launch_c4
func.func @launch_c4(%x: tensor<0xf32>) {
  // expected-error @below {{attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = rt.launch @id rows 0 ins(%x : tensor<0xf32>) -> tensor<0xf32>
  return
}

// -----

rt.kernel @matmul(tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32> attributes {library = "matmul", scalars = [0, 1, 0]}
rt.procedure @launch_c5(%x: memref<4x8xf32>, %w: memref<3x8xf32>, %o: memref<4x3xf32> {rt.result}) {
  // expected-error @below {{'rt.launch' op expects 4 rows for @matmul, got 1 [rt.launch_c5]}}
  rt.launch @matmul rows 1 ins(%x, %w : memref<4x8xf32>, memref<3x8xf32>) outs(%o : memref<4x3xf32>)
  rt.return
}

// -----

rt.procedure @copy_c1(%x: memref<4xf32>, %y: memref<5xf32> {rt.result}) {
  // expected-error @below {{'rt.copy' op expects one shape and element type, got 'memref<4xf32>' and 'memref<5xf32>' [rt.copy_c1]}}
  rt.copy ins(%x : memref<4xf32>) outs(%y : memref<5xf32>)
  rt.return
}
