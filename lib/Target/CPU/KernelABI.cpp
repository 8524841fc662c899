//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CPU/Passes.h"

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
