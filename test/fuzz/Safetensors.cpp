//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a safetensors file: its header and the tensors that the header describes. The first three
// bytes of an input choose how it is read, the rest is the file.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Safetensors.h"
#include "Fuzz.h"
#include "braid/Base/Weights.h"

#include <algorithm>
#include <numeric>
#include <string_view>

using namespace braid::runtime;
using namespace braid::fuzz;

namespace {

constexpr size_t kChoices = 3, kLength = 8;

/// The full tensor as a parameter, permuted, with a type that may differ from the file's.
Parameter parameterOf(const TensorInfo &info, Random &random) {
  Parameter p;
  p.name = "p";
  Result<DType> same = [&] {
    std::string name = info.dtype;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
      return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    });
    return parseDType(name);
  }();
  p.dtype = same.ok() && !random.oneIn(4) ? *same : static_cast<DType>(random.below(7));
  Slice slice;
  slice.tensor = info.name;
  slice.tensorShape = info.shape;
  slice.permutation.resize(info.shape.size());
  std::iota(slice.permutation.begin(), slice.permutation.end(), 0);
  for (size_t i = slice.permutation.size(); i > 1; --i)
    std::swap(slice.permutation[i - 1], slice.permutation[random.below(i)]);
  for (int64_t d : slice.permutation) {
    int64_t extent = info.shape[static_cast<size_t>(d)];
    int64_t cut = random.oneIn(2) && extent > 1 ? 1 : 0, before = random.oneIn(3) ? 2 : 0;
    slice.sizes.push_back(extent - cut);
    slice.sourceOffsets.push_back(cut);
    slice.destOffsets.push_back(before);
    int64_t whole = extent;
    if (!__builtin_add_overflow(extent, int64_t(3), &whole) && random.oneIn(2))
      p.globalShape.push_back(whole); // more than the slices cover
    else
      p.globalShape.push_back(extent);
  }
  p.slices.push_back(std::move(slice));
  return p;
}

void read(WeightSource &source, const TensorInfo &info, Random &random) {
  constexpr int64_t kMaxElements = 1 << 16;
  if (info.shape.size() > 16)
    return;
  Parameter p = parameterOf(info, random);
  Box box;
  int64_t elements = 1;
  for (int64_t size : p.globalShape) {
    int64_t offset = size > 1 ? static_cast<int64_t>(random.below(2)) : 0;
    box.offsets.push_back(offset);
    box.sizes.push_back(size - offset);
    if (__builtin_mul_overflow(elements, box.sizes.back(), &elements))
      elements = kMaxElements + 1;
    if (elements > kMaxElements || elements < 0)
      return;
  }
  std::vector<std::byte> dest(static_cast<size_t>(elements * byteSize(p.dtype)));
  (void)source.read(p, box, dest.data());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  if (size < kChoices)
    return 0;
  Random random(data[0] | uint32_t(data[1]) << 8 | uint32_t(data[2]) << 16);
  folder.put("model.safetensors", data + kChoices, size - kChoices);
  auto source = openSafetensors(folder.path("model.safetensors"));
  if (!source.ok())
    return 0;
  for (const TensorInfo &info : (*source)->tensors())
    for (int i = 0; i < 4; ++i)
      read(**source, info, random);
  return 0;
}

/// Mutates the header as JSON and updates its length field.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  constexpr size_t kHeader = kChoices + kLength;
  uint64_t length = 0;
  for (size_t i = kHeader; size >= kHeader && i-- > kChoices;)
    length = length << 8 | data[i];
  if (size < kHeader || length > size - kHeader || random.oneIn(4))
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string header(reinterpret_cast<const char *>(data) + kHeader, length);
  std::string result(reinterpret_cast<const char *>(data), kChoices);
  std::string rest(reinterpret_cast<const char *>(data) + kHeader + length,
                   size - kHeader - length);
  if (random.oneIn(8))
    result[random.below(kChoices)] = static_cast<char>(random.next());
  header = mutateJson(header, random);
  for (size_t i = 0; i < kLength; ++i)
    result += static_cast<char>(header.size() >> (8 * i) & 0xff);
  if (random.oneIn(4))
    rest.resize(rest.size() + random.below(9));
  result += header + rest;
  return put(result.data(), result.size(), data, size, maxSize);
}
