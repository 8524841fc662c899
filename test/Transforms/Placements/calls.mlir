// RUN: braid-opt %s --split-input-file --verify-diagnostics --braid-check-placements -o /dev/null

// A layer is called with partial sums the second time; its first call is right.
comm.mesh @mesh <tp = 2>
func.func private @activate(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-note @+2 {{the operation is not linear in it}}
  // expected-error @+1 {{'nn.activation' op expects operand 0 reduced, got partial sums over axis 'tp'}}
  %0 = nn.activation gelu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @layer(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-note @+1 {{'activate' is called here}}
  %0 = call @activate(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func private @product(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %w = nn.parameter "w" of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  // expected-note @+1 {{these are partial sums over axis 'tp', made here}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<4x8xf32>
    {
  %0 = call @layer(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = call @product(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // expected-note @+1 {{'layer' is called here}}
  %2 = call @layer(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// Partial sums leave one function and are reduced in another one; a handle and what it keeps cross the call.
comm.mesh @mesh <tp = 2>
func.func private @begin(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>) {
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = comm.start (%a = %0) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  return %h, %0 : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>
}
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<4x8xf32>
    {
  %w = nn.parameter "w" of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  %h, %kept = call @begin(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>)
  %0 = comm.wait %h keeping %kept : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = nn.activation gelu %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// -----

// What is kept for a wait is still partial.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<4x16xf32>}) -> tensor<4x8xf32>
    {
  %w = nn.parameter "w" of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  // expected-note @+1 {{these are partial sums over axis 'tp', made here}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = comm.start (%a = %0) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    // expected-note @+1 {{this is the same on all ranks of axis 'tp', made here}}
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %1 = comm.wait %h keeping %0 : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  // expected-note @+2 {{it is added on each of 2 ranks, so that the sum has it 2 times}}
  // expected-error @+1 {{'nn.add' op expects partial sums over axis 'tp' in operand 0 too, got the same value on all of its ranks}}
  %2 = nn.add %1, %0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// At level scheduled the error is at the collective in the start.
comm.mesh @mesh <tp = 2>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h = comm.start (%a = %x) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    // expected-note @+2 {{the sum has it 2 times}}
    // expected-error @+1 {{'comm.all_reduce' op expects partial sums over axis 'tp', got the same value}}
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %1 = comm.wait %h keeping %x : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
