//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Global values: cut into the ranks' shards, and put together from them.
//
//===----------------------------------------------------------------------===//
#include "Chunks.h"
#include "ModelState.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Communicator.h"
#include "runtime/lib/Data/Digest.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace braid::runtime {

/// Copies a rank's shard between a row-major global value and the rank's own memory; padding is
/// left as it is.
static void copyShard(const EntryValue &value, const Box &box, std::byte *global, std::byte *local,
                      bool toLocal) {
  const auto globalStrides = rowMajorStrides(value.globalShape);
  const auto localStrides = rowMajorStrides(box.sizes);
  const int64_t size = byteSize(value.dtype);
  std::vector<int64_t> sizes = box.sizes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    sizes[d] = std::min(sizes[d], value.globalShape[d] - box.offsets[d]);
    if (sizes[d] <= 0)
      return; // all of it is padding
    global += box.offsets[d] * globalStrides[d] * size;
  }
  if (toLocal)
    stridedCopy(local, localStrides, global, globalStrides, sizes, size);
  else
    stridedCopy(global, globalStrides, local, localStrides, sizes, size);
}

Status Model::State::write(const EntryValue &value, size_t index, const void *data) {
  auto *global = const_cast<std::byte *>(static_cast<const std::byte *>(data)); // only read
  for (int64_t r : values.ranks()) {
    ValueMemory &local = values[r][index];
    if (!local.isHere)
      continue;
    copyShard(value, local.box, global, local.data(), true);
    if (device)
      RETURN_IF_ERROR(device->upload(r, index, local.data(), local.bytes));
  }
  return {};
}

/// Ranks with the same shard of a value must agree in every bit.
static Status checkReplica(const char *kind, const EntryValue &value, const ValueMemory &first,
                           const ValueMemory &other, int64_t rank) {
  if (other.bytes == 0 || std::memcmp(first.data(), other.data(), other.bytes) == 0)
    return {};
  const auto size = static_cast<size_t>(byteSize(value.dtype));
  size_t element = 0;
  while (std::memcmp(first.data() + element * size, other.data() + element * size, size) == 0)
    ++element;
  std::string where;
  auto rest = static_cast<int64_t>(element);
  for (int64_t stride : rowMajorStrides(other.box.sizes)) {
    where += (where.empty() ? "" : ", ") + std::to_string(rest / stride);
    rest %= stride;
  }
  return Status::error(std::string(kind) + " '" + value.name + "' expects equal values on ranks " +
                           std::to_string(other.replicaOf) + " and " + std::to_string(rank) +
                           ", which differ at [" + where + "]",
                       Code::rankFailed);
}

Status Model::State::read(const char *kind, const EntryValue &value, size_t index,
                          void *global) const {
  if (communicator())
    return gather(kind, value, index, global);
  for (int64_t r : values.ranks()) {
    const ValueMemory &local = values[r][index];
    if (!local.isHere)
      continue;
    if (local.replicaOf >= 0) {
      if (!device)
        RETURN_IF_ERROR(checkReplica(kind, value, values[local.replicaOf][index], local, r));
      continue;
    }
    if (device)
      RETURN_IF_ERROR(device->download(r, index, local.data(), local.bytes));
    copyShard(value, local.box, static_cast<std::byte *>(global), local.data(), false);
  }
  return {};
}

namespace {

/// What a rank gives of a value: its shard, or, where a rank before it has the same one, a digest.
struct Share {
  Box box;
  size_t bytes = 0;
  int64_t replicaOf = -1;
};

/// Of all ranks that have the value, in their order.
Result<std::map<int64_t, Share>> sharesOf(const EntryValue &value, const Mesh &mesh) {
  std::map<int64_t, Share> shares;
  std::map<std::vector<int64_t>, int64_t> first; // by where the shard begins
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    if (!value.on.contains(mesh, rank))
      continue;
    Share share;
    ASSIGN_OR_RETURN(share.box, localBox(mesh, rank, value.shardedShape(), value.sharding));
    share.bytes = static_cast<size_t>(elementsOf(share.box) * byteSize(value.dtype));
    if (auto [owner, isFirst] = first.try_emplace(share.box.offsets, rank); !isFirst)
      share.replicaOf = owner->second;
    shares.emplace(rank, std::move(share));
  }
  return shares;
}

constexpr size_t kDigestBytes = 64;

std::string digestOf(const std::byte *data, size_t bytes) {
  std::string digest = sha256(data, bytes);
  digest.resize(kDigestBytes);
  return digest;
}

} // namespace

Status Model::State::gather(const char *kind, const EntryValue &value, size_t index,
                            void *global) const {
  const Mesh &mesh = bundle->manifest().mesh;
  auto described = sharesOf(value, mesh);
  RETURN_IF_ERROR(described.status());
  std::vector<size_t> bytes(static_cast<size_t>(mesh.numRanks()), 0);
  for (const auto &[rank, share] : *described)
    bytes[static_cast<size_t>(rank)] = share.replicaOf < 0 ? share.bytes : kDigestBytes;
  std::vector<std::byte> mine;
  for (int64_t rank : local()) {
    auto share = described->find(rank);
    if (share == described->end())
      continue;
    const std::byte *data = values[rank][index].data();
    if (share->second.replicaOf < 0) {
      mine.insert(mine.end(), data, data + share->second.bytes);
    } else {
      const std::string digest = digestOf(data, share->second.bytes);
      const auto *text = reinterpret_cast<const std::byte *>(digest.data());
      mine.insert(mine.end(), text, text + kDigestBytes);
    }
  }
  ASSIGN_OR_RETURN(std::vector<Contribution> all, communicator()->gather(std::move(mine), bytes));
  std::map<int64_t, std::string> digests; // of shards that others have, too
  Status outcome;                         // of rank 0
  for (const Contribution &given : all) {
    std::byte *next = const_cast<std::byte *>(given.bytes.data()); // only read
    for (int64_t rank : given.ranks) {
      auto found = described->find(rank);
      if (found == described->end())
        continue;
      const Share &share = found->second;
      if (share.replicaOf < 0) {
        copyShard(value, share.box, static_cast<std::byte *>(global), next, false);
        digests[rank] = digestOf(next, share.bytes);
      } else if (digests[share.replicaOf] !=
                     std::string(reinterpret_cast<const char *>(next), kDigestBytes) &&
                 outcome.ok()) {
        outcome = Status::error(kind, " '", value.name, "' expects equal values on ranks ",
                                share.replicaOf, " and ", rank, ", which differ", Code::rankFailed);
      }
      next += bytes[static_cast<size_t>(rank)];
    }
  }
  if (std::none_of(described->begin(), described->end(),
                   [](const auto &one) { return one.second.replicaOf >= 0; }))
    return {};
  // All learn of it: another process would wait for one that has failed.
  auto tell = [&](RankRange) -> Result<std::vector<std::byte>> {
    RETURN_IF_ERROR(outcome);
    return std::vector<std::byte>();
  };
  const std::vector<size_t> nothing(static_cast<size_t>(mesh.numRanks()), 0);
  const Status told = communicator()->scatter(tell, nothing).status();
  return told.ok() ? told : Status::error(told.message(), Code::rankFailed);
}

Status Model::State::scatter(const EntryValue &value, size_t index, const Status &given,
                             const void *global) {
  if (!communicator()) {
    RETURN_IF_ERROR(given);
    return write(value, index, global);
  }
  const Mesh &mesh = bundle->manifest().mesh;
  auto described = sharesOf(value, mesh);
  RETURN_IF_ERROR(described.status());
  std::vector<size_t> bytes(static_cast<size_t>(mesh.numRanks()), 0);
  for (const auto &[rank, share] : *described)
    bytes[static_cast<size_t>(rank)] = share.bytes;
  auto make = [&](RankRange ranks) -> Result<std::vector<std::byte>> {
    RETURN_IF_ERROR(given);
    size_t sum = 0;
    for (int64_t rank : ranks)
      sum += bytes[static_cast<size_t>(rank)];
    std::vector<std::byte> part(sum); // padding is zeros
    std::byte *next = part.data();
    for (int64_t rank : ranks) {
      auto share = described->find(rank);
      if (share == described->end())
        continue;
      auto *data = const_cast<std::byte *>(static_cast<const std::byte *>(global)); // only read
      copyShard(value, share->second.box, data, next, true);
      next += share->second.bytes;
    }
    return part;
  };
  ASSIGN_OR_RETURN(const std::vector<std::byte> mine, communicator()->scatter(make, bytes));
  const std::byte *next = mine.data();
  for (int64_t rank : local()) {
    const size_t size = bytes[static_cast<size_t>(rank)];
    if (size > 0)
      std::memcpy(values[rank][index].data(), next, size);
    next += size;
  }
  return {};
}

} // namespace braid::runtime
