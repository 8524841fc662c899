// RUN: braid-opt %s -split-input-file --braid-verify-buffers -verify-diagnostics

// Both buffers are live at the same time.
rt.procedure @overlap(%x: memref<16xf32>, %y: memref<20xf32>, %o: memref<16xf32> {rt.result}) frame <local 128, symmetric 0, events 0> {
  // expected-note @below {{the other one}}
  %a = rt.alloc at 0 : memref<20xf32, #rt.space<local>>
  // expected-error @below {{'rt.alloc' op shares bytes [64, 80) of local memory with something that is live at the same time}}
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<local>>
  %v = rt.view %b : memref<16xf32, #rt.space<local>> to memref<16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<16xf32>) outs(%v : memref<16xf32, #rt.space<local>>)
  rt.copy ins(%y : memref<20xf32>) outs(%a : memref<20xf32, #rt.space<local>>)
  rt.copy ins(%v : memref<16xf32, #rt.space<local>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

// The output is in use until the wait.
comm.mesh @mesh <tp = 2>
rt.procedure @in_flight(%x: memref<16xf32>) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  // expected-note @below {{the other one}}
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  // expected-error @below {{shares bytes [64, 128) of symmetric memory with something that is live at the same time}}
  %c = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  rt.copy ins(%x : memref<16xf32>) outs(%c : memref<16xf32, #rt.space<symmetric>>)
  rt.wait %d
  rt.return
}

// -----

// Writing after the wait is allowed.
comm.mesh @mesh <tp = 2>
rt.procedure @waited(%x: memref<16xf32>) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  rt.wait %d
  rt.copy ins(%x : memref<16xf32>) outs(%c : memref<16xf32, #rt.space<symmetric>>)
  rt.return
}

// -----

// An event recorded too early orders nothing after it.
comm.mesh @mesh <tp = 2>
rt.procedure @early_record(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 128, events 2> {
  // expected-note @below {{the other one}}
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  // expected-error @below {{shares bytes [0, 64) of symmetric memory}}
  %c = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%c : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  rt.copy ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.await %e on communication
  %d = rt.start all_reduce with sum ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @ahead() frame <local 0, symmetric 128, events 1> {
  // expected-note @below {{the memory}}
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op (all_reduce on the communication queue) reads memory that nothing has written before}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 0
  rt.wait %d
  rt.return
}

// -----

rt.procedure entry @behind(%x: memref<16xf32> {rt.operand = #rt.value<"x" of tensor<16xf32>>}) frame <local 64, symmetric 0, events 1> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  %e = rt.record on compute event 0
  rt.await %e on communication
  // expected-error @below {{'rt.copy' op (copy on the communication queue) expects the compute queue to wait for it before the entry ends}}
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<local>>) on communication
  rt.return
}

// -----

// A frame may lie anywhere in its caller's, but not beyond it. The check does not iterate over a callee's bytes or events.
rt.procedure @inner() frame <local 9223372036854775744, symmetric 0, events 2147483647> {
  rt.return
}
rt.procedure @beyond() frame <local 128, symmetric 0, events 1> {
  // expected-error @below {{expects the callee's frame to lie within the caller's}}
  rt.call @inner() at <local 9223372036854775744, symmetric 0, events 0>
  rt.return
}

// -----

rt.procedure @inner() frame <local 0, symmetric 0, events 2147483646> {
  rt.return
}
rt.procedure @event_of_a_callee() frame <local 0, symmetric 0, events 2147483647> {
  // expected-note @below {{by this operation}}
  rt.call @inner() at <local 0, symmetric 0, events 0>
  // expected-error @below {{'rt.record' op uses event 2147483645, which is taken}}
  %b = rt.record on compute event 2147483645
  rt.return
}

// -----

rt.procedure @event_twice() frame <local 0, symmetric 0, events 2> {
  // expected-note @below {{by this operation}}
  %a = rt.record on compute event 1
  // expected-error @below {{'rt.record' op uses event 1, which is taken}}
  %b = rt.record on compute event 1
  rt.return
}

// -----

// A callee's frame that overlaps live memory at the call, exceeds the caller's frame, or is not aligned.
rt.procedure @inner(%x: memref<16xf32>) frame <local 64, symmetric 0, events 0> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<local>>)
  rt.return
}
rt.procedure @call_overlap(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 128, symmetric 0, events 0> {
  // expected-note @below {{the other one}}
  %a = rt.alloc at 64 : memref<16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<local>>)
  // expected-error @below {{'rt.call' op shares bytes [64, 128) of local memory with something that is live at the same time}}
  rt.call @inner(%x) at <local 64, symmetric 0, events 0> : memref<16xf32>
  rt.copy ins(%a : memref<16xf32, #rt.space<local>>) outs(%o : memref<16xf32>)
  rt.return
}
rt.procedure @call_outside(%x: memref<16xf32>) frame <local 64, symmetric 0, events 0> {
  // expected-error @below {{expects the callee's frame to lie within the caller's}}
  rt.call @inner(%x) at <local 64, symmetric 0, events 0> : memref<16xf32>
  rt.return
}
rt.procedure @call_unaligned(%x: memref<16xf32>) frame <local 128, symmetric 0, events 0> {
  // expected-error @below {{expects a place that is a multiple of 64}}
  rt.call @inner(%x) at <local 32, symmetric 0, events 0> : memref<16xf32>
  rt.return
}

// -----

// A kernel may run in place only if it reads each element before it writes it, which reductions over a row's columns do not.
rt.kernel @sum_rows(%x: tensor<?x16xf32>) -> tensor<?x16xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %s0 = tensor.empty(%n) : tensor<?xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<?xf32>) -> tensor<?xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x16xf32>) outs(%s1 : tensor<?xf32>) {
    ^bb0(%a: f32, %acc: f32):
      %0 = arith.addf %acc, %a : f32
      linalg.yield %0 : f32
  } -> tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>, affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s : tensor<?x16xf32>, tensor<?xf32>) outs(%e : tensor<?x16xf32>) {
    ^bb0(%a: f32, %b: f32, %out: f32):
      %0 = arith.addf %a, %b : f32
      linalg.yield %0 : f32
  } -> tensor<?x16xf32>
  rt.yield %o : tensor<?x16xf32>
}
rt.procedure @not_in_place(%x: memref<1x16xf32>, %o: memref<1x16xf32> {rt.result}) frame <local 64, symmetric 0, events 0> {
  // expected-note @below {{the other one}}
  %a = rt.alloc at 0 : memref<1x16xf32, #rt.space<local>>
  // expected-error @below {{shares bytes [0, 64) of local memory}}
  %b = rt.alloc at 0 : memref<1x16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<1x16xf32>) outs(%a : memref<1x16xf32, #rt.space<local>>)
  rt.launch @sum_rows rows 1 ins(%a : memref<1x16xf32, #rt.space<local>>) outs(%b : memref<1x16xf32, #rt.space<local>>)
  rt.copy ins(%b : memref<1x16xf32, #rt.space<local>>) outs(%o : memref<1x16xf32>)
  rt.return
}

// -----

// Also within one buffer: the event is recorded before the collective's input is written, so it does not order the two.
comm.mesh @mesh <tp = 2>
rt.procedure @written_too_late(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  %e = rt.record on compute event 0
  // expected-note @below {{the other command}}
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  rt.await %e on communication
  // expected-error @below {{'rt.start' op (all_reduce on the communication queue) reads memory that copy on the compute queue writes, and no event orders the two}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  rt.wait %d
  rt.copy ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @read_too_early(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  %v = rt.view %b : memref<16xf32, #rt.space<symmetric>> to memref<4x4xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  // expected-note @below {{the other command}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  %c = rt.view %v : memref<4x4xf32, #rt.space<symmetric>> to memref<16xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.copy' op (copy on the compute queue) reads memory that all_reduce on the communication queue writes, and no event orders the two}}
  rt.copy ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.wait %d
  rt.return
}

// -----

// A collective may read its input until it is waited for.
comm.mesh @mesh <tp = 2>
rt.procedure @overwritten_in_flight(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  // expected-note @below {{the other command}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  // expected-error @below {{'rt.copy' op (copy on the compute queue) writes memory that all_reduce on the communication queue reads, and no event orders the two}}
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  rt.wait %d
  rt.copy ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

// Both queues write the result.
rt.procedure @result_twice(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 2> {
  %e = rt.record on compute event 0
  rt.await %e on communication
  // expected-note @below {{the other command}}
  rt.copy ins(%x : memref<16xf32>) outs(%o : memref<16xf32>) on communication
  %f = rt.record on communication event 1
  // expected-error @below {{'rt.copy' op (copy on the compute queue) writes memory that copy on the communication queue writes, and no event orders the two}}
  rt.copy ins(%x : memref<16xf32>) outs(%o : memref<16xf32>)
  rt.await %f on compute
  rt.return
}

// -----

rt.procedure @never_written(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 64, symmetric 0, events 0> {
  // expected-note @below {{the memory}}
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  // expected-error @below {{'rt.copy' op (copy on the compute queue) reads memory that nothing has written before}}
  rt.copy ins(%a : memref<16xf32, #rt.space<local>>) outs(%o : memref<16xf32>)
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<local>>)
  rt.return
}

// -----

// A result cannot be read before the procedure has written it; a call writes the callee's results.
rt.procedure @inner(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  // expected-note @below {{in the callee, at this command}}
  rt.copy ins(%x : memref<16xf32>) outs(%o : memref<16xf32>)
  rt.return
}
rt.procedure @written_by_call(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.call @inner(%x, %o) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>
  rt.call @inner(%o, %p) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>
  rt.return
}
// expected-note @below {{the memory}}
rt.procedure @unwritten_result(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  // expected-error @below {{'rt.call' op (copy in @inner on the compute queue) reads memory that nothing has written before}}
  rt.call @inner(%o, %p) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>
  rt.call @inner(%x, %o) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>
  rt.return
}

// expected-error @below {{'rt.procedure' op expects result argument 1 to be written}}
rt.procedure @forgotten_result(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.return
}

// -----

// One command whose arguments are the same memory.
rt.procedure @inner(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.copy ins(%x : memref<16xf32>) outs(%o : memref<16xf32>)
  rt.copy ins(%x : memref<16xf32>) outs(%p : memref<16xf32>)
  rt.return
}
rt.procedure @reads_its_result(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}, %p: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.copy ins(%x : memref<16xf32>) outs(%o : memref<16xf32>)
  // expected-error @below {{'rt.call' op expects arguments 0 and 1 not to overlap, since the callee writes 1}}
  rt.call @inner(%o, %o, %p) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>, memref<16xf32>
  rt.return
}
rt.procedure @writes_twice(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  // expected-error @below {{'rt.call' op expects arguments 1 and 2 not to overlap, since the callee writes 2}}
  rt.call @inner(%x, %o, %o) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>, memref<16xf32>
  rt.return
}

// -----

// A state that a callee changes is given to it twice.
rt.procedure @changes(%x: memref<16xf32>, %s: memref<16xf32> {rt.inout}) frame <local 0, symmetric 0, events 0> {
  rt.copy ins(%x : memref<16xf32>) outs(%s : memref<16xf32>)
  rt.return
}
rt.procedure entry @aliased(%s: memref<16xf32> {rt.state = #rt.value<"sum" of tensor<16xf32>>}) frame <local 0, symmetric 0, events 0> {
  // expected-error @below {{'rt.call' op expects arguments 0 and 1 not to overlap, since the callee writes 1}}
  rt.call @changes(%s, %s) at <local 0, symmetric 0, events 0> : memref<16xf32>, memref<16xf32>
  rt.return
}

// -----

// expected-error @below {{'rt.procedure' op expects a frame: buffers are not assigned yet}}
rt.procedure @unassigned() {
  rt.return
}

// -----

// Three queues: what the third does is ordered after the compute queue by way of the second, and before the procedure's end
// likewise. The kernel between two collectives needs no event of its own.
comm.mesh @mesh <tp = 2>
rt.procedure @by_way_of_another(%x: memref<16xf32>, %o: memref<16xf32> {rt.result}) frame <local 64, symmetric 192, events 4> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc at 128 : memref<16xf32, #rt.space<symmetric>>
  %s = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  rt.wait %d on communication<1>
  %f = rt.start all_reduce with sum ins(%b : memref<16xf32, #rt.space<symmetric>>) outs(%c : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1> event 2
  rt.copy ins(%c : memref<16xf32, #rt.space<symmetric>>) outs(%s : memref<16xf32, #rt.space<local>>) on communication<1>
  %g = rt.record on communication<1> event 3
  rt.await %g on compute
  rt.copy ins(%s : memref<16xf32, #rt.space<local>>) outs(%o : memref<16xf32>)
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @third_queue_ahead(%x: memref<16xf32>) frame <local 0, symmetric 128, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  // expected-note @below {{the other command}}
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  // expected-error @below {{'rt.start' op (all_reduce on the communication<1> queue) reads memory that copy on the compute queue writes, and no event orders the two}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1> event 1
  rt.wait %d
  rt.return
}

// -----

// Both collectives write %b, and nothing orders their queues.
comm.mesh @mesh <tp = 2>
rt.procedure @race_of_two_queues(%x: memref<16xf32>) frame <local 0, symmetric 128, events 3> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  rt.await %e on communication<1>
  // expected-note @below {{the other command}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  // expected-error @below {{'rt.start' op (all_reduce on the communication<1> queue) writes memory that all_reduce on the communication queue writes, and no event orders the two}}
  %f = rt.start all_reduce with max ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1> event 2
  rt.wait %d
  rt.wait %f
  rt.return
}

// -----

// The wait of the compute queue for one queue does not order another.
comm.mesh @mesh <tp = 2>
rt.procedure entry @third_queue_behind(%x: memref<16xf32> {rt.operand = #rt.value<"x" of tensor<16xf32>>}) frame <local 0, symmetric 192, events 3> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
  %c = rt.alloc at 128 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.record on compute event 0
  rt.await %e on communication
  rt.await %e on communication<1>
  // expected-error @below {{'rt.start' op (all_reduce on the communication queue) expects the compute queue to wait for it before the entry ends}}
  %d = rt.start all_reduce with sum ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%b : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> event 1
  %f = rt.start all_reduce with max ins(%a : memref<16xf32, #rt.space<symmetric>>) outs(%c : memref<16xf32, #rt.space<symmetric>>) over <@mesh, {tp}> on communication<1> event 2
  rt.wait %f
  rt.return
}

// -----

// What different ranks run need not be ordered, and may share bytes.
comm.mesh @mesh <pp = 2>
rt.procedure @fill(%x: memref<16xf32>, %a: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  rt.return
}
rt.procedure @roles(%x: memref<16xf32>, %y: memref<16xf32> {rt.result}) frame <local 64, symmetric 0, events 0> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  %b = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  rt.call @fill(%x, %a) at <local 0, symmetric 0, events 0> {comm.on = #comm.place<@mesh, {pp = [0]}>} : memref<16xf32>, memref<16xf32, #rt.space<local>>
  rt.call @fill(%x, %b) at <local 0, symmetric 0, events 0> {comm.on = #comm.place<@mesh, {pp = [1]}>} : memref<16xf32>, memref<16xf32, #rt.space<local>>
  rt.copy ins(%a : memref<16xf32, #rt.space<local>>) outs(%y : memref<16xf32>) {comm.on = #comm.place<@mesh, {pp = [0]}>}
  rt.copy ins(%b : memref<16xf32, #rt.space<local>>) outs(%y : memref<16xf32>) {comm.on = #comm.place<@mesh, {pp = [1]}>}
  rt.return
}

// -----

// On one of them the value is missing.
comm.mesh @mesh <pp = 2>
rt.procedure @fill(%x: memref<16xf32>, %a: memref<16xf32> {rt.result}) frame <local 0, symmetric 0, events 0> {
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32>)
  rt.return
}
rt.procedure @unwritten(%x: memref<16xf32>, %y: memref<16xf32> {rt.result}) frame <local 64, symmetric 0, events 0> {
  // expected-note @below {{the memory}}
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
  rt.call @fill(%x, %a) at <local 0, symmetric 0, events 0> {comm.on = #comm.place<@mesh, {pp = [0]}>} : memref<16xf32>, memref<16xf32, #rt.space<local>>
  // expected-error @below {{'rt.copy' op (copy on the compute queue) reads memory that nothing has written before}}
  // expected-note @below {{on rank 1}}
  rt.copy ins(%a : memref<16xf32, #rt.space<local>>) outs(%y : memref<16xf32>)
  rt.return
}

// -----

comm.mesh @mesh <pp = 2>
// expected-note @below {{argument 0 is on #comm.place<@mesh, {pp = [0]}>}}
rt.procedure entry @elsewhere(%x: memref<16xf32> {rt.operand = #rt.value<"x" of tensor<16xf32> on <@mesh, {pp = [0]}>>},
                        %y: memref<16xf32> {rt.result = #rt.value<"y" of tensor<16xf32>>}) frame <local 0, symmetric 0, events 0> {
  // expected-error @below {{'rt.copy' op (copy on the compute queue) uses a value of other ranks}}
  // expected-note @below {{on rank 1}}
  rt.copy ins(%x : memref<16xf32>) outs(%y : memref<16xf32>)
  rt.return
}

// -----

// The event is set on the ranks that run the call.
comm.mesh @mesh <pp = 2>
rt.procedure @begin(%a: memref<16xf32, #rt.space<symmetric>>) -> !rt.event frame <local 0, symmetric 0, events 2> {
  %r = rt.record on compute event 0
  rt.await %r on communication
  %e = rt.start send ins(%a : memref<16xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {pp}> event 1
  rt.return %e : !rt.event
}
rt.procedure @event(%x: memref<16xf32>) frame <local 0, symmetric 64, events 2> {
  %a = rt.alloc at 0 : memref<16xf32, #rt.space<symmetric>>
  rt.copy ins(%x : memref<16xf32>) outs(%a : memref<16xf32, #rt.space<symmetric>>)
  %e = rt.call @begin(%a) at <local 0, symmetric 64, events 0> {comm.on = #comm.place<@mesh, {pp = [0]}>} : memref<16xf32, #rt.space<symmetric>> -> !rt.event
  // expected-error @below {{'rt.wait' op (wait on the compute queue) waits for an event that the rank does not set}}
  // expected-note @below {{on rank 1}}
  rt.wait %e
  rt.return
}
