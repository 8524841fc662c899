//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a manifest's JSON. An accepted manifest is the same after it was written and read, and
// every rank's shard of its values can be computed.
//
//===----------------------------------------------------------------------===//
#include "braid/Program/Manifest.h"
#include "Fuzz.h"
#include "braid/Runtime/ManifestJson.h"

#include <algorithm>

using namespace braid::runtime;
using namespace braid::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<Manifest> manifest =
      manifestFromJson(std::string(reinterpret_cast<const char *>(data), size));
  if (!manifest.ok())
    return 0;
  require(manifest->verify().ok(), "what was read verifies");
  std::string json = toJson(*manifest);
  Result<Manifest> back = manifestFromJson(json);
  require(back.ok(), "what was written can be read: " + back.status().message());
  require(toJson(*back) == json, "a manifest is the same after it was written and read");
  const Mesh &mesh = manifest->mesh;
  const int64_t ranks = std::min<int64_t>(mesh.numRanks(), 16);
  for (const Entry &entry : manifest->entries)
    for (int64_t rank = 0; rank < ranks; ++rank) {
      for (const Parameter &p : entry.parameters)
        require(localBox(mesh, rank, p.globalShape, p.sharding).ok(), "parameters can be cut");
      for (const auto *values : {&entry.operands, &entry.results})
        for (const EntryValue &v : *values)
          require(localBox(mesh, rank, v.shardedShape(), v.sharding).ok(), "values can be cut");
    }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  std::string text = mutateJson(std::string(reinterpret_cast<const char *>(data), size), random);
  return put(text.data(), text.size(), data, size, maxSize);
}
