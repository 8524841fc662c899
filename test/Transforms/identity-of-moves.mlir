// A collective that moves is called by the same path: "@main/@layer#1/out" is the one that @layer had for its second call.
// RUN: braid-opt %s --braid-identify-collectives --braid-sink-all-gathers --braid-identify-collectives | FileCheck %s --check-prefix=SUNK
// RUN: braid-opt %s --braid-identify-collectives --braid-sink-all-gathers --braid-hoist-all-gathers | FileCheck %s --check-prefix=HOISTED

comm.mesh @mesh <tp = 2>

// One gather of a sum takes the place of those of its terms.
// SUNK-LABEL: func.func @terms
// SUNK: comm.all_gather({{.*}} role "x&y"
func.func @terms(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = comm.all_gather(%x) dim 0 over <@mesh, {tp}> role "x" : tensor<4x4xf32> -> tensor<8x4xf32>
  %1 = comm.all_gather(%y) dim 0 over <@mesh, {tp}> role "y" : tensor<4x4xf32> -> tensor<8x4xf32>
  %2 = nn.add %0, %1 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// SUNK-LABEL: func.func @main
// SUNK: call @layer
// SUNK: comm.all_gather({{.*}} role "@layer#0/out"
// SUNK: comm.all_gather({{.*}} role "@layer#1/out"
// Through the function, and out of it again at the other end.
// HOISTED-LABEL: func.func @main
// HOISTED: comm.all_gather(%arg0) {{.*}} role "@layer#0/out"
// HOISTED: call @layer
// HOISTED: comm.all_gather(%arg1) {{.*}} role "@layer#1/out"
// HOISTED: call @layer
func.func @main(%x: tensor<4x4xf32> {nn.name = "x"}, %y: tensor<4x4xf32> {nn.name = "y"})
    -> (tensor<8x4xf32> {nn.name = "v"}, tensor<8x4xf32> {nn.name = "w"}) attributes {nn.entry} {
  %0 = call @layer(%x) : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = call @layer(%y) : (tensor<4x4xf32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @layer(%x: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = nn.activation gelu %x : tensor<4x4xf32>
  %1 = comm.all_gather(%0) dim 0 over <@mesh, {tp}> role "out" : tensor<4x4xf32> -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
