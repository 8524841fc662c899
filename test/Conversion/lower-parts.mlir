// RUN: braid-opt %s -split-input-file --braid-form-kernels --braid-lower-to-rt | FileCheck %s

// Slices are views of a value, and the operands of a concatenation are computed in place: no copy and one buffer.
// CHECK-LABEL: rt.procedure @halves(
// CHECK-SAME: %[[X:[^:]*]]: memref<8x16xf32>, %[[W:[^:]*]]: memref<16x16xf32>, %[[OUT:[^:]*]]: memref<8x16xf32> {rt.result}) {
// CHECK-NEXT: %[[A:.*]] = rt.subview %[[X]] at [0, 0] : memref<8x16xf32> to memref<3x16xf32>
// CHECK-NEXT: %[[OA:.*]] = rt.subview %[[OUT]] at [0, 0] : memref<8x16xf32> to memref<3x16xf32>
// CHECK-NEXT: rt.launch @matmul rows 3 ins(%[[A]], %[[W]] : {{.*}}) outs(%[[OA]] : memref<3x16xf32>)
// CHECK-NEXT: %[[B:.*]] = rt.subview %[[X]] at [3, 0] : memref<8x16xf32> to memref<5x16xf32>
// CHECK-NEXT: %[[OB:.*]] = rt.subview %[[OUT]] at [3, 0] : memref<8x16xf32> to memref<5x16xf32>
// CHECK-NEXT: rt.launch @matmul{{.*}} rows 5 ins(%[[B]], %[[W]] : {{.*}}) outs(%[[OB]] : memref<5x16xf32>)
// CHECK-NEXT: rt.return
func.func @halves(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %a = nn.slice %x dim 0 from 0 size 3 : tensor<8x16xf32> -> tensor<3x16xf32>
  %p = nn.linear %a, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %b = nn.slice %x dim 0 from 3 size 5 : tensor<8x16xf32> -> tensor<5x16xf32>
  %q = nn.linear %b, %w : tensor<5x16xf32>, tensor<16x16xf32> -> tensor<5x16xf32>
  %r = nn.concat %p, %q dim 0 : tensor<3x16xf32>, tensor<5x16xf32> -> tensor<8x16xf32>
  return %r : tensor<8x16xf32>
}

// -----

// Columns of a value are strided, in concatenations of concatenations as well; a collective writes such a part.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @columns(
// CHECK-SAME: %[[OUT:[^:]*]]: memref<4x12xf32, #rt.space<symmetric>> {rt.result})
// CHECK: %[[INNER:.*]] = rt.subview %[[OUT]] at [0, 4] : memref<4x12xf32, #rt.space<symmetric>> to memref<4x8xf32, strided<[12, 1]>, #rt.space<symmetric>>
// CHECK: %[[PART:.*]] = rt.subview %[[INNER]] at [0, 2] : {{.*}} to memref<4x6xf32, strided<[12, 1]>, #rt.space<symmetric>>
// CHECK: rt.start all_reduce with sum ins({{.*}}) outs(%[[PART]] : memref<4x6xf32, strided<[12, 1]>, #rt.space<symmetric>>)
// CHECK-NOT: rt.copy ins(%[[PART]]
func.func @columns(%x: tensor<4x6xf32>, %y: tensor<4x4xf32>, %z: tensor<4x2xf32>) -> tensor<4x12xf32> {
  %h = comm.start (%a = %x) : tensor<4x6xf32> -> !comm.handle<tensor<4x6xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<4x6xf32>
    comm.yield %r : tensor<4x6xf32>
  }
  %s = comm.wait %h keeping %x : !comm.handle<tensor<4x6xf32>>, tensor<4x6xf32> -> tensor<4x6xf32>
  %i = nn.concat %z, %s dim 1 : tensor<4x2xf32>, tensor<4x6xf32> -> tensor<4x8xf32>
  %o = nn.concat %y, %i dim 1 : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x12xf32>
  return %o : tensor<4x12xf32>
}

// -----

// A handle that is handed out: the collective writes memory of the caller, and the event goes with it.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @begin(
// CHECK-SAME: %[[X:[^:]*]]: memref<4x8xf32>, %[[W:[^:]*]]: memref<8x8xf32>, %[[V:[^:]*]]: memref<4x8xf32, #rt.space<symmetric>> {rt.result}, %[[K:[^:]*]]: memref<4x8xf32, #rt.space<symmetric>> {rt.result}) -> !rt.event {
// CHECK-NEXT: rt.launch @matmul rows 4 ins(%[[X]], %[[W]] : {{.*}}) outs(%[[K]] : memref<4x8xf32, #rt.space<symmetric>>)
// CHECK: %[[E:.*]] = rt.start all_reduce with sum ins(%[[K]] : {{.*}}) outs(%[[V]] : {{.*}})
// CHECK-NEXT: rt.return %[[E]] : !rt.event
func.func @begin(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>) {
  %p = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = comm.start (%a = %p) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  return %h, %p : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>
}
// CHECK-LABEL: rt.procedure @end(
// CHECK-SAME: %[[V:[^:]*]]: memref<4x8xf32>, %[[K:[^:]*]]: memref<4x8xf32>, %[[OUT:[^:]*]]: memref<4x8xf32> {rt.result}, %[[E:[^:]*]]: !rt.event) {
// CHECK-NEXT: rt.wait %[[E]]
// CHECK-NEXT: rt.launch @gelu rows 4 ins(%[[V]] : memref<4x8xf32>) outs(%[[OUT]] : memref<4x8xf32>)
func.func @end(%h: !comm.handle<tensor<4x8xf32>>, %kept: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = comm.wait %h keeping %kept : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %r = nn.activation gelu %s : tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
// CHECK-LABEL: rt.procedure @both(
// CHECK: %[[V:.*]] = rt.alloc : memref<4x8xf32, #rt.space<symmetric>>
// CHECK: %[[K:.*]] = rt.alloc : memref<4x8xf32, #rt.space<symmetric>>
// CHECK: %[[E:.*]] = rt.call @begin(%{{.*}}, %{{.*}}, %[[V]], %[[K]]) : {{.*}} -> !rt.event
// CHECK: rt.call @end(%[[V]], %[[K]], %{{.*}}, %[[E]]) : {{.*}}, !rt.event
func.func @both(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %h, %p = func.call @begin(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>)
  %r = func.call @end(%h, %p) : (!comm.handle<tensor<4x8xf32>>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// -----

// The arguments of an entry are symmetric, too.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure entry @main(
// CHECK-SAME: %x: memref<4x8xf32, #rt.space<symmetric>> {rt.operand
// CHECK-SAME: %y: memref<4x8xf32, #rt.space<symmetric>> {rt.result
// CHECK-NOT: rt.copy
// CHECK: rt.start all_reduce with sum ins(%x : {{.*}}) outs(%y : {{.*}})
// CHECK-NOT: rt.copy
// CHECK: rt.return
func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %h = comm.start (%a = %x) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %s = comm.wait %h keeping %x : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// -----

// A communication queue that waits for a collective of its own needs no command; a kernel behind it is ordered by the queue, and
// the compute queue awaits what the kernel writes.
comm.mesh @mesh <tp = 2>
rt.kernel @half(tensor<4x8xf32>) -> tensor<2x8xf32> attributes {library = "part", scalars = [0, 0], group = #comm.group<@mesh, {tp}>}
// CHECK-LABEL: rt.procedure @between(
// CHECK: rt.start all_reduce
// CHECK-NOT: rt.wait
// CHECK: rt.launch @half rows 16 ins({{.*}}) outs(%[[P:[^ ]*]] : {{.*}}) on communication
// CHECK-NEXT: %[[E:.*]] = rt.record on communication
// CHECK-NEXT: rt.await %[[E]] on compute
// CHECK-NEXT: rt.launch @gelu rows 2 ins(%[[P]] : {{.*}})
// CHECK-LABEL: rt.procedure @on_another(
// CHECK: %[[H:.*]] = rt.start all_reduce
// CHECK-NEXT: rt.wait %[[H]] on communication<1>
// CHECK: rt.start all_reduce {{.*}} on communication<1>
func.func @between(%x: tensor<4x8xf32>) -> tensor<2x8xf32> {
  %h = comm.start (%a = %x) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %s = comm.wait %h on 0 keeping %x : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %p = rt.launch @half rows 16 ins(%s : tensor<4x8xf32>) -> tensor<2x8xf32> on communication
  %y = nn.activation gelu %p : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
func.func @on_another(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %h = comm.start (%a = %x) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %s = comm.wait %h on 1 keeping %x : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  %k = comm.start (%a = %s) on 1 : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %r = comm.all_reduce max (%a) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %r : tensor<4x8xf32>
  }
  %y = comm.wait %k keeping %s : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A function that adds to an argument and returns it changes the argument in place; where the caller needs it as it was, a copy
// of it is changed.
// CHECK-LABEL: rt.procedure @add(
// CHECK-SAME: %[[SUM:[^:]*]]: memref<6x4xf32> {rt.inout}, %[[X:[^:]*]]: memref<8x4xf32>, %[[D:[^:]*]]: memref<8x6xf32>) {
// CHECK-NEXT: rt.launch @matmul rows {{.*}} outs(%[[SUM]] : memref<6x4xf32>)
// CHECK-NEXT: rt.return
func.func @add(%sum: tensor<6x4xf32>, %x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %g = nn.matmul %d transposed, %x plus %sum : tensor<6x4xf32> : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  return %g : tensor<6x4xf32>
}
// CHECK-LABEL: rt.procedure @twice(
// CHECK: rt.launch @matmul{{.*}} outs(%[[FIRST:[^ ]*]] : memref<6x4xf32, #rt.space<local>>)
// CHECK-NEXT: rt.call @add(%[[FIRST]], {{.*}})
// CHECK-NOT: rt.copy
// CHECK-LABEL: rt.procedure @kept(
// CHECK: rt.launch @matmul{{.*}} outs(%[[FIRST:[^ ]*]] : memref<6x4xf32>)
// CHECK: rt.copy ins(%[[FIRST]] : {{.*}}) outs(%[[COPY:[^ ]*]] : memref<6x4xf32>)
// CHECK-NEXT: rt.call @add(%[[COPY]], {{.*}})
func.func @twice(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %0 = nn.matmul %d transposed, %x : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %1 = func.call @add(%0, %x, %d) : (tensor<6x4xf32>, tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<6x4xf32>
  %2 = nn.activation tanh %1 : tensor<6x4xf32>
  return %2 : tensor<6x4xf32>
}
func.func @kept(%x: tensor<8x4xf32>, %d: tensor<8x6xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = nn.matmul %d transposed, %x : tensor<8x6xf32>, tensor<8x4xf32> -> tensor<6x4xf32>
  %1 = func.call @add(%0, %x, %d) : (tensor<6x4xf32>, tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<6x4xf32>
  return %0, %1 : tensor<6x4xf32>, tensor<6x4xf32>
}
