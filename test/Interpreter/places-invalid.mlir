// RUN: braid-opt %s --split-input-file --test-interpret --verify-diagnostics

// What a rank does not have is no zeros.

// expected-error-re@+1 {{rank 1: {{.*}}'nn.add': reads operand 1, a result of 'func.call', which rank 1 does not have}}
module {
  comm.mesh @mesh <pp = 2>
  func.func private @stage(%x: tensor<2xf32>) -> tensor<2xf32> {
    return %x : tensor<2xf32>
  }
  func.func @main(%x: tensor<2xf32> {nn.name = "x", test.input = dense<0.0> : tensor<2xf32>}) -> (tensor<2xf32> {nn.name = "y"}) attributes {nn.entry} {
    %a = func.call @stage(%x) {comm.on = #comm.place<@mesh, {pp = [0]}>} : (tensor<2xf32>) -> tensor<2xf32>
    %y = nn.add %x, %a : tensor<2xf32>, tensor<2xf32> -> tensor<2xf32>
    return %y : tensor<2xf32>
  }
}

// -----

// expected-error @+1 {{rank 0: returns result 'y', which this rank does not have}}
module {
  comm.mesh @mesh <pp = 2>
  func.func @main(%x: tensor<2xf32> {nn.name = "x", comm.on = #comm.place<@mesh, {pp = [1]}>, test.input = dense<0.0> : tensor<2xf32>})
      -> (tensor<2xf32> {nn.name = "y"}) attributes {nn.entry} {
    return %x : tensor<2xf32>
  }
}

// -----

// expected-error-re@+1 {{ranks wait for each other: rank 0 waits in recv pairs [1 -> 0] over {pp} tag 1 ('gradient') for rank 1; rank 1 waits in recv pairs [0 -> 1] over {pp} ('activation') for rank 0}}
module {
  comm.mesh @mesh <pp = 2>
  func.func private @first() -> tensor<2xf32> {
    %0 = comm.recv pairs [1 -> 0] over <@mesh, {pp}> tag 1 role "gradient" : tensor<2xf32>
    comm.send(%0) pairs [0 -> 1] over <@mesh, {pp}> role "activation" : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func private @last() -> tensor<2xf32> {
    %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> role "activation" : tensor<2xf32>
    comm.send(%0) pairs [1 -> 0] over <@mesh, {pp}> tag 1 role "gradient" : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func @main() -> (tensor<2xf32> {nn.name = "y", comm.on = #comm.place<@mesh, {pp = [0]}>}) attributes {nn.entry} {
    %a = func.call @first() {comm.on = #comm.place<@mesh, {pp = [0]}>} : () -> tensor<2xf32>
    %b = func.call @last() {comm.on = #comm.place<@mesh, {pp = [1]}>} : () -> tensor<2xf32>
    return %a : tensor<2xf32>
  }
}
