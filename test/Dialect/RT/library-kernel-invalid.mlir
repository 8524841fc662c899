// RUN: braid-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{'rt.kernel' op expects either a body or 'library_symbol' or 'library' [rt.kernel_c9]}}
rt.kernel @neither(tensor<?x8xf32>) -> tensor<?x8xf32>

// -----
// expected-error @below {{'rt.kernel' op expects either a body or 'library_symbol' or 'library' [rt.kernel_c9]}}
rt.kernel @both(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f"} {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// expected-error @below {{'rt.kernel' op expects no 'scalars' beside a body [rt.kernel_c9]}}
rt.kernel @scalars(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {scalars = [1 : i64]} {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// expected-error @below {{'rt.kernel' op expects scalars that are integers or floats, got "a" [rt.kernel_c9]}}
rt.kernel @text(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f", scalars = ["a"]}

// -----
// expected-error @below {{'rt.kernel' op expects ranked tensors, static but for the outermost row dimension, got 'tensor<?x?xf32>' [rt.kernel_c9]}}
rt.kernel @dynamic(tensor<?x?xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f"}

// -----
// expected-error @below {{'rt.kernel' op expects at least one result [rt.kernel_c9]}}
rt.kernel @nothing(tensor<?x8xf32>) attributes {library_symbol = "f"}

// -----
// expected-error @below {{'rt.kernel' op expects either a body or 'library_symbol' or 'library' [rt.kernel_c9]}}
rt.kernel @of_two(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f", library = "matmul", scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op expects no 'row_flops' without 'library_symbol' [rt.kernel_c11]}}
rt.kernel @flops(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {row_flops = 8 : i64} {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// rt.kernel_c12
// expected-error @below {{'rt.kernel' op attribute 'row_flops' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
rt.kernel @negative(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f", row_flops = -1 : i64}

// -----

// expected-error @below {{'rt.kernel' op expects no 'optional' and no 'group' without 'library' [rt.kernel_c10]}}
rt.kernel @optional(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f", optional = ["bias"]}

// -----
// expected-error @below {{'rt.kernel' op expects a kernel of the library, got "product" [rt.kernel_c10]}}
rt.kernel @unknown(tensor<4x8xf32>) -> tensor<4x8xf32> attributes {library = "product"}

// -----
// expected-error @below {{'rt.kernel' op expects optional operands of 'matmul', got 'rhs' [rt.kernel_c10]}}
rt.kernel @required(tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32> attributes {library = "matmul", optional = ["rhs"], scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op expects 3 arguments and 1 results of 'matmul', got 2 and 1 [rt.kernel_c10]}}
rt.kernel @too_few(tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32> attributes {library = "matmul", optional = ["bias"], scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op expects static tensors of types that bundles hold, got 'tensor<?x8xf32>' [rt.kernel_c10]}}
rt.kernel @rows(tensor<?x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32> attributes {library = "matmul", scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op expects scalars that are integers or floats, got "a" [rt.kernel_c10]}}
rt.kernel @text_scalar(tensor<2x4xi64>) -> tensor<2x4xi64> attributes {library = "position_ids", scalars = ["a"]}

// -----
// expected-error @below {{'rt.kernel' op of 'matmul': out: expects shape [4, 3], got [4, 4] [rt.kernel_c10]}}
rt.kernel @shapes(tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x4xf32> attributes {library = "matmul", scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op of 'matmul': rhs: expects f32, got bf16 [rt.kernel_c10]}}
rt.kernel @types(tensor<4x8xf32>, tensor<3x8xbf16>) -> tensor<4x3xf32> attributes {library = "matmul", scalars = [0, 1, 0]}

// -----
// expected-error @below {{'rt.kernel' op of 'position_ids': expects 1 integers (padding), got 0 [rt.kernel_c10]}}
rt.kernel @scalars_missing(tensor<2x4xi64>) -> tensor<2x4xi64> attributes {library = "position_ids"}

// -----
// expected-error @below {{'rt.kernel' op of 'attention': expects query heads to divide among 2 key/value heads, got 3 [rt.kernel_c10]}}
rt.kernel @heads(tensor<1x2x3x4xf32>, tensor<1x5x2x4xf32>, tensor<1x5x2x4xf32>) -> tensor<1x2x3x4xf32>
    attributes {library = "attention", scalars = [0, 1.0]}

// -----
// expected-error @below {{'rt.kernel' op of 'attention': expects query heads to divide among 0 key/value heads, got 0 [rt.kernel_c10]}}
rt.kernel @no_heads(tensor<1x2x0x4xf32>, tensor<1x2x0x4xf32>, tensor<1x2x0x4xf32>) -> tensor<1x2x0x4xf32>
    attributes {library = "attention", scalars = [0, 1.0]}

// -----
// expected-error @below {{'rt.kernel' op of 'rotary_table': expects finite frequencies, got inf [rt.kernel_c10]}}
rt.kernel @infinite() -> (tensor<4x1xf32>, tensor<4x1xf32>) attributes {library = "rotary_table", scalars = [1.0, 0x7FF0000000000000 : f64]}

// -----
// expected-error @below {{'rt.kernel' op of 'embedding': expects rows of 0 to 9, got 10 [rt.kernel_c10]}}
rt.kernel @beyond(tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x4xf32> attributes {library = "embedding", scalars = [10]}

// -----
comm.mesh @mesh <tp = 2>
// expected-error @below {{'rt.kernel' op of 'embedding': expects rows of 0 to 18, got 19 [rt.kernel_c10]}}
rt.kernel @beyond_all(tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    attributes {library = "embedding", scalars = [19], group = #comm.group<@mesh, {tp}>}

// -----
comm.mesh @mesh <tp = 2>
// expected-error @below {{'rt.kernel' op unknown axis 'pp' in mesh 'mesh' [rt.kernel_c10]}}
rt.kernel @axis(tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
    attributes {library = "embedding", scalars = [0], group = #comm.group<@mesh, {pp}>}

// -----
// expected-error @below {{'rt.kernel' op references unknown mesh @mesh [rt.kernel_c10]}}
rt.kernel @mesh_unknown(tensor<4xf32>) -> tensor<2xf32>
    attributes {library = "part", scalars = [0, 0], group = #comm.group<@mesh, {tp}>}

// -----
// expected-error @below {{'rt.kernel' op expects a 'group' of 'part' [rt.kernel_c10]}}
rt.kernel @no_group(tensor<4xf32>) -> tensor<2xf32> attributes {library = "part", scalars = [0, 0]}

// -----
comm.mesh @mesh <tp = 2>
// expected-error @below {{'rt.kernel' op expects no 'group' of 'matmul' [rt.kernel_c10]}}
rt.kernel @a_group(tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x3xf32>
    attributes {library = "matmul", scalars = [0, 1, 0], group = #comm.group<@mesh, {tp}>}

// -----
comm.mesh @mesh <tp = 2>
// expected-error @below {{'rt.kernel' op of 'part': source: expects 2 times dest of shape [4] along dimension 0, got [4] [rt.kernel_c10]}}
rt.kernel @undivided(tensor<4xf32>) -> tensor<4xf32>
    attributes {library = "part", scalars = [0, 0], group = #comm.group<@mesh, {tp}>}
