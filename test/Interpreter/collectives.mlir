// RUN: braid-opt %s --split-input-file --test-interpret -o /dev/null | FileCheck %s

// Ranks 0 and 1 have one row each; both get the sum.
comm.mesh @mesh <tp = 2>
// CHECK: result0 = f32[1, 3] [11, 22, 33]
func.func @main(%x: tensor<1x3xf32> {test.input = dense<[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]> : tensor<2x3xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<2x3xf32>})
    -> (tensor<1x3xf32> {test.expected = dense<[[11.0, 22.0, 33.0]]> : tensor<1x3xf32>}) {
  %0 = comm.all_reduce sum (%x) over <@mesh, {tp}> : tensor<1x3xf32>
  return %0 : tensor<1x3xf32>
}

// -----

// Several values in one collective, integers, max and min.
comm.mesh @mesh <tp = 4>
// CHECK: result0 = f32[1] [7]
// CHECK: result1 = i64[1] [9]
// CHECK: result2 = f32[1] [-3]
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 7.0, -3.0, 2.0]> : tensor<4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xf32>},
    %n: tensor<1xi64> {test.input = dense<[4, 9, 2, 5]> : tensor<4xi64>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xi64>})
    -> (tensor<1xf32> {test.expected = dense<7.0> : tensor<1xf32>}, tensor<1xi64> {test.expected = dense<9> : tensor<1xi64>},
        tensor<1xf32> {test.expected = dense<-3.0> : tensor<1xf32>}) {
  %0:2 = comm.all_reduce max (%x, %n) over <@mesh, {tp}> : tensor<1xf32>, tensor<1xi64>
  %1 = comm.all_reduce min (%x) over <@mesh, {tp}> : tensor<1xf32>
  return %0#0, %0#1, %1 : tensor<1xf32>, tensor<1xi64>, tensor<1xf32>
}

// -----

// Every rank of tp has a full-size partial sum and keeps one column of the result.
comm.mesh @mesh <tp = 2>
// CHECK: result0 = f32[2, 2] [6, 8, 10, 12]
func.func @main(%x: tensor<1x2x2xf32> {test.input = dense<[[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]> : tensor<2x2x2xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}, {}, {}]>, comm.global_type = tensor<2x2x2xf32>})
    -> (tensor<2x1xf32> {test.expected = dense<[[6.0, 8.0], [10.0, 12.0]]> : tensor<2x2xf32>,
      comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<2x2xf32>}) {
  %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<1x2x2xf32> into tensor<2x2xf32>
  %1 = comm.reduce_scatter sum (%0) dim 1 over <@mesh, {tp}> : tensor<2x2xf32> -> tensor<2x1xf32>
  return %1 : tensor<2x1xf32>
}

// -----

// dp is major, tp minor: rank r has the value r. It is gathered over one axis and over both in either order, then sliced back.
comm.mesh @mesh <dp = 2, tp = 2>
// CHECK: result0 = f32[2, 2] [0, 1, 2, 3]
// CHECK: result1 = f32[4] [0, 2, 1, 3]
// CHECK: result2 = f32[4] [0, 1, 2, 3]
// CHECK: result3 = f32[4] [0, 2, 1, 3]
// CHECK: result4 = f32[4] [0, 1, 2, 3]
func.func @main(%x: tensor<1xf32> {test.input = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>, comm.global_type = tensor<4xf32>})
    -> (tensor<1x2xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>, comm.global_type = tensor<2x2xf32>},
        tensor<2xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xf32>},
        tensor<4xf32>, tensor<4xf32>,
        tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>, comm.global_type = tensor<4xf32>}) {
  %0 = comm.all_gather (%x) dim 0 over <@mesh, {tp}> : tensor<1xf32> -> tensor<2xf32>
  %1 = tensor.expand_shape %0 [[0, 1]] output_shape [1, 2] : tensor<2xf32> into tensor<1x2xf32>
  %2 = comm.all_gather (%x) dim 0 over <@mesh, {dp}> : tensor<1xf32> -> tensor<2xf32>
  %3 = comm.all_gather (%x) dim 0 over <@mesh, {dp, tp}> : tensor<1xf32> -> tensor<4xf32>
  %4 = comm.all_gather (%x) dim 0 over <@mesh, {tp, dp}> : tensor<1xf32> -> tensor<4xf32>
  %5 = comm.part %3 dim 0 over <@mesh, {dp, tp}> : tensor<4xf32> -> tensor<1xf32>
  return %1, %2, %3, %4, %5 : tensor<1x2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<1xf32>
}

// -----

// Sub-axes: of tp = 4, tp:(1)2 joins ranks 0 with 2 and 1 with 3, tp:(2)2 joins 0 with 1 and 2 with 3.
comm.mesh @mesh <tp = 4>
// CHECK: result0 = f32[2] [4, 6]
// CHECK: result1 = f32[2] [3, 7]
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<4xf32>})
    -> (tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{tp:(2)2}]>, comm.global_type = tensor<2xf32>},
        tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{tp:(1)2}]>, comm.global_type = tensor<2xf32>}) {
  %0 = comm.all_reduce sum (%x) over <@mesh, {tp:(1)2}> : tensor<1xf32>
  %1 = comm.all_reduce sum (%x) over <@mesh, {tp:(2)2}> : tensor<1xf32>
  return %0, %1 : tensor<1xf32>, tensor<1xf32>
}

// -----

// Another axis order of the mesh moves coordinates to other ranks; the results stay the same.
comm.mesh @mesh <dp = 2, tp = 2> order [0, 2, 1, 3]
// CHECK: result0 = f32[2] [3, 7]
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{dp, tp}]>, comm.global_type = tensor<4xf32>})
    -> (tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}]>, comm.global_type = tensor<2xf32>}) {
  %0 = comm.all_reduce sum (%x) over <@mesh, {tp}> : tensor<1xf32>
  return %0 : tensor<1xf32>
}

// -----

// Three collectives in flight at once, waited for in another order, one of them across a call.
comm.mesh @mesh <tp = 2>
func.func private @finish(%h: !comm.handle<tensor<1xf32>>, %x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = comm.wait %h keeping %x : !comm.handle<tensor<1xf32>>, tensor<1xf32> -> tensor<1xf32>
  return %0 : tensor<1xf32>
}
// CHECK: result0 = f32[1] [5]
// CHECK: result1 = f32[2] [2, 3]
// CHECK: result2 = f32[1] [3]
func.func @main(%x: tensor<1xf32> {test.input = dense<[2.0, 3.0]> : tensor<2xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<2xf32>})
    -> (tensor<1xf32>, tensor<2xf32>, tensor<1xf32>) {
  %h0 = comm.start (%a = %x) : tensor<1xf32> -> !comm.handle<tensor<1xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<1xf32>
    comm.yield %r : tensor<1xf32>
  }
  %h1 = comm.start (%a = %x) : tensor<1xf32> -> !comm.handle<tensor<2xf32>> {
    %r = comm.all_gather (%a) dim 0 over <@mesh, {tp}> : tensor<1xf32> -> tensor<2xf32>
    comm.yield %r : tensor<2xf32>
  }
  %h2 = comm.start (%a = %x) : tensor<1xf32> -> !comm.handle<tensor<1xf32>> {
    %r = comm.all_reduce max (%a) over <@mesh, {tp}> : tensor<1xf32>
    comm.yield %r : tensor<1xf32>
  }
  %2 = comm.wait %h2 keeping %x : !comm.handle<tensor<1xf32>>, tensor<1xf32> -> tensor<1xf32>
  %1 = comm.wait %h1 keeping %x : !comm.handle<tensor<2xf32>>, tensor<1xf32> -> tensor<2xf32>
  %0 = func.call @finish(%h0, %x) : (!comm.handle<tensor<1xf32>>, tensor<1xf32>) -> tensor<1xf32>
  return %0, %1, %2 : tensor<1xf32>, tensor<2xf32>, tensor<1xf32>
}

// -----

// A ring: every rank passes its value on twice and assembles all three; parts with a shift take them apart again.
comm.mesh @mesh <tp = 3>
// CHECK: result0 = f32[3] [10, 20, 30]
// CHECK: result1 = f32[3] [20, 30, 10]
// CHECK: result2 = f32[3] [30, 10, 20]
func.func @main(%x: tensor<1xf32> {test.input = dense<[10.0, 20.0, 30.0]> : tensor<3xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<3xf32>})
    -> (tensor<3xf32>,
        tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<3xf32>},
        tensor<1xf32> {comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<3xf32>}) {
  %0 = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<1xf32>
  %1 = comm.permute(%0) pairs [0 -> 1, 1 -> 2, 2 -> 0] over <@mesh, {tp}> : tensor<1xf32>
  %all = comm.assemble %x, %0, %1 shifts [0, -1, -2] dim 0 over <@mesh, {tp}> : tensor<1xf32>, tensor<1xf32>, tensor<1xf32> -> tensor<3xf32>
  %next = comm.part %all dim 0 shift 1 over <@mesh, {tp}> : tensor<3xf32> -> tensor<1xf32>
  %last = comm.part %all dim 0 shift -1 over <@mesh, {tp}> : tensor<3xf32> -> tensor<1xf32>
  return %all, %next, %last : tensor<3xf32>, tensor<1xf32>, tensor<1xf32>
}
