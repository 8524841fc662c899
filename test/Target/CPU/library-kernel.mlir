// RUN: braid-opt %s -braid-cpu-kernel-abi | FileCheck %s
// RUN: not braid-test-compile-kernels %s 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not braid-opt -braid-cpu-kernel-abi %S/Inputs/library-kernel-scalars.mlir 2>&1 | FileCheck %s --check-prefix=OTHER

// Scalars of any type are passed to C as int64_t or double.
// CHECK-DAG: llvm.func @my_norm(!llvm.ptr, i64, f64, i64)
// CHECK-LABEL: llvm.func @norm(
// CHECK-SAME:    %[[D:.*]]: !llvm.ptr) {
// CHECK-DAG:     %[[I:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK-DAG:     %[[F:.*]] = llvm.mlir.constant(5.000000e-01 : f64) : f64
// CHECK-DAG:     %[[B:.*]] = llvm.mlir.constant(-3 : i64) : i64
// CHECK:         llvm.call @my_norm(%[[D]], %[[I]], %[[F]], %[[B]]) : (!llvm.ptr, i64, f64, i64) -> ()
// CHECK-NEXT:    llvm.return
// ALONE: error: expects a dialect that provides kernels, for 'my_norm'
rt.kernel @norm(tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
    attributes {library_symbol = "my_norm", scalars = [32 : i64, 0.5 : f32, -3 : i8]}

// The function is declared once.
// CHECK-NOT: llvm.func @my_norm(
// CHECK-LABEL: llvm.func @norm_again(
// CHECK:         llvm.call @my_norm
rt.kernel @norm_again(tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
    attributes {library_symbol = "my_norm", scalars = [4 : i64, 0.5 : f64, 0 : i64]}

// OTHER: error: 'rt.kernel' op calls 'my_norm' with other scalars than another kernel does
