//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors as payloads of few bits, and back. Collectives exchange payloads as bytes. Included by NNOps.td, which has the base classes.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_DIALECTS_NN_NNCODECOPS_TD
#define BRAID_DIALECTS_NN_NNCODECOPS_TD

def NN_Payload : ConfinedType<StaticShapeTensorOf<[I8]>, [Comm_Bounded],
    "statically shaped tensor of at most 2^48 i8 values">;

class NN_CodecOp<string mnemonic, list<Trait> traits = []>
    : NN_ReferenceOp<mnemonic, [], !listconcat([NN_KernelCallOpInterface], traits)> {
  code constraints = [{
    - (nn.codec_c1) the encoding is one, not two;
    - (nn.codec_c2) tensor and payload have at least one dimension, and the encoded type is f32, f16 or bf16;
    - (nn.codec_c3) the last dimension of the payload is the bytes of a part of ceil(rows / parts) rows
      (braid/Base/Encoding.h).}];
  let extraClassDeclaration = [{ KernelCall getKernelCall(); }];
}

def NN_EncodeOp : NN_CodecOp<"encode", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor as a payload of few bits";
  let description = [{
    The rows of the input, which are all of its dimensions but the last, are encoded each by itself and cut into parts,
    of which the leading dimensions of the result count as many. Rows that are missing in the last parts are zeros.
    braid/Base/Encoding.h has the payload to the bit.

    ```mlir
    %p = nn.encode %x as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
    ```

    With `over` a group of n ranks, part i is for the rank at position (`first` + i) mod n. What a rank would send to itself is read by nobody
    (`nn.decode_sum` with `own` adds those rows as they are), so it is not encoded: these parts are zeros, with their headers.

    ```mlir
    %p = nn.encode %x over <@mesh, {tp}> as <"int8:128"> : tensor<7x576xf32> -> tensor<4x1216xi8>
    %q = nn.encode %y over <@mesh, {tp}> first 2 as <"int8:128"> : tensor<2x576xf32> -> tensor<1x1216xi8>
    ```

    Constraints:}] # constraints # [{
    - (nn.codec_c6) the group of `over` names a mesh of the module and axes of it, and has at least two ranks; `first` is a position in it, and
      0 without it.}];
  let arguments = (ins NN_Tensor:$input, OptionalAttr<Comm_GroupAttr>:$group, DefaultValuedOptionalAttr<I64Attr, "0">:$first,
                       Comm_EncodingAttr:$encoding);
  let results = (outs NN_Payload:$payload);
  let assemblyFormat = [{
    $input (`over` $group^)? (`first` $first^)? `as` $encoding attr-dict `:` type($input) `->` type($payload)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "const ::braid::runtime::Encoding &":$encoding, "::llvm::ArrayRef<int64_t>":$parts,
                                 CArg<"::braid::comm::GroupAttr", "{}">:$group, CArg<"int64_t", "0">:$first)>];
}

def NN_DecodeOp : NN_CodecOp<"decode"> {
  let summary = "The tensor of a payload";
  let description = [{
    The inverse of `nn.encode`, up to the error of the encoding. `of` is the element type of the tensor that was encoded;
    the result may have another one. A payload of another encoding or of other sizes is an error at run time. With
    `absent`, a part whose header is zeros, which no rank has sent, is zeros.

    ```mlir
    %y = nn.decode %p as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<7x576xf32>
    ```

    Constraints:}] # constraints;
  let arguments = (ins NN_Payload:$payload, Comm_EncodingAttr:$encoding, TypeAttr:$type, UnitAttr:$absent);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = "$payload `as` $encoding `of` $type (`absent` $absent^)? attr-dict `:` type($payload) `->` type($result)";
}

def NN_DecodeSumOp : NN_CodecOp<"decode_sum", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The sum of the tensors of several ranks' payloads";
  let description = [{
    The payload holds those of `senders` tensors of the result's shape, one after the other. They are decoded to f32 and added in this order, in
    f32: with senders in the order of their positions in the group, the sum of Flash Communication's algorithm 1.

    ```mlir
    %s = nn.decode_sum %p senders 4 as <"int8:128"> of f32 : tensor<4x1216xi8> -> tensor<2x576xf32>
    ```

    With `own`, the rows that this rank adds have lost nothing: they are added as they are, at the rank's place in the order, and what
    the payload holds there is not read.

    ```mlir
    %s = nn.decode_sum %p own %x over <@mesh, {tp}> senders 4 as <"int8:128"> of f32
        : tensor<4x1216xi8>, tensor<2x576xf32> -> tensor<2x576xf32>
    ```

    Constraints:}] # constraints # [{
    - (nn.codec_c4) `senders` is at least 1 and divides the number of parts;
    - (nn.codec_c5) `own` has the result's shape and the encoded type, and the group, which is of `senders` ranks, names a mesh of the module
      and axes of it; one is not given without the other.}];
  let arguments = (ins NN_Payload:$payload, Optional<NN_Tensor>:$own, OptionalAttr<Comm_GroupAttr>:$group, I64Attr:$senders,
                       Comm_EncodingAttr:$encoding, TypeAttr:$type);
  let results = (outs NN_Tensor:$result);
  let assemblyFormat = [{
    $payload (`own` $own^)? (`over` $group^)? `senders` $senders `as` $encoding `of` $type attr-dict
    `:` type($payload) (`,` type($own)^)? `->` type($result)
  }];
}

#endif
