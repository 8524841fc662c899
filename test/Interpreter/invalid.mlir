// RUN: braid-opt %s --split-input-file --test-interpret --verify-diagnostics

// expected-error@+1 {{no function marked nn.entry and none named 'main'}}
module {}

// -----

// expected-error@+1 {{the module has several entries, name one of 'a', 'b'}}
module {
  func.func @a() attributes {nn.entry} { return }
  func.func @b() attributes {nn.entry} { return }
}

// -----

// expected-error@+1 {{input 'ids' is missing}}
module {
  func.func @main(%x: tensor<2xi64> {nn.name = "ids"}) attributes {nn.entry} { return }
}

// -----

// expected-error@+1 {{input 'ids' expects i64[2], got i32[2]}}
module {
  func.func @main(%x: tensor<2xi64> {nn.name = "ids", test.input = dense<0> : tensor<2xi32>}) attributes {nn.entry} { return }
}

// -----

// expected-error@+1 {{'tensor.pad': is an operation that the interpreter does not know}}
module {
  func.func @main(%x: tensor<1xf32> {test.input = dense<0.0> : tensor<1xf32>}) -> tensor<2xf32> {
    %zero = arith.constant 0.0 : f32
    %0 = tensor.pad %x low[0] high[1] {
    ^bb0(%i: index):
      tensor.yield %zero : f32
    } : tensor<1xf32> to tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}

// -----

// The error names the rank, the operation's location and the cause.
// expected-error-re@+1 {{rank 0: {{.*}}invalid.mlir:{{[0-9]+:[0-9]+}}: 'nn.embedding': embedding expects ids from 0 to 3, got 4 at position [1]}}
module {
  func.func private @look_up(%ids: tensor<3xi64>, %table: tensor<4x2xf32>) -> tensor<3x2xf32> {
    %0 = nn.embedding %ids, %table : tensor<3xi64>, tensor<4x2xf32> -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
  func.func @main(%ids: tensor<3xi64> {test.input = dense<[0, 4, 1]> : tensor<3xi64>}) -> tensor<3x2xf32> {
    %table = nn.parameter "t" : tensor<4x2xf32>
    %0 = call @look_up(%ids, %table) : (tensor<3xi64>, tensor<4x2xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  }
}

// -----

// A result that is declared replicated but differs between ranks.
// expected-error@+1 {{result 'y' expects equal values on ranks 0 and 1, which differ at [0]}}
module {
  comm.mesh @mesh <tp = 2>
  func.func @main(%x: tensor<1xf32> {nn.name = "x", test.input = dense<[1.0, 2.0]> : tensor<2xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<2xf32>}) -> (tensor<1xf32> {nn.name = "y"}) attributes {nn.entry} {
    return %x : tensor<1xf32>
  }
}

// -----

// expected-error@+1 {{result0 differs from test.expected by 0.5}}
module {
  func.func @main(%x: tensor<1xf32> {test.input = dense<3.0> : tensor<1xf32>})
      -> (tensor<1xf32> {test.expected = dense<2.0> : tensor<1xf32>}) {
    return %x : tensor<1xf32>
  }
}

// -----

// expected-error@+1 {{expects one mesh in the program, got 'a' and 'b'}}
module {
  comm.mesh @a <tp = 2>
  comm.mesh @b <tp = 2>
  func.func @main(%x: tensor<1xf32> {test.input = dense<3.0> : tensor<1xf32>}) -> tensor<1xf32> {
    %0 = comm.all_reduce sum (%x) over <@a, {tp}> : tensor<1xf32>
    %1 = comm.all_reduce sum (%0) over <@b, {tp}> : tensor<1xf32>
    return %1 : tensor<1xf32>
  }
}
