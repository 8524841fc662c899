// RUN: braid-opt %s --split-input-file --test-interpret -o /dev/null | FileCheck %s

// Rows over tp become columns over tp; the full value stays the same.
comm.mesh @mesh <tp = 2>
// CHECK: result0 = f32[2, 4] [1, 2, 3, 4, 5, 6, 7, 8]
func.func @main(%x: tensor<1x4xf32> {test.input = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]> : tensor<2x4xf32>,
      comm.sharding = #comm.sharding<@mesh, [{tp}, {}]>, comm.global_type = tensor<2x4xf32>})
    -> (tensor<2x2xf32> {comm.sharding = #comm.sharding<@mesh, [{}, {tp}]>, comm.global_type = tensor<2x4xf32>}) {
  %0 = comm.all_to_all(%x) split 1 concat 0 over <@mesh, {tp}> : tensor<1x4xf32> -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

// Three ranks, one dimension: chunk p of rank s becomes chunk s of rank p. Integers.
comm.mesh @mesh <tp = 3>
// CHECK: result0 = i64[9] [0, 10, 20, 1, 11, 21, 2, 12, 22]
func.func @main(%x: tensor<3xi64> {test.input = dense<[0, 1, 2, 10, 11, 12, 20, 21, 22]> : tensor<9xi64>,
      comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<9xi64>})
    -> (tensor<3xi64> {comm.sharding = #comm.sharding<@mesh, [{tp}]>, comm.global_type = tensor<9xi64>}) {
  %0 = comm.all_to_all(%x) split 0 concat 0 over <@mesh, {tp}> : tensor<3xi64> -> tensor<3xi64>
  return %0 : tensor<3xi64>
}

// -----

// Roots and pairs are positions in the group: over both axes, over one of two axes, and over a sub-axis.
comm.mesh @mesh <dp = 2, tp = 4>
// CHECK: result0 = f32[8] [0, 0, 0, 0, 0, 0, 36, 0]
// CHECK: result1 = f32[8] [5, 6, 7, 8, 5, 6, 7, 8]
// CHECK: result2 = f32[8] [4, 0, 1, 0, 8, 0, 5, 0]
// CHECK: result3 = f32[8] [2, 1, 4, 3, 6, 5, 8, 7]
#s = #comm.sharding<@mesh, [{dp, tp}]>
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>,
      comm.sharding = #s, comm.global_type = tensor<8xf32>})
    -> (tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>},
        tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>},
        tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>},
        tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>}) {
  %0 = comm.reduce sum(%x) to 6 over <@mesh, {dp, tp}> : tensor<1xf32>
  %1 = comm.broadcast(%x) from 1 over <@mesh, {dp}> : tensor<1xf32>
  %2 = comm.permute(%x) pairs [3 -> 0, 0 -> 2] over <@mesh, {tp}> : tensor<1xf32>
  %3 = comm.permute(%x) pairs [0 -> 1, 1 -> 0] over <@mesh, {tp:(2)2}> : tensor<1xf32>
  return %0, %1, %2, %3 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

// All in flight at once, waited for in another order.
comm.mesh @mesh <tp = 2>
#s = #comm.sharding<@mesh, [{tp}]>
// CHECK: result0 = f32[4] [1, 3, 2, 4]
// CHECK: result1 = f32[4] [0, 0, 1, 2]
func.func @main(%x: tensor<2xf32> {test.input = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>, comm.sharding = #s, comm.global_type = tensor<4xf32>})
    -> (tensor<2xf32> {comm.sharding = #s, comm.global_type = tensor<4xf32>}, tensor<2xf32> {comm.sharding = #s, comm.global_type = tensor<4xf32>}) {
  %h0 = comm.start (%a = %x) : tensor<2xf32> -> !comm.handle<tensor<2xf32>> {
    %r = comm.all_to_all(%a) split 0 concat 0 over <@mesh, {tp}> : tensor<2xf32> -> tensor<2xf32>
    comm.yield %r : tensor<2xf32>
  }
  %h1 = comm.start (%a = %x) : tensor<2xf32> -> !comm.handle<tensor<2xf32>> {
    %r = comm.permute(%a) pairs [0 -> 1] over <@mesh, {tp}> : tensor<2xf32>
    comm.yield %r : tensor<2xf32>
  }
  %1 = comm.wait %h1 keeping %x : !comm.handle<tensor<2xf32>>, tensor<2xf32> -> tensor<2xf32>
  %0 = comm.wait %h0 keeping %x : !comm.handle<tensor<2xf32>>, tensor<2xf32> -> tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}
