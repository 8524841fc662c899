// RUN: braid-opt %s -split-input-file -verify-diagnostics

// K9
// expected-error @below {{'rt.kernel' op expects either a body or 'library_symbol'}}
rt.kernel @neither(tensor<?x8xf32>) -> tensor<?x8xf32>

// -----
// expected-error @below {{'rt.kernel' op expects either a body or 'library_symbol'}}
rt.kernel @both(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f"} {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// expected-error @below {{'rt.kernel' op expects no 'scalars' beside a body}}
rt.kernel @scalars(%x: tensor<?x8xf32>) -> tensor<?x8xf32> attributes {scalars = [1 : i64]} {
  rt.yield %x : tensor<?x8xf32>
}

// -----
// expected-error @below {{'rt.kernel' op expects scalars that are integers or floats, got "a"}}
rt.kernel @text(tensor<?x8xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f", scalars = ["a"]}

// -----
// expected-error @below {{'rt.kernel' op expects ranked tensors, static but for the outermost row dimension, got 'tensor<?x?xf32>'}}
rt.kernel @dynamic(tensor<?x?xf32>) -> tensor<?x8xf32> attributes {library_symbol = "f"}

// -----
// expected-error @below {{'rt.kernel' op expects at least one result}}
rt.kernel @nothing(tensor<?x8xf32>) attributes {library_symbol = "f"}
