//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The results of collectives, computed from the values of all ranks of a group. ProcessGrid.h
// brings the ranks together.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_COLLECTIVES_H
#define BRAID_INTERPRETER_CORE_COLLECTIVES_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/Mesh.h"
#include "braid/Interpreter/Core/Tensor.h"

namespace braid::interp {

using runtime::CollectiveKind;
using runtime::ReduceKind;

struct ValueType {
  DType dtype = DType::f32;
  Shape shape;
};

/// A collective as every rank of its group must state it.
struct Collective {
  CollectiveKind kind = CollectiveKind::allReduce;
  ReduceKind reduce = ReduceKind::sum; ///< of allReduce, reduceScatter and reduce
  /// The dimension that is split (reduceScatter, allToAll) or concatenated (allGather).
  int64_t dim = 0;
  int64_t concatDim = 0; ///< of allToAll: the dimension that is concatenated
  int64_t root = 0;      ///< of reduce and broadcast: a position of the group
  /// Of permute, send and recv: sources and targets, as positions of the group.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  int64_t tag = 0;                    ///< of send and recv: matches them
  std::vector<ValueType> received;    ///< of recv: the expected types
  std::vector<runtime::AxisRef> axes; ///< the group
  std::string name;                   ///< for messages: its role, or its location

  /// Whether it is between two ranks.
  bool isPointToPoint() const { return runtime::isPointToPoint(kind); }
  /// Whether all ranks of the group get the same results.
  bool isUniform() const;
  /// "all_reduce sum over {tp}": the text on which ranks must agree.
  std::string describe() const;
};

/// The tensors of all ranks combined in the order of their group positions: ((t0 + t1) + t2) ...
/// The maximum and the minimum of a NaN are NaN.
Result<Tensor> combine(ReduceKind kind, const std::vector<Tensor> &parts);
/// The tensors concatenated along a dimension.
Result<Tensor> concatenate(const std::vector<Tensor> &parts, int64_t dim);
/// Shard `index` of `count` equal shards along a dimension.
Result<Tensor> sliceShard(const Tensor &tensor, int64_t dim, int64_t index, int64_t count);

/// The result at `position` of the group when the ranks contribute `parts`, in the order of group
/// positions. For collectives that treat each value independently: not allToAllV, send, recv.
Result<Tensor> apply(const Collective &collective, const std::vector<Tensor> &parts,
                     int64_t position);

/// The results of all values; `contributions[r]` are those of rank r. Not for send and recv.
Result<std::vector<Tensor>> applyAll(const Collective &collective,
                                     const std::vector<std::vector<Tensor>> &contributions,
                                     int64_t position);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_COLLECTIVES_H
