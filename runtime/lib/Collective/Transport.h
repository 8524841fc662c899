//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How ranks exchange data. A transport owns the symmetric memory and runs collectives on it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COLLECTIVE_TRANSPORT_H
#define BRAID_COLLECTIVE_TRANSPORT_H

#include "braid/Base/Algorithm.h"
#include "braid/Program/Manifest.h"
#include "runtime/lib/Sync/RunControl.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

/// Memory that every rank has at the same offsets, so that an offset is enough to name a peer's
/// buffer.
struct SymmetricHeap {
  std::byte *base = nullptr; ///< of rank 0
  size_t stride = 0;         ///< from one rank's memory to the next rank's
  int64_t rank = 0, ranks = 1;
  std::byte *peer(int64_t r, uint64_t offset) const {
    return base + static_cast<size_t>(r) * stride + offset;
  }
};

/// One value of a collective. The data is `outer` blocks; a reduce_scatter's or all_gather's chunk
/// has `inner` elements in each block. An all_to_all's chunk is [outer, first, between, second,
/// inner], where `first` and `second` are the extents of the dimensions that are cut and joined, in
/// the order in which they lie in memory; if both are one dimension, that is part of `inner`.
/// Others have one block.
struct CollectiveValue {
  DType dtype = DType::f32;
  int64_t outer = 1, inner = 0;
  uint64_t inputOffset = 0, outputOffset = 0; ///< in symmetric memory
  int64_t first = 1, between = 1, second = 1;
  /// Of a chunk, or of the whole where there are no chunks.
  int64_t numElements() const { return outer * first * between * second * inner; }
};

/// The ranks that take part, by position, and their barrier.
struct Group {
  virtual ~Group() = default;
  /// The ranks that the one at this position has got ahead of.
  virtual std::vector<int64_t> missing(int64_t position) const = 0;
  std::vector<int64_t> ranks;
};

struct MessageSlot; // MessageSlots.h

/// A collective as one rank sees it. A send has inputs only, a recv outputs only.
struct Collective {
  CollectiveKind kind = CollectiveKind::allReduce;
  ReduceKind reduce = ReduceKind::sum;
  Algorithm algorithm = Algorithm::direct;
  std::vector<CollectiveValue> values;
  int64_t dim = 0;       ///< that is cut; of all_gather: that is joined
  int64_t concatDim = 0; ///< of all_to_all: that is joined
  int64_t root = 0;      ///< of reduce and broadcast: a position in the group
  std::vector<std::pair<int64_t, int64_t>> pairs; ///< of permute, send, recv: source and target
                                                  ///< positions
  int64_t tag = 0;                                ///< of send and recv
  MessageSlot *messageSlot = nullptr; ///< of send and recv: what this rank leaves or takes
  Group *group = nullptr;
  int64_t position = 0; ///< of this rank in the group
  std::string name, role;
  const std::string *path = nullptr; ///< of the calls that lead to it
  int64_t bytesSent = 0;             ///< by this rank
  /// The ranks that this one has got ahead of.
  std::vector<int64_t> missing() const;
};

/// "all_reduce 'a' (sum, 8 f32, dim 0, role 'r') in @main"
std::string signature(const Collective &collective);
/// Whether two ranks that meet with these mean the same, by what they do.
bool agree(const Collective &a, const Collective &b);
/// Whether it is the same operation of the same program. Others may look alike: a rank that comes
/// to them in another order would get values that belong elsewhere.
bool samePlace(const Collective &a, const Collective &b);

class Transport {
public:
  virtual ~Transport() = default;
  virtual const char *name() const = 0;
  /// Symmetric memory of `bytes` per rank, zeroed; called once, before any collective.
  virtual Status allocate(size_t bytes) = 0;
  virtual SymmetricHeap heap(int64_t rank) const = 0;
  /// The barrier of these ranks; the same object for the same list. Not called during a run.
  virtual Group *group(const std::vector<int64_t> &ranks) = 0;
  /// What a send or recv of a rank leaves or takes, null for none. `index` counts those of the same
  /// kind, peer and tag that come before it in the rank's program. Not called during a run.
  virtual MessageSlot *messageSlot(const Collective &half, size_t index) = 0;
  /// The programs of all ranks are known: every send has its receive, and memory on the way.
  virtual Status prepare() = 0;
  /// Runs a collective to its end on the calling communication queue. On return the outputs are
  /// complete and no peer reads this rank's inputs any more. False when the run failed; the failure
  /// is in `control`.
  virtual bool run(const Collective &collective, const SymmetricHeap &heap, RunControl &control,
                   QueueState &self) = 0;
  /// Forgets half-finished meetings of a failed run. No queue may be running.
  virtual void reset() = 0;
};

/// All ranks are threads of this process. Every rank of the mesh is served by one object.
std::unique_ptr<Transport> createThreadsTransport(int64_t ranks);
/// All ranks are processes that are forked when memory is allocated, the groups are made, and the
/// collectives of all ranks are at their addresses; nothing of that changes afterwards.
std::unique_ptr<Transport> createShmTransport(int64_t ranks);

} // namespace braid::runtime
#endif // BRAID_COLLECTIVE_TRANSPORT_H
