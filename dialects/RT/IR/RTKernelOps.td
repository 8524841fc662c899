//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_RT_RTKERNELOPS_TD
#define BRAID_DIALECTS_RT_RTKERNELOPS_TD

include "dialects/RT/IR/RTBase.td"
include "dialects/Comm/IR/CommAttrs.td"
include "mlir/IR/OpAsmInterface.td"

def RT_KernelOp : RT_Op<"kernel", [IsolatedFromAbove, Symbol, FunctionOpInterface, SingleBlock,
                                   HasParent<"::mlir::ModuleOp">, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                   DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A fused kernel: a chain of linalg operations over rows";
  let description = [{
    ```mlir
    rt.kernel @add_scale(%x: tensor<?x384xf32> {rt.name = "x"}, %y: tensor<?x384xf32> {rt.name = "y"},
                         %w: tensor<384xf32> {rt.name = "w"}) -> (tensor<?x384xf32> {rt.name = "out"}) {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x384xf32>
      %e = tensor.empty(%n) : tensor<?x384xf32>
      %r = linalg.generic {
          indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>,
                           affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %y, %w : tensor<?x384xf32>, tensor<?x384xf32>, tensor<384xf32>) outs(%e : tensor<?x384xf32>) {
        ^bb0(%a: f32, %b: f32, %s: f32, %o: f32):
          %0 = arith.addf %a, %b : f32
          %1 = arith.mulf %0, %s : f32
          linalg.yield %1 : f32
      } -> tensor<?x384xf32>
      rt.yield %r : tensor<?x384xf32>
    }
    ```
    Without a body, `library_symbol` names the function that computes it, and `scalars` lists the arguments that it takes
    besides the operands, and `row_flops`, if given, is the number of FLOPs of one row, for passes that compare costs:
    ```mlir
    rt.kernel @group_norm(tensor<?x256xf32>, tensor<256xf32>) -> tensor<?x256xf32>
        attributes {library_symbol = "group_norm_f32", row_flops = 2048 : i64, scalars = [32 : i64, 1.0e-5 : f64]}
    ```
    With `library`, it is a kernel of the runtime's library, and its descriptor (braid/Base/LibraryKernels.h) says what it
    takes: `optional` names the optional operands that are given, `scalars` lists the integers and then the floats, and
    the rank's position in `group` chooses its shard:
    ```mlir
    rt.kernel @attention(tensor<8x4x2x16xf32>, tensor<8x4x2x16xf32>, tensor<8x4x2x16xf32>, tensor<8x4xi64>)
        -> tensor<8x4x2x16xf32> attributes {library = "attention", optional = ["mask"], scalars = [0, 0.25]}
    ```
    The body computes any number of complete rows; the target chooses threads, vectors and registers. There are `row_dims`
    row dimensions (1 by default), of which the outermost is dynamic: a launch may hand any range of it to any thread. An
    argument whose outermost dimension is dynamic is a *row operand*: a thread gets its range of rows. Every thread gets
    all of the other arguments (weights, biases).

    Rows may be read from a payload, or written to one, by the codec of the library at the border of the body. The operand
    has the type of the rows, and `rt.payload` says how launches encode it:
    ```mlir
    rt.kernel @decode_sum_add_encode(%x: tensor<?x384xf32> {rt.payload = #rt.payload<"int4:128" of f32 senders 4>}, %y: tensor<?x384xf32>)
        -> (tensor<?x384xf32>, tensor<?x384xf32> {rt.payload = #rt.payload<"int8:128" of f32>}) { ... }
    ```
    The bits are those of a launch of the codec beside one of the kernel.

    Constraints:
    - (rt.kernel_c1) the body ends in an rt.yield of the result types;
    - (rt.kernel_c2) arguments and results are ranked tensors of at most row_dims + 1 dimensions, static except for the
      outermost dimension of row operands; a row operand has at least row_dims dimensions; every result is a row
      operand, and there is at least one row argument;
    - (rt.kernel_c3) the body holds linalg.generic, linalg.fill, tensor.empty, tensor.dim and arith.constant only;
    - (rt.kernel_c4) the domain of a linalg.generic is (rows..., column), (rows..., reduced column) or (rows...);
    - (rt.kernel_c5) its maps are projected permutations that keep the order of dimensions, so that the column is
      innermost;
    - (rt.kernel_c6) a reduction has one result and yields combiner(acc, x), with the accumulator used once and the
      combiner one of addf, mulf, maximumf, minimumf, maxnumf, minnumf;
    - (rt.kernel_c7) a reduction starts from a linalg.fill with the combiner's identity; any other linalg.generic does
      not read its output;
    - (rt.kernel_c8) bodies of linalg.generic hold arith and math operations and linalg.index only;
    - (rt.kernel_c9) a kernel has either a body or a `library_symbol` or a `library`, and only the latter two have
      `scalars`, which are integers and floats. With a `library_symbol`, rt.kernel_c2 is relaxed: types are ranked
      tensors, static except for the outermost dimension of row operands, and there is at least one result;
    - (rt.kernel_c10) `library` names a descriptor, and types, `optional`, `scalars` and `group` fit it; the types are
      static, and only such a kernel has `optional` and `group`, whose mesh is known;
    - (rt.kernel_c11) only a kernel with a `library_symbol` has `row_flops`;
    - (rt.kernel_c12, ODS) `row_flops` is at least 0;
    - (rt.kernel_c13) `rt.payload` is on operands of a kernel with a body only, which have all row dimensions and a column
      of a floating-point type; of a result it has the result's element type, no `senders` and no `absent`. Its `own` is an
      argument with the same rows, of the encoded type and without an `rt.payload`, and its group is of `senders` ranks. A group without
      `own` is on a result only, and has at least two ranks and more than `first`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$row_dims,
                       OptionalAttr<StrAttr>:$library_symbol, OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$row_flops,
                       DefaultValuedOptionalAttr<ArrayAttr, "{}">:$scalars,
                       OptionalAttr<StrAttr>:$library, DefaultValuedOptionalAttr<StrArrayAttr, "{}">:$optional,
                       OptionalAttr<Comm_GroupAttr>:$group);
  let regions = (region AnyRegion:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type, CArg<"int64_t", "1">:$rowDims)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return isExternal() ? nullptr : &getBody(); }

    /// Arguments whose outermost dimension is the launch's row count; all results are.
    static bool isRowOperand(::mlir::Type type);
    /// How launches encode an operand, which is an argument or, counted behind them, a result; null where they do not.
    PayloadAttr getPayload(unsigned operand);
    bool hasPayloads();
    /// Whether an argument has the rows that the rank adds itself to those of a payload.
    bool isOwn(unsigned argument);
    /// The call of the library's codec between an operand's rows in a launch of `rows` rows and its payload, which may be
    /// null. It may be one that the descriptor refuses.
    ::braid::runtime::LibraryCall getCodecCall(unsigned operand, int64_t rows, ::mlir::ShapedType payload);
    /// True when the result may be written to the argument's memory: the body is one elementwise operation that reads
    /// and writes the same element, so that no element is read after it was written, and neither is encoded.
    bool canShare(unsigned argument, unsigned result);
    /// The name of an argument for generated code and messages; `arg<i>` when it has none.
    ::std::string getArgumentName(unsigned index);
    /// The descriptor of a library kernel with the types of this one, for groups of `parts` ranks; or an error on this
    /// operation.
    ::mlir::FailureOr<::braid::runtime::LibraryCall> getLibraryCall(int64_t parts);
    /// Whether a library kernel with these scalars also reads what the result's memory holds.
    bool readsResult(unsigned result);
    /// The operands in `optional` as a bit set: bit i stands for the descriptor's i-th optional operand.
    uint32_t getOptionalBits();
  }];
}

def RT_YieldOp : RT_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"::braid::rt::KernelOp">]> {
  let summary = "Ends a kernel's body with its results";
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif
