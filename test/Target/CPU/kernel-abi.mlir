// RUN: braid-opt %s -braid-cpu-kernel-abi | FileCheck %s

// CHECK-LABEL: func.func @copy(
// CHECK-SAME:    %[[D:.*]]: !llvm.ptr) {
// CHECK:         %[[S0:.*]] = llvm.getelementptr %[[D]][0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
// CHECK:         %[[P0:.*]] = llvm.load %[[S0]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[M0:.*]] = llvm.load %[[P0]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)>
// CHECK:         %[[X:.*]] = builtin.unrealized_conversion_cast %[[M0]] : {{.*}} to memref<?x8xf32>
// CHECK:         %[[S1:.*]] = llvm.getelementptr %[[D]][1]
// CHECK:         llvm.load %{{.*}} : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64)>
// CHECK:         %[[Y:.*]] = builtin.unrealized_conversion_cast {{.*}} to memref<f32>
// CHECK:         memref.store %{{.*}}, %[[Y]][]
func.func @copy(%x: memref<?x8xf32>, %y: memref<f32>) {
  %c0 = arith.constant 0 : index
  %0 = memref.load %x[%c0, %c0] : memref<?x8xf32>
  memref.store %0, %y[] : memref<f32>
  return
}

// A function with other arguments is not changed.
// CHECK-LABEL: func.func @other(%{{.*}}: index, %{{.*}}: memref<f32>)
func.func @other(%i: index, %y: memref<f32>) {
  return
}
