//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The kernels that are not generated. Each has one descriptor of its operands and arguments, which
// the dialect's verifier, the program's verifier, the check of overlapping operands, the executors,
// explain and the interpreter read. Each target implements a kernel once (runtime/lib/Kernels,
// runtime/kernels/cuda), and so does the interpreter (lib/Interpreter/Core).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_LIBRARYKERNELS_H
#define BRAID_BASE_LIBRARYKERNELS_H

#include "braid/Base/Encoding.h"
#include "braid/Base/HostTensor.h"
#include "braid/Base/Mesh.h"

#include <initializer_list>
#include <optional>
#include <vector>

namespace braid::runtime {

/// `inout`: read unless a call says that it is not (LibraryKernel::readsOutputs).
enum class Access { read, write, inout };

/// The type and layout of an operand.
struct OperandType {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< in elements

  size_t rank() const { return shape.size(); }
  bool isFloat() const;
  /// Whether one stride leads through dimensions [0, count).
  bool isFlattenable(size_t count) const;
  /// Whether elements lie in row-major order without gaps.
  bool isContiguous() const;
};

/// The element types that an operand may have.
enum class Elements {
  any,
  floats,
  floatsOrI8,
  f32,       ///< whatever the others are
  bytes,     ///< i8
  ids,       ///< i32 or i64
  asFirst,   ///< as the first operand that is given
  encoded,   ///< as what a payload was made of, which the call's integers say
  likeOutput ///< as the first output
};

struct LibraryOperand {
  const char *name;
  Access access = Access::read;
  Elements elements = Elements::any;
  bool optional = false;
};

struct LibraryCall;

struct LibraryKernel {
  const char *name;                     ///< "matmul", in reports and messages
  std::vector<LibraryOperand> operands; ///< inputs, then outputs, of which the first is required
  /// Checks ranks and shapes, and the values of integers.
  Status (*check)(const LibraryCall &call);
  double (*flops)(const LibraryCall &call);
  std::vector<const char *> integers = {};
  std::vector<const char *> numbers = {}; ///< finite
  bool listOfNumbers = false;             ///< the last of `numbers` is a list of at least one
  /// Whether a rank's position in a group chooses its shard.
  enum class Group { none, optional, required } group = Group::none;
  /// Rows are independent: a thread may compute any range of them. They are counted by all
  /// dimensions of the first output except this many of the last ones.
  size_t rowRank = 1;
  /// The integer that must not be 0 for `inout` operands to be read; none: they always are.
  std::optional<size_t> readsOutputs = std::nullopt;

  size_t numOptional() const;
  size_t firstOutput() const;
  /// The number of outputs that a call has.
  size_t numOutputs(uint32_t optional) const;
  /// Whether a call with these integers reads the operand, and whether any call writes it.
  bool reads(size_t operand, const std::vector<int64_t> &integers) const;
  bool writes(size_t operand) const { return operands[operand].access != Access::read; }
  /// Indices of the operands that a call has, in order; `optional` has a bit for each optional one.
  std::vector<size_t> given(uint32_t optional) const;
};

/// All kernels; one by its name, or null.
const std::vector<LibraryKernel> &libraryKernels();
const LibraryKernel *findLibraryKernel(const std::string &name);

/// The error of an append to `row` at a position for which the new elements do not fit.
Status appendError(const LibraryCall &append, int64_t position, int64_t row);

/// A call of a kernel: the types of its operands, and its other arguments.
struct LibraryCall {
  const LibraryKernel *kernel = nullptr;
  std::vector<std::optional<OperandType>> operands; ///< by the descriptor's
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  int64_t parts = 1; ///< size of the group

  bool has(size_t operand) const { return operands[operand].has_value(); }
  const OperandType &operator[](size_t operand) const { return *operands[operand]; }
  /// Checks everything that the descriptor requires. Messages begin with an operand's name.
  Status check() const;
  int64_t rows() const;
};

/// The payload that a call of encode, decode or decode_sum writes or reads. decode_sum reads those
/// of `senders` ranks one after the other, and adds the tensors in this order, in f32; with `own`,
/// what this rank adds is that and no payload. With `absent`, decode takes a part whose header is
/// zeros for zeros.
Result<PayloadLayout> payloadLayout(const LibraryCall &call);
/// Of the payload that a call of encode with a group makes, the parts that the rank would send to
/// itself: part i is for position (first + i) mod ranks. They are zeros, as nothing reads them.
struct OwnParts {
  int64_t ranks = 1;  ///< 1: no group, so that there are none
  int64_t offset = 0; ///< of the first one

  /// `self`: the rank's position in its group.
  static OwnParts of(const LibraryCall &encode, int64_t self);

  bool has(int64_t part) const { return ranks > 1 && part % ranks == offset; }
  /// How many of `parts` parts are for other ranks, and the index-th of them.
  int64_t others(int64_t parts) const {
    return ranks == 1 || parts <= offset ? parts : parts - 1 - (parts - 1 - offset) / ranks;
  }
  int64_t other(int64_t index) const {
    if (ranks == 1)
      return index;
    const int64_t before = index % (ranks - 1);
    return index / (ranks - 1) * ranks + before + (before >= offset ? 1 : 0);
  }
};
/// The share of its rows that a call of encode encodes, in the mean of the ranks of its group.
double encodedShare(const LibraryCall &encode);
/// The operands of such a call that have the rows and their payload.
size_t codecRows(const LibraryCall &call);
size_t codecPayload(const LibraryCall &call);
/// The operand `own` of decode_sum.
constexpr size_t kOwnRows = 1;

/// Checks of single operands; messages begin with `role`.
Status expectShape(const std::string &role, const OperandType &view,
                   const std::vector<int64_t> &shape);
Status expectRank(const std::string &role, const OperandType &view, size_t rank);
Status expectType(const std::string &role, const OperandType &view, DType type);
Status expectFloat(const std::string &role, const OperandType &view,
                   const char *what = "a floating-point type");
/// i32 or i64.
Status expectIntegers(const std::string &role, const OperandType &view);
/// `full` has the shape of `shard` with dimension `dim` multiplied by `shards`.
Status expectShardOf(const OperandType &full, const std::string &fullRole, const OperandType &shard,
                     const std::string &shardRole, int64_t dim, int64_t shards);
/// The first failure of several checks.
Status firstOf(std::initializer_list<Status> checks);

} // namespace braid::runtime
#endif // BRAID_BASE_LIBRARYKERNELS_H
