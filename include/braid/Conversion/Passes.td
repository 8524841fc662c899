//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_CONVERSION_PASSES_TD
#define BRAID_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormKernels : Pass<"braid-form-kernels", "::mlir::ModuleOp"> {
  let summary = "Fuse chains of row operations into kernels";
  let description = [{
    Operations that act on rows (elementwise, or reducing the last dimension) become `rt.kernel` symbols, and `rt.launch`
    operations replace them. A producer joins the kernel of its first user when both have the same shape. If later
    operations use its value too, it is a further result of the kernel. A kernel runs at the place of its last operation.

    Before:
    ```mlir
    %0 = nn.add %x, %residual : tensor<8x128x384xf32>, tensor<8x128x384xf32> -> tensor<8x128x384xf32>
    %1 = nn.layer_norm %0, %w, %b epsilon 1.0e-12 : ... -> tensor<8x128x384xf32>
    ```
    After:
    ```mlir
    rt.kernel @add_layer_norm(%arg0: tensor<?x384xf32>, %arg1: tensor<?x384xf32>, %arg2: tensor<384xf32>,
                              %arg3: tensor<384xf32>) -> tensor<?x384xf32> { ... }
    %1 = rt.launch @add_layer_norm rows 1024 ins(%x, %residual, %w, %b : ...) -> tensor<8x128x384xf32>
    ```
    All leading dimensions are collapsed into rows, unless an operand has some but not all of them (positions of
    [seq, hidden] added to [batch, seq, hidden]); then the outermost one is the launch's rows. Equal kernels are one
    symbol.

    Where an nn.add would be a kernel of its own and one of its operands is a product (nn.linear, nn.matmul) that nothing
    else uses, the product adds to the other operand (`nn.matmul ... plus`), if nothing else uses that one and no
    collective lies between product and sum.

    A decode (`nn.decode`, `nn.decode_sum`) joins the kernel that takes its rows, and an `nn.encode` the kernel that gives
    them, where shapes are the same: the operand of the kernel is then the payload, and its `rt.payload` says how it is
    encoded. A decode whose rows an encode takes is a kernel with it. With padding between the parts of a payload, or rows
    that do not exist, this is the same. The own rows of a sum are an argument of the kernel, which `rt.payload` names. Where the rows come from or go to something else, such as a matmul or a value in
    another shape, or are too long for kernels of the `target`, a codec stays an operation of its own, and a remark says
    so.

    Before:
    ```mlir
    %0 = nn.decode_sum %p senders 4 as <"int8:128"> of f32 : tensor<4x1568xi8> -> tensor<4x384xf32>
    %1 = nn.add %0, %residual : tensor<4x384xf32>, tensor<4x384xf32> -> tensor<4x384xf32>
    %2 = nn.encode %1 as <"int8:128"> : tensor<4x384xf32> -> tensor<1x1568xi8>
    ```
    After:
    ```mlir
    rt.kernel @decode_sum_add_encode(%arg0: tensor<?x384xf32> {rt.payload = #rt.payload<"int8:128" of f32 senders 4>},
                                     %arg1: tensor<?x384xf32>)
        -> (tensor<?x384xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) { ... }
    %2 = rt.launch @decode_sum_add_encode rows 4 ins(%p, %residual : ...) -> tensor<1x1568xi8>
    ```

    An operation that a library's function computes (`LibraryKernelOpInterface`) becomes a kernel without a body and a
    launch.

    Collectives are placed after this pass, and joining must not take away what could hide them. A collective is in flight
    from where `braid-start-collectives` would start it in the given block (right after the last of its operands, or after
    the command before it that communicates) to the first operation or kernel that needs its result. An operation in
    flight with a collective that it does not need is not joined with a kernel that runs after the flight, and an operand
    of a collective is computed no later than before. A kernel may run later than the first of its operations, which
    lengthens the flight of a collective that this operation needs.

    In a module that has starts and waits these are where flights begin and end, and they stay in their places. Only a
    `comm.wait` that stood right before its first user stands right before the kernel that this user has become a part of.

    Remarks (category `kernels`) name the operations of each kernel, and each producer that was not joined and why.
  }];
  let options = [
    Option<"fuse", "fuse", "bool", /*default=*/"true", "Join producers and consumers; otherwise one kernel per operation">,
    Option<"fuseCodecs", "fuse-codecs", "bool", /*default=*/"true",
           "Join encodes and decodes with kernels; otherwise, and without fuse, they stay operations of their own">,
    Option<"target", "target", "::braid::KernelTarget", /*default=*/"::braid::KernelTarget::CPU",
           "The target whose kernels codecs are joined with",
           [{::llvm::cl::values(
             clEnumValN(::braid::KernelTarget::CPU, "cpu", "rows of any length"),
             clEnumValN(::braid::KernelTarget::CUDA, "cuda", "rows that fit the shared memory of a block"))}]>,
  ];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Distinct kernels formed">,
    Statistic<"numLaunches", "num-launches", "Launches">,
    Statistic<"numJoined", "num-joined", "Operations that share a kernel with their user">,
    Statistic<"numAccumulations", "num-accumulations", "Sums that the kernel of a matmul adds to">,
  ];
  let dependentDialects = ["::braid::rt::RTDialect", "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"];
}

def LowerToRT : Pass<"braid-lower-to-rt", "::mlir::ModuleOp"> {
  let summary = "Turn scheduled functions into procedures on memory";
  let description = [{
    Every function becomes an `rt.procedure` and every value memory: a buffer of the frame (not yet placed), a view, an
    argument or, for a result of the function, its destination argument. Values share memory where that saves a copy: a
    slice is a view of its operand, and the operands of a concatenation are defined in place, as views of its memory.
    Operands and results of collectives are in symmetric memory; where they are arguments or results of the function, the
    procedure asks its callers for symmetric memory, also if it is an entry: then a session allocates these parameters,
    operands and results there. Every copy has a remark (category `buffers`) that says why.

    | before | after |
    |--------|-------|
    | operations that kernels of the runtime's library compute (`KernelCallOpInterface`: `nn.linear`, `nn.attention`, ...) | an `rt.kernel` with that `library`, once for equal types and scalars, and an `rt.launch` |
    | the `nn.add` of a bias directly after an `nn.linear` | the optional operand `bias` |
    | the accumulator of an `nn.matmul` | the output's memory, which the kernel adds to; a copy of it where something else uses it |
    | `nn.split_heads`, `nn.merge_heads` | `rt.view` |
    | `nn.slice` | `rt.subview` |
    | `nn.concat` | nothing, or a copy of an operand that is already elsewhere |
    | `rt.launch` on tensors | `rt.launch` on memory, operands viewed as rows |
    | `comm.start` | `rt.record` on compute, `rt.await` and `rt.start` on the communication queue of its index |
    | `comm.wait` | `rt.wait` |
    | `comm.part` | an `rt.launch` of `part` |
    | `func.call` | `rt.call`, results as destination arguments |
    | a handle in a signature | an event, and the memory of the values that the collective writes |

    The entry's procedure takes its parameters, then its operands, then its results, each with its description in the bundle.

    Before:
    ```mlir
    func.func @mlp(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
      %0 = nn.linear %x, %w role "mlp.down" : tensor<8x4xf32>, tensor<4x4xf32> -> tensor<8x4xf32>
      %h = comm.start (%a = %0) : tensor<8x4xf32> -> !comm.handle<tensor<8x4xf32>> { ... all_reduce ... }
      %1 = comm.wait %h keeping %0 : ...
      %2 = rt.launch @gelu rows 8 ins(%1 : tensor<8x4xf32>) -> tensor<8x4xf32>
      return %2 : tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    rt.procedure @mlp(%0: memref<8x4xf32>, %1: memref<4x4xf32>, %2: memref<8x4xf32> {rt.result}) {
      %a = rt.alloc : memref<8x4xf32, #rt.space<symmetric>>
      rt.launch @matmul rows 8 ins(%0, %1 : ...) outs(%a : ...)
      %b = rt.alloc : memref<8x4xf32, #rt.space<symmetric>>
      %e = rt.record on compute
      rt.await %e on communication
      %d = rt.start all_reduce with sum ins(%a : ...) outs(%b : ...) over <@mesh, {tp}> role "mlp.down"
      rt.wait %d
      rt.launch @gelu rows 8 ins(%b : ...) outs(%2 : memref<8x4xf32>)
      rt.return
    }
    ```
    A collective outside of a start or a row operation outside of a kernel is an error.
  }];
  let statistics = [
    Statistic<"numProcedures", "num-procedures", "Procedures built">,
    Statistic<"numCopies", "num-copies", "Copies between memory that values could not share">,
  ];
  let dependentDialects = ["::braid::rt::RTDialect"];
}

def AssignBuffers : Pass<"braid-assign-buffers", "::mlir::ModuleOp"> {
  let summary = "Place every buffer in its arena, and number events";
  let description = [{
    A buffer lives from the first command that accesses it, of this procedure or of a callee, to the last, in the
    happens-before order of all queues: a collective's buffer is free when a command has waited for it. Buffers that do not
    live at the same time share bytes; each arena is packed greedily by
    size, at multiples of 64 bytes. Callees' frames are temporaries of the calling procedure. The result of an elementwise
    kernel reuses the bytes of an input whose last use it is. Every event gets a number of its own, callees' after the
    caller's.

    Before:
    ```mlir
    rt.procedure @f(%x: memref<16xf32>, %out: memref<16xf32> {rt.result}) {
      %a = rt.alloc : memref<16xf32, #rt.space<local>>
      %b = rt.alloc : memref<16xf32, #rt.space<local>>
      rt.copy ins(%x : ...) outs(%a : ...)
      rt.copy ins(%a : ...) outs(%out : ...)
      rt.copy ins(%x : ...) outs(%b : ...)
      rt.copy ins(%b : ...) outs(%out : ...)
      rt.return
    }
    ```
    After:
    ```mlir
    rt.procedure @f(...) frame <local 64, symmetric 0, events 0> {
      %a = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
      %b = rt.alloc at 0 : memref<16xf32, #rt.space<local>>
      ...
    ```
    A procedure that has a frame keeps its places. The pass ends with the check of `braid-verify-buffers`. Remarks (category
    `buffers`) give the bytes of each arena, the bytes that are live at once (in the order of the body, with every collective in
    flight as long as it may be) and the sum of its buffers. A procedure that calls itself is an error.
  }];
  let options = [
    Option<"inPlace", "in-place", "bool", /*default=*/"true",
           "Let results of elementwise kernels reuse the bytes of inputs whose last use they are">,
  ];
  let statistics = [
    Statistic<"localBytes", "local-bytes", "Local memory of the entries">,
    Statistic<"symmetricBytes", "symmetric-bytes", "Symmetric memory of the entries">,
    Statistic<"numShared", "num-in-place", "Buffers that reuse the bytes of an input">,
  ];
  let dependentDialects = ["::braid::rt::RTDialect"];
}

def VerifyBuffers : Pass<"braid-verify-buffers", "::mlir::ModuleOp"> {
  let summary = "Check every memory access against the order of queues and events";
  let description = [{
    Derives which commands of a procedure must have ended before another begins: those before it on its queue, and those
    before an event that it, or a command before it, awaits. If two commands access one buffer and one of them writes it, the
    first must be ordered before the second. Memory that is read must have been written, and every result must be written.
    Two buffers (or callees' frames) may share bytes only if all commands that access one are ordered before all that access
    the other, or if a kernel that can run in place reads one and writes the other. Communication must be ordered within the
    procedure's begin and end, and no event may be used twice. IR is not changed; the first fault of each procedure is an
    error that names both commands. `braid-assign-buffers` ends with this check, so every compilation does it.

    For instance, without the wait, `%b` may be overwritten while the collective still writes it:
    ```mlir
    %b = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
    %c = rt.alloc at 64 : memref<16xf32, #rt.space<symmetric>>
    %d = rt.start all_reduce with sum ins(%a : ...) outs(%b : ...) over <@mesh, {tp}> event 1
    rt.copy ins(%x : ...) outs(%c : ...)
    rt.wait %d
    ```
  }];
  let options = [
    ListOption<"skip", "skip", "std::string",
               "Rules that are not checked, for tests that show that each is needed: frame, events, arguments, once, "
               "in-place, race, unwritten, result, joined or sharing">,
  ];
}

#endif
