// RUN: braid-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'rt.kernel' op expects a body that ends in rt.yield of the result types [rt.kernel_c1]}}
rt.kernel @kernel_c1(%x: tensor<?x8xf32>, %y: tensor<?xf32>) -> tensor<?x8xf32> {
  rt.yield %y : tensor<?xf32>
}

// -----
// expected-error @below {{expects argument 0 to be a ranked tensor of at most 2 dimensions, got 'tensor<?x4x8xf32>' [rt.kernel_c2]}}
rt.kernel @kernel_c2_rank(%x: tensor<?x4x8xf32>) -> tensor<?x4x8xf32> {
  rt.yield %x : tensor<?x4x8xf32>
}

// -----
// expected-error @below {{expects argument 1 to be static but for the outermost row dimension, got 'tensor<?x?xf32>' [rt.kernel_c2]}}
rt.kernel @kernel_c2_dynamic(%x: tensor<?x8xf32>, %y: tensor<?x?xf32>) -> tensor<?x8xf32> {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// expected-error @below {{expects argument 1 to have all 2 row dimensions, got 'tensor<?xf32>' [rt.kernel_c2]}}
rt.kernel @kernel_c2_rows(%x: tensor<?x4x8xf32>, %y: tensor<?xf32>) -> tensor<?x4x8xf32> attributes {row_dims = 2 : i64} {
  rt.yield %x : tensor<?x4x8xf32>
}

// -----
// expected-error @below {{expects result 0 to have a dynamic outermost dimension, got 'tensor<8xf32>' [rt.kernel_c2]}}
rt.kernel @kernel_c2_result(%x: tensor<?x8xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  rt.yield %w : tensor<8xf32>
}

// -----
// expected-error @below {{expects at least one result and one argument with a dynamic outermost dimension [rt.kernel_c2]}}
rt.kernel @kernel_c2_none(%x: tensor<?x8xf32>) {
  rt.yield
}

// -----
rt.kernel @kernel_c3(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{'tensor.cast' op is not allowed in rt.kernel [rt.kernel_c3]}}
  %0 = tensor.cast %x : tensor<?x8xf32> to tensor<4x8xf32>
  rt.yield %x : tensor<?x8xf32>
}

// -----
rt.kernel @kernel_c4(%x: tensor<?x8xf32>, %e: tensor<8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{expects a domain of (rows..., column), (rows..., reduced column) or (rows...) with 1 row dimensions in rt.kernel [rt.kernel_c4]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %1 = arith.addf %acc, %a : f32
      linalg.yield %1 : f32
  } -> tensor<8xf32>
  rt.yield %x : tensor<?x8xf32>
}

// -----
rt.kernel @kernel_c5(%x: tensor<?x8xf32>, %y: tensor<8x8xf32>, %e: tensor<?x8x8xf32>) -> tensor<?x8x8xf32> attributes {row_dims = 2 : i64} {
  // expected-error @below {{expects maps in rt.kernel to project dimensions in order, the column innermost, got affine_map<(d0, d1, d2) -> (d2, d1)> [rt.kernel_c5]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(b, r, c) -> (c, r)>, affine_map<(b, r, c) -> (b, r, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%y : tensor<8x8xf32>) outs(%e : tensor<?x8x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      linalg.yield %a : f32
  } -> tensor<?x8x8xf32>
  rt.yield %0 : tensor<?x8x8xf32>
}

// -----
rt.kernel @kernel_c6(%x: tensor<?x8xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{expects a reduction in rt.kernel to yield combiner(acc, x) with acc used once [rt.kernel_c6]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %1 = arith.subf %acc, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?xf32>
  rt.yield %0 : tensor<?xf32>
}

// -----
rt.kernel @kernel_c7_init(%x: tensor<?x8xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error @below {{expects a reduction in rt.kernel to start from a linalg.fill with a constant [rt.kernel_c7]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %1 = arith.addf %acc, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?xf32>
  rt.yield %0 : tensor<?xf32>
}

// -----
rt.kernel @kernel_c7_identity(%x: tensor<?x8xf32>, %e: tensor<?xf32>) -> tensor<?xf32> {
  %one = arith.constant 1.0 : f32
  %init = linalg.fill ins(%one : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  // expected-error @below {{expects a reduction in rt.kernel to start from the identity of arith.addf, got 1.000000e+00 : f32 [rt.kernel_c7]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x8xf32>) outs(%init : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %1 = arith.addf %acc, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?xf32>
  rt.yield %0 : tensor<?xf32>
}

// -----
rt.kernel @kernel_c7_read(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // expected-error @below {{expects no use of the output's former value in rt.kernel outside of a reduction [rt.kernel_c7]}}
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %1 = arith.addf %acc, %a : f32
      linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  rt.yield %0 : tensor<?x8xf32>
}

// -----
rt.kernel @kernel_c8(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
    ^bb0(%a: f32, %acc: f32):
      // expected-error @below {{'ub.poison' op is not a scalar operation that rt.kernel allows inside of linalg.generic [rt.kernel_c8]}}
      %1 = ub.poison : f32
      linalg.yield %1 : f32
  } -> tensor<?x8xf32>
  rt.yield %0 : tensor<?x8xf32>
}
