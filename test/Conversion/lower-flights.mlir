// RUN: braid-opt %s --braid-form-kernels --braid-lower-to-rt | FileCheck %s

// What is in flight across the end of a function and across calls.
comm.mesh @mesh <tp = 2>

// Where only a communication queue has waited for a result, the compute queue waits before the function ends.
// CHECK-LABEL: rt.procedure @joined(
// CHECK: %[[SUM:.*]] = rt.start all_reduce
// CHECK-NEXT: rt.wait %[[SUM]] on communication<1>
// CHECK-NEXT: rt.wait %[[SUM]]{{$}}
// CHECK-NEXT: rt.return
func.func @joined(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = nn.activation silu %x : tensor<4x8xf32>
  %h = comm.start (%a = %s) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> role "first" : tensor<4x8xf32>
    comm.yield %v : tensor<4x8xf32>
  }
  %y = comm.wait %h on 1 keeping %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// It does not wait for what it hands out.
// CHECK-LABEL: rt.procedure @begin(
// CHECK: %[[SUM:.*]] = rt.start all_reduce
// CHECK-NEXT: rt.return %[[SUM]] : !rt.event
func.func private @begin(%x: tensor<4x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>) {
  %s = nn.activation silu %x : tensor<4x8xf32>
  %h = comm.start (%a = %s) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %v = comm.all_reduce sum(%a) over <@mesh, {tp}> role "second" : tensor<4x8xf32>
    comm.yield %v : tensor<4x8xf32>
  }
  return %h, %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>
}

// The reader waits for the event that the call hands out, though another queue has waited for it.
// CHECK-LABEL: rt.procedure @reads_behind_a_call(
// CHECK: %[[SUM:.*]] = rt.call @begin(
// CHECK-NEXT: rt.wait %[[SUM]] on communication<1>
// CHECK-NEXT: rt.wait %[[SUM]]{{$}}
// CHECK-NEXT: rt.launch @tanh
func.func @reads_behind_a_call(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h, %s = call @begin(%x) : (tensor<4x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>)
  %y = comm.wait %h on 1 keeping %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %z = nn.activation tanh %y : tensor<4x8xf32>
  return %z : tensor<4x8xf32>
}

// A callee writes contiguous memory: what it leaves in flight is joined to rows in place, and copied where it becomes columns.
// CHECK-LABEL: rt.procedure @joins_rows(
// CHECK: %[[ROWS:.*]] = rt.subview %{{.*}} at [4, 0]
// CHECK: rt.call @begin(%{{.*}}, %[[ROWS]], %{{.*}})
// CHECK-LABEL: rt.procedure @joins_columns(
// CHECK: %[[OWN:.*]] = rt.alloc : memref<4x8xf32, #rt.space<symmetric>>
// CHECK: rt.call @begin(%{{.*}}, %[[OWN]], %{{.*}})
// CHECK: %[[COLUMNS:.*]] = rt.subview %{{.*}} at [0, 8]
// CHECK: rt.copy ins(%[[OWN]] : {{.*}}) outs(%[[COLUMNS]] :
func.func @joins_rows(%x: tensor<4x8xf32>) -> tensor<8x8xf32> {
  %h, %s = call @begin(%x) : (tensor<4x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>)
  %y = comm.wait %h keeping %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %z = nn.concat %x, %y dim 0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %z : tensor<8x8xf32>
}
func.func @joins_columns(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %h, %s = call @begin(%x) : (tensor<4x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>)
  %y = comm.wait %h keeping %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %z = nn.concat %x, %y dim 1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x16xf32>
  return %z : tensor<4x16xf32>
}
