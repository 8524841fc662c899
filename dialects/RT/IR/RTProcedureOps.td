//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTPROCEDUREOPS_TD
#define BRAID_DIALECTS_RT_RTPROCEDUREOPS_TD

include "dialects/RT/IR/RTBase.td"
include "dialects/RT/IR/RTAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/CallInterfaces.td"

def RT_Element : AnyTypeOf<[F32, F16, BF16, F64, I32, I64, I8], "f32, f16, bf16, f64, i32, i64 or i8">;
def RT_Tensor : ConfinedType<AnyStaticShapeTensor, [Comm_Bounded], "statically shaped tensor of at most 2^48 elements">;
def RT_Memory : ConfinedType<StaticShapeMemRefOf<[RT_Element]>,
    [CPred<"::llvm::cast<::mlir::MemRefType>($_self).isStrided()">, Comm_Bounded],
    "statically shaped, strided memory of at most 2^48 f32, f16, bf16, f64, i32, i64 or i8", "::mlir::MemRefType">;

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
    operands (`rt.operand`), then results (`rt.result` with a value).

    Constraints:
    - (rt.procedure_c1) arguments are statically shaped, contiguous memory of at most 2^48 elements without a space, and
      there are no function results;
    - (rt.procedure_c2) the body ends in rt.return and otherwise holds rt commands only;
    - (rt.procedure_c3) of the arguments, commands write only the `rt.result` ones;
    - (rt.procedure_c4) every argument of an entry has exactly one of rt.parameter, rt.operand and rt.result (with a
      value), in this order, and has the element type and the rank of the global type;
    - (rt.procedure_c5) with a frame, every buffer has an offset, every call has a place for its callee's frame and
      every event has a number, all within the frame; without a frame, none has.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       UnitAttr:$entry, OptionalAttr<RT_FrameAttr>:$frame);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }

    /// True for arguments that the procedure writes.
    bool isResult(unsigned index) { return !!getArgAttr(index, RTDialect::kResultAttrName); }
  }];
}

def RT_ReturnOp : RT_Op<"return", [Terminator, HasParent<"::braid::rt::ProcedureOp">]> {
  let summary = "Ends a procedure";
  let assemblyFormat = "attr-dict";
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
  let summary = "Contiguous memory in another shape";
  let description = [{
    ```mlir
    %v = rt.view %x : memref<8x128x384xf32> to memref<8x128x12x32xf32>
    ```
    Constraints:
    - (rt.view_c1) both types are contiguous and have the same number of elements, element type and space.
  }];
  let arguments = (ins RT_Memory:$source);
  let results = (outs RT_Memory:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
}

def RT_CallOp : RT_Op<"call", [CallOpInterface, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                               DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "Runs another procedure";
  let description = [{
    ```mlir
    rt.call @layer(%x, %w, %out) at <local 4096, symmetric 0, events 2> : memref<8x384xf32>, ...
    ```
    The call stands in every queue's stream. `at` is the callee's frame's place in the caller's; buffer assignment adds it.

    Constraints:
    - (rt.call_c1) the callee is an rt.procedure that is not an entry, whose arguments have the operands' shapes and
      element types;
    - (rt.call_c2) operands are contiguous.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<RT_Memory>:$arguments, OptionalAttr<RT_FrameAttr>:$base);
  let assemblyFormat = [{
    $callee `(` $arguments `)` (`at` $base^)? attr-dict (`:` type($arguments)^)?
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
