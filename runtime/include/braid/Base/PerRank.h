//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a process has of the ranks that it serves, which are consecutive ranks of the mesh.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_PERRANK_H
#define BRAID_BASE_PERRANK_H

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::runtime {

/// The ranks first, first + 1, ..., first + count - 1.
struct RankRange {
  int64_t first = 0, count = 0;

  bool contains(int64_t rank) const { return rank >= first && rank - first < count; }

  class Iterator {
  public:
    explicit Iterator(int64_t rank) : rank(rank) {}
    int64_t operator*() const { return rank; }
    Iterator &operator++() {
      ++rank;
      return *this;
    }
    bool operator!=(const Iterator &other) const { return rank != other.rank; }

  private:
    int64_t rank;
  };
  Iterator begin() const { return Iterator(first); }
  Iterator end() const { return Iterator(first + count); }
};

/// One T for each rank of a range, by the rank's number in the mesh.
template <typename T> class PerRank {
public:
  PerRank() = default;
  explicit PerRank(RankRange ranks) : range(ranks), items(static_cast<size_t>(ranks.count)) {}

  RankRange ranks() const { return range; }
  size_t size() const { return items.size(); }
  T &operator[](int64_t rank) {
    assert(range.contains(rank));
    return items[static_cast<size_t>(rank - range.first)];
  }
  const T &operator[](int64_t rank) const {
    assert(range.contains(rank));
    return items[static_cast<size_t>(rank - range.first)];
  }
  /// Over what the ranks have, in their order.
  auto begin() { return items.begin(); }
  auto end() { return items.end(); }
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }

private:
  RankRange range;
  std::vector<T> items;
};

} // namespace braid::runtime
#endif // BRAID_BASE_PERRANK_H
