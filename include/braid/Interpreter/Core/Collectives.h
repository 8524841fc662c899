//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What collectives do to the values of a group, given all of them at once. How ranks meet is
// ProcessGrid.h's subject.
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
  /// The dimension that is cut (reduceScatter, allToAll) or joined (allGather).
  int64_t dim = 0;
  int64_t concatDim = 0; ///< of allToAll: the dimension that is joined
  int64_t root = 0;      ///< of reduce and broadcast: a position of the group
  /// Of permute, send and recv: from which position to which.
  std::vector<std::pair<int64_t, int64_t>> pairs;
  int64_t tag = 0;                    ///< of send and recv: they meet others of the same one only
  std::vector<ValueType> received;    ///< of recv: what is expected
  std::vector<runtime::AxisRef> axes; ///< the group
  std::string name;                   ///< for messages: where it stands in the program, or its role

  /// Two ranks meet, not a group.
  bool isPointToPoint() const { return runtime::isPointToPoint(kind); }
  /// All ranks of the group get the same.
  bool isUniform() const;
  /// "all_reduce sum over {tp}": what ranks must agree on.
  std::string describe() const;
};

/// The tensors of all ranks combined in the order of their group positions: ((t0 + t1) + t2) ...
/// NaN wins max and min.
Result<Tensor> combine(ReduceKind kind, const std::vector<Tensor> &parts);
/// The parts joined along a dimension.
Result<Tensor> concatenate(const std::vector<Tensor> &parts, int64_t dim);
/// Part `index` of `count` equal parts along a dimension.
Result<Tensor> slicePart(const Tensor &tensor, int64_t dim, int64_t index, int64_t count);

/// What the rank at `position` of the group gets when the ranks bring `parts`, in the order of
/// group positions. For collectives in which a value concerns no other: not allToAllV, send, recv.
Result<Tensor> apply(const Collective &collective, const std::vector<Tensor> &parts,
                     int64_t position);

/// The same for all values, which rank r brings as `contributions[r]`. Not for send and recv.
Result<std::vector<Tensor>> applyAll(const Collective &collective,
                                     const std::vector<std::vector<Tensor>> &contributions,
                                     int64_t position);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_COLLECTIVES_H
