//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the index of a checkpoint of several files, next to two files of one tensor each.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/Safetensors.h"

using namespace braid::runtime;
using namespace braid::fuzz;

namespace {

std::string shard(const std::string &tensor) {
  std::string header =
      "{\"" + tensor + "\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
  std::string file;
  for (size_t i = 0; i < 8; ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + std::string(8, '\1');
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  static const bool shards = [] {
    for (const char *name : {"a", "b"}) {
      std::string file = shard(name);
      folder.put(std::string(name) + ".safetensors", file.data(), file.size());
    }
    return true;
  }();
  (void)shards;
  folder.put("model.safetensors.index.json", data, size);
  auto source = openSafetensors(folder.path("model.safetensors.index.json"));
  if (!source.ok())
    return 0;
  for (const TensorInfo &info : (*source)->tensors()) {
    require(info.name == "a" || info.name == "b", "an index leads to the files beside it only");
    Parameter p;
    p.name = "p";
    p.globalShape = {2};
    p.slices.push_back({info.name, {2}, {}, {0}, {0}, {2}});
    float values[2] = {};
    require((*source)->read(p, {{0}, {2}}, values).ok(), "what is listed can be read");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  std::string text = mutateJson(std::string(reinterpret_cast<const char *>(data), size), random);
  return put(text.data(), text.size(), data, size, maxSize);
}
