//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTPROCEDUREOPS_TD
#define BRAID_DIALECTS_RT_RTPROCEDUREOPS_TD

include "dialects/RT/IR/RTBase.td"
include "dialects/RT/IR/RTAttrs.td"
include "dialects/Comm/IR/CommAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/CallInterfaces.td"

def RT_Element : AnyTypeOf<[F32, F16, BF16, F64, I32, I64, I8], "f32, f16, bf16, f64, i32, i64 or i8">;
def RT_Tensor : ConfinedType<AnyStaticShapeTensor, [Comm_Bounded], "statically shaped tensor of at most 2^48 elements">;
/// The type says how a view walks its memory, not where it begins: that follows from the operation that defines it.
def RT_Memory : ConfinedType<StaticShapeMemRefOf<[RT_Element]>,
    [CPred<"::braid::rt::hasStaticStrides(::llvm::cast<::mlir::MemRefType>($_self))">, Comm_Bounded],
    "statically shaped memory of at most 2^48 f32, f16, bf16, f64, i32, i64 or i8 with static strides and no offset",
    "::mlir::MemRefType">;

def RT_ProcedureOp : RT_Op<"procedure", [IsolatedFromAbove, Symbol, FunctionOpInterface, SingleBlock,
                                         HasParent<"::mlir::ModuleOp">,
                                         DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A sequence of commands on queues";
  let description = [{
    ```mlir
    rt.procedure @layer(%x: memref<8x384xf32> {rt.name = "x"}, %w: memref<384x384xf32> {rt.name = "w"},
                        %out: memref<8x384xf32> {rt.result}) frame <local 12288, symmetric 0, events 0> {
      %h = rt.alloc at 0 : memref<8x384xf32, #rt.space<local>>
      rt.launch @matmul rows 8 ins(%x, %w : memref<8x384xf32>, memref<384x384xf32>)
          outs(%h : memref<8x384xf32, #rt.space<local>>)
      rt.launch @gelu rows 8 ins(%h : memref<8x384xf32, #rt.space<local>>) outs(%out : memref<8x384xf32>)
      rt.return
    }
    ```
    The order of commands is the order on each queue; between queues only events order them. A procedure writes its
    results to its `rt.result` arguments. The frame says how many bytes of the arenas and how many events the procedure
    and all its callees need; buffer assignment adds it.

    The arguments of an entry are the values that a bundle's manifest lists: first parameters (`rt.parameter`), then
    states (`rt.state`), which the procedure reads and writes in place, then operands (`rt.operand`), then results
    (`rt.result` with a value).

    Arguments are memory, then events. An argument in memory is read (`in`), or written (`rt.result`), or both
    (`rt.inout`). One with `#rt.space<symmetric>` must lie in the symmetric arena, since a collective of the procedure or
    of a callee uses it in place; one without a space may lie anywhere. A session allocates the symmetric arguments of an
    entry behind the frame, at one offset on all ranks.

    Events connect what is in flight across calls. A caller passes an event, which the procedure awaits, in an argument of
    type `!rt.event`; the procedure hands out an event in `rt.return`, and its memory stays in use until the caller has
    awaited that event:
    ```mlir
    rt.procedure @begin(%a: memref<8xf32, #rt.space<symmetric>>, %b: memref<8xf32, #rt.space<symmetric>> {rt.result})
        -> !rt.event {
      %done = rt.start all_reduce with sum ins(%a : ...) outs(%b : ...) over <@mesh, {tp}>
      rt.return %done : !rt.event
    }
    rt.procedure @end(%b: memref<8xf32>, %out: memref<8xf32> {rt.result}, %done: !rt.event) {
      rt.wait %done
      rt.copy ins(%b : memref<8xf32>) outs(%out : memref<8xf32>)
      rt.return
    }
    ```

    Constraints:
    - (rt.procedure_c1) arguments are contiguous memory of at most 2^48 elements, without a space or symmetric,
      and then events; results are events;
    - (rt.procedure_c2) the body ends in rt.return and otherwise holds rt commands only;
    - (rt.procedure_c3) of the arguments, commands write only those with `rt.result`, `rt.inout` or `rt.state`;
    - (rt.procedure_c4) every argument of an entry is memory and has exactly one of rt.parameter, rt.state, rt.operand and
      rt.result (with a value), in this order, and has the element type and the rank of the global type; an entry has no results;
    - (rt.procedure_c5) with a frame, every buffer has an offset, every call has a place for its callee's frame and
      every event has a number, all within the frame; without a frame, none has;
    - (rt.procedure_c6) no argument has both `rt.result` and `rt.inout`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       UnitAttr:$entry, OptionalAttr<RT_FrameAttr>:$frame);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments,
                             CArg<"unsigned", "0">:$numEvents)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }

    /// The ranks that have an argument of an entry; null: all.
    ::braid::comm::PlaceAttr getPlace(unsigned argument);
    /// The arguments in memory, which come before those that are events.
    ::llvm::ArrayRef<::mlir::Type> getMemoryTypes();
    /// What commands of the procedure do with an argument in memory.
    bool isRead(unsigned index) { return !getArgAttr(index, RTDialect::kResultAttrName); }
    bool isWritten(unsigned index) {
      return getArgAttr(index, RTDialect::kResultAttrName) || getArgAttr(index, RTDialect::kInoutAttrName) ||
             getArgAttr(index, RTDialect::kStateAttrName);
    }
  }];
}

def RT_ReturnOp : RT_Op<"return", [Terminator, HasParent<"::braid::rt::ProcedureOp">]> {
  let summary = "Ends a procedure and hands out events";
  let description = [{
    ```mlir
    rt.return
    rt.return %done : !rt.event
    ```
    The commands behind an event that is handed out may still run when the procedure has ended.

    Constraints:
    - (rt.return_c1) it has as many events as the procedure has results.
  }];
  let arguments = (ins Variadic<RT_EventType>:$events);
  let assemblyFormat = "($events^ `:` type($events))? attr-dict";
  let hasVerifier = 1;
}

def RT_AllocOp : RT_Op<"alloc"> {
  let summary = "A buffer of the frame";
  let description = [{
    ```mlir
    %a = rt.alloc : memref<8x384xf32, #rt.space<local>>            // not yet assigned
    %b = rt.alloc at 128 : memref<8x384xf32, #rt.space<symmetric>> // bytes from the frame's base
    ```
    Buffers whose lives do not overlap may share bytes.

    Constraints:
    - (rt.alloc_c1) the result has a space and is contiguous;
    - (rt.alloc_c2) the offset is a multiple of 64.
  }];
  let arguments = (ins OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset);
  let results = (outs Res<RT_Memory, "", [MemAlloc]>:$buffer);
  let assemblyFormat = "(`at` $offset^)? attr-dict `:` type($buffer)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    Space getSpace();
    int64_t getSizeInBytes();
  }];
}

def RT_ViewOp : RT_Op<"view", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "The same memory in another shape";
  let description = [{
    ```mlir
    %v = rt.view %x : memref<8x128x384xf32> to memref<8x128x12x32xf32>
    %w = rt.view %y : memref<8x4xf32, strided<[16, 1]>> to memref<8x2x2xf32, strided<[16, 2, 1]>>
    ```
    Element i of the result in row-major order is element i of the source.

    Constraints:
    - (rt.view_c1) both types have the same number of elements, element type and space;
    - (rt.view_c2) the result's strides are those of the source in the new shape, which exist if every dimension of the
      result lies in one dimension of the source or spans dimensions that are contiguous to each other.
  }];
  let arguments = (ins RT_Memory:$source);
  let results = (outs RT_Memory:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def RT_SubviewOp : RT_Op<"subview", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Part of a memory";
  let description = [{
    Elements `offsets` to `offsets + shape of the result` of the source:
    ```mlir
    %rows = rt.subview %x at [4, 0] : memref<8x16xf32> to memref<2x16xf32>
    %columns = rt.subview %x at [0, 4] : memref<8x16xf32> to memref<8x4xf32, strided<[16, 1]>>
    ```
    With `part`, the place depends on the rank: on the rank at position p of the group of n, the part begins
    ((p + shift) mod n) * (the result's size in this dimension) further on in dimension `part`.
    ```mlir
    %mine = rt.subview %x at [0, 0] part 0 shift 1 over <@mesh, {tp}> : memref<8x16xf32> to memref<4x16xf32>
    ```

    Constraints:
    - (rt.subview_c1) there is an offset for each dimension, none is negative, and the part lies inside of the source on
      every rank;
    - (rt.subview_c2) the result has the source's rank, element type, space and strides;
    - (rt.subview_c3) `part` is a dimension, and it is given with a known group, or neither is; a shift needs both;
    - (rt.subview_c4) the source is not itself, through views, a part by rank if this one is.
  }];
  let arguments = (ins RT_Memory:$source, DenseI64ArrayAttr:$offsets, OptionalAttr<I64Attr>:$part,
                       OptionalAttr<I64Attr>:$shift, OptionalAttr<Comm_GroupAttr>:$group);
  let results = (outs RT_Memory:$result);
  let assemblyFormat = [{
    $source `at` $offsets (`part` $part^)? (`shift` $shift^)? (`over` $group^)? attr-dict
    `:` type($source) `to` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Elements from the source's first one to the result's, without the rank's part.
    int64_t getOffsetInElements();
  }];
}

def RT_CallOp : RT_Op<"call", [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs another procedure";
  let description = [{
    ```mlir
    rt.call @layer(%x, %w, %out) at <local 4096, symmetric 0, events 2> : memref<8x384xf32>, ...
    %done = rt.call @begin(%a, %b) : memref<8xf32, #rt.space<symmetric>>, ... -> !rt.event
    rt.call @end(%b, %out, %done) : memref<8xf32, #rt.space<symmetric>>, memref<8xf32>, !rt.event
    ```
    The call stands in every queue's stream. `at` is the callee's frame's place in the caller's; buffer assignment adds it.
    With `comm.on`, only the ranks of a place run the procedure:
    ```mlir
    rt.call @first(%x, %out) {comm.on = #comm.place<@mesh, {pp = [0]}>} : memref<8x384xf32>, memref<8x384xf32>
    ```

    Constraints:
    - (rt.call_c1) the callee is an rt.procedure that is not an entry; operands in memory have the shapes and element types
      of its arguments, operands that are events stand for its events, and results for its results;
    - (rt.call_c2) operands are contiguous, and symmetric where the callee's argument is.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyTypeOf<[RT_Memory, RT_EventType]>>:$arguments,
                       OptionalAttr<RT_FrameAttr>:$base);
  let results = (outs Variadic<RT_EventType>:$events);
  let assemblyFormat = [{
    $callee `(` $arguments `)` (`at` $base^)? attr-dict (`:` type($arguments)^)? (`->` type($events)^)?
  }];
  let extraClassDeclaration = [{
    /// The procedure that `callee` names; null before symbols are verified if there is none.
    ProcedureOp getProcedure();

    // CallOpInterface; a call has no attributes for its arguments.
    ::mlir::CallInterfaceCallable getCallableForCallee() { return getCalleeAttr(); }
    void setCalleeFromCallable(::mlir::CallInterfaceCallable callee) {
      setCalleeAttr(::llvm::cast<::mlir::FlatSymbolRefAttr>(::llvm::cast<::mlir::SymbolRefAttr>(callee)));
    }
    ::mlir::Operation::operand_range getArgOperands() { return getArguments(); }
    ::mlir::MutableOperandRange getArgOperandsMutable() { return getArgumentsMutable(); }
    ::mlir::ArrayAttr getArgAttrsAttr() { return {}; }
    ::mlir::ArrayAttr getResAttrsAttr() { return {}; }
    void setArgAttrsAttr(::mlir::ArrayAttr) {}
    void setResAttrsAttr(::mlir::ArrayAttr) {}
    ::mlir::Attribute removeArgAttrsAttr() { return {}; }
    ::mlir::Attribute removeResAttrsAttr() { return {}; }
  }];
}

#endif
