//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sources of the values of parameters: a checkpoint (Safetensors.h) or a seed. Executor and
// interpreter both read slice lists (Parameter.h) through these.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_WEIGHTS_H
#define BRAID_BASE_WEIGHTS_H

#include "braid/Base/HostTensor.h"
#include "braid/Base/Parameter.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

/// One tensor of a checkpoint, as its header describes it.
struct TensorInfo {
  std::string name;
  std::string dtype; ///< as in the file: "F32", "BF16", ...
  std::vector<int64_t> shape;
};

class WeightSource {
public:
  virtual ~WeightSource() = default;

  /// Random weights are a function of (seed, tensor name, global index) only (Philox 4x32-10,
  /// Salmon et al. 2011, and Box-Muller): ones, zeros, or normal with deviation 0.02.
  static std::unique_ptr<WeightSource> random(uint64_t seed);

  /// For messages: the file's path, or "random weights (seed 7)".
  virtual std::string describe() const = 0;
  /// The tensors of the checkpoint; empty for random weights.
  virtual std::vector<TensorInfo> tensors() const = 0;

  /// Copies the box `box` of `parameter`, in global coordinates, to `dest`, row-major, in the
  /// parameter's dtype; bf16 and f16 tensors are widened for a parameter of f32. A quantized
  /// parameter is read by readParameter. Errors: a tensor is missing, or differs in shape or dtype
  /// from what the slice expects. Several threads may read at once.
  virtual Status read(const Parameter &parameter, const Box &box, void *dest) = 0;
  /// The files that read() needs; ranks that are processes close all others.
  virtual std::vector<int> descriptors() const { return {}; }
};

/// An operand that is left out, filled with its default, which it must have.
HostTensor defaultInput(const EntryValue &operand);
/// A random operand: a function of (seed, name, index) only. Integers are in [0, below); without
/// such a bound they are an error. Floats are normal with deviation 1.
Result<HostTensor> randomInput(const EntryValue &operand, uint64_t seed);

/// Copies a box of a parameter to `dest`, and quantizes the rows of the matrix that it is made of
/// if it is `quantized`: as a whole, also where the box has a part of them. A number there that is
/// not finite is an error.
Status readParameter(WeightSource &source, const Parameter &parameter, const Box &box, void *dest);

/// Reads a rank's shard of a parameter; nothing where the rank does not have it.
Status loadParameter(WeightSource &source, const Mesh &mesh, int64_t rank,
                     const Parameter &parameter, void *dest);

/// Reads a rank's shard of every parameter; `place(i)` is the memory of parameter i. Calls
/// `progress`, if given, with (parameters done, all parameters).
Status loadParameters(WeightSource &source, const Mesh &mesh, int64_t rank,
                      const std::vector<Parameter> &parameters,
                      const std::function<void *(size_t)> &place,
                      const std::function<void(size_t, size_t)> &progress = {});

} // namespace braid::runtime
#endif // BRAID_BASE_WEIGHTS_H
