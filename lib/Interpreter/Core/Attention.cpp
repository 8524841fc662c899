//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/Core/Kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace braid::interp {

namespace {
Status expects(const std::string &what, const Tensor &got) {
  return Status::error("attention expects " + what + ", got " + got.typeString());
}

Status check(const AttentionOperands &op) {
  const Tensor &q = *op.query, &k = *op.key, &v = *op.value;
  for (const Tensor *t : {&q, &k, &v})
    if (t->rank() != 4 || !t->isFloat())
      return expects("floating-point query, key and value of rank 4", *t);
  if (k.dim(0) != q.dim(0) || k.dim(3) != q.dim(3))
    return expects("a key with the batch and head dimensions of query " + q.typeString(), k);
  if (v.dim(0) != k.dim(0) || v.dim(1) != k.dim(1) || v.dim(2) != k.dim(2))
    return expects("a value with the batch, sequence and heads of key " + k.typeString(), v);
  if (k.dim(2) == 0 || q.dim(2) % k.dim(2) != 0)
    return expects(
        "a number of key heads that divides the " + std::to_string(q.dim(2)) + " query heads", k);
  if (op.mask && (op.mask->isFloat() || op.mask->shape() != Shape{k.dim(0), k.dim(1)}))
    return expects("an integer mask [" + std::to_string(k.dim(0)) + ", " +
                       std::to_string(k.dim(1)) + "]",
                   *op.mask);
  for (const Tensor *t : {op.validLength, op.positionOffset})
    if (t && (t->isFloat() || t->shape() != Shape{q.dim(0)}))
      return expects(
          "an integer valid_length or position_offset [" + std::to_string(q.dim(0)) + "]", *t);
  return {};
}
} // namespace

Result<Tensor> attention(const AttentionOperands &op, Tensor *logSum) {
  RETURN_IF_ERROR(check(op));
  const Tensor &q = *op.query, &k = *op.key, &v = *op.value;
  int64_t batch = q.dim(0), seqQ = q.dim(1), heads = q.dim(2), dim = q.dim(3);
  int64_t seqK = k.dim(1), kvHeads = k.dim(2), valueDim = v.dim(3), perKv = heads / kvHeads;
  std::vector<double> out(static_cast<size_t>(batch * seqQ * heads * valueDim));
  std::vector<double> logSums(static_cast<size_t>(batch * seqQ * heads),
                              -std::numeric_limits<double>::infinity());
  std::vector<double> scores(static_cast<size_t>(seqK));
  std::vector<char> allowed(static_cast<size_t>(seqK));

  for (int64_t b = 0; b < batch; ++b) {
    // Clamped, since the sum with a large offset could overflow; more than all keys has no effect.
    const int64_t offset =
        op.positionOffset ? std::clamp<int64_t>(op.positionOffset->ints()[b], -seqQ, seqK) : 0;
    for (int64_t s = 0; s < seqQ; ++s) {
      int64_t last = op.causal ? s + offset : seqK;
      bool any = false;
      for (int64_t t = 0; t < seqK; ++t) {
        bool takes = (!op.mask || op.mask->ints()[b * seqK + t] != 0) &&
                     (!op.validLength || t < op.validLength->ints()[b]) && t <= last;
        allowed[static_cast<size_t>(t)] = takes;
        any |= takes;
      }
      if (!any)
        continue;
      for (int64_t h = 0; h < heads; ++h) {
        const double *query = q.floats() + ((b * seqQ + s) * heads + h) * dim;
        int64_t kv = h / perKv;
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t t = 0; t < seqK; ++t) {
          if (!allowed[static_cast<size_t>(t)])
            continue;
          const double *key = k.floats() + ((b * seqK + t) * kvHeads + kv) * dim;
          double dot = 0;
          for (int64_t d = 0; d < dim; ++d)
            dot += query[d] * key[d];
          scores[static_cast<size_t>(t)] = op.scale * dot;
          most = std::max(most, op.scale * dot);
        }
        double total = 0;
        double *result = out.data() + ((b * seqQ + s) * heads + h) * valueDim;
        for (int64_t t = 0; t < seqK; ++t) {
          if (!allowed[static_cast<size_t>(t)])
            continue;
          double weight = std::exp(scores[static_cast<size_t>(t)] - most);
          total += weight;
          const double *value = v.floats() + ((b * seqK + t) * kvHeads + kv) * valueDim;
          for (int64_t d = 0; d < valueDim; ++d)
            result[d] += weight * value[d];
        }
        for (int64_t d = 0; d < valueDim; ++d)
          result[d] /= total;
        logSums[static_cast<size_t>((b * seqQ + s) * heads + h)] = most + std::log(total);
      }
    }
  }
  if (logSum)
    *logSum = Tensor::ofFloats(DType::f32, {batch, seqQ, heads}, std::move(logSums));
  return Tensor::ofFloats(q.dtype(), {batch, seqQ, heads, valueDim}, std::move(out));
}

} // namespace braid::interp
