//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where the values of parameters come from: a checkpoint (Safetensors.h), or a seed. The only code
// that executes slice lists (Parameter.h), used by executor and interpreter alike.
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

  /// Copies the part of `parameter` inside `box` (global coordinates) to `dest`, row-major, in the
  /// parameter's dtype; tensors of bf16 and f16 are widened for a parameter of f32. Errors: a
  /// tensor is missing, has another shape than the slice expects, or another dtype.
  /// Several threads may read at once.
  virtual Status read(const Parameter &parameter, const Box &box, void *dest) = 0;
  /// What read() needs open; of all files, ranks that are processes keep only these.
  virtual std::vector<int> descriptors() const { return {}; }
};

/// An operand that is left out: its default, which it must have, in every element.
HostTensor defaultInput(const EntryValue &operand);
/// An operand whose values do not matter: a function of (seed, name, index) only. Integers are in
/// [0, below), and an error when there is no such bound; floats normal with deviation 1.
Result<HostTensor> randomInput(const EntryValue &operand, uint64_t seed);

/// Reads rank `rank`'s part of a parameter.
Status loadParameter(WeightSource &source, const Mesh &mesh, int64_t rank,
                     const Parameter &parameter, void *dest);

/// Reads rank `rank`'s part of every parameter; `place(i)` says where parameter i goes. `progress`,
/// when given, is told (parameters done, parameters in all).
Status loadParameters(WeightSource &source, const Mesh &mesh, int64_t rank,
                      const std::vector<Parameter> &parameters,
                      const std::function<void *(size_t)> &place,
                      const std::function<void(size_t, size_t)> &progress = {});

} // namespace braid::runtime
#endif // BRAID_BASE_WEIGHTS_H
