//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Decides which values of a function share memory before it is lowered: a part of a value is a view
// of it, the operands of a concatenation are defined in place, as views of its memory, and results
// are defined in the caller's memory (destination passing). No analysis of conflicts is needed,
// because every value has one definition and nothing else writes it. Only an accumulator and a
// state of an entry change in place, where the operation that changes them is the last to use the
// value before.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_CONVERSION_MEMORYPLAN_H
#define BRAID_LIB_CONVERSION_MEMORYPLAN_H

#include "dialects/NN/IR/NN.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringMap.h"

namespace braid {

/// Something that has memory: a tensor (number 0), or a value of a handle by its number.
using Stored = std::pair<mlir::Value, unsigned>;

/// Where a part lies in the value that it is a part of, as in rt.subview.
struct PartPlace {
  llvm::SmallVector<int64_t> offsets;
  std::optional<int64_t> dim; ///< along which the place depends on the rank's position in `group`
  int64_t shift = 0;
  comm::GroupAttr group;
};
/// The place of the operation's result in its operand; nullopt for other operations than parts.
std::optional<PartPlace> partOf(mlir::Operation *op);
/// The places of the operation's operands in its result; empty for other operations than
/// concatenations.
llvm::SmallVector<PartPlace> joinedParts(mlir::Operation *op);
/// Whether the operation's result is the operand in another shape.
bool isReshape(mlir::Operation *op);

/// The types of the memory that values of these types need: a handle's values, or the tensor.
llvm::SmallVector<mlir::RankedTensorType> flattenTypes(mlir::TypeRange types);

/// A result in memory: whether it must be symmetric and, where the procedure changes an argument in
/// place, the number of that argument.
struct SignatureResult {
  bool symmetric = false;
  std::optional<size_t> argument;
};
/// What the procedure of a function expects of its callers: for each argument in memory, whether it
/// must be symmetric, and the results, as flattenTypes lists them.
struct Signature {
  llvm::SmallVector<bool> arguments;
  llvm::SmallVector<SignatureResult> results;
};

class MemoryPlan {
public:
  /// `callees` has the signatures of all functions that this one calls.
  MemoryPlan(mlir::func::FuncOp function, const llvm::StringMap<Signature> &callees);

  /// Where the memory of a stored value is defined.
  struct Destination {
    mlir::Operation *join = nullptr; ///< whose result holds it; null: a result of the function
    unsigned number = 0;             ///< of the operand, or of the result in memory
  };
  /// Null where the value gets a buffer of its own.
  const Destination *destination(Stored value) const {
    auto it = destinations.find(value);
    return it == destinations.end() ? nullptr : &it->second;
  }
  /// Whether a collective uses the memory, here or in a callee.
  bool isSymmetric(Stored value) const;
  const Signature &getSignature() const { return signature; }

  /// The stored value whose memory this one has: it is under a chain of reshapes, accumulations in
  /// place and the wait that gives it.
  Stored rootOf(mlir::Value value) const;
  /// The operand that the operation changes in place to give `value`; null where there is none, or
  /// where a copy of it must be changed because others need it as it was.
  mlir::Value accumulatorOf(mlir::Value value) const { return accumulators.lookup(value); }

private:
  void findAccumulators(const llvm::StringMap<Signature> &callees);
  void findParts();
  void findJoins();
  void findSymmetric(const llvm::StringMap<Signature> &callees);
  void findResults();
  bool mayHaveDestination(Stored root) const;
  bool mayReplaceState(mlir::BlockArgument state, Stored root) const;
  void markSymmetric(Stored value);

  mlir::func::FuncOp function;
  mlir::Block &block;
  bool entry;
  llvm::EquivalenceClasses<Stored> shared; ///< values in the same buffer
  llvm::DenseSet<Stored> symmetric;        ///< a member of each class that must be symmetric
  llvm::DenseMap<Stored, Destination> destinations;
  llvm::DenseMap<mlir::Value, mlir::Value> accumulators;
  Signature signature;
};

} // namespace braid
#endif // BRAID_LIB_CONVERSION_MEMORYPLAN_H
