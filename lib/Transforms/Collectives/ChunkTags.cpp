//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ChunkTags.h"

#include "dialects/Comm/IR/Comm.h"

#include "llvm/ADT/TypeSwitch.h"

#include <limits>

using namespace mlir;

namespace braid {

ChunkTags::ChunkTags(ModuleOp module) {
  module.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op).Case<comm::SendOp, comm::RecvOp>(
        [&](auto message) { taken.insert(static_cast<int32_t>(message.getTag())); });
  });
}

int32_t ChunkTags::of(int32_t tag, int64_t chunk) {
  if (chunk == 0)
    return tag;
  auto [found, isNew] = known.try_emplace({tag, chunk}, 0);
  if (!isNew)
    return found->second;
  // Above all others, as long as there are any: an error about messages that do not match then
  // names the program's own tags first.
  int32_t next = *taken.rbegin();
  if (next < std::numeric_limits<int32_t>::max())
    ++next;
  else
    for (next = 0; taken.count(next) > 0;)
      ++next;
  taken.insert(next);
  return found->second = next;
}

} // namespace braid
