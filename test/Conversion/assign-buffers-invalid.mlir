// RUN: braid-opt %s --braid-assign-buffers -verify-diagnostics

// expected-error @below {{'rt.procedure' op calls itself, so that its frame has no end}}
rt.procedure @a() {
  rt.call @b()
  rt.return
}
rt.procedure @b() {
  rt.call @a()
  rt.return
}
