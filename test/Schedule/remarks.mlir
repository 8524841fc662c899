// A remark for each collective tells what hides it, or why nothing does.
// RUN: braid-opt %s --braid-start-collectives --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s

comm.mesh @mesh <tp = 2>

rt.kernel @gelu(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?x4xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x4xf32>) outs(%e : tensor<?x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %one = arith.constant 1.0 : f32
      %0 = math.erf %a : f32
      %1 = arith.addf %0, %one : f32
      %2 = arith.mulf %1, %a : f32
      linalg.yield %2 : f32
  } -> tensor<?x4xf32>
  rt.yield %r : tensor<?x4xf32>
}
rt.kernel @own(tensor<?x4xf32>) -> tensor<?x4xf32> attributes {library_symbol = "own", row_flops = 100 : i64}
rt.kernel @matmul(tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> attributes {library = "matmul", scalars = [0, 1, 0]}

// Three operations on 32 elements, 100 for each of 8 rows, and 8 * 32 of a matmul with four columns.
func.func @launches(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} Overlap {{.*}}comm.all_reduce 'a': 3 commands between start and wait: 1152 FLOPs, 832 bytes of memory{{$|[^,]}}
  %a = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
  %0 = rt.launch @gelu rows 8 ins(%x : tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = rt.launch @own rows 8 ins(%0 : tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = rt.launch @matmul rows 8 ins(%1, %w : tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} NoOverlap {{.*}}comm.all_reduce 'b': nothing to compute between start and wait: rt.launch @matmul gives its operand, and func.return needs its result
  %b = comm.all_reduce sum(%2) over <@mesh, {tp}> role "b" : tensor<8x4xf32>
  return %a, %b : tensor<8x4xf32>, tensor<8x4xf32>
}

// Operations of level comm; a matmul and the addition of its bias are one command.
func.func @operations(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} NoOverlap {{.*}}comm.all_reduce 'c': nothing to compute between start and wait: its operands are there at the block's begin, and nn.linear 'up' needs its result
  %c = comm.all_reduce sum(%x) over <@mesh, {tp}> role "c" : tensor<8x4xf32>
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} Overlap {{.*}}comm.all_reduce: 1 command between start and wait: 256 FLOPs, 592 bytes of memory
  %d = comm.all_reduce sum(%x) over <@mesh, {tp}> : tensor<8x4xf32>
  %0 = nn.linear %c, %w role "up" : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
  %1 = nn.add %0, %v : tensor<8x4xf32>, tensor<4xf32> -> tensor<8x4xf32>
  %2 = nn.add %1, %d : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// A call costs what its callee does.
func.func @calls(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4xf32>) -> tensor<8x4xf32> {
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} Overlap {{.*}}comm.all_reduce 'e': 2 commands between start and wait: 384 FLOPs, 1232 bytes of memory, 256 bytes sent
  %e = comm.all_reduce sum(%x) over <@mesh, {tp}> role "e" : tensor<8x4xf32>
  %0 = call @operations(%x, %w, %v) : (tensor<8x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  // CHECK: remarks.mlir:[[#@LINE+1]]:{{.*}} NoOverlap {{.*}}comm.all_reduce 'f': nothing to compute between start and wait: func.call @operations communicates before it, and rt.launch @gelu needs its result
  %f = comm.all_reduce sum(%x) over <@mesh, {tp}> role "f" : tensor<8x4xf32>
  %1 = rt.launch @gelu rows 8 ins(%f : tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = nn.add %1, %e : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %3 = nn.add %2, %0 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
