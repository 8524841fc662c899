//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RowPrinter.h"

#include "mlir/IR/Diagnostics.h"

#include <numeric>

using namespace mlir;
using namespace braid;
using namespace braid::cuda;

ArrayRef<StringRef> braid::getCUDAArchitectures() {
  static const StringRef architectures[] = {"sm_80", "sm_90a", "sm_100"};
  return architectures;
}

/// The most bytes of registers that a thread keeps of a row between sweeps.
static constexpr int64_t kKeptBytes = 256;

static bool isSupported(Type element) {
  return element.isF32() || element.isBF16() || element.isF16() || element.isInteger(8) ||
         element.isInteger(32) || element.isInteger(64);
}

/// The vector width that suits the operands of every launch. Memory begins at an aligned address,
/// so only views with other row strides or offsets can reduce it.
static int64_t alignedColumns(rt::KernelOp kernel) {
  uint64_t common = 16;
  auto module = kernel->getParentOfType<ModuleOp>();
  module.walk([&](rt::LaunchOp launch) {
    if (launch.getKernel() != kernel.getSymName())
      return;
    for (Value operand : launch.getOperands()) {
      auto type = dyn_cast<MemRefType>(operand.getType());
      if (!type || type.getRank() == 0 || type.getLayout().isIdentity())
        continue;
      SmallVector<int64_t> strides;
      int64_t offset = 0;
      if (failed(type.getStridesAndOffset(strides, offset))) {
        common = 1;
        continue;
      }
      strides.back() = offset;
      for (int64_t stride : strides)
        common = ShapedType::isDynamic(stride)
                     ? 1
                     : std::gcd(common, static_cast<uint64_t>(std::abs(stride)));
    }
  });
  return static_cast<int64_t>(common);
}

/// Kernels count threads or rows in 32 bits.
static LogicalResult checkLaunches(rt::KernelOp kernel, const RowShape &shape) {
  WalkResult walk = kernel->getParentOfType<ModuleOp>().walk([&](rt::LaunchOp launch) {
    auto rows = static_cast<int64_t>(launch.getRows());
    if (launch.getKernel() != kernel.getSymName() ||
        rows < (int64_t(1) << 32) / shape.itemsPerRow())
      return WalkResult::advance();
    launch.emitOpError("expects less than 2^32 vectors on the CUDA target, got ")
        << rows << " rows of " << shape.itemsPerRow();
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// The names of the source's operations, in order.
static SmallVector<StringRef> sourceNames(Location loc) {
  SmallVector<StringRef> names;
  auto add = [&](Location part) {
    if (auto named = part->findInstanceOf<NameLoc>();
        named && !llvm::is_contained(names, named.getName().getValue()))
      names.push_back(named.getName().getValue());
  };
  if (auto fused = dyn_cast<FusedLoc>(loc))
    llvm::for_each(fused.getLocations(), add);
  else
    add(loc);
  return names;
}

static void printComment(rt::KernelOp kernel, const RowShape &shape, llvm::raw_ostream &os) {
  os << "// " << kernel.getSymName();
  SmallVector<StringRef> names = sourceNames(kernel.getLoc());
  llvm::interleaveComma(names, os << (names.empty() ? "" : ": "));
  os << "\n// " << shape.columns << " columns, in vectors of " << shape.vector << "; ";
  if (shape.skeleton == RowShape::Skeleton::Map)
    os << "a thread has one\n";
  else
    os << "a " << (shape.skeleton == RowShape::Skeleton::WarpRow ? "warp" : "block")
       << " has a row, a thread " << shape.steps << "\n";
}

FailureOr<CUDASource> braid::emitCUDA(ModuleOp module) {
  CUDASource source;
  llvm::raw_string_ostream os(source.text);
  os << "#include <braid/library.cuh>\n#include <braid/rows.cuh>\n#include <braid/scalar.cuh>\n";
  Names functions;
  for (auto kernel : module.getOps<rt::KernelOp>()) {
    if (kernel.getLibrary()) // defined in library.cuh
      continue;
    if (kernel.isExternal())
      return kernel.emitOpError() << "'" << kernel.getSymName() << "' is '"
                                  << *kernel.getLibrarySymbol()
                                  << "' of a library for the CPU, which the CUDA target cannot run";
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(), kernel.getResultTypes()))
      if (!isSupported(getElementTypeOrSelf(type)))
        return kernel.emitOpError() << "'" << kernel.getSymName()
                                    << "' expects elements of f32, bf16, f16, i8, i32 or i64 on "
                                       "the CUDA target, got "
                                    << type;
    RowShape shape = RowShape::choose(kernel, alignedColumns(kernel));
    if (failed(checkLaunches(kernel, shape)))
      return failure();
    rows::Keep keep;
    keep.inRegisters = true;
    keep.maxBytes = shape.columns * (kKeptBytes / (shape.steps * shape.vector));
    Block &body = kernel.getBody().front();
    FailureOr<rows::RowSchedule> schedule = rows::RowSchedule::build(
        body, body.getTerminator()->getOperands(), kernel.getRowDims(), keep);
    if (failed(schedule))
      return failure();
    os << "\n";
    printComment(kernel, shape, os);
    FailureOr<runtime::CudaKernel> printed =
        RowPrinter(kernel, shape, *schedule, os).print(functions.fresh(kernel.getSymName()));
    if (failed(printed))
      return failure();
    source.kernels.push_back(std::move(*printed));
  }
  return source;
}
