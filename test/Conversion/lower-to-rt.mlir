// RUN: braid-opt %s -split-input-file --braid-form-kernels --braid-lower-to-rt | FileCheck %s

comm.mesh @mesh <dp = 2, tp = 2>

// A library kernel is declared once, with its scalars and its process group.
// CHECK: rt.kernel @matmul(tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32> attributes {library = "matmul", optional = ["bias"], scalars = [0, 1, 0]}
// CHECK-NOT: rt.kernel @matmul

// The matmul writes symmetric memory, since a collective reads it; the last kernel writes the result.
// CHECK-LABEL: rt.procedure @mlp(
// CHECK-SAME: %[[X:.*]]: memref<2x4x8xf32>, %[[W:.*]]: memref<8x8xf32>, %[[B:.*]]: memref<8xf32>, %[[OUT:.*]]: memref<2x4x8xf32> {rt.result}) {
// CHECK-NEXT: %[[P:.*]] = rt.alloc : memref<2x4x8xf32, #rt.space<symmetric>>
// CHECK-NEXT: rt.launch @matmul rows 8 ins(%[[X]], %[[W]], %[[B]] : {{.*}}) outs(%[[P]] : memref<2x4x8xf32, #rt.space<symmetric>>)
// CHECK-NEXT: %[[R:.*]] = rt.alloc : memref<2x4x8xf32, #rt.space<symmetric>>
// CHECK-NEXT: %[[E:.*]] = rt.record on compute
// CHECK-NEXT: rt.await %[[E]] on communication
// CHECK-NEXT: %[[D:.*]] = rt.start all_reduce with sum ins(%[[P]] : {{.*}}) outs(%[[R]] : {{.*}}) over <@mesh, {tp}> role "mlp.down"
// CHECK-NEXT: rt.wait %[[D]]
// CHECK-NEXT: %[[RV:.*]] = rt.view %[[R]] : memref<2x4x8xf32, #rt.space<symmetric>> to memref<8x8xf32, #rt.space<symmetric>>
// CHECK-NEXT: %[[OV:.*]] = rt.view %[[OUT]] : memref<2x4x8xf32> to memref<8x8xf32>
// CHECK-NEXT: rt.launch @gelu rows 8 ins(%[[RV]] : {{.*}}) outs(%[[OV]] : memref<8x8xf32>)
// CHECK-NEXT: rt.return
func.func @mlp(%x: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<2x4x8xf32> {
  %p0 = nn.linear %x, %w role "mlp.down" : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
  %0 = nn.add %p0, %b : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4x8xf32>
  %h = comm.start (%a = %0) : tensor<2x4x8xf32> -> !comm.handle<tensor<2x4x8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> role "mlp.down" : tensor<2x4x8xf32>
    comm.yield %r : tensor<2x4x8xf32>
  }
  %1 = comm.wait %h keeping %0 : !comm.handle<tensor<2x4x8xf32>>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %2 = nn.activation gelu %1 : tensor<2x4x8xf32>
  return %2 : tensor<2x4x8xf32>
}

// CHECK: rt.kernel @embedding(tensor<100x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32> attributes {library = "embedding", scalars = [0]}

// The entry: parameters, operands and results with the names, types and shardings that the bundle shows.
// CHECK-LABEL: rt.procedure entry @main(
// CHECK-SAME: %table: memref<100x8xf32> {rt.parameter = #rt.parameter<"table" of tensor<100x8xf32> init normal slices [#nn.slice<"table"[100, 8]>]>}
// CHECK-SAME: %w: memref<8x8xf32> {rt.parameter = #rt.parameter<"w" of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> init ones slices [#nn.slice<"w"[8, 16]>]>}
// CHECK-SAME: %b: memref<8xf32> {rt.parameter
// CHECK-SAME: %input_ids: memref<2x4xi64> {rt.operand = #rt.value<"input_ids" of tensor<4x4xi64> sharded <@mesh, [{dp}, {}]> default 1 : i64 below 5 : i64>}
// CHECK-SAME: %out: memref<2x4x8xf32> {rt.result = #rt.value<"out" of tensor<4x4x8xf32> sharded <@mesh, [{dp}, {}, {}]>>}) {
// CHECK: %[[G:.*]] = rt.alloc : memref<2x4x8xf32, #rt.space<local>>
// CHECK-NEXT: rt.launch @embedding rows 8 ins(%table, %input_ids : {{.*}}) outs(%[[G]]
// CHECK-NEXT: %[[M:.*]] = rt.alloc : memref<2x4x8xf32, #rt.space<local>>
// CHECK-NEXT: rt.call @mlp(%[[G]], %w, %b, %[[M]])
// CHECK-NEXT: rt.call @mlp(%[[M]], %w, %b, %out)
// CHECK-NEXT: rt.return
func.func @main(%ids: tensor<2x4xi64> {nn.name = "input_ids", nn.default = 1 : i64, nn.below = 5 : i64, comm.global_type = tensor<4x4xi64>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}]>})
    -> (tensor<2x4x8xf32> {nn.name = "out", comm.global_type = tensor<4x4x8xf32>, comm.sharding = #comm.sharding<@mesh, [{dp}, {}, {}]>})
    attributes {nn.entry} {
  %t = nn.parameter "table" : tensor<100x8xf32>
  %w = nn.parameter "w" init ones of tensor<8x16xf32> sharded <@mesh, [{}, {tp}]> : tensor<8x8xf32>
  %b = nn.parameter "b" : tensor<8xf32>
  %0 = nn.embedding %ids, %t : tensor<2x4xi64>, tensor<100x8xf32> -> tensor<2x4x8xf32>
  %1 = func.call @mlp(%0, %w, %b) : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %2 = func.call @mlp(%1, %w, %b) : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  return %2 : tensor<2x4x8xf32>
}

// -----

// CHECK: rt.kernel @attention({{.*}}tensor<2x4xi64>) -> tensor<2x4x2x4xf32> attributes {library = "attention", optional = ["mask"], scalars = [1, 5.000000e-01]}

// Heads are views, also of the attention's destination.
// CHECK-LABEL: rt.procedure @heads(
// CHECK-SAME: %[[X:.*]]: memref<2x4x8xf32>, %[[M:.*]]: memref<2x4xi64>, %[[OUT:.*]]: memref<2x4x8xf32> {rt.result}) {
// CHECK-NEXT: %[[H:.*]] = rt.view %[[X]] : memref<2x4x8xf32> to memref<2x4x2x4xf32>
// CHECK-NEXT: %[[O:.*]] = rt.view %[[OUT]] : memref<2x4x8xf32> to memref<2x4x2x4xf32>
// CHECK-NEXT: rt.launch @attention rows 16 ins(%[[H]], %[[H]], %[[H]], %[[M]] : {{.*}}) outs(%[[O]] : memref<2x4x2x4xf32>)
// CHECK: rt.return
func.func @heads(%x: tensor<2x4x8xf32>, %m: tensor<2x4xi64>) -> tensor<2x4x8xf32> {
  %h = nn.split_heads %x : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %0 = nn.attention causal %h, %h, %h mask %m : tensor<2x4xi64> scale 0.5 : tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32> -> tensor<2x4x2x4xf32>
  %1 = nn.merge_heads %0 : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  return %1 : tensor<2x4x8xf32>
}

// -----

// Collectives use the memory of arguments and results in place, which is therefore symmetric; a part of an
// argument that is returned is copied.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @boundary(
// CHECK-SAME: %[[X:.*]]: memref<4x8xf32, #rt.space<symmetric>>, %[[S:.*]]: memref<2x8xf32> {rt.result}, %[[G:.*]]: memref<8x8xf32, #rt.space<symmetric>> {rt.result}, %[[T:.*]]: memref<2x8xf32> {rt.result}) {
// CHECK-NEXT: %[[P:.*]] = rt.subview %[[X]] at [0, 0] part 0 over <@mesh, {tp}> : {{.*}} to memref<2x8xf32, #rt.space<symmetric>>
// CHECK: rt.start all_gather ins(%[[X]] : {{.*}}) outs(%[[G]] : {{.*}}) dim 0 over <@mesh, {tp}>
// CHECK-NEXT: rt.wait
// CHECK-NEXT: rt.copy ins(%[[P]] : {{.*}}) outs(%[[S]] : memref<2x8xf32>)
// CHECK-NEXT: rt.copy ins(%[[P]] : {{.*}}) outs(%[[T]] : memref<2x8xf32>)
// CHECK-NEXT: rt.return
func.func @boundary(%x: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>) {
  %0 = comm.part %x dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %h = comm.start (%a = %x) : tensor<4x8xf32> -> !comm.handle<tensor<8x8xf32>> {
    %r = comm.all_gather (%a) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<8x8xf32>
    comm.yield %r : tensor<8x8xf32>
  }
  %1 = comm.wait %h keeping %x : !comm.handle<tensor<8x8xf32>>, tensor<4x8xf32> -> tensor<8x8xf32>
  return %0, %1, %0 : tensor<2x8xf32>, tensor<8x8xf32>, tensor<2x8xf32>
}

// The command has positions in the process group.
// CHECK-LABEL: rt.procedure @exchanges
// CHECK: rt.start all_to_all ins({{.*}}) outs({{.*}} : memref<16x2xf32, #rt.space<symmetric>>) dim 1 concat 0 over <@mesh, {tp}> role "swap"
// CHECK: rt.start reduce with max ins({{.*}}) outs({{.*}}) root 1 over <@mesh, {tp}>
// CHECK: rt.start broadcast ins({{.*}}) outs({{.*}}) root 0 over <@mesh, {tp}>
// CHECK: rt.start permute ins({{.*}}) outs({{.*}}) pairs [0, 1] over <@mesh, {tp}>
// CHECK-COUNT-4: rt.wait
func.func @exchanges(%x: tensor<8x4xf32>) -> (tensor<16x2xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %h0 = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<16x2xf32>> {
    %r = comm.all_to_all(%a) split 1 concat 0 over <@mesh, {tp}> role "swap" : tensor<8x4xf32> -> tensor<16x2xf32>
    comm.yield %r : tensor<16x2xf32>
  }
  %h1 = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.reduce max(%a) to 1 over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %h2 = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.broadcast(%a) from 0 over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %h3 = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.permute(%a) pairs [0 -> 1] over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %0 = comm.wait %h0 keeping %x : !comm.handle<tensor<16x2xf32>>, tensor<8x4xf32> -> tensor<16x2xf32>
  %1 = comm.wait %h1 keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  %2 = comm.wait %h2 keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  %3 = comm.wait %h3 keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<16x2xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// Counts are the last value; a send has no outputs and a receive has no inputs.
// CHECK-LABEL: rt.procedure @halves
// CHECK-SAME: %[[A:[^:]*]]: memref<4x2xf32, #rt.space<symmetric>>, %[[N:[^:]*]]: memref<4xi32, #rt.space<symmetric>>
// CHECK: rt.start all_to_all_v ins(%[[A]], %[[N]] : {{.*}}) outs(%[[R:.*]], %[[M:.*]] : memref<4x2xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}> role "moe"
// CHECK: %[[S:.*]] = rt.start send ins(%[[R]] : {{.*}}) pairs [0, 1] tag 2 over <@mesh, {tp}>
// CHECK: %[[T:.*]] = rt.start recv outs(%{{.*}} : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] tag 2 over <@mesh, {tp}>
// CHECK: rt.wait %[[S]]
// CHECK: rt.wait %[[T]]
func.func @halves(%x: tensor<4x2xf32>, %c: tensor<4xi32>) -> (tensor<4x2xf32>, tensor<4xi32>) {
  %h = comm.start (%a = %x, %b = %c) : tensor<4x2xf32>, tensor<4xi32> -> !comm.handle<tensor<4x2xf32>, tensor<4xi32>> {
    %r, %n = comm.all_to_all_v(%a) counts %b : tensor<4xi32> over <@mesh, {tp}> role "moe" : tensor<4x2xf32>
    comm.yield %r, %n : tensor<4x2xf32>, tensor<4xi32>
  }
  %0:2 = comm.wait %h keeping %x, %c : !comm.handle<tensor<4x2xf32>, tensor<4xi32>>, tensor<4x2xf32>, tensor<4xi32> -> tensor<4x2xf32>, tensor<4xi32>
  %s = comm.start (%a = %0#0) : tensor<4x2xf32> -> !comm.handle {
    comm.send(%a) pairs [0 -> 1] over <@mesh, {tp}> tag 2 : tensor<4x2xf32>
    comm.yield
  }
  %r = comm.start () -> !comm.handle<tensor<4x2xf32>> {
    %b = comm.recv pairs [0 -> 1] over <@mesh, {tp}> tag 2 : tensor<4x2xf32>
    comm.yield %b : tensor<4x2xf32>
  }
  comm.wait %s keeping %0#0 : !comm.handle, tensor<4x2xf32>
  %1 = comm.wait %r : !comm.handle<tensor<4x2xf32>> -> tensor<4x2xf32>
  return %1, %0#1 : tensor<4x2xf32>, tensor<4xi32>
}

// -----

// The kernel does not take the name of a function.
// CHECK: rt.kernel @rotary_table(tensor<2xi64>) -> (tensor<2x4x2xf32>, tensor<2x4x2xf32>) attributes {library = "rotary_table", optional = ["position_offset"], scalars = [1.200000e+00, 1.000000e+00, 1.000000e-02]}
// CHECK: rt.kernel @rotary_0(tensor<2x4x3x4xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x3x4xf32> attributes {library = "rotary"}

// Tables are made once, and the rotation writes directly to the result.
// CHECK-LABEL: rt.procedure @rotary(
// CHECK-SAME: %[[X:.*]]: memref<2x4x3x4xf32>, %[[P:.*]]: memref<2xi64>, %[[OUT:.*]]: memref<2x4x3x4xf32> {rt.result}) {
// CHECK-NEXT: %[[C:.*]] = rt.alloc : memref<2x4x2xf32, #rt.space<local>>
// CHECK-NEXT: %[[S:.*]] = rt.alloc : memref<2x4x2xf32, #rt.space<local>>
// CHECK-NEXT: rt.launch @rotary_table rows 8 ins(%[[P]] : memref<2xi64>) outs(%[[C]], %[[S]] : {{.*}})
// CHECK-NEXT: rt.launch @rotary_0 rows 8 ins(%[[X]], %[[C]], %[[S]] : {{.*}}) outs(%[[OUT]] : memref<2x4x3x4xf32>)
// CHECK-NEXT: rt.return
func.func @rotary(%x: tensor<2x4x3x4xf32>, %p: tensor<2xi64>) -> tensor<2x4x3x4xf32> {
  %cos, %sin = nn.rotary_table [1.0, 0.01] position_offset %p : tensor<2xi64> scale 1.2 : tensor<2x4x2xf32>
  %0 = nn.rotary %x, %cos, %sin : tensor<2x4x3x4xf32>, tensor<2x4x2xf32>
  return %0 : tensor<2x4x3x4xf32>
}

// CHECK: rt.kernel @position_ids(tensor<2x4xi64>) -> tensor<2x4xi64> attributes {library = "position_ids", scalars = [1]}
// CHECK-LABEL: rt.procedure @positions(
// CHECK-SAME: %[[I:.*]]: memref<2x4xi64>, %[[OUT:.*]]: memref<2x4xi64> {rt.result}) {
// CHECK-NEXT: rt.launch @position_ids rows 2 ins(%[[I]] : memref<2x4xi64>) outs(%[[OUT]] : memref<2x4xi64>)
func.func @positions(%ids: tensor<2x4xi64>) -> tensor<2x4xi64> {
  %0 = nn.position_ids %ids padding 1 : tensor<2x4xi64>
  return %0 : tensor<2x4xi64>
}

// -----

// Padding: a table of 13 words is padded to 14 rows over two ranks, so look-ups are limited to 13, and the result has more
// columns than callers see. Integers of 32 bits are not converted.
comm.mesh @mesh <tp = 2>
// CHECK: rt.kernel @embedding(tensor<7x8xf32>, tensor<2x4xi32>) -> tensor<2x4x8xf32> attributes {group = #comm.group<@mesh, {tp}>, library = "embedding", scalars = [13]}
// CHECK: rt.kernel @attention({{.*}} attributes {library = "attention", optional = ["mask", "valid_length", "position_offset"], scalars = [1, 5.000000e-01]}
// CHECK-LABEL: rt.procedure entry @padded(
// CHECK-SAME: %out: memref<2x4x7xf32> {rt.result = #rt.value<"out" of tensor<2x4x13xf32> padded tensor<2x4x14xf32> sharded <@mesh, [{}, {}, {tp}]>>}) {
// CHECK: rt.launch @embedding rows 8 ins(%table, %ids : memref<7x8xf32>, memref<2x4xi32>) outs({{.*}})
// CHECK: rt.launch @attention rows 16 ins({{.*}}, %ids, %n, %n : {{.*}})
// CHECK: rt.launch @matmul rows 8 ins({{.*}}, %table : {{.*}}) outs(%out : memref<2x4x7xf32>)
func.func @padded(%ids: tensor<2x4xi32> {nn.name = "ids"}, %n: tensor<2xi32> {nn.name = "n"})
    -> (tensor<2x4x7xf32> {nn.name = "out", nn.unpadded = tensor<2x4x13xf32>, comm.global_type = tensor<2x4x14xf32>, comm.sharding = #comm.sharding<@mesh, [{}, {}, {tp}]>})
    attributes {nn.entry} {
  %t = nn.parameter "table" slices ["table"[13, 8]] of tensor<14x8xf32> sharded <@mesh, [{tp}, {}]> : tensor<7x8xf32>
  %0 = nn.embedding %ids, %t rows 13 over <@mesh, {tp}> : tensor<2x4xi32>, tensor<7x8xf32> -> tensor<2x4x8xf32>
  %1 = nn.split_heads %0 : tensor<2x4x8xf32> -> tensor<2x4x2x4xf32>
  %2 = nn.attention causal %1, %1, %1 mask %ids : tensor<2x4xi32> valid_length %n : tensor<2xi32> position_offset %n : tensor<2xi32>
      scale 0.5 : tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32> -> tensor<2x4x2x4xf32>
  %3 = nn.merge_heads %2 : tensor<2x4x2x4xf32> -> tensor<2x4x8xf32>
  %4 = nn.linear %3, %t : tensor<2x4x8xf32>, tensor<7x8xf32> -> tensor<2x4x7xf32>
  return %4 : tensor<2x4x7xf32>
}

// -----

// A kernel adds the bias if the matmul has another user or if the bias is computed after the matmul.
// CHECK-LABEL: rt.procedure @biases_apart(
// CHECK: rt.launch @matmul rows 4 ins(%{{[^,]*}}, %{{[^,]*}} :
// CHECK: rt.launch @matmul rows 4 ins(%{{[^,]*}}, %{{[^,]*}} :
// CHECK: rt.launch @add_add_add rows 4
// CHECK-LABEL: rt.procedure @bias_after(
// CHECK: rt.launch @matmul rows 4 ins(%{{[^,]*}}, %{{[^,]*}} :
// CHECK: rt.launch @embedding rows 1
// CHECK: rt.launch @add rows 4
func.func @biases_apart(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %p = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %q = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %0 = nn.add %p, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %1 = nn.add %q, %p : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}
func.func @bias_after(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %id: tensor<i64>, %table: tensor<3x8xf32>) -> tensor<4x8xf32> {
  %p = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %b = nn.embedding %id, %table : tensor<i64>, tensor<3x8xf32> -> tensor<8xf32>
  %0 = nn.add %p, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// A launch stays on its queue when it is lowered from values to memory.
// CHECK-LABEL: rt.procedure @queues(
// CHECK: rt.launch @silu rows 4 ins({{.*}}) outs({{.*}}) on communication
// CHECK: rt.launch @silu rows 4 ins({{.*}}) outs(%{{[^)]*}})
// CHECK-NOT: on communication
// CHECK: rt.return
rt.kernel @silu(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  rt.yield %x : tensor<?x8xf32>
}
func.func @queues(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = rt.launch @silu rows 4 ins(%x : tensor<4x8xf32>) -> tensor<4x8xf32> on communication
  %1 = rt.launch @silu rows 4 ins(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// CHECK: rt.kernel @top_k_0(tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) attributes {library = "top_k"}
// CHECK-LABEL: rt.procedure @top_k(
// CHECK: rt.launch @top_k_0 rows 2 ins(%{{.*}} : memref<2x8xf32>) outs(%{{.*}}, %{{.*}} : memref<2x3xf32>, memref<2x3xi32>)
func.func @top_k(%x: tensor<2x8xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %v, %i = nn.top_k %x : tensor<2x8xf32> -> tensor<2x3xf32>, tensor<2x3xi32>
  return %v, %i : tensor<2x3xf32>, tensor<2x3xi32>
}

// -----

// CHECK: rt.kernel @last_token_0(tensor<2x8x16xf32>, tensor<2x8xi64>) -> tensor<2x1x16xf32> attributes {library = "last_token"}
// CHECK-LABEL: rt.procedure @last_token(
// CHECK: rt.launch @last_token_0 rows 2 ins(%{{.*}}, %{{.*}} : memref<2x8x16xf32>, memref<2x8xi64>) outs(%{{.*}} : memref<2x1x16xf32>)
func.func @last_token(%x: tensor<2x8x16xf32>, %m: tensor<2x8xi64>) -> tensor<2x1x16xf32> {
  %0 = nn.last_token %x mask %m : tensor<2x8x16xf32>, tensor<2x8xi64> -> tensor<2x1x16xf32>
  return %0 : tensor<2x1x16xf32>
}

// -----

// The index of a start's queue becomes the queue of the collective and of the await before it.
comm.mesh @mesh <dp = 2, tp = 2>
// CHECK-LABEL: rt.procedure @queue_of_a_start(
// CHECK: %[[E:.*]] = rt.record on compute
// CHECK-NEXT: rt.await %[[E]] on communication<1>
// CHECK-NEXT: %[[D:.*]] = rt.start all_reduce {{.*}} over <@mesh, {dp}> on communication<1>
// CHECK: rt.wait %[[D]]{{$}}
func.func @queue_of_a_start(%x: tensor<8xf32>) -> tensor<8xf32> {
  %h = comm.start (%a = %x) on 1 : tensor<8xf32> -> !comm.handle<tensor<8xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {dp}> : tensor<8xf32>
    comm.yield %r : tensor<8xf32>
  }
  %0 = comm.wait %h keeping %x : !comm.handle<tensor<8xf32>>, tensor<8xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
