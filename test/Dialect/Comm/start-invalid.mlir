// RUN: braid-opt %s --split-input-file --verify-diagnostics -o /dev/null

// Titles name the constraint in the documentation of the operation or of the dialect.

// comm.start_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects a body of one collective and comm.yield [comm.start_c1]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    comm.yield %a : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.start_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects body arguments of the operands' types [comm.start_c2]}}
  %h = "comm.start"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %r : tensor<4xf32>
  }) : (tensor<8x16xf32>) -> !comm.handle<tensor<4xf32>>
  %y = comm.wait %h keeping %x : !comm.handle<tensor<4xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.start_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects the collective to take the body's arguments in order [comm.start_c3]}}
  %h = comm.start (%a = %x, %b = %x) : tensor<8x16xf32>, tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>, tensor<8x16xf32>> {
    %r:2 = comm.all_reduce sum(%b, %a) over <@mesh, {tp}> : tensor<8x16xf32>, tensor<8x16xf32>
    comm.yield %r#0, %r#1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
  %y:2 = comm.wait %h keeping %x, %x : !comm.handle<tensor<8x16xf32>, tensor<8x16xf32>>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>, tensor<8x16xf32>
  return
}

// -----

// comm.start_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects comm.yield to give the collective's results in order [comm.start_c4]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %a : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.start_c5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects a handle of the collective's result types, got '!comm.handle<tensor<4xf32>>' [comm.start_c5]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<4xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.start_c6: none
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be waited for exactly once, got 0 uses [comm.start_c6]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }

  return
}

// -----

// comm.start_c6: two
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) -> (!comm.handle<tensor<8x16xf32>>, !comm.handle<tensor<8x16xf32>>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be waited for exactly once, got 2 uses [comm.start_c6]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  return %h, %h : !comm.handle<tensor<8x16xf32>>, !comm.handle<tensor<8x16xf32>>
}

// -----

// comm.start_c6: user
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be taken by comm.wait, a call or a return, got 'builtin.unrealized_conversion_cast' [comm.start_c6]}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // expected-note @+1 {{used here}}
  %c = builtin.unrealized_conversion_cast %h : !comm.handle<tensor<8x16xf32>> to index
  return
}

// -----

// comm.start_c7
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects an index of a queue below 8, got 8 [comm.start_c7]}}
  %h = comm.start (%a = %x) on 8 : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.wait_c1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%h: !comm.handle<tensor<8x16xf32>>, %x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.wait' op expects result types of the handle '!comm.handle<tensor<8x16xf32>>' [comm.wait_c1]}}
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.wait_c2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>, %z: tensor<8x16xf32>) {
  // expected-note @+1 {{started here}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // expected-error @+1 {{'comm.wait' op expects to keep the operands of its start [comm.wait_c2]}}
  %y = comm.wait %h keeping %z : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.wait_c3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%h: !comm.handle<tensor<8x16xf32>>, %x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.wait' op expects its handle to be waited for exactly once, got 2 uses [comm.wait_c3]}}
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %z = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.yield
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.yield' op expects parent op 'comm.start'}}
  comm.yield %x : tensor<8x16xf32>
}

// -----

// comm.wait_c4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // expected-error @+1 {{'comm.wait' op expects an index of a queue below 8, got -1 [comm.wait_c4]}}
  %y = comm.wait %h on -1 keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}
