// RUN: braid-opt %s -split-input-file --braid-lower-to-rt -verify-diagnostics

comm.mesh @mesh <tp = 2>
func.func @plain_collective(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'comm.all_reduce' op expects to be inside of comm.start: lowering to procedures takes the scheduled level}}
  %0 = comm.all_reduce sum (%x) over <@mesh, {tp}> : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @row_operation(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'nn.activation' op expects to be part of a kernel: lowering to procedures takes the kernels level}}
  %0 = nn.activation gelu %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @unknown(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{'arith.addf' op has no counterpart in a procedure}}
  %0 = arith.addf %x, %x : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// expected-error @below {{expects an entry to wait for every collective, got '!comm.handle<tensor<4xf32>>' in its signature}}
func.func @handle(%h: !comm.handle<tensor<4xf32>> {nn.name = "h"}) attributes {nn.entry} {
  return
}

// -----

func.func @passes_on(%h: !comm.handle<tensor<4xf32>>) -> !comm.handle<tensor<4xf32>> {
  // expected-error @below {{expects a handle that it returns to be that of a collective that the function or a callee starts, and returned once}}
  return %h : !comm.handle<tensor<4xf32>>
}

// -----

func.func @recursive(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{expects @recursive not to call itself, nor a function that does}}
  %0 = func.call @recursive(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @not_entry() -> tensor<4xf32> {
  // expected-error @below {{'nn.parameter' op expects to stand in an entry, got @not_entry}}
  %0 = nn.parameter "w" : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @below {{expects statically shaped tensors in its signature, got 'f32'}}
func.func @scalar(%x: f32) {
  return
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @below {{expects state "sum" to keep its sharding #comm.sharding<@mesh, [{tp}]>, got a result with #comm.sharding<@mesh, [{}]>}}
func.func @state(%sum: tensor<4xf32> {nn.name = "sum", nn.state, comm.sharding = #comm.sharding<@mesh, [{tp}]>})
    -> (tensor<4xf32> {nn.name = "sum", comm.sharding = #comm.sharding<@mesh, [{}]>}) attributes {nn.entry} {
  return %sum : tensor<4xf32>
}
