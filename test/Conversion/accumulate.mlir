// RUN: braid-opt %s -split-input-file --braid-form-kernels | FileCheck %s --check-prefix=KERNELS
// RUN: braid-opt %s -split-input-file --braid-form-kernels=fuse=false | FileCheck %s --check-prefix=ALONE
// RUN: braid-opt %s -split-input-file --braid-form-kernels --braid-lower-to-rt --braid-assign-buffers | FileCheck %s

// A sum that would be a kernel of its own is added by the kernel of its product, in the other operand's memory.
// KERNELS-LABEL: func.func @sum
// KERNELS: %[[A:.*]] = nn.linear
// KERNELS-NEXT: %[[S:.*]] = nn.matmul %{{.*}}, %{{.*}} transposed plus %[[A]] : tensor<4x8xf32> role "second" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
// KERNELS-NEXT: return %[[S]]
// ALONE-NOT: nn.matmul
// ALONE: rt.launch @add
// CHECK: rt.kernel @matmul(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> attributes {library = "matmul", scalars = [0, 1, 0]}
// CHECK: rt.kernel @matmul_0(tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> attributes {library = "matmul", scalars = [0, 1, 1]}
// CHECK-LABEL: rt.procedure entry @sum
// CHECK-NEXT: rt.launch @matmul rows 4 ins(%x, %a : {{.*}}) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: rt.launch @matmul_0 rows 4 ins(%x, %b : {{.*}}) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: rt.return
func.func @sum(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x8xf32>
  %b = nn.parameter "b" : tensor<8x8xf32>
  %0 = nn.linear %x, %a role "first" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %x, %b role "second" : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// -----

// The other operand is used again: a kernel adds.
// KERNELS-LABEL: func.func @again
// KERNELS-NOT: nn.matmul
// KERNELS: rt.launch @add
func.func @again(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}, tensor<4x8xf32> {nn.name = "z"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x8xf32>
  %0 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %0, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %2, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// The sum of a normalization's kernel stays there.
// KERNELS-LABEL: func.func @normalized
// KERNELS-NOT: nn.matmul
// KERNELS: rt.launch @add_layer_norm
func.func @normalized(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x8xf32>
  %w = nn.parameter "w" : tensor<8xf32>
  %0 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = nn.add %0, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = nn.layer_norm %2, %w, %w epsilon 1.0e-12 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// -----

// An accumulator that the caller gives is copied; one that nothing else uses is not.
// KERNELS-LABEL: func.func @copied
// CHECK-LABEL: rt.procedure entry @copied
// CHECK-NEXT: rt.copy ins(%x : {{.*}}) outs(%y : {{.*}})
// CHECK-NEXT: rt.launch @{{.*}} rows 4 ins(%x, %a : {{.*}}) outs(%y : memref<4x8xf32>)
// CHECK-NEXT: rt.launch @{{.*}} rows 4 ins(%x, %a : {{.*}}) outs(%z : memref<4x8xf32>)
// CHECK-NEXT: rt.launch @{{.*}} rows 4 ins(%x, %a : {{.*}}) outs(%z : memref<4x8xf32>)
// CHECK-NEXT: rt.return
func.func @copied(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}, tensor<4x8xf32> {nn.name = "z"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x8xf32>
  %0 = nn.matmul %x, %a plus %x : tensor<4x8xf32> : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = nn.matmul %x, %a plus %1 : tensor<4x8xf32> : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  return %0, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A collective lies between the product and the sum.
comm.mesh @mesh <tp = 2>
// KERNELS-LABEL: func.func @between
// KERNELS-NOT: nn.matmul
// KERNELS: rt.launch @add
func.func @between(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "y"}, tensor<4x8xf32> {nn.name = "z"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x8xf32>
  %0 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = nn.linear %x, %a : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %h = comm.start (%in = %x) : tensor<4x8xf32> -> !comm.handle<tensor<4x8xf32>> {
    %s = comm.all_reduce sum (%in) over <@mesh, {tp}> : tensor<4x8xf32>
    comm.yield %s : tensor<4x8xf32>
  }
  %2 = nn.add %0, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = comm.wait %h keeping %x : !comm.handle<tensor<4x8xf32>>, tensor<4x8xf32> -> tensor<4x8xf32>
  return %2, %3 : tensor<4x8xf32>, tensor<4x8xf32>
}
