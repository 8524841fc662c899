// RUN: braid-opt %s | braid-opt | FileCheck %s
// RUN: braid-opt %s --mlir-print-op-generic | braid-opt | FileCheck %s
// RUN: braid-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL

comm.mesh @mesh <one = 1, tp = 3>

// CHECK-LABEL: func.func @round_trip
func.func @round_trip(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  // CHECK: %[[A:.*]] = comm.part %{{.*}} dim 0 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %a = comm.part %x dim 0 shift 0 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  // CHECK: %[[B:.*]] = comm.part %{{.*}} dim 0 shift -2 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %b = comm.part %x dim 0 shift -2 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  // CHECK: comm.assemble %[[A]], %[[B]], %[[B]] shifts [0, -1, 4] dim 0 over <@mesh, {tp}> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<6x4xf32>
  %r = comm.assemble %a, %b, %b shifts [0, -1, 4] dim 0 over <@mesh, {tp}> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// A part of an assembled value is one of its operands, by the shift modulo the number of parts.
// CANONICAL-LABEL: func.func @part_of_assembled
// CANONICAL-SAME: (%[[A:.*]]: tensor<2x4xf32>, %[[B:.*]]: tensor<2x4xf32>, %[[C:.*]]: tensor<2x4xf32>)
// CANONICAL-NEXT: return %[[A]], %[[C]], %[[B]]
func.func @part_of_assembled(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %r = comm.assemble %a, %b, %c shifts [0, -1, 4] dim 0 over <@mesh, {tp}> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<6x4xf32>
  %0 = comm.part %r dim 0 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %1 = comm.part %r dim 0 shift 1 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %2 = comm.part %r dim 0 shift 2 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// CANONICAL-LABEL: func.func @assembled_parts
// CANONICAL-SAME: (%[[X:.*]]: tensor<6x4xf32>)
// CANONICAL-NEXT: return %[[X]]
func.func @assembled_parts(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %a = comm.part %x dim 0 shift 1 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %b = comm.part %x dim 0 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %c = comm.part %x dim 0 shift 2 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %r = comm.assemble %a, %b, %c shifts [1, 0, -1] dim 0 over <@mesh, {tp}> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// The parts are not in their places.
// CANONICAL-LABEL: func.func @rotated
// CANONICAL: comm.assemble
func.func @rotated(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %a = comm.part %x dim 0 shift 1 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %b = comm.part %x dim 0 shift 2 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %c = comm.part %x dim 0 shift 0 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %r = comm.assemble %a, %b, %c shifts [0, 1, 2] dim 0 over <@mesh, {tp}> : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// A part of a gathered value at another position is another rank's shard; its shift becomes the smallest.
// CANONICAL-LABEL: func.func @gathered
// CANONICAL: %[[G:.*]] = comm.all_gather
// CANONICAL: comm.part %[[G]] dim 0 shift 2 over
// CANONICAL: comm.all_gather
func.func @gathered(%x: tensor<2x4xf32>, %y: tensor<6x4xf32>) -> (tensor<2x4xf32>, tensor<6x4xf32>) {
  %g = comm.all_gather(%x) dim 0 over <@mesh, {tp}> : tensor<2x4xf32> -> tensor<6x4xf32>
  %0 = comm.part %g dim 0 shift -1 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %1 = comm.part %y dim 0 shift 1 over <@mesh, {tp}> : tensor<6x4xf32> -> tensor<2x4xf32>
  %2 = comm.all_gather(%1) dim 0 over <@mesh, {tp}> : tensor<2x4xf32> -> tensor<6x4xf32>
  return %0, %2 : tensor<2x4xf32>, tensor<6x4xf32>
}

// CANONICAL-LABEL: func.func @alone
// CANONICAL-SAME: (%[[X:.*]]: tensor<6x4xf32>)
// CANONICAL-NEXT: return %[[X]], %[[X]]
func.func @alone(%x: tensor<6x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = comm.part %x dim 1 shift 5 over <@mesh, {one}> : tensor<6x4xf32> -> tensor<6x4xf32>
  %1 = comm.assemble %x shifts [7] dim 1 over <@mesh, {one}> : tensor<6x4xf32> -> tensor<6x4xf32>
  return %0, %1 : tensor<6x4xf32>, tensor<6x4xf32>
}
