// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

// CHECK: comm.mesh @mesh <dp = 2, tp = 4>
comm.mesh @mesh <dp = 2, tp = 4>
// CHECK: comm.mesh @ordered <dp = 2, tp = 2> order [0, 2, 1, 3]
comm.mesh @ordered <dp = 2, tp = 2> order [0, 2, 1, 3]

// CHECK-LABEL: func.func @collectives
// CHECK-SAME: comm.sharding = #comm.sharding<@mesh, [{dp}, {tp:(1)2}], partial = [tp:(2)2 = sum]>
func.func @collectives(%x: tensor<8x16xf32> {comm.sharding = #comm.sharding<@mesh, [{dp}, {tp:(1)2}], partial = [tp:(2)2 = sum]>}, %y: tensor<4xf32>) -> tensor<8x16xf32> {
  // CHECK: comm.all_reduce sum(%{{.*}}, %{{.*}}) over <@mesh, {tp}> role "mlp.down" : tensor<8x16xf32>, tensor<4xf32>
  %0:2 = comm.all_reduce sum (%x, %y) over <@mesh, {tp}> role "mlp.down" : tensor<8x16xf32>, tensor<4xf32>
  // CHECK: comm.reduce_scatter max(%{{.*}}) dim 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x4xf32>
  %1 = comm.reduce_scatter max (%0#0) dim 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<8x4xf32>
  // CHECK: comm.all_gather(%{{.*}}) dim 1 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<8x16xf32>
  %2 = comm.all_gather (%1) dim 1 over <@mesh, {tp}> : tensor<8x4xf32> -> tensor<8x16xf32>
  // CHECK: comm.part %{{.*}} dim 0 over <@mesh, {dp, tp:(2)2}> : tensor<8x16xf32> -> tensor<2x16xf32>
  %3 = comm.part %2 dim 0 over <@mesh, {dp, tp:(2)2}> : tensor<8x16xf32> -> tensor<2x16xf32>
  // CHECK: %[[H:.*]] = comm.start (%[[A:.*]] = %[[X:.*]]) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
  // CHECK:   %[[R:.*]] = comm.all_reduce sum(%[[A]]) over <@mesh, {dp}> : tensor<8x16xf32>
  // CHECK:   comm.yield %[[R]] : tensor<8x16xf32>
  %h = comm.start (%a = %2) on 0 : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {dp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // CHECK: comm.wait %[[H]] keeping %[[X]]
  %4 = comm.wait %h keeping %2 : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// Calls can return and take a handle together with the values in flight.
// CHECK-LABEL: func.func @begin
// CHECK-SAME: -> (!comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32>)
func.func @begin(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (!comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32>) {
  %h = comm.start (%a = %x, %b = %y) : tensor<4xf32>, tensor<2xf32> -> !comm.handle<tensor<4xf32>, tensor<2xf32>> {
    %r:2 = comm.all_reduce max(%a, %b) over <@mesh, {dp, tp}> : tensor<4xf32>, tensor<2xf32>
    comm.yield %r#0, %r#1 : tensor<4xf32>, tensor<2xf32>
  }
  return %h, %x, %y : !comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32>
}
// CHECK-LABEL: func.func @end
func.func @end(%x: tensor<4xf32>, %y: tensor<2xf32>) -> tensor<4xf32> {
  // CHECK: %[[S:.*]]:3 = call @begin
  // CHECK-NEXT: comm.wait %[[S]]#0 keeping %[[S]]#1, %[[S]]#2 : !comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32> -> tensor<4xf32>, tensor<2xf32>
  %0:3 = call @begin(%x, %y) : (tensor<4xf32>, tensor<2xf32>) -> (!comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32>)
  %1:2 = comm.wait %0#0 keeping %0#1, %0#2 : !comm.handle<tensor<4xf32>, tensor<2xf32>>, tensor<4xf32>, tensor<2xf32> -> tensor<4xf32>, tensor<2xf32>
  return %1#0 : tensor<4xf32>
}

// Attributes of the dialect on other operations.
// CHECK-LABEL: func.func @attributes
// CHECK-SAME: tensor<4x4xf32> {comm.global_type = tensor<8x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}
// CHECK-SAME: -> (tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp:(2)2}, {tp:(1)2}]>})
func.func @attributes(%x: tensor<4x4xf32> {comm.global_type = tensor<8x4xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>}, %y: tensor<8x4xf32>)
    -> (tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, tp:(2)2}, {tp:(1)2}]>}) {
  // CHECK: arith.negf %{{.*}} {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [dp = max, tp = min]>]}
  %0 = arith.negf %y {comm.shardings = [#comm.sharding<@mesh, [{}, {}], partial = [dp = max, tp = min]>]} : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @open
// CHECK-SAME: tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, ?}, {?}]>}
func.func @open(%x: tensor<8x4xf32> {comm.sharding = #comm.sharding<@mesh, [{dp, ?}, {?}]>}) {
  return
}
