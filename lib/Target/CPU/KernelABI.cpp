//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CPU/Passes.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace braid::cpu {
#define GEN_PASS_DEF_CPUKERNELABI
#include "braid/Target/CPU/Passes.h.inc"
} // namespace braid::cpu

using namespace mlir;

namespace {
/// { T *allocated, T *aligned, i64 offset, i64 sizes[rank], i64 strides[rank] }
Type descriptorType(MemRefType type) {
  MLIRContext *context = type.getContext();
  Type pointer = LLVM::LLVMPointerType::get(context), integer = IntegerType::get(context, 64);
  SmallVector<Type> fields{pointer, pointer, integer};
  if (type.getRank() != 0)
    fields.append(2, LLVM::LLVMArrayType::get(integer, type.getRank()));
  return LLVM::LLVMStructType::getLiteral(context, fields);
}

class KernelABI : public braid::cpu::impl::CPUKernelABIBase<KernelABI> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal() || !llvm::all_of(func.getArgumentTypes(), llvm::IsaPred<MemRefType>))
        continue;
      rewrite(func);
    }
    for (auto kernel : llvm::make_early_inc_range(getOperation().getOps<braid::rt::KernelOp>()))
      if (kernel.isExternal() && failed(callLibrary(kernel)))
        return signalPassFailure();
  }

  LogicalResult callLibrary(braid::rt::KernelOp kernel) {
    Location loc = kernel.getLoc();
    OpBuilder builder(kernel);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    SmallVector<Type> types = {pointer};
    SmallVector<TypedAttr> scalars;
    for (Attribute scalar : kernel.getScalars()) {
      // As C passes them to a function that declares int64_t and double.
      if (auto number = dyn_cast<FloatAttr>(scalar))
        scalars.push_back(builder.getF64FloatAttr(number.getValue().convertToDouble()));
      else
        scalars.push_back(
            builder.getI64IntegerAttr(cast<IntegerAttr>(scalar).getValue().getSExtValue()));
      types.push_back(scalars.back().getType());
    }
    auto nothing = LLVM::LLVMVoidType::get(&getContext());
    auto type = LLVM::LLVMFunctionType::get(nothing, types);

    auto library = getOperation().lookupSymbol<LLVM::LLVMFuncOp>(*kernel.getLibrarySymbol());
    if (!library)
      library = LLVM::LLVMFuncOp::create(builder, loc, *kernel.getLibrarySymbol(), type);
    else if (library.getFunctionType() != type)
      return kernel.emitOpError("calls '")
             << *kernel.getLibrarySymbol() << "' with other scalars than another kernel does";

    auto function = LLVM::LLVMFuncOp::create(builder, loc, kernel.getSymName(),
                                             LLVM::LLVMFunctionType::get(nothing, pointer));
    Block *entry = function.addEntryBlock(builder);
    builder.setInsertionPointToStart(entry);
    SmallVector<Value> arguments = {entry->getArgument(0)};
    for (TypedAttr scalar : scalars)
      arguments.push_back(LLVM::ConstantOp::create(builder, loc, scalar.getType(), scalar));
    LLVM::CallOp::create(builder, loc, library, arguments);
    LLVM::ReturnOp::create(builder, loc, ValueRange());
    kernel.erase();
    return success();
  }

  void rewrite(func::FuncOp func) {
    Block &entry = func.front();
    Location loc = func.getLoc();
    auto builder = OpBuilder::atBlockBegin(&entry);
    Type pointer = LLVM::LLVMPointerType::get(&getContext());
    unsigned numOperands = entry.getNumArguments();
    Value descriptors = entry.addArgument(pointer, loc);
    for (unsigned number = 0; number < numOperands; ++number) {
      BlockArgument operand = entry.getArgument(number);
      Type type = descriptorType(cast<MemRefType>(operand.getType()));
      Value slot =
          LLVM::GEPOp::create(builder, loc, pointer, pointer, descriptors, LLVM::GEPArg(number));
      Value address = LLVM::LoadOp::create(builder, loc, pointer, slot);
      Value descriptor = LLVM::LoadOp::create(builder, loc, type, address);
      auto memref = UnrealizedConversionCastOp::create(builder, loc, operand.getType(), descriptor);
      operand.replaceAllUsesWith(memref.getResult(0));
    }
    entry.eraseArguments(0, numOperands);
    func.setFunctionType(builder.getFunctionType({pointer}, {}));
  }
};
} // namespace
