// RUN: braid-opt %s -split-input-file --braid-assign-buffers -verify-diagnostics

// expected-error @below {{'rt.procedure' op calls itself, so that its frame has no end}}
rt.procedure @a() {
  rt.call @b()
  rt.return
}
rt.procedure @b() {
  rt.call @a()
  rt.return
}

// -----

// The assignment is verified.
rt.procedure @never_written(%o: memref<16xf32> {rt.result}) {
  // expected-note @below {{the memory}}
  %a = rt.alloc : memref<16xf32, #rt.space<local>>
  // expected-error @below {{'rt.copy' op (copy on the compute queue) reads memory that nothing has written before}}
  rt.copy ins(%a : memref<16xf32, #rt.space<local>>) outs(%o : memref<16xf32>)
  rt.return
}
