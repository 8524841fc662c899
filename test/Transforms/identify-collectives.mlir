// RUN: braid-opt %s --braid-identify-collectives | FileCheck %s
// RUN: braid-opt %s --braid-identify-collectives -o %t.once
// RUN: braid-opt %t.once --braid-identify-collectives -o %t.twice && diff %t.once %t.twice

comm.mesh @mesh <tp = 2>

// A role that occurs again is numbered, though its first number is taken; a collective without one takes the name of its
// operation. Those that are started count too.
// CHECK-LABEL: func.func @roles
// CHECK: comm.all_reduce {{.*}} role "a" :
// CHECK: comm.all_reduce {{.*}} role "a#2" :
// CHECK: comm.all_reduce {{.*}} role "a#1" :
// CHECK: comm.all_reduce {{.*}} role "all_reduce" :
// CHECK: comm.all_reduce {{.*}} role "all_reduce#1" :
// CHECK: comm.start
// CHECK-NEXT: comm.all_reduce {{.*}} role "a#3" :
func.func @roles(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
  %2 = comm.all_reduce sum(%1) over <@mesh, {tp}> role "a#1" : tensor<8x4xf32>
  %3 = comm.all_reduce sum(%2) over <@mesh, {tp}> : tensor<8x4xf32>
  %4 = comm.all_reduce sum(%3) over <@mesh, {tp}> : tensor<8x4xf32>
  %h = comm.start (%a = %4) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %5 = comm.wait %h keeping %4 : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %5 : tensor<8x4xf32>
}

// A role may occur in several functions. The name of the value in the source serves as well.
// CHECK-LABEL: func.func @other
// CHECK: comm.all_reduce {{.*}} role "a" :
// CHECK: comm.all_reduce {{.*}} role "sum" :
func.func @other(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = comm.all_reduce sum(%x) over <@mesh, {tp}> role "a" : tensor<8x4xf32>
  %1 = comm.all_reduce sum(%0) over <@mesh, {tp}> : tensor<8x4xf32> loc("sum")
  return %1 : tensor<8x4xf32>
}

// Calls of one callee are numbered; the only call of a callee is named by it. A name that is given stays.
// CHECK-LABEL: func.func @calls
// CHECK: call @other(%{{.*}}) {comm.call = "other#0"}
// CHECK: call @roles(%{{.*}}) : (
// CHECK: call @other(%{{.*}}) {comm.call = "other#1"}
// CHECK: call @other(%{{.*}}) {comm.call = "last"}
func.func @calls(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = call @other(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = call @roles(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = call @other(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = call @other(%2) {comm.call = "last"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
