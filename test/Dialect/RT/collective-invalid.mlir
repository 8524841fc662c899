// RUN: braid-opt %s -split-input-file -verify-diagnostics

rt.procedure @start_c1() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op references unknown mesh @mesh [rt.start_c1]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c1_axis() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op unknown axis 'pp' in mesh 'mesh' [rt.start_c1]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {pp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c2() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op expects at least one input and as many outputs, got 2 and 1 [rt.start_c2]}}
  %d = rt.start all_reduce with sum ins(%a, %a : memref<4xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>)
      outs(%a : memref<4xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c3() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<local>>
  // expected-error @below {{expects symmetric memory, got 'memref<4xf32, #rt.space<local>>' [rt.start_c3]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<local>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c4() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs of all_gather over 2 ranks to fit its inputs, got 'memref<4xf32, #rt.space<symmetric>>' and 'memref<4xf32, #rt.space<symmetric>>' [rt.start_c4]}}
  %d = rt.start all_gather ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      dim 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_dim() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'dim' for all_reduce [rt.start_c5]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
      dim 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects a reduction for all_reduce [rt.start_c5]}}
  %d = rt.start all_reduce ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%a : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c10() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects each queue to wait for its event once, got two waits on communication<1> [rt.start_c10]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.wait %d on communication<1>
  rt.wait %d on communication<1>
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c11() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{'rt.start' op expects to run on a communication queue, got copy [rt.start_c11]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}> on copy
  rt.return
}

// -----

rt.procedure @wait_c1() {
  %e = rt.record on communication
  // expected-error @below {{'rt.wait' op expects the event of an rt.start on another queue [rt.wait_c1]}}
  rt.wait %e
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @wait_c1_own_queue() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}> on communication<2>
  // expected-error @below {{'rt.wait' op expects the event of an rt.start on another queue [rt.wait_c1]}}
  rt.wait %d on communication<2>
  rt.return
}

// -----

rt.procedure @queue_c1() {
  // expected-error @below {{expects an index below 8 of a queue of kind communication, got 8 [rt.queue_c1]}}
  %e = rt.record on communication<8>
  rt.return
}

// -----

rt.procedure @queue_c1_negative() {
  // expected-error @below {{expects an index below 8 of a queue of kind communication, got -1 [rt.queue_c1]}}
  %e = rt.record on communication<-1>
  rt.return
}

// -----

rt.procedure @queue_c1_copy() {
  // expected-error @below {{expects an index below 1 of a queue of kind copy, got 1 [rt.queue_c1]}}
  %e = rt.record on copy<1>
  rt.return
}

// -----

rt.procedure @await_c1() {
  %e = rt.record on compute
  // expected-error @below {{'rt.await' op expects the event of an rt.record on another queue [rt.await_c1]}}
  rt.await %e on compute
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c4_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs of all_to_all over 2 ranks to fit its inputs, got 'memref<4xf32, #rt.space<symmetric>>' and 'memref<4xf32, #rt.space<symmetric>>' [rt.start_c4]}}
  %d = rt.start all_to_all ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) dim 0 concat 1
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_broadcast() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no reduction for broadcast [rt.start_c5]}}
  %d = rt.start broadcast with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) root 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'concat' for all_to_all [rt.start_c5]}}
  %d = rt.start all_to_all ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) dim 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_no_concat() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'concat' for all_reduce [rt.start_c5]}}
  %d = rt.start all_reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) concat 0
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_root() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'root' for reduce [rt.start_c5]}}
  %d = rt.start reduce with sum ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_pairs() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' for permute [rt.start_c5]}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>)
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c6_root() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'root' to be a position in [0, 2), got 2 [rt.start_c6]}}
  %d = rt.start broadcast ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) root 2
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c6_pairs() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects every position of 'pairs' to be in [0, 2), got 2 [rt.start_c6]}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 2]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c7_odd() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' to hold two positions for each pair, got 1 positions [rt.start_c7]}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c7_source() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects position 0 to be the source of one pair [rt.start_c7]}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 1, 0, 0]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c7_target() {
  %a = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects position 1 to be the target of one pair [rt.start_c7]}}
  %d = rt.start permute ins(%a : memref<4xf32, #rt.space<symmetric>>) outs(%b : memref<4xf32, #rt.space<symmetric>>) pairs [0, 1, 1, 1]
      over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c2_counts() {
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  // expected-error @below {{expects at least one value besides the counts [rt.start_c2]}}
  %d = rt.start all_to_all_v ins(%c : memref<4xi32, #rt.space<symmetric>>) outs(%e : memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c2_send() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects inputs and no outputs, got 1 and 1 values [rt.start_c2]}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c2_recv() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects outputs and no inputs, got 1 and 1 values [rt.start_c2]}}
  %d = rt.start recv ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] tag 0 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_tag() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'tag' for send [rt.start_c5]}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_no_tag() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no 'tag' for permute [rt.start_c5]}}
  %d = rt.start permute ins(%a : memref<4x2xf32, #rt.space<symmetric>>) outs(%b : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] tag 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c5_recv_pairs() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects 'pairs' for recv [rt.start_c5]}}
  %d = rt.start recv outs(%a : memref<4x2xf32, #rt.space<symmetric>>) tag 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c7_itself() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{expects no position to send to itself, got 1 -> 1 [rt.start_c7]}}
  %d = rt.start recv outs(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [1, 1] tag 1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c8_counts_type() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xf32, #rt.space<symmetric>>
  // expected-error @below {{expects counts of rank 1 of i32 or i64 as last value, got 'memref<4xf32, #rt.space<symmetric>>' [rt.start_c8]}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<4x2xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>) outs(%b, %e : memref<4x2xf32, #rt.space<symmetric>>, memref<4xf32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c8_blocks() {
  %a = rt.alloc : memref<6x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<6x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  // expected-error @below {{expects values of 4 blocks by one capacity, got 'memref<6x2xf32, #rt.space<symmetric>>' [rt.start_c8]}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<6x2xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) outs(%b, %e : memref<6x2xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c8_capacity() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<4xi32, #rt.space<symmetric>>
  %f = rt.alloc : memref<4x3xf32, #rt.space<symmetric>>
  %g = rt.alloc : memref<4x3xf32, #rt.space<symmetric>>
  // expected-error @below {{expects values of 4 blocks by one capacity, got 'memref<4x3xf32, #rt.space<symmetric>>' [rt.start_c8]}}
  %d = rt.start all_to_all_v ins(%a, %f, %c : memref<4x2xf32, #rt.space<symmetric>>, memref<4x3xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) outs(%b, %g, %e : memref<4x2xf32, #rt.space<symmetric>>, memref<4x3xf32, #rt.space<symmetric>>, memref<4xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

comm.mesh @mesh <tp = 2>
rt.procedure @start_c8_divides() {
  %a = rt.alloc : memref<3x2xf32, #rt.space<symmetric>>
  %b = rt.alloc : memref<3x2xf32, #rt.space<symmetric>>
  %c = rt.alloc : memref<3xi32, #rt.space<symmetric>>
  %e = rt.alloc : memref<3xi32, #rt.space<symmetric>>
  // expected-error @below {{expects 3 blocks to divide over 2 ranks [rt.start_c8]}}
  %d = rt.start all_to_all_v ins(%a, %c : memref<3x2xf32, #rt.space<symmetric>>, memref<3xi32, #rt.space<symmetric>>) outs(%b, %e : memref<3x2xf32, #rt.space<symmetric>>, memref<3xi32, #rt.space<symmetric>>) over <@mesh, {tp}>
  rt.wait %d
  rt.return
}

// -----

// rt.start_c9
comm.mesh @mesh <tp = 2>
rt.procedure @start_c9() {
  %a = rt.alloc : memref<4x2xf32, #rt.space<symmetric>>
  // expected-error @below {{attribute 'tag' failed to satisfy constraint: 32-bit signless integer attribute whose value is non-negative}}
  %d = rt.start send ins(%a : memref<4x2xf32, #rt.space<symmetric>>) pairs [0, 1] tag -1 over <@mesh, {tp}>
  rt.wait %d
  rt.return
}
