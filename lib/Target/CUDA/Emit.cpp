//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RowPrinter.h"

#include "braid/Analysis/CodecFusion.h"
#include "braid/Analysis/MemoryRegion.h"
#include "braid/Runtime/CudaCodec.h"

#include "mlir/IR/Diagnostics.h"

#include <map>
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

/// A power of two, at most rt::kBufferAlignment, that divides the addresses of all rows of a view:
/// buffers and an entry's arguments are aligned, and callers may pass any part of them.
static uint64_t alignmentOf(Value memory) {
  const MemoryRegion region = regionOf(memory);
  uint64_t common =
      std::gcd(static_cast<uint64_t>(rt::kBufferAlignment), static_cast<uint64_t>(region.begin));
  for (const MemoryRegion::Step &step : region.steps)
    common = std::gcd(common, static_cast<uint64_t>(step.bytes));
  for (const MemoryRegion::ByRank &place : region.byRank)
    common = std::gcd(common, static_cast<uint64_t>(place.bytes));
  auto argument = dyn_cast<BlockArgument>(region.root);
  auto procedure =
      argument ? dyn_cast<rt::ProcedureOp>(argument.getOwner()->getParentOp()) : rt::ProcedureOp();
  if (!procedure || procedure.getEntry())
    return common;
  procedure->getParentOfType<ModuleOp>().walk([&](rt::CallOp call) {
    if (call.getProcedure() == procedure)
      common = std::gcd(common, alignmentOf(call.getArguments()[argument.getArgNumber()]));
  });
  return common;
}

/// The vector width, in elements, that suits the operands of every launch.
static int64_t alignedColumns(rt::KernelOp kernel) {
  uint64_t common = 16;
  auto module = kernel->getParentOfType<ModuleOp>();
  module.walk([&](rt::LaunchOp launch) {
    if (launch.getKernel() != kernel.getSymName())
      return;
    // Rows of payloads are in shared memory, where each is aligned.
    for (auto [i, operand] : llvm::enumerate(launch.getOperands()))
      if (auto type = dyn_cast<MemRefType>(operand.getType());
          type && type.getRank() != 0 && !kernel.getPayload(static_cast<unsigned>(i)))
        common = std::gcd(common, std::max<uint64_t>(1, alignmentOf(operand) / elementBytes(type)));
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

/// Prints the kernels of all encodings that the module uses, each once.
static LogicalResult printCodecs(ModuleOp module, llvm::raw_ostream &os) {
  std::map<std::string, std::string> sources; // by function
  for (auto kernel : module.getOps<rt::KernelOp>()) {
    if (!kernel.getLibrary() || !runtime::CudaCodec::has(kernel.getLibrary()->str()))
      continue;
    FailureOr<runtime::LibraryCall> call = kernel.getLibraryCall(/*parts=*/1);
    if (failed(call))
      return failure();
    runtime::Result<runtime::CudaCodec> codec = runtime::CudaCodec::of(*call);
    if (!codec.ok())
      return kernel.emitOpError() << "'" << kernel.getSymName()
                                  << "': " << codec.status().message();
    sources.emplace(codec->function(), codec->source());
  }
  if (!sources.empty())
    os << "#include <braid/codec.cuh>\n";
  for (const auto &[function, text] : sources)
    os << "\n" << text;
  return success();
}

FailureOr<CUDASource> braid::emitCUDA(ModuleOp module) {
  CUDASource source;
  llvm::raw_string_ostream os(source.text);
  os << "#include <braid/library.cuh>\n#include <braid/rows.cuh>\n#include <braid/scalar.cuh>\n";
  if (failed(printCodecs(module, os)))
    return failure();
  if (llvm::any_of(module.getOps<rt::KernelOp>(),
                   [](rt::KernelOp kernel) { return kernel.hasPayloads(); }))
    os << "#include <braid/codec_rows.cuh>\n";
  Names functions;
  for (auto kernel : module.getOps<rt::KernelOp>()) {
    if (kernel.getLibrary()) // defined in library.cuh, or above
      continue;
    if (kernel.isExternal())
      return kernel.emitOpError() << "'" << kernel.getSymName() << "' is '"
                                  << *kernel.getLibrarySymbol()
                                  << "' of a library for the CPU, which the CUDA target cannot run";
    if (std::string why = whyNotFused(KernelTarget::CUDA, rowCodecsOf(kernel)); !why.empty())
      return kernel.emitOpError() << "'" << kernel.getSymName()
                                  << "' expects codecs outside of kernels on the CUDA "
                                  << "target, as braid-form-kernels=target=cuda leaves them: "
                                  << why;
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
