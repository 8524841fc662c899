//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of matmuls: how the members of a team share them.
//
//===----------------------------------------------------------------------===//
#include "Operations.h"
#include "braid/Base/MatmulForm.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>

namespace braid::runtime {

namespace {

/// Rows of a group that are computed together: those of a block that begins below the group's count
/// are all computed, and then the ones beyond it set to zero.
constexpr int64_t kBlockRows = 64;

class Resolver {
public:
  Resolver(const MatmulForm &form, const LibraryArguments &a, MatmulCache &matmuls)
      : form(form), matmuls(matmuls), lhs(a.tensor("lhs").as<float>()),
        rhs(a.tensor("rhs").as<float>()), out(a.tensor("out").as<float>()),
        bias(a.has("bias") ? a.tensor("bias").as<float>() : nullptr) {}

  /// Binds a block of rows and columns of one matrix of the batch.
  Status add(int64_t matrix, Range rows, Range columns) {
    if (rows.begin == rows.end || columns.begin == columns.end)
      return {};
    ASSIGN_OR_RETURN(
        std::shared_ptr<const Matmul> matmul,
        matmuls.get({rows.end - rows.begin, columns.end - columns.begin, form.k, form.lhs.stride,
                     form.rhs.stride, form.out.stride, bias != nullptr, form.transposeLhs,
                     form.transposeRhs, form.accumulate}));
    MatmulCommand::Part part{};
    part.lhs =
        lhs + matrix * form.lhs.batch + rows.begin * (form.transposeLhs ? 1 : form.lhs.stride);
    part.rhs =
        rhs + matrix * form.rhs.batch + columns.begin * (form.transposeRhs ? form.rhs.stride : 1);
    part.bias = bias ? bias + matrix * form.biasBatch + columns.begin : nullptr;
    part.out = out + matrix * form.out.batch + rows.begin * form.out.stride + columns.begin;
    part.rows = rows;
    part.group = matrix;
    part.call = matmul->bind(part.lhs, part.rhs, part.bias, part.out);
    command.parts.push_back(std::move(part));
    return {};
  }

  MatmulCommand command;

private:
  const MatmulForm &form;
  MatmulCache &matmuls;
  const float *lhs, *rhs;
  float *out;
  const float *bias;
};

} // namespace

Result<MatmulCommand> resolveMatmul(const LibraryArguments &a, int64_t threads,
                                    MatmulCache &matmuls) {
  if (const DType type = a[MatmulForm::lhsOperand].dtype; type != DType::f32)
    return Status::error("matmul of ", name(type), " is not implemented on target 'cpu'");
  RETURN_IF_ERROR(storedType(a, Storage::f32).status());
  ASSIGN_OR_RETURN(const MatmulForm form, MatmulForm::of(a));
  Resolver resolver(form, a, matmuls);
  MatmulCommand &command = resolver.command;
  command.members = shareOut(a.kernel->flops(a), 1 << 19, threads);
  const Range allColumns{0, form.n};
  if (a.has("counts")) {
    command.counts = integersOf(a, "counts");
    command.groups = form.batch;
    command.capacity = form.m;
    command.columns = form.n;
    command.outStride = form.out.stride;
    for (int64_t group = 0; group < form.batch; ++group)
      for (int64_t row = 0; row < form.m; row += kBlockRows)
        RETURN_IF_ERROR(resolver.add(group, {row, std::min(row + kBlockRows, form.m)}, allColumns));
    return std::move(command);
  }
  // Each matrix is shared by as many members as there are for it.
  const int64_t shares = (command.members + form.batch - 1) / form.batch;
  // By rows, a member's share of `lhs` stays in its cache; too few rows would not fill the
  // registers of the inner loop.
  const bool byRows = form.m >= shares * 16;
  for (int64_t matrix = 0; matrix < form.batch; ++matrix)
    for (int64_t share = 0; share < shares; ++share) {
      const Range part = partOf(byRows ? form.m : form.n, share, shares);
      RETURN_IF_ERROR(
          resolver.add(matrix, byRows ? part : Range{0, form.m}, byRows ? allColumns : part));
    }
  command.members = std::min(command.members, static_cast<int64_t>(command.parts.size()));
  return std::move(command);
}

/// Computes the valid rows of a part, and zeros in the others.
static void runCounted(const MatmulCommand &command, const MatmulCommand::Part &part) {
  const int64_t count = command.counts[part.group];
  if (part.rows.begin < count)
    part.call->run();
  for (int64_t row = std::max(count, part.rows.begin); row < part.rows.end; ++row)
    std::fill_n(part.out + (row - part.rows.begin) * command.outStride, command.columns, 0.0F);
}

void execute(const MatmulCommand &command, const NamedCommand &source, ExecutionContext &context) {
  for (int64_t group = 0; group < command.groups; ++group)
    if (const int64_t count = command.counts[group]; count < 0 || count > command.capacity) {
      context.control.fail(Status::error("rank ", context.self.rank, ": ", describe(source),
                                         ": count ", count, " at position ", group,
                                         " is outside of [0, ", command.capacity, "]",
                                         Code::invalid)); // counts are inputs
      return;
    }
  context.share(command.members, [&](int64_t member) {
    for (auto i = static_cast<size_t>(member); i < command.parts.size();
         i += static_cast<size_t>(command.members)) {
      if (command.counts)
        runCounted(command, command.parts[i]);
      else
        command.parts[i].call->run();
    }
  });
}

} // namespace braid::runtime
