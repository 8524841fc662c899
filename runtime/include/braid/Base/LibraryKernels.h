//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels that are not generated: one descriptor each, from which the dialect's verifier, the
// program's verifier, the check of overlapping operands, the executors, explain and the interpreter
// know what a launch reads, writes and takes. What a kernel computes stands once per target
// (runtime/lib/Kernels, runtime/kernels/cuda) and once in the interpreter (lib/Interpreter/Core).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_LIBRARYKERNELS_H
#define BRAID_BASE_LIBRARYKERNELS_H

#include "braid/Base/HostTensor.h"
#include "braid/Base/Mesh.h"

#include <initializer_list>
#include <optional>
#include <vector>

namespace braid::runtime {

enum class Access { read, write };

/// What is known of an operand without its address.
struct OperandType {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< in elements

  size_t rank() const { return shape.size(); }
  bool isFloat() const;
  /// Whether dimensions [0, count) can be walked as one.
  bool isFlattenable(size_t count) const;
};

/// What an operand's elements may be.
enum class Elements {
  any,
  floats,
  ids,       ///< i32 or i64
  asFirst,   ///< those of the first operand that is given
  likeOutput ///< those of the first output
};

struct LibraryOperand {
  const char *name;
  Access access = Access::read;
  Elements elements = Elements::any;
  bool optional = false;
};

struct LibraryCall;

struct LibraryKernel {
  const char *name;                     ///< "linear", as reports and messages have it
  std::vector<LibraryOperand> operands; ///< inputs, then outputs
  /// Checks ranks and shapes, and integers beyond their number.
  Status (*check)(const LibraryCall &call);
  double (*flops)(const LibraryCall &call);
  std::vector<const char *> integers = {};
  std::vector<const char *> numbers = {}; ///< finite
  bool listOfNumbers = false;             ///< the last of `numbers` is a list of at least one
  /// Whether a rank's part is chosen by its position in a group.
  enum class Group { none, optional, required } group = Group::none;
  /// Rows are independent of each other: a thread may compute any range of them. All dimensions of
  /// the first output but so many of the last ones count them.
  size_t rowRank = 1;

  size_t numOptional() const;
  size_t firstOutput() const;
  /// Places of the operands that a call has, in order; `optional` has a bit for each optional one.
  std::vector<size_t> given(uint32_t optional) const;
};

/// All of them, and one by its name, or null.
const std::vector<LibraryKernel> &libraryKernels();
const LibraryKernel *findLibraryKernel(const std::string &name);

/// A kernel with the types of its operands, and what it takes besides.
struct LibraryCall {
  const LibraryKernel *kernel = nullptr;
  std::vector<std::optional<OperandType>> operands; ///< by the descriptor's
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  int64_t parts = 1; ///< size of the group

  bool has(size_t operand) const { return operands[operand].has_value(); }
  const OperandType &operator[](size_t operand) const { return *operands[operand]; }
  /// Everything that the descriptor asks for. Messages begin with an operand's name.
  Status check() const;
  int64_t rows() const;
};

/// Checks of single operands; messages begin with `role`.
Status expectShape(const std::string &role, const OperandType &view,
                   const std::vector<int64_t> &shape);
Status expectRank(const std::string &role, const OperandType &view, size_t rank);
Status expectType(const std::string &role, const OperandType &view, DType type);
Status expectFloat(const std::string &role, const OperandType &view);
/// i32 or i64.
Status expectIntegers(const std::string &role, const OperandType &view);
/// `whole` is `part` times `shards` along `dim`.
Status expectShardOf(const OperandType &whole, const std::string &wholeRole,
                     const OperandType &part, const std::string &partRole, int64_t dim,
                     int64_t shards);
/// The first failure of several checks, all of which are cheap and safe to make.
Status firstOf(std::initializer_list<Status> checks);

} // namespace braid::runtime
#endif // BRAID_BASE_LIBRARYKERNELS_H
