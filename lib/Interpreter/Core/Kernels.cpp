//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/Kernels.h"

#include <algorithm>
#include <cmath>

namespace braid::interp {

Status expects(const char *kernel, const std::string &what, const Tensor &got) {
  return Status::error(std::string(kernel) + " expects " + what + ", got " + got.typeString());
}

Result<Tensor> embedding(const Tensor &ids, const Tensor &table, TableShard shard) {
  if (ids.isFloat())
    return expects("embedding", "integer ids", ids);
  if (table.rank() != 2 || !table.isFloat())
    return expects("embedding", "a floating-point table of rank 2", table);
  int64_t rows = table.dim(0), width = table.dim(1), count = ids.numElements();
  int64_t limit = shard.fullRows ? shard.fullRows : rows * shard.count;
  std::vector<double> values(static_cast<size_t>(count * width));
  for (int64_t i = 0; i < count; ++i) {
    int64_t id = ids.ints()[i];
    if (id < 0 || id >= limit)
      return Status::error("embedding expects ids from 0 to " + std::to_string(limit - 1) +
                           ", got " + std::to_string(id) + " at position " +
                           runtime::shapeString(unflatten(i, ids.shape())));
    if (id / rows == shard.index)
      std::copy_n(table.floats() + (id % rows) * width, width, values.begin() + i * width);
  }
  Shape shape = ids.shape();
  shape.push_back(width);
  return Tensor::ofFloats(table.dtype(), std::move(shape), std::move(values));
}

Result<Tensor> positionIds(const Tensor &ids, int64_t padding) {
  if (ids.isFloat() || ids.rank() != 2)
    return expects("position_ids", "integer ids of rank 2", ids);
  std::vector<int64_t> values;
  for (int64_t b = 0; b < ids.dim(0); ++b)
    for (int64_t s = 0, tokens = 0; s < ids.dim(1); ++s) {
      bool token = ids.ints()[b * ids.dim(1) + s] != padding;
      tokens += token;
      values.push_back(padding + (token ? tokens : 0));
    }
  return Tensor::ofInts(ids.dtype(), ids.shape(), std::move(values));
}

Result<Tensor> layerNorm(const Tensor &input, const Tensor &weight, const Tensor &bias,
                         double epsilon) {
  if (input.rank() < 1 || !input.isFloat())
    return expects("layer_norm", "a floating-point input of rank 1 or more", input);
  int64_t width = input.shape().back();
  for (const Tensor *vector : {&weight, &bias})
    if (vector->rank() != 1 || !vector->isFloat() || vector->dim(0) != width)
      return expects("layer_norm",
                     "a floating-point weight and bias [" + std::to_string(width) + "]", *vector);
  std::vector<double> values(static_cast<size_t>(input.numElements()));
  int64_t rows = width == 0 ? 0 : input.numElements() / width;
  for (int64_t r = 0; r < rows; ++r) {
    const double *in = input.floats() + r * width;
    double sum = 0;
    for (int64_t i = 0; i < width; ++i)
      sum += in[i];
    double mean = sum / static_cast<double>(width), squares = 0;
    for (int64_t i = 0; i < width; ++i)
      squares += (in[i] - mean) * (in[i] - mean);
    double factor = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (int64_t i = 0; i < width; ++i)
      values[static_cast<size_t>(r * width + i)] =
          (in[i] - mean) * factor * weight.floats()[i] + bias.floats()[i];
  }
  return Tensor::ofFloats(input.dtype(), input.shape(), std::move(values));
}

Result<Tensor> rmsNorm(const Tensor &input, const Tensor &weight, double epsilon) {
  if (input.rank() < 1 || !input.isFloat())
    return expects("rms_norm", "a floating-point input of rank 1 or more", input);
  int64_t width = input.shape().back();
  if (weight.rank() != 1 || !weight.isFloat() || weight.dim(0) != width)
    return expects("rms_norm", "a floating-point weight [" + std::to_string(width) + "]", weight);
  std::vector<double> values(static_cast<size_t>(input.numElements()));
  int64_t rows = width == 0 ? 0 : input.numElements() / width;
  for (int64_t r = 0; r < rows; ++r) {
    const double *in = input.floats() + r * width;
    double squares = 0;
    for (int64_t i = 0; i < width; ++i)
      squares += in[i] * in[i];
    double factor = 1 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    for (int64_t i = 0; i < width; ++i)
      values[static_cast<size_t>(r * width + i)] = in[i] * factor * weight.floats()[i];
  }
  return Tensor::ofFloats(input.dtype(), input.shape(), std::move(values));
}

Result<Tensor> softmax(const Tensor &input) {
  if (input.rank() < 1 || !input.isFloat())
    return expects("softmax", "a floating-point input of rank 1 or more", input);
  int64_t width = input.shape().back(), rows = width == 0 ? 0 : input.numElements() / width;
  std::vector<double> values(input.floats(), input.floats() + input.numElements());
  for (int64_t r = 0; r < rows; ++r) {
    double *row = values.data() + r * width;
    double most = *std::max_element(row, row + width), total = 0;
    for (int64_t i = 0; i < width; ++i)
      total += row[i] = std::exp(row[i] - most);
    for (int64_t i = 0; i < width; ++i)
      row[i] /= total;
  }
  return Tensor::ofFloats(input.dtype(), input.shape(), std::move(values));
}

namespace {
struct Activation {
  const char *kind;
  double (*value)(double);
};

double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

constexpr Activation kActivations[] = {
    {"gelu", gelu},
    {"gelu_tanh",
     [](double x) {
       constexpr double kSqrt2OverPi = 0.79788456080286535588;
       return 0.5 * x * (1 + std::tanh(kSqrt2OverPi * (x + 0.044715 * x * x * x)));
     }},
    {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
    {"quick_gelu", [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
    {"gelu_10", [](double x) { return std::clamp(gelu(x), -10.0, 10.0); }},
    {"relu", [](double x) { return x < 0 ? 0 : x; }},
    {"relu2", [](double x) { return x < 0 ? 0 : x * x; }},
    {"relu6", [](double x) { return std::clamp(x, 0.0, 6.0); }},
    {"leaky_relu", [](double x) { return x < 0 ? 0.01 * x : x; }},
    {"mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"hardswish", [](double x) { return x * (std::clamp(x + 3, 0.0, 6.0) / 6); }},
    {"laplace",
     [](double x) { return 0.5 * (1 + std::erf((x - 0.707107) / (0.282095 * std::sqrt(2.0)))); }},
};
} // namespace

Result<Tensor> activation(const std::string &kind, const Tensor &input) {
  if (!input.isFloat())
    return expects(kind.c_str(), "a floating-point input", input);
  for (const Activation &activation : kActivations) {
    if (kind != activation.kind)
      continue;
    std::vector<double> values(input.floats(), input.floats() + input.numElements());
    for (double &x : values)
      x = activation.value(x);
    return Tensor::ofFloats(input.dtype(), input.shape(), std::move(values));
  }
  return Status::error("activation '" + kind + "' has no meaning here");
}

namespace {
template <typename Fn>
Result<Tensor> broadcast(const char *kernel, const Tensor &lhs, const Tensor &rhs, Fn fn) {
  const Shape &shape = lhs.shape();
  if (!lhs.isFloat())
    return expects(kernel, "a floating-point left operand", lhs);
  if (!rhs.isFloat() || rhs.rank() > lhs.rank() ||
      !std::equal(rhs.shape().rbegin(), rhs.shape().rend(), shape.rbegin()))
    return expects(
        kernel, "a floating-point right operand whose shape ends that of " + lhs.typeString(), rhs);
  std::vector<double> values(static_cast<size_t>(lhs.numElements()));
  int64_t period = rhs.numElements();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = fn(lhs.floats()[i], rhs.floats()[static_cast<int64_t>(i) % period]);
  return Tensor::ofFloats(lhs.dtype(), shape, std::move(values));
}
} // namespace

Result<Tensor> add(const Tensor &lhs, const Tensor &rhs) {
  return broadcast("add", lhs, rhs, [](double a, double b) { return a + b; });
}

Result<Tensor> mul(const Tensor &lhs, const Tensor &rhs) {
  return broadcast("mul", lhs, rhs, [](double a, double b) { return a * b; });
}

Result<Tensor> reshape(const Tensor &input, const Shape &shape) {
  if (numElements(shape) != input.numElements())
    return expects("reshape", "as many elements as " + runtime::shapeString(shape) + " has", input);
  return input.reshaped(shape);
}

} // namespace braid::interp
