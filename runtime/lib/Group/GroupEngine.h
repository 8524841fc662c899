//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs collectives, one after the other, on memory of the caller.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_GROUP_GROUPENGINE_H
#define BRAID_GROUP_GROUPENGINE_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/DType.h"
#include "runtime/lib/Collective/Engine.h"
#include "runtime/lib/Collective/SharedArenas.h"

#include <memory>
#include <vector>

namespace braid::runtime {

/// A value of a collective: a part of so many elements, and for each rank one of it in the input of
/// a reduce_scatter, in the output of an all_gather, and in both of an all_to_all, packed in the
/// order of ranks. Input and output are the same memory or do not overlap.
struct GroupValue {
  DType dtype = DType::f32;
  const void *input = nullptr;
  void *output = nullptr; ///< of a reduce: at the root only
  int64_t elements = 0;
};

struct GroupCollective {
  CollectiveKind kind = CollectiveKind::allReduce;
  ReduceKind reduce = ReduceKind::sum;
  int64_t root = 0; ///< of a reduce and a broadcast
  std::vector<GroupValue> values;
};

/// Bytes to or from another rank, or, as a send and a receive of this rank, within it.
struct GroupMessage {
  bool isSend = false;
  int64_t peer = 0;
  void *data = nullptr;
  int64_t bytes = 0;
};

/// Everything but `ring` is for the thread of the link.
class GroupEngine {
public:
  explicit GroupEngine(net::Link &link);
  /// Shares memory with these ranks of the host, this one among them: messages between them do
  /// without the link. Called by all ranks of a group before any collective, or by none.
  /// `isMixed`: other messages in the group need links.
  Status share(const SharedArenas::Exchange &exchange, const std::vector<int64_t> &hostRanks,
               bool isMixed, double timeLimitSeconds);
  GroupEngine(const GroupEngine &) = delete;
  GroupEngine &operator=(const GroupEngine &) = delete;
  ~GroupEngine();

  /// Begins a collective when the one before is done or abandoned; the memory of its values stays
  /// until then. `tag`: of its messages, whose low 32 bits are free, the same on all ranks and
  /// that of no other collective under way.
  Status begin(const GroupCollective &collective, uint64_t tag);
  /// The same for messages; those between two ranks match in their order.
  Status begin(const std::vector<GroupMessage> &messages, uint64_t tag);
  /// Does what can be done without waiting. An error names the peer that is lost.
  Status advance();
  bool isDone() const;
  /// What advance() lacked; nothing of any rank when the collective is done.
  Engine::Awaited awaited() const;
  /// As Engine's.
  int64_t latenessNs() const;
  /// Whether the collective has messages over the link.
  bool hasLinks() const;
  /// Whether ranks of the host set counters.
  bool sharesMemory() const;
  /// Ends a wait for a counter. For any thread.
  void ring();
  /// Gives up what is under way when nowNs() reaches `until`, and closes the link if that is the
  /// only way.
  void abandon(int64_t until);

private:
  struct Run;
  net::Link &link;
  std::unique_ptr<Run> run;
};

} // namespace braid::runtime
#endif // BRAID_GROUP_GROUPENGINE_H
