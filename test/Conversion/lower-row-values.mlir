// RUN: braid-opt %s --braid-form-kernels --braid-lower-to-rt | FileCheck %s

// Values of rows lie side by side for a kernel. A slice of size 1 leaves them apart, and is copied.
// CHECK-LABEL: rt.procedure entry @main
// CHECK: %[[PART:.*]] = rt.subview %m at [0, 0, 1] : memref<3x7x4xf32> to memref<3x7x1xf32, strided<[28, 4, 1]>>
// CHECK: %[[COPY:.*]] = rt.alloc : memref<3x7x1xf32, #rt.space<local>>
// CHECK-NEXT: rt.copy ins(%[[PART]] : memref<3x7x1xf32, strided<[28, 4, 1]>>) outs(%[[COPY]] : memref<3x7x1xf32, #rt.space<local>>)
// CHECK-NEXT: %[[ROWS:.*]] = rt.view %[[COPY]] : memref<3x7x1xf32, #rt.space<local>> to memref<21xf32, #rt.space<local>>
// CHECK-NOT: rt.copy
// CHECK: rt.launch @map rows 21 ins(%{{.*}}, %[[ROWS]] : memref<21x48xf32>, memref<21xf32, #rt.space<local>>)
func.func @main(%x: tensor<3x7x1x48xf32> {nn.name = "x"}, %m: tensor<3x7x4xf32> {nn.name = "m"}) -> (tensor<3x7x1x48xf32> {nn.name = "y"}) attributes {nn.entry} {
  %s = nn.slice %m dim 2 from 1 size 1 : tensor<3x7x4xf32> -> tensor<3x7x1xf32>
  %y = nn.map %x rows(%s) : tensor<3x7x1x48xf32> rows(tensor<3x7x1xf32>) -> tensor<3x7x1x48xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.subf %a, %b : f32
    nn.yield %d : f32
  }
  return %y : tensor<3x7x1x48xf32>
}
