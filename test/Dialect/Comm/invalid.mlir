// RUN: braid-opt %s --split-input-file --verify-diagnostics -o /dev/null

// Titles name the constraint of the operation's or the dialect's documentation.

// comm.mesh M1: unique names
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' names axis 'tp' twice}}
comm.mesh @mesh <tp = 2, tp = 4>

// -----

// comm.mesh M1: names
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' has an axis without a name}}
comm.mesh @mesh <"" = 2>

// -----

// comm.mesh M1: sizes
// expected-error @+1 {{'comm.mesh' op mesh axis 'tp' expects a size of at least 1, got 0}}
comm.mesh @mesh <tp = 0>

// -----

// comm.mesh: as many sizes as names
// expected-error @+1 {{'comm.mesh' op expects as many axis sizes as names}}
"comm.mesh"() <{sym_name = "mesh", axis_names = ["tp"], axis_sizes = array<i64: 2, 2>}> : () -> ()

// -----

// comm.mesh M2
// expected-error @+1 {{'comm.mesh' op mesh 'mesh' expects 'order' to be a permutation of 0..3}}
comm.mesh @mesh <dp = 2, tp = 2> order [0, 1, 1, 3]

// -----

// #comm.axis
// expected-error @+1 {{expects sub-axis sizes of at least 1, got (0)2}}
func.func private @f() attributes {test = #comm.axis<tp:(0)2>}

// -----

// #comm.axis
// expected-error @+1 {{expects an axis name}}
func.func private @f() attributes {test = #comm.axis<"">}

// -----

// #comm.sharding S1
// expected-error @+1 {{expects every axis at most once, got 'tp' twice}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{tp}, {tp}]>}

// -----

// #comm.sharding S1: sub-axes
// expected-error @+1 {{expects every axis at most once, got 'tp' twice}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{tp:(1)2}, {}], partial = [tp:(1)4 = sum]>}

// -----

// #comm.sharding: reduction
// expected-error @+1 {{expects sum, max or min, got 'mean'}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{}], partial = [tp = mean]>}

// -----

// #comm.sharding: open dimensions
// expected-error @+1 {{expects '?' to be last}}
func.func private @f() attributes {test = #comm.sharding<@mesh, [{?, tp}]>}

// -----

// What is cut already has no open dimensions.
comm.mesh @mesh <tp = 2>
// expected-error @+1 {{'func.func' op argument 0: expects a sharding without open dimensions beside 'comm.global_type', got #comm.sharding<@mesh, [{tp, ?}]>}}
func.func @f(%x: tensor<4xf32> {comm.global_type = tensor<8xf32>, comm.sharding = #comm.sharding<@mesh, [{tp, ?}]>}) { return }

// -----

// #comm.group
// expected-error @+1 {{expects every axis at most once, got 'tp' twice}}
func.func private @f() attributes {test = #comm.group<@mesh, {tp, tp}>}

// -----

// comm.all_reduce C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op expects at least one value}}
  "comm.all_reduce"() <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.all_reduce C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op expects as many results as operands, got 0 and 1}}
  "comm.all_reduce"(%x) <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.reduce_scatter C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects at least one value}}
  "comm.reduce_scatter"() <{kind = #comm<reduce sum>, dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.reduce_scatter C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects as many results as operands, got 0 and 1}}
  "comm.reduce_scatter"(%x) <{kind = #comm<reduce sum>, dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.all_gather C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects at least one value}}
  "comm.all_gather"() <{dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : () -> ()
  return
}

// -----

// comm.all_gather C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects as many results as operands, got 0 and 1}}
  "comm.all_gather"(%x) <{dim = 0 : i64, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> ()
  return
}

// -----

// comm.all_reduce C3: mesh
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op references unknown mesh @other}}
  %0 = comm.all_reduce sum(%x) over <@other, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce C3: axis
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op unknown axis 'pp' in mesh 'mesh'}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {pp}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce C3: sub-axis
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_reduce' op sub-axis (1)3 does not divide axis 'tp' of size 4}}
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp:(1)3}> : tensor<8x16xf32>
  return
}

// -----

// comm.all_reduce C4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.all_reduce' op expects elements of integer or float type, got 'complex<f32>'}}
  %0 = comm.all_reduce sum(%c) over <@mesh, {tp}> : tensor<4xcomplex<f32>>
  return
}

// -----

// comm.all_reduce C5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+2 {{'comm.all_reduce' op inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x8xf32>'}}
  // expected-error @+1 {{'comm.all_reduce' op failed to infer returned types}}
  %0 = "comm.all_reduce"(%x) <{kind = #comm<reduce sum>, group = #comm.group<@mesh, {tp}>}> : (tensor<8x16xf32>) -> tensor<8x8xf32>
  return
}

// -----

// comm.all_reduce: reduction
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{expects sum, max or min, got 'prod'}}
  %0 = comm.all_reduce prod(%x) over <@mesh, {tp}> : tensor<8x16xf32>
  return
}

// -----

// comm.reduce_scatter C3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op unknown axis 'pp' in mesh 'mesh'}}
  %0 = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {pp}> : tensor<8x16xf32> -> tensor<2x16xf32>
  return
}

// -----

// comm.reduce_scatter C4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<4xcomplex<f32>>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects elements of integer or float type, got 'complex<f32>'}}
  %0 = comm.reduce_scatter sum(%c) dim 0 over <@mesh, {tp}> : tensor<4xcomplex<f32>> -> tensor<1xcomplex<f32>>
  return
}

// -----

// comm.reduce_scatter C5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects 'dim' in [0, 2), got 2}}
  %0 = comm.reduce_scatter sum(%x) dim 2 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.reduce_scatter C6: divides
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<6xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects dimension 0 of size 6 to divide over 4 ranks}}
  %0 = comm.reduce_scatter sum(%c) dim 0 over <@mesh, {tp}> : tensor<6xf32> -> tensor<1xf32>
  return
}

// -----

// comm.reduce_scatter C6: type
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.reduce_scatter' op expects a result of type 'tensor<8x4xf32>', got 'tensor<2x16xf32>'}}
  %0 = comm.reduce_scatter sum(%x) dim 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<2x16xf32>
  return
}

// -----

// comm.all_gather C3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op references unknown mesh @other}}
  %0 = comm.all_gather(%x) dim 0 over <@other, {tp}> : tensor<8x16xf32> -> tensor<32x16xf32>
  return
}

// -----

// comm.all_gather C4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects 'dim' in [0, 2), got -1}}
  %0 = comm.all_gather(%x) dim -1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.all_gather C5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.all_gather' op expects a result of type 'tensor<8x32xf32>', got 'tensor<16x16xf32>'}}
  %0 = comm.all_gather(%x) dim 1 over <@mesh, {dp}> : tensor<8x16xf32> -> tensor<16x16xf32>
  return
}

// -----

// comm.local_slice C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.local_slice' op unknown axis 'pp' in mesh 'mesh'}}
  %0 = comm.local_slice %x dim 0 over <@mesh, {pp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.local_slice C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.local_slice' op expects 'dim' in [0, 2), got 7}}
  %0 = comm.local_slice %x dim 7 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.local_slice C3: divides
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%c: tensor<6xf32>) {
  // expected-error @+1 {{'comm.local_slice' op expects dimension 0 of size 6 to divide over 4 ranks}}
  %0 = comm.local_slice %c dim 0 over <@mesh, {tp}> : tensor<6xf32> -> tensor<1xf32>
  return
}

// -----

// comm.local_slice C3: type
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.local_slice' op expects a result of type 'tensor<2x16xf32>', got 'tensor<8x4xf32>'}}
  %0 = comm.local_slice %x dim 0 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x4xf32>
  return
}

// -----

// comm.start C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects a body of one collective and comm.yield}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    comm.yield %a : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.start C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects body arguments of the operands' types}}
  %h = "comm.start"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<4xf32>
    comm.yield %r : tensor<4xf32>
  }) : (tensor<8x16xf32>) -> !comm.handle<tensor<4xf32>>
  %y = comm.wait %h keeping %x : !comm.handle<tensor<4xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.start C3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects the collective to take the body's arguments in order}}
  %h = comm.start (%a = %x, %b = %x) : tensor<8x16xf32>, tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>, tensor<8x16xf32>> {
    %r:2 = comm.all_reduce sum(%b, %a) over <@mesh, {tp}> : tensor<8x16xf32>, tensor<8x16xf32>
    comm.yield %r#0, %r#1 : tensor<8x16xf32>, tensor<8x16xf32>
  }
  %y:2 = comm.wait %h keeping %x, %x : !comm.handle<tensor<8x16xf32>, tensor<8x16xf32>>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>, tensor<8x16xf32>
  return
}

// -----

// comm.start C4
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects comm.yield to give the collective's results in order}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %a : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.start C5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects a handle of the collective's result types, got '!comm.handle<tensor<4xf32>>'}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<4xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.start C6: none
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be waited for exactly once, got 0 uses}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }

  return
}

// -----

// comm.start C6: two
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) -> (!comm.handle<tensor<8x16xf32>>, !comm.handle<tensor<8x16xf32>>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be waited for exactly once, got 2 uses}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  return %h, %h : !comm.handle<tensor<8x16xf32>>, !comm.handle<tensor<8x16xf32>>
}

// -----

// comm.start C6: user
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.start' op expects its handle to be taken by comm.wait, a call or a return, got 'builtin.unrealized_conversion_cast'}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // expected-note @+1 {{used here}}
  %c = builtin.unrealized_conversion_cast %h : !comm.handle<tensor<8x16xf32>> to index
  return
}

// -----

// comm.wait C1
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%h: !comm.handle<tensor<8x16xf32>>, %x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.wait' op expects result types of the handle '!comm.handle<tensor<8x16xf32>>'}}
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<4xf32>
  return
}

// -----

// comm.wait C2
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>, %z: tensor<8x16xf32>) {
  // expected-note @+1 {{started here}}
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // expected-error @+1 {{'comm.wait' op expects to keep the operands of its start}}
  %y = comm.wait %h keeping %z : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return
}

// -----

// comm.wait C3
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%h: !comm.handle<tensor<8x16xf32>>, %x: tensor<8x16xf32>) {
  // expected-error @+1 {{'comm.wait' op expects its handle to be waited for exactly once, got 2 uses}}
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

// A1
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.sharding' to be a #comm.sharding, got 1 : i64}}
func.func private @f(tensor<8x16xf32> {comm.sharding = 1})

// -----

// A1: tensors
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects a ranked tensor for a sharding, got 'index'}}
func.func private @f(index {comm.sharding = #comm.sharding<@mesh, []>})

// -----

// A2 and S2
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects a sharding of 2 dimensions, got 1}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>})

// -----

// A2 and S3: mesh
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: references unknown mesh @other}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@other, [{tp}, {}]>})

// -----

// A2 and S3: axis
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'pp' in mesh 'mesh'}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{pp}, {}]>})

// -----

// A2 and S3: partial axis
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: unknown axis 'pp' in mesh 'mesh'}}
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {}], partial = [pp = sum]>})

// -----

// A2: divides
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: dimension 0 of size 6 does not divide over 'dp', 'tp' (8 shards)}}
func.func private @f(tensor<6xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>})

// -----

// A2: on a result
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op result 0: expects a sharding of 2 dimensions, got 0}}
func.func private @f() -> (tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, []>})

// -----

// A3
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.global_type' to be a statically shaped tensor type, got tensor<?x16xf32>}}
func.func private @f(tensor<8x16xf32> {comm.global_type = tensor<?x16xf32>})

// -----

// A3: beside a sharding
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects 'comm.sharding' beside 'comm.global_type'}}
func.func private @f(tensor<8x16xf32> {comm.global_type = tensor<16x16xf32>})

// -----

// A4
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: expects type 'tensor<8x4xf32>', which is 'tensor<8x16xf32>' cut as #comm.sharding<@mesh, [{}, {tp}]>, got 'tensor<2x16xf32>'}}
func.func private @f(tensor<2x16xf32> {comm.global_type = tensor<8x16xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>})

// -----

// unknown attribute
comm.mesh @mesh <dp = 2, tp = 4>
// expected-error @+1 {{'func.func' op argument 0: has unknown attribute 'comm.shard'}}
func.func private @f(tensor<8x16xf32> {comm.shard})

// -----

// A5
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op expects 'comm.shardings' to be an array, got unit}}
  %0 = arith.negf %x {comm.shardings} : tensor<8x16xf32>
  return
}

// -----

// A6
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op expects 'comm.shardings' to have 1 elements, one per result, got 0}}
  %0 = arith.negf %x {comm.shardings = []} : tensor<8x16xf32>
  return
}

// -----

// A7
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: expects a #comm.sharding for a tensor, got unit}}
  %0 = arith.negf %x {comm.shardings = [unit]} : tensor<8x16xf32>
  return
}

// -----

// A6: kind
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: expects a #comm.sharding, got "tp"}}
  %0 = arith.negf %x {comm.shardings = ["tp"]} : tensor<8x16xf32>
  return
}

// -----

// A2 on an operation
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op result 0: sub-axis (1)3 does not divide axis 'tp' of size 4}}
  %0 = arith.negf %x {comm.shardings = [#comm.sharding<@mesh, [{dp, tp:(1)3}, {}]>]} : tensor<8x16xf32>
  return
}

// -----

// unknown attribute
comm.mesh @mesh <dp = 2, tp = 4>
func.func @f(%x: tensor<8x16xf32>) {
  // expected-error @+1 {{'arith.negf' op has unknown attribute 'comm.sharding'}}
  %0 = arith.negf %x {comm.sharding = #comm.sharding<@mesh, [{}, {}]>} : tensor<8x16xf32>
  return
}

// -----

// a malformed mesh is reported as such
func.func private @f(tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>})
// expected-error @+1 {{'comm.mesh' op mesh axis 'tp' expects a size of at least 1, got 0}}
comm.mesh @mesh <tp = 0>
