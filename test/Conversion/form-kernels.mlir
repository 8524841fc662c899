// RUN: braid-opt %s -split-input-file --braid-form-kernels | FileCheck %s
// RUN: braid-opt %s -split-input-file --braid-form-kernels=fuse=false | FileCheck %s --check-prefix=ALONE

// Two additions and a normalization are one kernel over flattened rows; the weight is not a row operand.
// CHECK-LABEL: rt.kernel @add_add_layer_norm(
// CHECK-SAME: tensor<?x16xf32>, %{{.*}}: tensor<16xf32>, %{{.*}}: tensor<?x16xf32>, %{{.*}}: tensor<16xf32>) -> tensor<?x16xf32> {
// The two additions are one linalg.generic that the reductions and the normalization read.
// CHECK: %[[SUM:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK-NEXT: arith.addf
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[SUM]] : tensor<?x16xf32>)
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel"]}
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[SUM]], %{{.*}} : tensor<?x16xf32>, tensor<?xf32>)
// CHECK: %[[OUT:.*]] = linalg.generic {{.*}}"parallel", "parallel"]} ins(%[[SUM]]
// CHECK: rt.yield %[[OUT]]
// CHECK-LABEL: func.func @chain
// CHECK: %[[R:.*]] = rt.launch @add_add_layer_norm rows 16 ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<16xf32>, tensor<2x8x16xf32>, tensor<16xf32>) -> tensor<2x8x16xf32>
// CHECK-NEXT: return %[[R]]
// ALONE-LABEL: func.func @chain
// ALONE: rt.launch @add rows 16
// ALONE: rt.launch @add_{{[0-9]+}} rows 16
// ALONE: rt.launch @layer_norm rows 16
func.func @chain(%x: tensor<2x8x16xf32>, %r: tensor<2x8x16xf32>, %w: tensor<16xf32>, %b: tensor<16xf32>) -> tensor<2x8x16xf32> {
  %0 = nn.add %x, %b : tensor<2x8x16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  %1 = nn.add %0, %r : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  %2 = nn.layer_norm %1, %w, %b epsilon 1.0e-12 : tensor<2x8x16xf32>, tensor<16xf32>, tensor<16xf32> -> tensor<2x8x16xf32>
  return %2 : tensor<2x8x16xf32>
}

// -----

// Row dimensions are not flattened if an operand has only some of them.
// CHECK-LABEL: rt.kernel @add_gelu(
// CHECK-SAME: tensor<?x8x16xf32>, %{{.*}}: tensor<8x16xf32>) -> tensor<?x8x16xf32> attributes {row_dims = 2 : i64} {
// CHECK-LABEL: func.func @positions
// CHECK: rt.launch @add_gelu rows 2 ins(%{{.*}}, %{{.*}} : tensor<2x8x16xf32>, tensor<8x16xf32>) -> tensor<2x8x16xf32>
func.func @positions(%x: tensor<2x8x16xf32>, %p: tensor<8x16xf32>) -> tensor<2x8x16xf32> {
  %0 = nn.add %x, %p : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x16xf32>
  %1 = nn.activation gelu %0 : tensor<2x8x16xf32>
  return %1 : tensor<2x8x16xf32>
}

// -----

// A producer that is also needed later is a second result.
// CHECK-LABEL: rt.kernel @add_gelu(
// CHECK-SAME: -> (tensor<?x16xf32>, tensor<?x16xf32>) {
// CHECK: rt.yield %{{.*}}, %{{.*}} : tensor<?x16xf32>, tensor<?x16xf32>
// CHECK-LABEL: func.func @two_results
// CHECK: %[[R:.*]]:2 = rt.launch @add_gelu rows 8
// CHECK-NEXT: %[[L:.*]] = nn.linear %[[R]]#1
// CHECK-NEXT: return %[[L]], %[[R]]#0
func.func @two_results(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = nn.add %x, %y : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = nn.activation gelu %0 : tensor<8x16xf32>
  %2 = nn.linear %1, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  return %2, %0 : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A producer stays in place if one of its users runs before the kernel.
// CHECK-LABEL: func.func @needed_before
// CHECK: %[[A:.*]] = rt.launch @add rows 8
// CHECK-NEXT: %[[L:.*]] = nn.linear %[[A]]
// CHECK-NEXT: rt.launch @add rows 8 ins(%[[L]], %[[A]]
func.func @needed_before(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.add %x, %y : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = nn.linear %0, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %2 = nn.add %1, %0 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// Equal kernels share one symbol, also across functions and row counts. Another column count makes another kernel.
// CHECK: rt.kernel @gelu(
// CHECK: rt.kernel @gelu_{{[0-9]+}}(
// CHECK-NOT: rt.kernel
// CHECK-LABEL: func.func @a
// CHECK: rt.launch @gelu rows 8
// CHECK: rt.launch @gelu_{{[0-9]+}} rows 8
// CHECK-NOT: rt.kernel
// CHECK-LABEL: func.func @b
// CHECK: rt.launch @gelu rows 32
func.func @a(%x: tensor<8x16xf32>, %y: tensor<8x32xf32>) -> (tensor<8x16xf32>, tensor<8x32xf32>) {
  %0 = nn.activation gelu %x : tensor<8x16xf32>
  %1 = nn.activation gelu %y : tensor<8x32xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x32xf32>
}
func.func @b(%x: tensor<4x8x16xf32>) -> tensor<4x8x16xf32> {
  %0 = nn.activation gelu %x : tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}

// -----

// Operations that hide a collective stay between start and wait; operands of a start are computed before it.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @flight
// CHECK: %[[A:.*]] = rt.launch @gelu rows 8
// CHECK-NEXT: comm.start (%{{.*}} = %[[A]])
// CHECK: %[[B:.*]] = rt.launch @gelu rows 8
// CHECK-NEXT: %[[W:.*]] = comm.wait
// CHECK-NEXT: rt.launch @add_add rows 8 ins(%[[W]], %[[B]], %[[A]]
func.func @flight(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.activation gelu %x : tensor<8x16xf32>
  %h = comm.start (%a = %0) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %1 = nn.activation gelu %y : tensor<8x16xf32>
  %2 = comm.wait %h keeping %0 : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %3 = nn.add %2, %1 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %4 = nn.add %3, %0 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// -----

// A wait stands before the kernel that needs it: the first addition runs with the last one, and both matmuls before that kernel
// hide the collective. The gelu hides it as well and stays out of that kernel.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @wait_for_a_kernel
// CHECK: %[[H:.*]] = comm.start
// CHECK: %[[G:.*]] = rt.launch @gelu rows 8
// CHECK-NEXT: %[[P:.*]] = nn.linear
// CHECK-NEXT: %[[A:.*]] = comm.wait %[[H]]
// CHECK-NEXT: %[[S:.*]] = rt.launch @add_rms_norm_add_add rows 8 ins(%[[A]], %{{.*}}, %{{.*}}, %[[P]], %[[G]] :
// CHECK-NEXT: return %[[S]]
func.func @wait_for_a_kernel(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %0 = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = nn.add %0, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = nn.activation gelu %x : tensor<8x16xf32>
  %3 = nn.linear %x, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %4 = nn.rms_norm %1, %g epsilon 1.0e-5 : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
  %5 = nn.add %4, %3 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %6 = nn.add %5, %2 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %6 : tensor<8x16xf32>
}

// -----

// Of collectives by value, the places of starts and waits follow from dependences. The gelu is computed before the sum can
// start, and is joined with its user. The second one hides the sum and stays out of the kernel that needs it.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @by_value
// CHECK: %[[L:.*]] = nn.linear
// CHECK-NEXT: %[[R:.*]] = comm.all_reduce sum(%[[L]])
// CHECK-NEXT: %[[B:.*]] = rt.launch @silu rows 8
// CHECK-NEXT: %[[K:.*]] = rt.launch @gelu_add_mul rows 8 ins(%{{.*}}, %[[R]], %[[B]] :
// CHECK-NEXT: return %[[K]]
func.func @by_value(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %a = nn.activation gelu %x : tensor<8x16xf32>
  %l = nn.linear %x, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %r = comm.all_reduce sum(%l) over <@mesh, {tp}> : tensor<8x16xf32>
  %b = nn.activation silu %x : tensor<8x16xf32>
  %c = nn.add %a, %r : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %d = nn.mul %c, %b : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %d : tensor<8x16xf32>
}

// -----

// A collective uses its operand where it can start, though it stands below the other user.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @start_is_not_delayed
// CHECK: %[[A:.*]] = rt.launch @gelu rows 8
// CHECK-NEXT: %[[K:.*]] = rt.launch @add rows 8 ins(%[[A]]
// CHECK-NEXT: comm.all_reduce sum(%[[A]])
func.func @start_is_not_delayed(%x: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = nn.activation gelu %x : tensor<8x16xf32>
  %b = nn.add %a, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
  return %r, %b : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// Where an earlier collective delays the start anyway, there is no reason to keep the operand apart.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @start_is_late
// CHECK: rt.launch @gelu_add rows 8
// CHECK-NEXT: %[[L:.*]] = nn.linear
// CHECK-NEXT: comm.all_reduce sum(%[[L]])
// CHECK-NEXT: comm.all_reduce
func.func @start_is_late(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %a = nn.activation gelu %x : tensor<8x16xf32>
  %b = nn.add %a, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %l = nn.linear %x, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %s = comm.all_reduce sum(%l) over <@mesh, {tp}> : tensor<8x16xf32>
  %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x16xf32>
  return %r, %b, %s : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// The first user of the sum moves down to its kernel, so that both matmuls and the gelu before that kernel can hide the sum.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @need_moves_down
// CHECK: %[[A:.*]] = comm.all_reduce
// CHECK-NEXT: %[[G:.*]] = rt.launch @gelu rows 8
// CHECK-NEXT: %[[P:.*]] = nn.linear
// CHECK-NEXT: rt.launch @add_rms_norm_add_add rows 8 ins(%[[A]], %{{.*}}, %{{.*}}, %[[P]], %[[G]] :
func.func @need_moves_down(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x16xf32>
  %1 = nn.add %0, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = nn.activation gelu %x : tensor<8x16xf32>
  %3 = nn.linear %x, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %4 = nn.rms_norm %1, %g epsilon 1.0e-5 : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
  %5 = nn.add %4, %3 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %6 = nn.add %5, %2 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %6 : tensor<8x16xf32>
}

// -----

// A wait that stands early by hand stays there; one that stands right before its user follows it.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: func.func @early_wait
// CHECK: %[[H:.*]] = comm.start
// CHECK: %[[I:.*]] = comm.start
// CHECK: %[[A:.*]] = comm.wait %[[H]]
// CHECK-NEXT: %[[L:.*]] = nn.linear
// CHECK-NEXT: %[[B:.*]] = comm.wait %[[I]]
// CHECK-NEXT: rt.launch @add_add_add rows 8
func.func @early_wait(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %i = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce max (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %0 = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = comm.wait %i keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = nn.add %1, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %3 = nn.linear %x, %w : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
  %4 = nn.add %2, %3 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %5 = nn.add %4, %0 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}

// -----

// A written-out function is in the kernel of its neighbors.
// CHECK-LABEL: rt.kernel @gelu_map_add(
// CHECK: math.tanh
// CHECK-LABEL: func.func @map
// CHECK: rt.launch @gelu_map_add rows 8
// CHECK-NEXT: return
func.func @map(%x: tensor<8x16xf32>, %w: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = nn.activation gelu %x : tensor<8x16xf32>
  %1 = nn.map %0, %w : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32> {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    %m = arith.mulf %t, %b : f32
    nn.yield %m : f32
  }
  %2 = nn.add %1, %x : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// -----

// What has one element for each row is a row operand without columns, and may be a weight of another operation.
// CHECK-LABEL: rt.kernel @map_mul(
// CHECK-SAME: %{{.*}}: tensor<?x8xf32>, %{{.*}}: tensor<?xf32>, %{{.*}}: tensor<8xf32>) -> tensor<?x8xf32>
// CHECK-LABEL: func.func @map_rows
// CHECK-SAME: %[[X:.*]]: tensor<8x8xf32>, %[[M:.*]]: tensor<8xf32>
// CHECK: rt.launch @map_mul rows 8 ins(%[[X]], %[[M]], %[[M]] : tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return
func.func @map_rows(%x: tensor<8x8xf32>, %m: tensor<8xf32>) -> tensor<8x8xf32> {
  %0 = nn.map %x rows(%m) : tensor<8x8xf32> rows(tensor<8xf32>) -> tensor<8x8xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    nn.yield %d : f32
  }
  %1 = nn.mul %0, %m : tensor<8x8xf32>, tensor<8xf32> -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Rows of two dimensions are flattened, also where they are alone.
// CHECK-LABEL: rt.kernel @map(
// CHECK-SAME: %{{.*}}: tensor<?x16xf32>, %{{.*}}: tensor<?xf32>) -> tensor<?x16xf32>
// CHECK-LABEL: func.func @map_two_rows
// CHECK: rt.launch @map rows 6 ins(%{{.*}} : tensor<2x3x16xf32>, tensor<2x3xf32>)
func.func @map_two_rows(%x: tensor<2x3x16xf32>, %m: tensor<2x3xf32>) -> tensor<2x3x16xf32> {
  %0 = nn.map %x rows(%m) : tensor<2x3x16xf32> rows(tensor<2x3xf32>) -> tensor<2x3x16xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.mulf %a, %b : f32
    nn.yield %d : f32
  }
  return %0 : tensor<2x3x16xf32>
}

// -----

// A vector is one row.
// CHECK-LABEL: rt.kernel @gelu(
// CHECK-SAME: %{{.*}}: tensor<?x16xf32>) -> tensor<?x16xf32>
// CHECK-LABEL: func.func @vector
// CHECK: rt.launch @gelu rows 1 ins(%{{.*}} : tensor<16xf32>) -> tensor<16xf32>
func.func @vector(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = nn.activation gelu %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
