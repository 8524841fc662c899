// RUN: braid-opt %s --split-input-file --verify-diagnostics

func.func @no_row(%x: tensor<4xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects a left operand of at least 2 dimensions, got shape [4] [nn.matmul_c1]}}
  %0 = nn.matmul %x transposed, %w : tensor<4xf32>, tensor<4x5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @scalar(%x: tensor<f32>, %w: tensor<4x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects a left operand of at least 1 dimension, got shape [] [nn.matmul_c1]}}
  %0 = nn.matmul %x, %w : tensor<f32>, tensor<4x5xf32> -> tensor<5xf32>
  return
}

// -----

func.func @other_batch(%x: tensor<2x3x4xf32>, %w: tensor<3x4x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects a right operand of 2 dimensions, or with the leading ones of shape [2, 3, 4], got [3, 4, 5] [nn.matmul_c2]}}
  %0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<3x4x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @other_k(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects operands with one number of products, got 4 and 5 [nn.matmul_c3]}}
  %0 = nn.matmul %x, %w transposed : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @result(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects a result of shape [2, 3, 5], got [2, 3, 4] [nn.matmul_c4]}}
  %0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x4xf32>
  return
}

// -----

func.func @types(%x: tensor<2x3x4xf32>, %w: tensor<4x5xbf16>) {
  // expected-error @+1 {{'nn.matmul' op expects one element type, got 'f32' and 'bf16' [nn.matmul_c5]}}
  %0 = nn.matmul %x, %w : tensor<2x3x4xf32>, tensor<4x5xbf16> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @counts_of_one_matrix(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %n: tensor<2xi64>) {
  // expected-error @+1 {{'nn.matmul' op expects counts with [groups, capacity, k] and a matrix for each group, not transposed on the left, without an accumulator, got [2, 3, 4] and [4, 5] [nn.matmul_c6]}}
  %0 = nn.matmul %x, %w counts %n : tensor<2xi64> : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @number_of_counts(%x: tensor<2x3x4xf32>, %w: tensor<2x4x5xf32>, %n: tensor<3xi64>) {
  // expected-error @+1 {{'nn.matmul' op expects counts of shape [2], got [3] [nn.matmul_c6]}}
  %0 = nn.matmul %x, %w counts %n : tensor<3xi64> : tensor<2x3x4xf32>, tensor<2x4x5xf32> -> tensor<2x3x5xf32>
  return
}

// -----

func.func @accumulator(%x: tensor<2x3x4xf32>, %w: tensor<4x5xf32>, %a: tensor<3x5xf32>) {
  // expected-error @+1 {{'nn.matmul' op expects an accumulator of type 'tensor<2x3x5xf32>', got 'tensor<3x5xf32>' [nn.matmul_c7]}}
  %0 = nn.matmul %x, %w plus %a : tensor<3x5xf32> : tensor<2x3x4xf32>, tensor<4x5xf32> -> tensor<2x3x5xf32>
  return
}
