// RUN: braid-opt %s --split-input-file --test-interpret -o /dev/null | FileCheck %s

// Two blocks of at most two rows for each of two ranks. Rank 0 sends blocks of 2, 0, 1 and 2 rows, rank 1 blocks of 1, 2, 0 and
// 0 rows: rank 0 gets the first two of each, rank 1 the others. Rows beyond the counts are not sent.
comm.mesh @mesh <ep = 2>
#s = #comm.sharding<@mesh, [{ep}, {}]>
#c = #comm.sharding<@mesh, [{ep}]>
// CHECK: result0 = f32[8, 2] [1, 2, 0, 0, 9, 0, 11, 12, 5, 0, 7, 8, 0, 0, 0, 0]
// CHECK: result1 = i64[8, 2] [21, 22, 0, 0, 29, 0, 31, 32, 25, 0, 27, 28, 0, 0, 0, 0]
// CHECK: result2 = i32[8] [2, 0, 1, 2, 1, 2, 0, 0]
func.func @main(%x: tensor<4x2xf32> {test.input = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0],
                                                         [9.0, 10.0], [11.0, 12.0], [13.0, 14.0], [15.0, 16.0]]> : tensor<8x2xf32>,
      comm.sharding = #s, comm.global_type = tensor<8x2xf32>},
    %y: tensor<4x2xi64> {test.input = dense<[[21, 22], [23, 24], [25, 26], [27, 28], [29, 30], [31, 32], [33, 34], [35, 36]]> : tensor<8x2xi64>,
      comm.sharding = #s, comm.global_type = tensor<8x2xi64>},
    %c: tensor<4xi32> {test.input = dense<[2, 0, 1, 2, 1, 2, 0, 0]> : tensor<8xi32>, comm.sharding = #c, comm.global_type = tensor<8xi32>})
    -> (tensor<4x2xf32> {comm.sharding = #s, comm.global_type = tensor<8x2xf32>},
        tensor<4x2xi64> {comm.sharding = #s, comm.global_type = tensor<8x2xi64>},
        tensor<4xi32> {comm.sharding = #c, comm.global_type = tensor<8xi32>}) {
  %r:2, %n = comm.all_to_all_v(%x, %y) counts %c : tensor<4xi32> over <@mesh, {ep}> : tensor<4x2xf32>, tensor<4x2xi64>
  // Exchanged and back again: all counts and all rows that were sent are where they were.
  %s, %m = comm.all_to_all_v(%r#0) counts %n : tensor<4xi32> over <@mesh, {ep}> : tensor<4x2xf32>
  return %r#0, %r#1, %m : tensor<4x2xf32>, tensor<4x2xi64>, tensor<4xi32>
}

// -----

// In a ring all ranks send before they receive; another tag overtakes; position 0 of a sub-axis receives from no rank.
comm.mesh @mesh <dp = 2, pp = 4>
#s = #comm.sharding<@mesh, [{dp, pp}]>
// CHECK: result0 = f32[8] [4, 1, 2, 3, 8, 5, 6, 7]
// CHECK: result1 = i64[8] [0, 10, 0, 30, 0, 50, 0, 70]
// CHECK: result2 = f32[8] [0, 0, 0, 0, 1, 2, 3, 4]
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>,
      comm.sharding = #s, comm.global_type = tensor<8xf32>},
    %n: tensor<1xi64> {test.input = dense<[10, 20, 30, 40, 50, 60, 70, 80]> : tensor<8xi64>,
      comm.sharding = #s, comm.global_type = tensor<8xi64>})
    -> (tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>},
        tensor<1xi64> {comm.sharding = #s, comm.global_type = tensor<8xi64>},
        tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<8xf32>}) {
  comm.send(%x) pairs [0 -> 1, 1 -> 2, 2 -> 3, 3 -> 0] over <@mesh, {pp}> : tensor<1xf32>
  comm.send(%n) pairs [0 -> 1] over <@mesh, {pp:(2)2}> tag 1 : tensor<1xi64>
  %1 = comm.recv pairs [0 -> 1] over <@mesh, {pp:(2)2}> tag 1 : tensor<1xi64>
  %0 = comm.recv pairs [3 -> 0, 0 -> 1, 1 -> 2, 2 -> 3] over <@mesh, {pp}> : tensor<1xf32>
  %r = comm.start () -> !comm.handle<tensor<1xf32>> {
    %b = comm.recv pairs [0 -> 1] over <@mesh, {dp}> : tensor<1xf32>
    comm.yield %b : tensor<1xf32>
  }
  %s = comm.start (%a = %x) : tensor<1xf32> -> !comm.handle {
    comm.send(%a) pairs [0 -> 1] over <@mesh, {dp}> : tensor<1xf32>
    comm.yield
  }
  comm.wait %s keeping %x : !comm.handle, tensor<1xf32>
  %2 = comm.wait %r : !comm.handle<tensor<1xf32>> -> tensor<1xf32>
  return %0, %1, %2 : tensor<1xf32>, tensor<1xi64>, tensor<1xf32>
}

// -----

// Messages are received in the order in which they were sent.
comm.mesh @mesh <pp = 2>
#s = #comm.sharding<@mesh, [{pp}]>
// CHECK: result0 = f32[2] [0, 1]
// CHECK: result1 = f32[2] [0, 7]
func.func @main(%x: tensor<1xf32> {test.input = dense<[1.0, 2.0]> : tensor<2xf32>, comm.sharding = #s, comm.global_type = tensor<2xf32>})
    -> (tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<2xf32>}, tensor<1xf32> {comm.sharding = #s, comm.global_type = tensor<2xf32>}) {
  %seven = arith.constant dense<7.0> : tensor<1xf32>
  comm.send(%x) pairs [0 -> 1] over <@mesh, {pp}> : tensor<1xf32>
  comm.send(%seven) pairs [0 -> 1] over <@mesh, {pp}> : tensor<1xf32>
  %0 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<1xf32>
  %1 = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<1xf32>
  return %0, %1 : tensor<1xf32>, tensor<1xf32>
}
