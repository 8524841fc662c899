//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tags of messages that are sent in chunks. A send waits where kMessagesInFlight messages of its
// tag have not been received. Were all chunks of one tag, a send of more would wait for its
// receive, and a ring of ranks that all send first would deadlock. So the i-th chunks of the
// messages of a tag have a tag of their own, the same for send and receive: they wait for each
// other exactly where the messages would.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_CHUNKTAGS_H
#define BRAID_LIB_TRANSFORMS_CHUNKTAGS_H

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <set>

namespace braid {

class ChunkTags {
public:
  /// Tags that no message of the module has.
  explicit ChunkTags(mlir::ModuleOp module);

  /// The first chunk has the message's tag.
  int32_t of(int32_t tag, int64_t chunk);

private:
  std::set<int32_t> taken;
  std::map<std::pair<int32_t, int64_t>, int32_t> known;
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_CHUNKTAGS_H
