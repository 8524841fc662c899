// What rewrites do to the names of collectives.
// RUN: braid-opt %s --braid-split-all-reduce | FileCheck %s --check-prefix=SPLIT
// RUN: braid-opt %s --braid-split-all-reduce --braid-join-all-reduce | FileCheck %s --check-prefix=JOINED
// RUN: braid-opt %s --braid-merge-collectives | FileCheck %s --check-prefix=MERGED
// RUN: braid-opt %s --braid-merge-collectives --braid-split-all-reduce | FileCheck %s --check-prefix=PARTS
// RUN: braid-opt %s --braid-merge-collectives --braid-split-all-reduce --braid-unmerge-collectives --braid-join-all-reduce | FileCheck %s --check-prefix=JOINED
// RUN: braid-opt %s --braid-split-all-reduce --braid-merge-collectives --braid-unmerge-collectives --braid-join-all-reduce | FileCheck %s --check-prefix=JOINED

comm.mesh @mesh <tp = 2>

// SPLIT-LABEL: func.func @two
// SPLIT: comm.reduce_scatter {{.*}} role "a/reduce_scatter"
// SPLIT: comm.all_gather({{.*}} role "a/all_gather"
// SPLIT: comm.reduce_scatter {{.*}} role "b/reduce_scatter"
// SPLIT: comm.all_gather({{.*}} role "b/all_gather"
// JOINED-LABEL: func.func @two
// JOINED: comm.all_reduce {{.*}} role "a"
// JOINED: comm.all_reduce {{.*}} role "b"
// MERGED-LABEL: func.func @two
// MERGED: comm.all_reduce {{.*}} role "a+b"
// PARTS-LABEL: func.func @two
// PARTS: comm.reduce_scatter {{.*}} role "a/reduce_scatter+b/reduce_scatter"
// PARTS: comm.all_gather({{.*}} role "a/all_gather+b/all_gather"
func.func @two(%x: tensor<8x4xf32>, %y: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
  %1 = comm.all_reduce sum(%y) over <@mesh, {tp}> role "b" : tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
