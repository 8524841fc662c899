// RUN: braid-opt %s --split-input-file --braid-verify-level=level=scheduled --verify-diagnostics

// A handle goes out of one function and into another, with what its wait keeps beside it. The second function passes on what
// it gets.
comm.mesh @mesh <tp = 2>
func.func @begin(%x: tensor<4xf32>) -> (!comm.handle<tensor<4xf32>>, tensor<4xf32>) {
  %y = nn.activation tanh %x : tensor<4xf32>
  %h = comm.start (%a = %y) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %v : tensor<4xf32>
  }
  return %h, %y : !comm.handle<tensor<4xf32>>, tensor<4xf32>
}
func.func @begin_with(%x: tensor<4xf32>) -> !comm.handle<tensor<4xf32>> {
  %h = comm.start (%a = %x) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %v : tensor<4xf32>
  }
  return %h : !comm.handle<tensor<4xf32>>
}
func.func @end(%h: !comm.handle<tensor<4xf32>>, %kept: tensor<4xf32>) -> tensor<4xf32> {
  %z = comm.wait %h keeping %kept : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func @pass(%h: !comm.handle<tensor<4xf32>>, %kept: tensor<4xf32>) -> tensor<4xf32> {
  %z = call @end(%h, %kept) : (!comm.handle<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %h, %y = call @begin(%x) : (tensor<4xf32>) -> (!comm.handle<tensor<4xf32>>, tensor<4xf32>)
  %k = call @begin_with(%x) : (tensor<4xf32>) -> !comm.handle<tensor<4xf32>>
  %a = call @pass(%h, %y) : (!comm.handle<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32>
  %b = comm.wait %k keeping %x : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// -----

comm.mesh @mesh <tp = 2>
func.func private @begin(%x: tensor<4xf32>) -> !comm.handle<tensor<4xf32>> {
  // expected-note @below {{started here}}
  %h = comm.start (%a = %x) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %v : tensor<4xf32>
  }
  return %h : !comm.handle<tensor<4xf32>>
}
func.func @keeps_another(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %h = call @begin(%x) : (tensor<4xf32>) -> !comm.handle<tensor<4xf32>>
  // expected-error @below {{'comm.wait' op expects to keep the operands of its start [comm.wait_c2]}}
  %z = comm.wait %h keeping %y : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

comm.mesh @mesh <tp = 2>
func.func private @end(%h: !comm.handle<tensor<4xf32>>, %kept: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'comm.wait' op expects to keep the operands of its start [comm.wait_c2]}}
  %z = comm.wait %h keeping %kept : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func @passes_another(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @below {{started here}}
  %h = comm.start (%a = %x) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %v : tensor<4xf32>
  }
  %z = call @end(%h, %y) : (!comm.handle<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

comm.mesh @mesh <tp = 2>
// expected-error @below {{'func.func' op expects the handle in argument 0 to be taken once, by comm.wait, a call or a return, got 0 uses}}
func.func @never(%h: !comm.handle<tensor<4xf32>>, %kept: tensor<4xf32>) -> tensor<4xf32> {
  return %kept : tensor<4xf32>
}

// -----

comm.mesh @mesh <tp = 2>
func.func private @begin(%x: tensor<4xf32>) -> !comm.handle<tensor<4xf32>> {
  %h = comm.start (%a = %x) : tensor<4xf32> -> !comm.handle<tensor<4xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %v : tensor<4xf32>
  }
  return %h : !comm.handle<tensor<4xf32>>
}
func.func private @end(%h: !comm.handle<tensor<4xf32>>, %kept: tensor<4xf32>) -> tensor<4xf32> {
  %z = comm.wait %h keeping %kept : !comm.handle<tensor<4xf32>>, tensor<4xf32> -> tensor<4xf32>
  return %z : tensor<4xf32>
}
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @below {{'func.call' op expects the handle in result 0 to be taken once, by comm.wait, a call or a return, got 2 uses}}
  %h = call @begin(%x) : (tensor<4xf32>) -> !comm.handle<tensor<4xf32>>
  // expected-note @below {{taken here}}
  %a = call @end(%h, %x) : (!comm.handle<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32>
  // expected-note @below {{taken here}}
  %b = call @end(%h, %x) : (!comm.handle<tensor<4xf32>>, tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
