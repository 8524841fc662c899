// RUN: %python %S/Inputs/nested_calls.py > %t.mlir
// RUN: not braid-opt %t.mlir --braid-lower-to-rt -o /dev/null 2>&1 | FileCheck %s
// CHECK: error: 'rt.procedure' op expects at most 1048576 commands with all calls expanded
