// RUN: %python %S/Inputs/large_frames.py bytes > %t.mlir
// RUN: not braid-opt %t.mlir --braid-assign-buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'rt.procedure' op needs more than 2^61 bytes of memory

// RUN: %python %S/Inputs/large_frames.py events > %t.mlir
// RUN: not braid-opt %t.mlir --braid-assign-buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=EVENTS
// EVENTS: error: 'rt.procedure' op frame: expects at most 2^31 - 1 events, got 2147483648
