// RUN: braid-opt %s --braid-form-kernels --remark-format=emitRemark --remarks-filter=kernels 2>&1 | FileCheck %s

comm.mesh @mesh <tp = 2>
func.func @flight(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  // CHECK: form-kernels-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.activation is not joined with nn.add: it hides a collective that the user waits for
  %1 = nn.activation gelu %y : tensor<8x16xf32>
  %2 = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  // CHECK: @add_gelu joins 2 operations over 8 rows
  %3 = nn.add %2, %1 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %4 = nn.activation gelu %3 : tensor<8x16xf32>
  return %4 : tensor<8x16xf32>
}

// The wait moves down to the kernel that needs it, so that the operations before the kernel hide the collective.
func.func @sunk(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<8x16xf32>> {
    %r = comm.all_reduce sum (%a) over <@mesh, {tp}> : tensor<8x16xf32>
    comm.yield %r : tensor<8x16xf32>
  }
  %0 = comm.wait %h keeping %x : !comm.handle<tensor<8x16xf32>>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = nn.activation gelu %0 : tensor<8x16xf32>
  // CHECK: form-kernels-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.activation is not joined with nn.add: it hides a collective that the user waits for
  %2 = nn.activation silu %y : tensor<8x16xf32>
  // CHECK: @gelu_add joins 2 operations over 8 rows
  %3 = nn.add %1, %2 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// So it is with a collective by value.
func.func @by_value(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = comm.all_reduce sum (%x) over <@mesh, {tp}> : tensor<8x16xf32>
  // CHECK: form-kernels-remarks.mlir:[[#@LINE+1]]:{{.*}}nn.activation is not joined with nn.add: it hides a collective that the user waits for
  %1 = nn.activation silu %y : tensor<8x16xf32>
  %2 = nn.add %0, %1 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
