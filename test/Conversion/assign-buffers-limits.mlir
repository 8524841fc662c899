// RUN: %python %S/Inputs/large_frames.py bytes > %t.mlir
// RUN: not braid-opt %t.mlir --braid-assign-buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=BYTES
// BYTES: error: 'rt.procedure' op needs more than 2^61 bytes of memory

// RUN: %python %S/Inputs/large_frames.py commands > %t.mlir
// RUN: not braid-opt %t.mlir --braid-assign-buffers -o /dev/null 2>&1 | FileCheck %s --check-prefix=COMMANDS
// COMMANDS: error: 'rt.procedure' op expects at most 1048576 commands with all calls expanded
