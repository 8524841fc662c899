// RUN: braid-opt %s -split-input-file --braid-assign-buffers | FileCheck %s
// RUN: braid-opt %s -split-input-file --braid-assign-buffers=in-place=false | FileCheck %s --check-prefix=APART
// RUN: braid-opt %s -split-input-file --braid-assign-buffers --remark-format=emitRemark --remarks-filter=buffers 2>&1 | FileCheck %s --check-prefix=REMARK

// Buffers that are not live at the same time share bytes. Sizes are rounded up to 64.
// CHECK-LABEL: rt.procedure @reuse(
// CHECK-SAME: frame <local 192, symmetric 0, events 0>
// CHECK: %[[A:.*]] = rt.alloc at 0 : memref<20xf32
// CHECK: %[[B:.*]] = rt.alloc at 128 : memref<16xf32
// CHECK: %[[C:.*]] = rt.alloc at 0 : memref<16xf32
// REMARK: @reuse: local 192 bytes (192 live at once, buffers 208), symmetric 0 bytes (0 live at once, buffers 0), 0 in place
rt.procedure @reuse(%x: memref<20xf32>, %y: memref<16xf32>, %o: memref<20xf32> {rt.result}, %p: memref<16xf32> {rt.result}) {
  %a = rt.alloc : memref<20xf32, #rt.space<local>>
  %b = rt.alloc : memref<16xf32, #rt.space<local>>
  %c = rt.alloc : memref<16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<20xf32>) outs(%a : memref<20xf32, #rt.space<local>>)
  rt.copy ins(%y : memref<16xf32>) outs(%b : memref<16xf32, #rt.space<local>>)
  rt.copy ins(%a : memref<20xf32, #rt.space<local>>) outs(%o : memref<20xf32>)
  rt.copy ins(%b : memref<16xf32, #rt.space<local>>) outs(%c : memref<16xf32, #rt.space<local>>)
  rt.copy ins(%c : memref<16xf32, #rt.space<local>>) outs(%p : memref<16xf32>)
  rt.return
}

// -----

// The operands of a collective live until its wait: %c must not take the bytes of %a or %b, but %d may.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @flight(
// CHECK-SAME: frame <local 0, symmetric 192, events 2>
// CHECK: rt.alloc at 0 :
// CHECK: rt.alloc at 64 :
// CHECK: rt.alloc at 128 :
// CHECK: rt.alloc at 0 :
// CHECK: rt.record on compute event 0
// CHECK: rt.start {{.*}} event 1
rt.procedure @flight(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) {
  %a = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %d = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute
  rt.await %e on communication
  %h = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.copy ins(%x : memref<16xf32>) outs(%c : memref<16xf32, #rt.space<symmetric>>)
  rt.copy ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%p : memref<16xf32>)
  rt.wait %h
  rt.copy ins(%x : memref<16xf32>) outs(%d : memref<16xf32, #rt.space<symmetric>>)
  rt.copy ins(%d : memref<16xf32, #rt.space<symmetric>>) outs(%p : memref<16xf32>)
  rt.copy ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

rt.kernel @double(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
    ^bb0(%a: f32, %out: f32):
      %0 = arith.addf %a, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?x16xf32>
  rt.yield %o : tensor<?x16xf32>
}
// An elementwise kernel writes to the bytes of its input if the input dies there, also through a view. It does not if the input
// is read later.
// CHECK-LABEL: rt.procedure @in_place(
// CHECK-SAME: frame <local 128, symmetric 0, events 0>
// CHECK: rt.alloc at 0 :
// CHECK: rt.alloc at 0 :
// CHECK: rt.alloc at 64 :
// APART-LABEL: rt.procedure @in_place(
// APART: rt.alloc at 0 :
// APART: rt.alloc at 64 :
// APART: rt.alloc at 0 :
// REMARK: @in_place: local 128 bytes (128 live at once, buffers 192), symmetric 0 bytes (0 live at once, buffers 0), 1 in place
rt.procedure @in_place(%x: memref<16xf32>, %o: memref<1x16xf32> {rt.result}) {
  %a = rt.alloc : memref<16xf32, #rt.space<local>>
  %b = rt.alloc : memref<1x16xf32, #rt.space<local>>
  %c = rt.alloc : memref<1x16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<local>>)
  %v = rt.view %a : memref<16xf32, #rt.space<local>> to memref<1x16xf32, #rt.space<local>>
  rt.launch @double rows 1 ins(%v : memref<1x16xf32, #rt.space<local>>) outs(%b : memref<1x16xf32, #rt.space<local>>)
  rt.launch @double rows 1 ins(%b : memref<1x16xf32, #rt.space<local>>) outs(%c : memref<1x16xf32, #rt.space<local>>)
  rt.copy ins(%b : memref<1x16xf32, #rt.space<local>>) outs(%o : memref<1x16xf32>)
  rt.copy ins(%c : memref<1x16xf32, #rt.space<local>>) outs(%o : memref<1x16xf32>)
  rt.return
}

// Commands on the communication queue are ordered too: %a is read there after the kernel, so the kernel must not overwrite it;
// %b dies in the second kernel.
// CHECK-LABEL: rt.procedure @in_place_on_communication(
// CHECK-SAME: frame <local 128, symmetric 0, events 2>
// CHECK: rt.alloc at 0 :
// CHECK: rt.alloc at 64 :
// CHECK: rt.alloc at 64 :
// REMARK: @in_place_on_communication: local 128 bytes (128 live at once, buffers 192), symmetric 0 bytes (0 live at once, buffers 0), 1 in place
rt.procedure @in_place_on_communication(%x: memref<1x16xf32>, %o: memref<1x16xf32> {rt.result}, %p: memref<1x16xf32> {rt.result}) {
  %a = rt.alloc : memref<1x16xf32, #rt.space<local>>
  %b = rt.alloc : memref<1x16xf32, #rt.space<local>>
  %c = rt.alloc : memref<1x16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<1x16xf32>) outs(%a : memref<1x16xf32, #rt.space<local>>)
  %e = rt.record on compute
  rt.await %e on communication
  rt.launch @double rows 1 ins(%a : memref<1x16xf32, #rt.space<local>>) outs(%b : memref<1x16xf32, #rt.space<local>>) on communication
  rt.launch @double rows 1 ins(%b : memref<1x16xf32, #rt.space<local>>) outs(%c : memref<1x16xf32, #rt.space<local>>) on communication
  rt.copy ins(%a : memref<1x16xf32, #rt.space<local>>) outs(%o : memref<1x16xf32>) on communication
  %f = rt.record on communication
  rt.await %f on compute
  rt.copy ins(%c : memref<1x16xf32, #rt.space<local>>) outs(%p : memref<1x16xf32>)
  rt.return
}

// -----

// Callees' frames are temporaries that do not overlap live memory at the call. The next call may reuse memory, not events.
// CHECK-LABEL: rt.procedure @outer(
// CHECK-SAME: frame <local 256, symmetric 64, events 5>
// CHECK: rt.alloc at 0 : memref<32xf32
// CHECK: rt.call @inner({{.*}}) at <local 128, symmetric 0, events 0>
// CHECK: rt.call @inner({{.*}}) at <local 128, symmetric 0, events 2>
// CHECK: rt.record on compute event 4
// CHECK-LABEL: rt.procedure @inner(
// CHECK-SAME: frame <local 128, symmetric 64, events 2>
rt.procedure @outer(%x: memref<32xf32>, %o: memref<32xf32> {rt.result}) {
  %a = rt.alloc : memref<32xf32, #rt.space<local>>
  rt.call @inner(%x, %a) : memref<32xf32>, memref<32xf32, #rt.space<local>>
  rt.call @inner(%a, %o) : memref<32xf32, #rt.space<local>>, memref<32xf32>
  %e = rt.record on compute
  rt.return
}
rt.procedure @inner(%x: memref<32xf32>, %o: memref<32xf32> {rt.result}) {
  %a = rt.alloc : memref<32xf32, #rt.space<local>>
  %s = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %e = rt.record on compute
  rt.await %e on communication
  %f = rt.record on communication
  rt.await %f on compute
  rt.copy ins(%x : memref<32xf32>) outs(%a : memref<32xf32, #rt.space<local>>)
  rt.copy ins(%a : memref<32xf32, #rt.space<local>>) outs(%o : memref<32xf32>)
  rt.return
}

// -----

// Two collectives in flight on two queues: all four buffers are apart until the waits, and what comes
// after both may reuse their bytes.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @two_queues(
// CHECK-SAME: frame <local 0, symmetric 256, events 3>
// CHECK: rt.alloc at 0 :
// CHECK: rt.alloc at 64 :
// CHECK: rt.alloc at 128 :
// CHECK: rt.alloc at 192 :
// CHECK: rt.alloc at 0 :
rt.procedure @two_queues(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) {
  %a = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %d = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %later = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  rt.copy ins(%x : memref<16xf32>) outs(%c : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute
  rt.await %e on communication
  rt.await %e on communication<1>
  %h = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  %i = rt.start all_reduce with sum ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%d : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1>
  rt.wait %h
  rt.copy ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.wait %i
  rt.copy ins(%d : memref<16xf32, #rt.space<symmetric>>) outs(%later : memref<16xf32, #rt.space<symmetric>>)
  rt.copy ins(%later : memref<16xf32, #rt.space<symmetric>>) outs(%p : memref<16xf32>)
  rt.return
}

// -----

// The chain runs over three queues without the compute queue in between: the last buffer may lie on the first, which
// is free when the second collective begins.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @chain(
// CHECK-SAME: frame <local 0, symmetric 128, events 3>
rt.procedure @chain(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) {
  %a = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute
  rt.await %e on communication
  %h = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %h on communication<1>
  %i = rt.start all_reduce with sum ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%c : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1>
  rt.wait %i
  rt.copy ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

// Ranks may decode a payload in the operand of its sender: %a keeps its bytes as long as %b is read, and %c has others.
comm.mesh @mesh <tp = 2>
// CHECK-LABEL: rt.procedure @payload(
// CHECK-SAME: frame <local 0, symmetric 320, events 2>
// CHECK: rt.alloc at 256 : memref<1x48xi8
// CHECK: rt.alloc at 128 : memref<2x48xi8
// CHECK: rt.alloc at 0 : memref<2x16xf32
rt.procedure @payload(%x: memref<1x48xi8>, %o: memref<2x16xf32> {rt.result}) {
  %a = rt.alloc : memref<1x48xi8, #rt.space<symmetric>>
  %b = rt.alloc : memref<2x48xi8, #rt.space<symmetric>>
  %c = rt.alloc : memref<2x16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<1x48xi8>) outs(%a : memref<1x48xi8, #rt.space<symmetric>>)
  %ready = rt.record on compute
  rt.await %ready on communication
  %done = rt.start all_gather ins(%a : memref<1x48xi8, #rt.space<symmetric>>) outs(%b : memref<2x48xi8, #rt.space<symmetric>>) dim 0 over <@mesh, {tp}>
  rt.wait %done
  rt.launch @decode rows 2 ins(%b : memref<2x48xi8, #rt.space<symmetric>>) outs(%c : memref<2x16xf32, #rt.space<symmetric>>)
  rt.copy ins(%c : memref<2x16xf32, #rt.space<symmetric>>) outs(%o : memref<2x16xf32>)
  rt.return
}
rt.kernel @decode(tensor<2x48xi8>) -> tensor<2x16xf32> attributes {library = "decode", scalars = [2097266, 0, 0]}
