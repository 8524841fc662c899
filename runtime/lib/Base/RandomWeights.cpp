//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Element `index` (row-major, in the full checkpoint tensor) of tensor `name` under `seed`:
//   key     = { low word, high word of the seed }
//   counter = { low word, high word of index / 4, low word, high word of FNV-1a-64(name) }
//   w       = Philox4x32-10(counter, key), four words of 32 bits
//   pair p of a block, p = 0 or 1:
//     radius r = sqrt(-2 ln((w[2p] + 1) / 2^32)), angle t = 2 pi w[2p + 1] / 2^32 (Box and Muller)
//     elements 4i + 2p and 4i + 2p + 1 are 0.02 r cos t and 0.02 r sin t
// in f64, rounded once to the type of the parameter. No value depends on sharding, slicing or the
// parameter that uses the tensor. The logarithm, sine and cosine are the host's: another libm may
// round a rare element differently.
//
// Random inputs are the same function of seed, name and index, with deviation 1 in place of 0.02.
// Integers are the first two words, low word first, of the block of the element's own index, modulo
// their upper bound.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/Float16.h"
#include "braid/Base/Philox.h"
#include "braid/Base/Slices.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Support.h"
#include "braid/Base/Weights.h"

#include <cmath>
#include <cstring>

namespace braid::runtime {

namespace {

uint64_t fnv1a64(const std::string &text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

std::array<uint32_t, 4> wordsAt(uint64_t seed, uint64_t tensorHash, int64_t block) {
  return philox4x32({uint32_t(block), uint32_t(uint64_t(block) >> 32), uint32_t(tensorHash),
                     uint32_t(tensorHash >> 32)},
                    {uint32_t(seed), uint32_t(seed >> 32)});
}

class NormalStream {
public:
  NormalStream(uint64_t seed, const std::string &tensor, double deviation)
      : seed(seed), tensorHash(fnv1a64(tensor)), deviation(deviation) {}

  double at(int64_t index) {
    if (index / 4 != block)
      fill(index / 4);
    return values[index % 4];
  }

private:
  void fill(int64_t newBlock) {
    constexpr double kTwoPi = 6.283185307179586476925287, kUnit = 0x1p-32;
    block = newBlock;
    std::array<uint32_t, 4> words = wordsAt(seed, tensorHash, block);
    for (size_t p = 0; p < 2; ++p) {
      double radius = deviation * std::sqrt(-2 * std::log((double(words[2 * p]) + 1) * kUnit));
      double angle = kTwoPi * kUnit * words[2 * p + 1];
      values[2 * p] = radius * std::cos(angle);
      values[2 * p + 1] = radius * std::sin(angle);
    }
  }

  uint64_t seed, tensorHash;
  double deviation;
  int64_t block = -1;
  std::array<double, 4> values{};
};

void store(void *dest, DType dtype, int64_t i, double value) {
  switch (dtype) {
  case DType::f32:
    static_cast<float *>(dest)[i] = static_cast<float>(value);
    return;
  case DType::f16:
    static_cast<uint16_t *>(dest)[i] = floatToF16(static_cast<float>(value));
    return;
  case DType::bf16:
    static_cast<uint16_t *>(dest)[i] = floatToBf16(static_cast<float>(value));
    return;
  case DType::f64:
    static_cast<double *>(dest)[i] = value;
    return;
  case DType::i32:
    static_cast<int32_t *>(dest)[i] = static_cast<int32_t>(value);
    return;
  case DType::i64:
    static_cast<int64_t *>(dest)[i] = static_cast<int64_t>(value);
    return;
  case DType::i8:
    static_cast<int8_t *>(dest)[i] = static_cast<int8_t>(value);
    return;
  }
}

void storeInteger(void *dest, DType dtype, int64_t i, int64_t value) {
  if (dtype == DType::i64)
    static_cast<int64_t *>(dest)[i] = value;
  else if (dtype == DType::i32)
    static_cast<int32_t *>(dest)[i] = static_cast<int32_t>(value);
  else
    static_cast<int8_t *>(dest)[i] = static_cast<int8_t>(value);
}

class RandomSource : public WeightSource {
public:
  explicit RandomSource(uint64_t seed) : seed(seed) {}
  std::string describe() const override {
    return "random weights (seed " + std::to_string(seed) + ")";
  }
  std::vector<TensorInfo> tensors() const override { return {}; }

  Status read(const Parameter &parameter, const Box &box, void *dest) override {
    RETURN_IF_ERROR(verifyRead(parameter, box));
    DType dtype = parameter.dtype;
    if (isInteger(dtype) && parameter.init == Init::normal)
      return Status::error("parameter ", inQuotes(parameter.name), " of type ", name(dtype),
                           " expects ones or zeros as random weights, got normal");
    std::memset(dest, 0, static_cast<size_t>(*checkedNumElements(box.sizes) * byteSize(dtype)));
    if (parameter.init == Init::zeros)
      return {};
    std::vector<int64_t> boxStrides = rowMajorStrides(box.sizes);
    for (const Slice &slice : parameter.slices) {
      std::optional<SlicePart> part = intersect(slice, box);
      if (!part)
        continue;
      NormalStream normal(seed, slice.tensor, /*deviation=*/0.02);
      int64_t length = part->sizes.empty() ? 1 : part->sizes.back();
      int64_t step = part->sizes.empty() ? 0 : part->sourceStrides.back();
      forEachRow(part->sizes, part->sourceStrides, boxStrides, [&](int64_t from, int64_t to) {
        for (int64_t i = 0; i < length; ++i)
          store(dest, dtype, part->destOffset + to + i,
                parameter.init == Init::ones ? 1.0
                                             : normal.at(part->sourceOffset + from + i * step));
      });
    }
    return {};
  }

private:
  uint64_t seed;
};

} // namespace

HostTensor defaultInput(const EntryValue &operand) {
  HostTensor tensor = HostTensor::zeros(operand.dtype, operand.globalShape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    storeInteger(tensor.data.data(), operand.dtype, i, *operand.defaultValue);
  return tensor;
}

Result<HostTensor> randomInput(const EntryValue &operand, uint64_t seed) {
  HostTensor tensor = HostTensor::zeros(operand.dtype, operand.globalShape);
  if (!isInteger(operand.dtype)) {
    NormalStream normal(seed, operand.name, /*deviation=*/1);
    for (int64_t i = 0; i < tensor.numElements(); ++i)
      store(tensor.data.data(), operand.dtype, i, normal.at(i));
    return tensor;
  }
  if (!operand.below)
    return Status::error("input ", inQuotes(operand.name), " ", name(operand.dtype), " ",
                         shapeString(operand.globalShape),
                         " has no random values: the model gives no upper bound");
  const uint64_t hash = fnv1a64(operand.name), below = static_cast<uint64_t>(*operand.below);
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    std::array<uint32_t, 4> words = wordsAt(seed, hash, i);
    storeInteger(tensor.data.data(), operand.dtype, i,
                 static_cast<int64_t>((uint64_t(words[1]) << 32 | words[0]) % below));
  }
  return tensor;
}

std::unique_ptr<WeightSource> WeightSource::random(uint64_t seed) {
  return std::make_unique<RandomSource>(seed);
}

} // namespace braid::runtime
