//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parameters of an entry, assembled from slices of a checkpoint's tensors, and its operands and
// results.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_PARAMETER_H
#define BRAID_BASE_PARAMETER_H

#include "braid/Base/DType.h"
#include "braid/Base/RankSet.h"

#include <optional>

namespace braid::runtime {

/// One slice of a parameter: a box of a permuted tensor of the checkpoint, and its place in the
/// parameter. parameter[destOffsets + i] = permute(tensor, permutation)[sourceOffsets + i] for 0 <=
/// i < sizes. All vectors have the parameter's rank and refer to the *permuted* tensor. Elements
/// outside of all slices are zero. Slices do not overlap, and a parameter has at least one.
struct Slice {
  std::string tensor;               ///< name in the checkpoint
  std::vector<int64_t> tensorShape; ///< the shape it must have there
  std::vector<int64_t>
      permutation; ///< permuted dim d is the tensor's dim permutation[d]; identity when empty
  std::vector<int64_t> sourceOffsets, destOffsets, sizes;
};

/// The distribution of random weights (RandomWeights.cpp).
enum class Init : int8_t { normal = 0, ones, zeros };

/// What of its quantized matrix a parameter is (RowQuantization.h).
enum class QuantizedPart : int8_t { values = 0, scales };

struct Parameter {
  std::string name;
  DType dtype = DType::f32;
  Init init = Init::normal;
  std::vector<int64_t> globalShape;
  Sharding sharding; ///< of the parameter over the mesh
  /// Of the parameter; with `quantized`, of the f32 matrix [out, in] that the loader quantizes.
  std::vector<Slice> slices;
  RankSet on = {}; ///< the ranks that have it
  /// `values` are [out, in] of i8, `scales` [out] of f32.
  std::optional<QuantizedPart> quantized = std::nullopt;

  const std::vector<int64_t> &shardedShape() const { return globalShape; }
};

/// A state, an operand or a result of an entry, under the name that --input and --output use.
struct EntryValue {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> globalShape;
  Sharding sharding;
  /// Of a state or a result: the shape that is sharded, at least `globalShape` in every dimension;
  /// the rest is padding, which callers never see. Empty: no padding.
  std::vector<int64_t> paddedShape = {};

  /// Of an operand of integers: the value of every element if the operand is left out, and an upper
  /// bound (exclusive) of all elements.
  std::optional<int64_t> defaultValue = std::nullopt, below = std::nullopt;
  RankSet on = {}; ///< the ranks that have it

  const std::vector<int64_t> &shardedShape() const {
    return paddedShape.empty() ? globalShape : paddedShape;
  }
};

} // namespace braid::runtime
#endif // BRAID_BASE_PARAMETER_H
