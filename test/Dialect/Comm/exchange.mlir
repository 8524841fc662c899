// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s

comm.mesh @mesh <dp = 2, tp = 4>

// CHECK-LABEL: func.func @exchanges
func.func @exchanges(%x: tensor<8x16xf32>, %n: tensor<4x4xi64>) {
  // CHECK: comm.all_to_all(%{{.*}}, %{{.*}}) split 1 concat 0 over <@mesh, {tp}> role "attention.heads" : tensor<8x16xf32>, tensor<4x4xi64> -> tensor<32x4xf32>, tensor<16x1xi64>
  %0:2 = comm.all_to_all(%x, %n) split 1 concat 0 over <@mesh, {tp}> role "attention.heads" : tensor<8x16xf32>, tensor<4x4xi64> -> tensor<32x4xf32>, tensor<16x1xi64>
  // CHECK: comm.all_to_all(%{{.*}}) split 0 concat 0 over <@mesh, {tp:(2)2}> : tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = comm.all_to_all(%x) split 0 concat 0 over <@mesh, {tp:(2)2}> : tensor<8x16xf32> -> tensor<8x16xf32>
  // CHECK: comm.reduce max(%{{.*}}) to 7 over <@mesh, {dp, tp}> role "loss" : tensor<8x16xf32>
  %2 = comm.reduce max(%x) to 7 over <@mesh, {dp, tp}> role "loss" : tensor<8x16xf32>
  // CHECK: comm.broadcast(%{{.*}}, %{{.*}}) from 1 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<4x4xi64>
  %3:2 = comm.broadcast(%x, %n) from 1 over <@mesh, {dp}> : tensor<8x16xf32>, tensor<4x4xi64>
  // CHECK: comm.permute(%{{.*}}) pairs [0 -> 1, 1 -> 2, 2 -> 3] over <@mesh, {tp}> : tensor<8x16xf32>
  %4 = comm.permute(%x) pairs [0 -> 1, 1 -> 2, 2 -> 3] over <@mesh, {tp}> : tensor<8x16xf32>
  // CHECK: comm.permute(%{{.*}}) pairs [] over <@mesh, {tp}> : tensor<8x16xf32>
  %5 = comm.permute(%x) pairs [] over <@mesh, {tp}> : tensor<8x16xf32>
  // CHECK: comm.start
  // CHECK-NEXT: comm.all_to_all
  %h = comm.start (%a = %x) : tensor<8x16xf32> -> !comm.handle<tensor<2x64xf32>> {
    %r = comm.all_to_all(%a) split 0 concat 1 over <@mesh, {tp}> : tensor<8x16xf32> -> tensor<2x64xf32>
    comm.yield %r : tensor<2x64xf32>
  }
  %6 = comm.wait %h keeping %x : !comm.handle<tensor<2x64xf32>>, tensor<8x16xf32> -> tensor<2x64xf32>
  return
}
