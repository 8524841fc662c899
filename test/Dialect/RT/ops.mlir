// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

comm.mesh @mesh <dp = 2, tp = 2>

rt.kernel @double(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?x4xf32>
  rt.yield %o : tensor<?x4xf32>
}

// CHECK: rt.kernel @embedding(tensor<4x4xf32>, tensor<16xi64>) -> tensor<16x4xf32> attributes {group = #comm.group<@mesh, {tp}>, library = "embedding", scalars = [7]}
rt.kernel @embedding(tensor<4x4xf32>, tensor<16xi64>) -> tensor<16x4xf32>
    attributes {group = #comm.group<@mesh, {tp}>, library = "embedding", scalars = [7]}
// CHECK: rt.kernel @matmul(tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32> attributes {library = "matmul", scalars = [0, 1, 0]}
rt.kernel @matmul(tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32> attributes {library = "matmul", scalars = [0, 1, 0]}
// CHECK: rt.kernel @attention({{.*}}, tensor<2x8xi64>) -> tensor<2x8x2x2xf32> attributes {library = "attention", optional = ["mask"], scalars = [1, 5.000000e-01]}
rt.kernel @attention(tensor<2x8x2x2xf32>, tensor<2x8x2x2xf32>, tensor<2x8x2x2xf32>, tensor<2x8xi64>) -> tensor<2x8x2x2xf32>
    attributes {library = "attention", optional = ["mask"], scalars = [1, 0.5]}
// CHECK: rt.kernel @part(tensor<16x4xf32>) -> tensor<8x4xf32> attributes {group = #comm.group<@mesh, {dp}>, library = "part", scalars = [0, 0]}
rt.kernel @part(tensor<16x4xf32>) -> tensor<8x4xf32>
    attributes {group = #comm.group<@mesh, {dp}>, library = "part", scalars = [0, 0]}

// On tensors, the leading dimensions of a row operand are collapsed.
// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  // CHECK: rt.launch @double rows 16 ins(%{{.*}} : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  %0 = rt.launch @double rows 16 ins(%x : tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

// CHECK: rt.procedure @inner(%x: memref<16x4xf32> {rt.name = "x"}, %{{.*}}: memref<16x4xf32> {rt.result}) frame <local 256, symmetric 256, events 2> {
rt.procedure @inner(%x: memref<16x4xf32> {rt.name = "x"}, %out: memref<16x4xf32> {rt.result})
    frame <local 256, symmetric 256, events 2> {
  // CHECK: %[[A:.*]] = rt.alloc at 0 : memref<16x4xf32, #rt.space<symmetric>>
  %a = rt.alloc at 0 : memref<16x4xf32, #rt.space<symmetric>>
  %b = rt.alloc at 0 : memref<16x4xf32, #rt.space<symmetric>>
  // CHECK: rt.copy ins(%x : memref<16x4xf32>) outs(%[[A]] : memref<16x4xf32, #rt.space<symmetric>>){{$}}
  rt.copy ins(%x : memref<16x4xf32>) outs(%a : memref<16x4xf32, #rt.space<symmetric>>)
  // CHECK: %[[E:.*]] = rt.record on compute event 0
  %e = rt.record on compute event 0
  // CHECK: rt.await %[[E]] on communication
  rt.await %e on communication
  // CHECK: %[[D:.*]] = rt.start all_reduce with sum ins(%[[A]] : memref<16x4xf32, #rt.space<symmetric>>) outs(%[[B:.*]] : memref<16x4xf32, #rt.space<symmetric>>) over <@mesh, {tp}> role "mlp.down" event 1
  %d = rt.start all_reduce with sum ins(%a : memref<16x4xf32, #rt.space<symmetric>>)
      outs(%b : memref<16x4xf32, #rt.space<symmetric>>) over <@mesh, {tp}> role "mlp.down" event 1
  // CHECK: rt.wait %[[D]]{{$}}
  rt.wait %d
  // CHECK: rt.launch @double rows 16 ins(%[[B]] : memref<16x4xf32, #rt.space<symmetric>>) outs(%{{.*}} : memref<16x4xf32>)
  rt.launch @double rows 16 ins(%b : memref<16x4xf32, #rt.space<symmetric>>) outs(%out : memref<16x4xf32>)
  rt.return
}

// Before buffer assignment there are no offsets and no event numbers.
// CHECK-LABEL: rt.procedure entry @main(
// CHECK-SAME: %w: memref<4x4xf32> {rt.parameter = #rt.parameter<"w" of tensor<8x4xf32> sharded <@mesh, [{tp}, {}]> init normal slices [#nn.slice<"w"[8, 4]>]>}
// CHECK-SAME: %ids: memref<16xi64> {rt.operand = #rt.value<"ids" of tensor<16xi64>>}
// CHECK-SAME: %out: memref<16x4xf32> {rt.result = #rt.value<"out" of tensor<32x4xf32> sharded <@mesh, [{dp}, {}]>>}) {
rt.procedure entry @main(
    %w: memref<4x4xf32> {rt.parameter = #rt.parameter<"w" of tensor<8x4xf32> sharded <@mesh, [{tp}, {}]> init normal slices [#nn.slice<"w"[8, 4]>]>},
    %ids: memref<16xi64> {rt.operand = #rt.value<"ids" of tensor<16xi64>>},
    %mask: memref<2x8xi64> {rt.operand = #rt.value<"mask" of tensor<2x8xi64>>},
    %out: memref<16x4xf32> {rt.result = #rt.value<"out" of tensor<32x4xf32> sharded <@mesh, [{dp}, {}]>>}) {
  // CHECK: rt.alloc : memref<16x4xf32, #rt.space<local>>
  %0 = rt.alloc : memref<16x4xf32, #rt.space<local>>
  %1 = rt.alloc : memref<16x4xf32, #rt.space<local>>
  %2 = rt.alloc : memref<2x8x2x2xf32, #rt.space<local>>
  %3 = rt.alloc : memref<8x4xf32, #rt.space<local>>
  // CHECK: rt.launch @embedding rows 16 ins(%w, %ids : memref<4x4xf32>, memref<16xi64>) outs(%{{.*}} : memref<16x4xf32, #rt.space<local>>)
  rt.launch @embedding rows 16 ins(%w, %ids : memref<4x4xf32>, memref<16xi64>) outs(%0 : memref<16x4xf32, #rt.space<local>>)
  // CHECK: rt.launch @matmul rows 16 ins(%{{.*}}, %w : memref<16x4xf32, #rt.space<local>>, memref<4x4xf32>) outs(%{{.*}} : memref<16x4xf32, #rt.space<local>>)
  rt.launch @matmul rows 16 ins(%0, %w : memref<16x4xf32, #rt.space<local>>, memref<4x4xf32>) outs(%1 : memref<16x4xf32, #rt.space<local>>)
  // CHECK: rt.view %{{.*}} : memref<16x4xf32, #rt.space<local>> to memref<2x8x2x2xf32, #rt.space<local>>
  %q = rt.view %1 : memref<16x4xf32, #rt.space<local>> to memref<2x8x2x2xf32, #rt.space<local>>
  // CHECK: rt.launch @attention rows 32 ins(%[[Q:.*]], %[[Q]], %[[Q]], %mask : {{.*}}) outs(%{{.*}} : memref<2x8x2x2xf32, #rt.space<local>>)
  rt.launch @attention rows 32 ins(%q, %q, %q, %mask : memref<2x8x2x2xf32, #rt.space<local>>, memref<2x8x2x2xf32, #rt.space<local>>, memref<2x8x2x2xf32, #rt.space<local>>, memref<2x8xi64>)
      outs(%2 : memref<2x8x2x2xf32, #rt.space<local>>)
  // CHECK: rt.launch @part rows 32 ins(%{{.*}} : memref<16x4xf32, #rt.space<local>>) outs(%{{.*}} : memref<8x4xf32, #rt.space<local>>) on communication
  rt.launch @part rows 32 ins(%1 : memref<16x4xf32, #rt.space<local>>) outs(%3 : memref<8x4xf32, #rt.space<local>>) on communication
  %5 = rt.view %2 : memref<2x8x2x2xf32, #rt.space<local>> to memref<16x4xf32, #rt.space<local>>
  // CHECK: rt.call @callee(%{{.*}}, %out) : memref<16x4xf32, #rt.space<local>>, memref<16x4xf32>
  rt.call @callee(%5, %out) : memref<16x4xf32, #rt.space<local>>, memref<16x4xf32>
  rt.return
}

// CHECK-LABEL: rt.procedure @callee
rt.procedure @callee(%x: memref<16x4xf32>, %out: memref<16x4xf32> {rt.result}) {
  // CHECK: rt.copy ins({{.*}}) outs({{.*}}) on communication
  rt.copy ins(%x : memref<16x4xf32>) outs(%out : memref<16x4xf32>) on communication
  rt.return
}

// CHECK-LABEL: rt.procedure @placed
rt.procedure @placed(%x: memref<16x4xf32>, %out: memref<16x4xf32> {rt.result}) frame <local 320, symmetric 256, events 3> {
  // CHECK: rt.call @inner(%{{.*}}, %{{.*}}) at <local 64, symmetric 0, events 1> : memref<16x4xf32>, memref<16x4xf32>
  rt.call @inner(%x, %out) at <local 64, symmetric 0, events 1> : memref<16x4xf32>, memref<16x4xf32>
  rt.return
}

// CHECK-LABEL: rt.procedure @exchanges
rt.procedure @exchanges() {
  %a = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<32x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  %d = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  %e = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  // CHECK: rt.start all_to_all ins(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) outs(%{{.*}} : memref<32x2xf32, #rt.space<symmetric>>) dim 1 concat 0 over <@mesh, {tp}>
  %d0 = rt.start all_to_all ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%b : memref<32x2xf32, #rt.space<symmetric>>) dim 1 concat 0 over <@mesh, {tp}>
  rt.wait %d0
  // CHECK: rt.start reduce with max ins(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) outs(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) root 1 over <@mesh, {tp}>
  %d1 = rt.start reduce with max ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%c : memref<16x4xf32, #rt.space<symmetric>>) root 1 over <@mesh, {tp}>
  rt.wait %d1
  // CHECK: rt.start broadcast ins(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) outs(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) root 0 over <@mesh, {tp}>
  %d2 = rt.start broadcast ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%d : memref<16x4xf32, #rt.space<symmetric>>) root 0 over <@mesh, {tp}>
  rt.wait %d2
  // CHECK: rt.start permute ins(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) outs(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] over <@mesh, {tp}>
  %d3 = rt.start permute ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%e : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] over <@mesh, {tp}>
  rt.wait %d3
  %f = rt.alloc : memref<16xi32, #rt.space<symmetric>>
  %g = rt.alloc : memref<16xi32, #rt.space<symmetric>>
  %h = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  // CHECK: rt.start all_to_all_v ins(%{{.*}}, %{{.*}} : memref<16x4xf32, #rt.space<symmetric>>, memref<16xi32, #rt.space<symmetric>>) outs(%{{.*}}, %{{.*}} : memref<16x4xf32, #rt.space<symmetric>>, memref<16xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  %d4 = rt.start all_to_all_v ins(%a, %f : memref<16x4xf32, #rt.space<symmetric>>, memref<16xi32, #rt.space<symmetric>>) outs(%h, %g : memref<16x4xf32, #rt.space<symmetric>>, memref<16xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d4
  // CHECK: rt.start send ins(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}>
  %d5 = rt.start send ins(%a : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}>
  // CHECK: rt.start recv outs(%{{.*}} : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}> role "activation"
  %d6 = rt.start recv outs(%h : memref<16x4xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}> role "activation"
  rt.wait %d5
  rt.wait %d6
  rt.return
}

// Queues: of each kind, with an index where it is not 0. An event may be awaited by several of them.
// CHECK-LABEL: rt.procedure @queues
rt.procedure @queues(%x: memref<16x4xf32>) {
  %a = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<16x4xf32, #rt.space<symmetric>>
  // CHECK: rt.copy ins({{.*}}) outs({{.*}}) on copy
  rt.copy ins(%x : memref<16x4xf32>) outs(%a : memref<16x4xf32, #rt.space<symmetric>>) on copy
  // CHECK: %[[E:.*]] = rt.record on copy{{$}}
  %e = rt.record on copy
  // CHECK: rt.await %[[E]] on communication{{$}}
  rt.await %e on communication<0>
  // CHECK: rt.await %[[E]] on communication<1>
  rt.await %e on communication<1>
  // CHECK: %[[D:.*]] = rt.start {{.*}} over <@mesh, {tp}>{{$}}
  %d0 = rt.start all_reduce with sum ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%b : memref<16x4xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication
  // CHECK: rt.start {{.*}} over <@mesh, {dp}> role "grad" on communication<1>{{$}}
  %d1 = rt.start all_reduce with sum ins(%a : memref<16x4xf32, #rt.space<symmetric>>) outs(%c : memref<16x4xf32, #rt.space<symmetric>>) over <@mesh, {dp}> role "grad" on communication<1>
  // CHECK: rt.wait %[[D]] on communication<1>
  rt.wait %d0 on communication<1>
  // CHECK: rt.wait %[[D]]{{$}}
  rt.wait %d0
  // CHECK: rt.launch @double {{.*}} on communication<1>
  rt.launch @double rows 16 ins(%c : memref<16x4xf32, #rt.space<symmetric>>) outs(%a : memref<16x4xf32, #rt.space<symmetric>>) on communication<1>
  rt.return
}

// CHECK-LABEL: func.func @strided
func.func @strided(%a: memref<4x3xf32, strided<[8, 1]>, #rt.space<symmetric>>,
                   %b: memref<4x6xf32, strided<[8, 1]>, #rt.space<symmetric>>) {
  // CHECK: rt.start all_gather ins(%{{.*}} : memref<4x3xf32, strided<[8, 1]>, #rt.space<symmetric>>) outs(%{{.*}} : memref<4x6xf32, strided<[8, 1]>, #rt.space<symmetric>>)
  %done = rt.start all_gather ins(%a : memref<4x3xf32, strided<[8, 1]>, #rt.space<symmetric>>)
      outs(%b : memref<4x6xf32, strided<[8, 1]>, #rt.space<symmetric>>) dim 1 over <@mesh, {tp}>
  rt.wait %done
  return
}

// CHECK-LABEL: rt.procedure @parts(
rt.procedure @parts(%x: memref<8x16xf32> {rt.inout}, %e: !rt.event) -> (!rt.event, !rt.event) {
  // CHECK: rt.subview %{{.*}} at [2, 4] : memref<8x16xf32> to memref<2x4xf32, strided<[16, 1]>>
  %0 = rt.subview %x at [2, 4] : memref<8x16xf32> to memref<2x4xf32, strided<[16, 1]>>
  // CHECK: rt.subview %{{.*}} at [0, 0] part 0 shift -1 over <@mesh, {tp}> : memref<8x16xf32> to memref<2x16xf32>
  %1 = rt.subview %x at [0, 0] part 0 shift -1 over <@mesh, {tp}> : memref<8x16xf32> to memref<2x16xf32>
  // CHECK: rt.view %{{.*}} : memref<2x4xf32, strided<[16, 1]>> to memref<2x2x2xf32, strided<[16, 2, 1]>>
  %2 = rt.view %0 : memref<2x4xf32, strided<[16, 1]>> to memref<2x2x2xf32, strided<[16, 2, 1]>>
  // CHECK: %[[E:.*]] = rt.call @handed_out(%{{.*}}, %{{.*}}) : memref<8x16xf32>, !rt.event -> !rt.event
  %3 = rt.call @handed_out(%x, %e) : memref<8x16xf32>, !rt.event -> !rt.event
  // CHECK: rt.return %{{.*}}, %[[E]] : !rt.event, !rt.event
  rt.return %e, %3 : !rt.event, !rt.event
}
// CHECK-LABEL: rt.procedure @handed_out(
// CHECK-SAME: memref<8x16xf32> {rt.inout}, %{{.*}}: !rt.event) -> !rt.event
rt.procedure @handed_out(%x: memref<8x16xf32> {rt.inout}, %e: !rt.event) -> !rt.event {
  rt.return %e : !rt.event
}

// CHECK-LABEL: rt.procedure entry @keeps(
// CHECK-SAME: %keys: memref<4xf32> {rt.state = #rt.value<"keys" of tensor<7xf32> padded tensor<8xf32> sharded <@mesh, [{tp}]>>})
rt.procedure entry @keeps(%s: memref<4xf32> {rt.state = #rt.value<"keys" of tensor<7xf32> padded tensor<8xf32> sharded <@mesh, [{tp}]>>}) {
  // CHECK: rt.copy ins(%keys : memref<4xf32>) outs(%{{.*}} : memref<4xf32, #rt.space<local>>)
  %0 = rt.alloc : memref<4xf32, #rt.space<local>>
  rt.copy ins(%s : memref<4xf32>) outs(%0 : memref<4xf32, #rt.space<local>>)
  // CHECK: rt.copy ins(%{{.*}} : memref<4xf32, #rt.space<local>>) outs(%keys : memref<4xf32>)
  rt.copy ins(%0 : memref<4xf32, #rt.space<local>>) outs(%s : memref<4xf32>)
  rt.return
}
