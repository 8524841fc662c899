// RUN: braid-opt %s --split-input-file --verify-diagnostics --pass-pipeline="builtin.module(braid-verify-level{level=nn})" --allow-unregistered-dialect -o /dev/null
// RUN: braid-opt %S/Inputs/bert-layer.mlir --braid-verify-level=level=nn --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-verify-level=level=nn --braid-partition --braid-verify-level=level=comm --braid-form-kernels --braid-verify-level=level=kernels --braid-start-collectives --braid-verify-level=level=scheduled -o /dev/null
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-verify-level=level=comm 2>&1 | FileCheck %s --check-prefix=UNPARTITIONED
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-verify-level=level=scheduled 2>&1 | FileCheck %s --check-prefix=UNSCHEDULED
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-start-collectives --braid-verify-level=level=comm 2>&1 | FileCheck %s --check-prefix=SCHEDULED
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-verify-level=level=nn 2>&1 | FileCheck %s --check-prefix=LOCAL
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-verify-level=level=kernels 2>&1 | FileCheck %s --check-prefix=KERNELS
// RUN: braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-start-collectives --braid-verify-level=level=scheduled --braid-form-kernels --braid-verify-level=level=scheduled -o /dev/null
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-apply-strategy="mesh=tp=2" --braid-propagate-shardings --braid-partition --braid-start-collectives --braid-form-kernels --braid-verify-level=level=kernels 2>&1 | FileCheck %s --check-prefix=STARTED
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-verify-level=level=rt 2>&1 | FileCheck %s --check-prefix=RT
// RUN: not braid-opt %S/Inputs/bert-layer.mlir --braid-verify-level=level=hlo 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// RUN: not braid-opt %S/Inputs/partial-argument.mlir --braid-verify-level=level=comm 2>&1 | FileCheck %s --check-prefix=PARTIAL
// RUN: braid-opt %S/Inputs/handle-across-call.mlir --braid-verify-level=level=scheduled | FileCheck %s --check-prefix=HANDLE
// RUN: not braid-opt %S/Inputs/handle-of-entry.mlir --braid-verify-level=level=scheduled 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: braid-opt %S/Inputs/parts.mlir --braid-verify-level=level=nn --braid-propagate-shardings --braid-partition --braid-verify-level=level=comm --braid-form-kernels --braid-verify-level=level=kernels --braid-start-collectives --braid-verify-level=level=scheduled | FileCheck %s --check-prefix=PARTS
// RUN: not braid-opt %S/Inputs/slice.mlir --braid-verify-level=level=comm --braid-verify-level=level=kernels 2>&1 | FileCheck %s --check-prefix=SLICE

// PARTS: nn.slice
// PARTS: nn.concat
// HANDLE: call @begin({{.*}}) : (tensor<8x4xf32>) -> !comm.handle<tensor<8x4xf32>>
// ENTRY: error: 'func.func' op result 0 is a handle, which is not allowed at level scheduled in the signature of an entry, whose callers cannot wait for it
// SLICE: error: 'tensor.extract_slice' op is not allowed at level kernels: a procedure has no command for it outside of a kernel
// PARTIAL: error: 'func.func' op argument 0 is partial, which is not allowed at level comm: an entry takes and gives reduced values
// UNPARTITIONED: error: 'func.func' op argument 0 has a sharding but no 'comm.global_type', which is not allowed at level comm
// UNSCHEDULED: error: 'comm.all_reduce' op is not allowed at level scheduled
// SCHEDULED: error: 'comm.start' op is not allowed at level comm
// LOCAL: error: 'func.func' op argument 0 has a per-rank type, which is not allowed at level nn
// KERNELS: error: 'nn.add' op is not allowed at level kernels
// STARTED: error: 'comm.start' op is not allowed at level kernels
// RT: error: 'func.func' op is not allowed at level rt
// UNKNOWN: Cannot find option named 'hlo'

comm.mesh @mesh <tp = 2>
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @+1 {{'comm.start' op is not allowed at level nn}}
  %h = comm.start (%a = %x) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> {
    %r = comm.all_reduce sum(%a) over <@mesh, {tp}> : tensor<8x4xf32>
    comm.yield %r : tensor<8x4xf32>
  }
  %y = comm.wait %h keeping %x : !comm.handle<tensor<8x4xf32>>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// -----

func.func @f(%x: tensor<8x4xf32>) {
  // expected-error @+1 {{'other.op' op is not allowed at level nn}}
  "other.op"(%x) : (tensor<8x4xf32>) -> ()
  return
}

// -----

// Control flow is refused at level nn, even without collectives in it.
func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error @+1 {{'scf.for' op is not allowed at level nn: nothing runs control flow; loops are unrolled or become calls}}
  %z = scf.for %i = %c0 to %c1 step %c1 iter_args(%a = %x) -> (tensor<8x4xf32>) {
    scf.yield %a : tensor<8x4xf32>
  }
  return %z : tensor<8x4xf32>
}

// -----

func.func @f(%x: tensor<8x4xf32>, %v: f32) -> tensor<16x4xf32> {
  %0 = tensor.extract_slice %x[0, 0] [8, 4] [1, 1] : tensor<8x4xf32> to tensor<8x4xf32>
  %1 = tensor.insert_slice %0 into %x[0, 0] [8, 4] [1, 1] : tensor<8x4xf32> into tensor<8x4xf32>
  %2 = tensor.concat dim(0) %0, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  // expected-error @+1 {{'tensor.splat' op is not allowed at level nn: neither the interpreter nor a kernel computes it}}
  %3 = tensor.splat %v : tensor<16x4xf32>
  return %2 : tensor<16x4xf32>
}

// -----

// Parts of values are static and contiguous in every dimension.
func.func @f(%x: tensor<8x4xf32>, %i: index) -> tensor<2x4xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op is not allowed at level nn: offsets and sizes of a part are static}}
  %0 = tensor.extract_slice %x[%i, 0] [2, 4] [1, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @f(%x: tensor<8x4xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{'tensor.extract_slice' op is not allowed at level nn: a part has strides of 1}}
  %0 = tensor.extract_slice %x[0, 0] [2, 4] [2, 1] : tensor<8x4xf32> to tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

// expected-error @+1 {{'func.func' op argument 1 is a handle, which is not allowed at level nn: collectives are started at level scheduled}}
func.func @f(%x: tensor<8x4xf32>, %h: !comm.handle<tensor<8x4xf32>>) {
  return
}
