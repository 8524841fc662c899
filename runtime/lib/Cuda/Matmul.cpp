//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matmuls: of floats by cuBLASLt, with checks and zeros around it where rows are counted; of i8 by
// cuBLASLt on blocks of rows, whose sums are then scaled.
//
//===----------------------------------------------------------------------===//
#include "MatmulPlan.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime::cuda {

namespace {

/// For the sums of a block of rows in i32, which stay in the caches of recent devices.
constexpr int64_t kSumBytes = int64_t(32) << 20;

StreamCommand inTurn(std::vector<StreamCommand> commands) {
  return [commands = std::move(commands)](CUstream stream) -> Status {
    for (const StreamCommand &command : commands)
      RETURN_IF_ERROR(command(stream));
    return {};
  };
}

Result<StreamCommand> makeProduct(const MatmulOperands &c, const LaunchPlace &place,
                                  RankDevice &rank) {
  ASSIGN_OR_RETURN(std::shared_ptr<const MatmulPlan> plan, MatmulPlan::make(c, place, rank));
  return StreamCommand([plan](CUstream stream) { return plan->enqueue(stream); });
}

/// With counts: a check of the counts before the matmul, and zeros beyond them after it.
Result<StreamCommand> makeCounted(const StreamCommand &product, const MatmulOperands &c,
                                  const LibraryArguments &a, const LaunchPlace &place,
                                  RankDevice &rank) {
  const Integers counts = integersOf(a, "counts");
  library::CheckCounts check{};
  check.counts = {counts.data, counts.stride, static_cast<int>(counts.wide)};
  check.count = c.form.batch;
  check.most = c.form.m;
  check.fault = rank.faults + place.queue;
  check.command = place.number;
  rank.hasFaults[place.queue] = true;
  std::vector<StreamCommand> commands;
  RETURN_IF_ERROR(
      append(commands, libraryStreamCommand(rank, "braid_check_counts", check.count, check)));
  commands.push_back(product);
  // In place, so that only rows beyond the counts are written.
  const int64_t size = byteSize(c.out.dtype);
  RETURN_IF_ERROR(
      append(commands, makeCopyCounted(runsOf(c.out.shape, size, c.out.strides, c.out.strides),
                                       {c.form.batch, c.form.m, c.form.n * size}, c.out.data,
                                       c.out.data, check.counts, rank)));
  return inTurn(std::move(commands));
}

/// Whether cuBLASLt has kernels of tensor cores for it: with rows of both operands along k, those
/// take sizes and strides that are multiples of 4 only.
bool isForTensorCores(const Int8Matmul &c) {
  const uint64_t bits = address(c.lhs) | address(c.rhs) | static_cast<uint64_t>(c.n) |
                        static_cast<uint64_t>(c.k) | static_cast<uint64_t>(c.lhsStride) |
                        static_cast<uint64_t>(c.rhsStride);
  return bits % 4 == 0;
}

/// The sums of a block of rows, as a matmul of floats is described.
MatmulOperands sumsOf(const Int8Matmul &c, int32_t *sums) {
  auto tensor = [](const void *data, DType dtype, int64_t rows, int64_t columns, int64_t stride) {
    auto *bytes = static_cast<std::byte *>(const_cast<void *>(data));
    return Tensor{bytes, dtype, {rows, columns}, {stride, 1}};
  };
  MatmulOperands operands;
  operands.form.m = c.m;
  operands.form.n = c.n;
  operands.form.k = c.k;
  operands.form.transposeRhs = true;
  operands.form.lhs = {c.m, c.k, c.lhsStride, 0};
  operands.form.rhs = {c.n, c.k, c.rhsStride, 0};
  operands.form.out = {c.m, c.n, c.n, 0};
  operands.lhs = tensor(c.lhs, DType::i8, c.m, c.k, c.lhsStride);
  operands.rhs = tensor(c.rhs, DType::i8, c.n, c.k, c.rhsStride);
  operands.out = tensor(sums, DType::i32, c.m, c.n, c.n);
  return operands;
}

Result<StreamCommand> makeInt8Kernel(const Int8Matmul &c, const int32_t *sums, RankDevice &rank) {
  const library::Int8Matmul arguments{c.lhs,       c.rhs,       sums,       c.lhsScale, c.rhsScale,
                                      c.bias,      c.out,       c.m,        c.n,        c.k,
                                      c.lhsStride, c.rhsStride, c.outStride};
  return libraryStreamCommand(rank, "braid_int8_matmul", c.m * c.n, arguments);
}

Result<StreamCommand> makeInt8(const LibraryArguments &a, const LaunchPlace &place,
                               RankDevice &rank) {
  ASSIGN_OR_RETURN(const Int8Matrices matrices, int8Matrices(a, "cuda"));
  const Int8Matmul &first = matrices.first;
  const bool byTensorCores = isForTensorCores(first) && matrices.lhsBatch % 4 == 0;
  int32_t *sums = nullptr;
  int64_t block = first.m;
  if (byTensorCores) {
    Memory &memory = rank.sums[place.queue];
    if (!memory) {
      ASSIGN_OR_RETURN(memory,
                       allocate(rank.device, kSumBytes, place.stream, "the sums of matmuls of i8"));
    }
    sums = reinterpret_cast<int32_t *>(pointer(memory.get()));
    block = kSumBytes / 4 / first.n;
    if (block == 0)
      return Status::error("matmul of i8 expects at most ", kSumBytes / 4,
                           " columns on target 'cuda', got ", first.n);
  }
  std::vector<StreamCommand> commands;
  for (int64_t matrix = 0; matrix < matrices.count; ++matrix)
    for (int64_t row = 0; row < first.m; row += block) {
      Int8Matmul part = first;
      part.m = std::min(block, first.m - row);
      part.lhs += matrix * matrices.lhsBatch + row * first.lhsStride;
      part.out += matrix * matrices.outBatch + row * first.outStride;
      part.lhsScale += matrix * first.m + row;
      if (byTensorCores)
        RETURN_IF_ERROR(append(commands, makeProduct(sumsOf(part, sums), place, rank)));
      RETURN_IF_ERROR(append(commands, makeInt8Kernel(part, sums, rank)));
    }
  return inTurn(std::move(commands));
}

} // namespace

Result<StreamCommand> makeMatmul(const LibraryArguments &a, const LaunchPlace &place,
                                 RankDevice &rank) {
  if (a[MatmulForm::lhsOperand].dtype == DType::i8)
    return makeInt8(a, place, rank);
  ASSIGN_OR_RETURN(const MatmulForm form, MatmulForm::of(a));
  MatmulOperands operands{form, a.tensor("lhs"), a.tensor("rhs"), a.tensor("out"), std::nullopt};
  if (a.has("bias"))
    operands.bias = a.tensor("bias");
  ASSIGN_OR_RETURN(const StreamCommand product, makeProduct(operands, place, rank));
  return a.has("counts") ? makeCounted(product, operands, a, place, rank) : product;
}

} // namespace braid::runtime::cuda
