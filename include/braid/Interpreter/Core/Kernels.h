//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The meaning of the operations of a transformer layer, in plain loops that accumulate in f64 in
// index order. Each function checks the shapes that it relies on and names itself in its error.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_KERNELS_H
#define BRAID_INTERPRETER_CORE_KERNELS_H

#include "braid/Interpreter/Core/Collectives.h"

#include <optional>

namespace braid::interp {

/// "KERNEL expects WHAT, got TYPE", an error.
Status expects(const char *kernel, const std::string &what, const Tensor &got);

/// The shard of a table that is split by rows into `count` equal ones.
struct TableShard {
  int64_t index = 0, count = 1;
  int64_t fullRows = 0; ///< of the full table without padding at its end. 0: there is no padding
};
/// result[..., :] = table[ids[...], :], zeros for an id in another shard. Error when an id is
/// outside of the full table.
Result<Tensor> embedding(const Tensor &ids, const Tensor &table, TableShard shard = {});

/// result[b, s] = padding where ids[b, s] is, else padding plus the number of ids up to and with s
/// that are not padding.
Result<Tensor> positionIds(const Tensor &ids, int64_t padding);

/// The library kernel `matmul` (braid/Base/MatmulForm.h). Operands that are null are absent.
struct MatmulOperands {
  const Tensor *lhs = nullptr, *rhs = nullptr, *bias = nullptr;
  const Tensor *counts = nullptr;                        ///< integers [groups]
  const Tensor *lhsScale = nullptr, *rhsScale = nullptr; ///< of operands of i8
  const Tensor *addend = nullptr;                        ///< what out holds, to accumulate
  bool transposeLhs = false, transposeRhs = false;
  std::optional<DType> type = {}; ///< of the result; that of lhs if it is not given
};
/// Error when a count is outside of the capacity.
Result<Tensor> matmul(const MatmulOperands &operands);

/// Rows of 8-bit integers with a scale each (braid/Base/RowQuantization.h).
struct QuantizedRows {
  Tensor values, scales; ///< i8 of the input's shape, and f32 without its last dimension
};
QuantizedRows quantizeRows(const Tensor &input);

/// result[b, s, h, :] = softmax over t of (scale * query[b, s, h, :] . key[b, t, h', :]) applied to
/// value[b, t, h', :] with h' = h / (heads / kv_heads). Key t takes part when mask[b, t] is not 0,
/// t < valid_length[b] and, if causal, t <= s + position_offset[b]; operands that are null restrict
/// nothing. A query that may attend to no key gives zeros.
struct AttentionOperands {
  const Tensor *query = nullptr;          ///< [batch, seq_q, heads, head_dim]
  const Tensor *key = nullptr;            ///< [batch, seq_k, kv_heads, head_dim]
  const Tensor *value = nullptr;          ///< as key; its last dimension may differ
  const Tensor *mask = nullptr;           ///< integers [batch, seq_k]
  const Tensor *validLength = nullptr;    ///< integers [batch]
  const Tensor *positionOffset = nullptr; ///< integers [batch]
  double scale = 1;
  bool causal = false;
};
/// `logSum`, if given, becomes f32 [batch, seq_q, heads]: log(sum_t exp(scale * query . key)), or
/// -infinity for a query without keys.
Result<Tensor> attention(const AttentionOperands &operands, Tensor *logSum = nullptr);

/// Normalizes the last dimension to mean 0 and variance 1 (biased, plus epsilon), then scales and
/// shifts.
Result<Tensor> layerNorm(const Tensor &input, const Tensor &weight, const Tensor &bias,
                         double epsilon);

/// input / sqrt(mean of input^2 over the last dimension + epsilon) * weight.
Result<Tensor> rmsNorm(const Tensor &input, const Tensor &weight, double epsilon);

/// Exponentials of the last dimension, divided by their sum.
Result<Tensor> softmax(const Tensor &input);

/// Cosines and sines of position * frequency, times `scale`: [seq, n], or [batch, seq, n] with an
/// integer position offset [batch], which may be null.
struct RotaryTables {
  Tensor cos, sin;
};
Result<RotaryTables> rotaryTables(DType type, int64_t seq, const std::vector<double> &frequencies,
                                  double scale, const Tensor *positionOffset);

/// Rotates the pair (i, i + n) of each head of an input [batch, seq, heads, 2 * n] by the angle of
/// tables [seq, n] or [batch, seq, n].
Result<Tensor> rotary(const Tensor &input, const Tensor &cos, const Tensor &sin);

/// The nn dialect's activation function `kind` of every element.
Result<Tensor> activation(const std::string &kind, const Tensor &input);

/// Elementwise sum; `rhs` may lack leading dimensions of `lhs`.
Result<Tensor> add(const Tensor &lhs, const Tensor &rhs);

/// Elementwise product; `rhs` may lack leading dimensions of `lhs`.
Result<Tensor> mul(const Tensor &lhs, const Tensor &rhs);

/// Zeros where Philox4x32-10 gives a word below rate * 2^32 for the positions of an element, one
/// tensor [n] for each of 1 to 3 dimensions, and `site`; elsewhere input / (1 - rate).
Result<Tensor> dropout(const Tensor &input, const std::vector<const Tensor *> &positions,
                       int64_t seed, uint32_t site, double rate);

/// log(sum of exp(logits[i..., :])) - logits[i..., labels[i...]]; 0 where the label is `ignore`.
/// Error when another label is outside of the classes.
Result<Tensor> crossEntropy(const Tensor &logits, const Tensor &labels,
                            std::optional<int64_t> ignore);

Result<Tensor> reshape(const Tensor &input, const Shape &shape);

/// A call of a library kernel (braid/Base/LibraryKernels.h) in a program, or of an operation of a
/// model that such a kernel computes.
struct KernelCall {
  /// By the descriptor's operands, null where absent; outputs that are read follow the inputs.
  std::vector<const Tensor *> inputs;
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  int64_t part = 0, parts = 1; ///< this rank's position in the group, and the group's size
  std::vector<ValueType> outputs;
};

/// The outputs of one call of the library kernel with this name.
Result<std::vector<Tensor>> computeLibraryKernel(const std::string &name, const KernelCall &call);

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_KERNELS_H
