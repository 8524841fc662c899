// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

comm.mesh @mesh <pp = 2, ep = 4>

// CHECK-LABEL: func.func @counted
func.func @counted(%x: tensor<8x16x4xf32>, %y: tensor<8x16xi64>, %c: tensor<8xi32>) -> tensor<8xi32> {
  // CHECK: %[[R:.*]]:2, %[[N:.*]] = comm.all_to_all_v(%{{.*}}, %{{.*}}) counts %{{.*}} : tensor<8xi32> over <@mesh, {ep}> role "moe.dispatch" : tensor<8x16x4xf32>, tensor<8x16xi64>
  %r:2, %n = comm.all_to_all_v(%x, %y) counts %c : tensor<8xi32> over <@mesh, {ep}> role "moe.dispatch" : tensor<8x16x4xf32>, tensor<8x16xi64>
  // CHECK: comm.all_to_all_v(%{{.*}}) counts %[[N]] : tensor<8xi32> over <@mesh, {ep:(2)2, pp}> : tensor<8x16x4xf32>
  %s, %m = comm.all_to_all_v(%r#0) counts %n : tensor<8xi32> over <@mesh, {ep:(2)2, pp}> : tensor<8x16x4xf32>
  // CHECK: comm.start (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : tensor<8x16x4xf32>, tensor<8xi32> -> !comm.handle<tensor<8x16x4xf32>, tensor<8xi32>>
  %h = comm.start (%a = %x, %b = %m) : tensor<8x16x4xf32>, tensor<8xi32> -> !comm.handle<tensor<8x16x4xf32>, tensor<8xi32>> {
    %v, %w = comm.all_to_all_v(%a) counts %b : tensor<8xi32> over <@mesh, {ep}> : tensor<8x16x4xf32>
    comm.yield %v, %w : tensor<8x16x4xf32>, tensor<8xi32>
  }
  %0:2 = comm.wait %h keeping %x, %m : !comm.handle<tensor<8x16x4xf32>, tensor<8xi32>>, tensor<8x16x4xf32>, tensor<8xi32> -> tensor<8x16x4xf32>, tensor<8xi32>
  return %0#1 : tensor<8xi32>
}

// CHECK-LABEL: func.func @halves
func.func @halves(%x: tensor<8xf32>, %n: tensor<2xi64>) -> tensor<8xf32> {
  // CHECK: comm.send(%{{.*}}, %{{.*}}) pairs [0 -> 1, 1 -> 2] over <@mesh, {ep}> tag 3 role "activation" : tensor<8xf32>, tensor<2xi64>
  comm.send(%x, %n) pairs [0 -> 1, 1 -> 2] over <@mesh, {ep}> tag 3 role "activation" : tensor<8xf32>, tensor<2xi64>
  // CHECK: %{{.*}}:2 = comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {ep}> tag 3 role "activation" : tensor<8xf32>, tensor<2xi64>
  %0:2 = comm.recv pairs [0 -> 1, 1 -> 2] over <@mesh, {ep}> tag 3 role "activation" : tensor<8xf32>, tensor<2xi64>
  // CHECK: comm.send(%{{.*}}) pairs [] over <@mesh, {ep:(1)2}> : tensor<8xf32>
  comm.send(%0#0) pairs [] over <@mesh, {ep:(1)2}> : tensor<8xf32>
  // CHECK: %[[S:.*]] = comm.start (%[[A:.*]] = %{{.*}}) : tensor<8xf32> -> !comm.handle {
  // CHECK-NEXT: comm.send(%[[A]])
  // CHECK-NEXT: comm.yield
  // CHECK-NEXT: }
  %s = comm.start (%a = %x) : tensor<8xf32> -> !comm.handle {
    comm.send(%a) pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
    comm.yield
  }
  // CHECK: %[[R:.*]] = comm.start () on 1 -> !comm.handle<tensor<8xf32>> {
  // CHECK-NEXT: %[[B:.*]] = comm.recv
  // CHECK-NEXT: comm.yield %[[B]] : tensor<8xf32>
  %r = comm.start () on 1 -> !comm.handle<tensor<8xf32>> {
    %b = comm.recv pairs [0 -> 1] over <@mesh, {pp}> : tensor<8xf32>
    comm.yield %b : tensor<8xf32>
  }
  // CHECK: comm.wait %[[S]] keeping %{{.*}} : !comm.handle, tensor<8xf32>{{$}}
  comm.wait %s keeping %x : !comm.handle, tensor<8xf32>
  // CHECK: comm.wait %[[R]] : !comm.handle<tensor<8xf32>> -> tensor<8xf32>
  %1 = comm.wait %r : !comm.handle<tensor<8xf32>> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
