// A gather does not move across the calls of a recursive function, since that would not end.
// RUN: braid-opt %s --braid-sink-all-gathers --remark-format=emitRemark --remarks-filter=communication -o /dev/null 2>&1 | FileCheck %s

// CHECK-COUNT-2: comm.all_gather 'endless': stays: '@{{even|odd}}' is recursive
// CHECK-NOT: moved
comm.mesh @mesh <tp = 2>

func.func @main(%x: tensor<4x8xf32> {nn.name = "x"}) -> (tensor<4x8xf32> {nn.name = "a"}) attributes {nn.entry} {
  %a = call @even(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}
func.func private @even(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "endless" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = call @odd(%g) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}
func.func private @odd(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = comm.reduce_scatter sum(%x) dim 0 over <@mesh, {tp}> : tensor<4x8xf32> -> tensor<2x8xf32>
  %g = comm.all_gather(%s) dim 0 over <@mesh, {tp}> role "endless" : tensor<2x8xf32> -> tensor<4x8xf32>
  %a = call @even(%g) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %a : tensor<4x8xf32>
}
