//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SameOptions.h"

#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Data/Digest.h"

#include <algorithm>

namespace braid::runtime {

/// Of each rank. Longer values are digests.
static constexpr size_t kTextBytes = 1024;

static std::string textOf(const RunOptions &options, const std::string &entry) {
  std::string text;
  auto add = [&](const std::string &option) { text += option + "\n"; };
  auto addGiven = [&](bool isGiven, const std::string &option) {
    add(isGiven ? option : "no " + option);
  };
  add("--entry " + (entry.size() <= 100 ? entry : sha256(entry.data(), entry.size())));
  add("--warmup " + std::to_string(options.warmup));
  add("--repeat " + std::to_string(options.repeat));
  const std::string &encodings = options.encodings;
  add(encodings.empty() ? "no --encodings"
      : encodings.size() <= 100
          ? "--encodings " + encodings
          : "other --encodings, of SHA-256 " + sha256(encodings.data(), encodings.size()));
  addGiven(options.inputsFrom.has_value(), "--inputs-from 0");
  addGiven(!options.output.empty(), "--output");
  add(options.checks.empty() ? "no --check"
                             : std::to_string(options.checks.size()) + " results to --check");
  addGiven(!options.report.empty(), "--report");
  addGiven(!options.trace.empty(), "--trace");
  text.resize(kTextBytes); // behind it are zeros
  return text;
}

/// Which line differs first, or nothing.
static Status compare(const std::string &first, const std::string &other, int64_t rank) {
  const auto [a, b] = std::mismatch(first.begin(), first.end(), other.begin(), other.end());
  if (a == first.end() || b == other.end())
    return {};
  const size_t begin = static_cast<size_t>(
      std::find(std::make_reverse_iterator(a), first.rend(), '\n').base() - first.begin());
  auto line = [&](const std::string &text) {
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  return Status::error("rank ", rank, " has ", line(other), ", rank 0 has ", line(first),
                       ": expects the same options on all ranks");
}

Status compareOptions(const RunOptions &options, const std::string &entry,
                      Communicator &communicator) {
  const std::string own = textOf(options, entry);
  const auto ranks = static_cast<size_t>(communicator.numRanks());
  std::vector<std::byte> mine;
  for ([[maybe_unused]] int64_t rank : communicator.local()) {
    const auto *begin = reinterpret_cast<const std::byte *>(own.data());
    mine.insert(mine.end(), begin, begin + own.size());
  }
  ASSIGN_OR_RETURN(const std::vector<Contribution> all,
                   communicator.gather(std::move(mine), std::vector<size_t>(ranks, kTextBytes)));
  Status outcome; // of rank 0
  for (const Contribution &given : all) {
    const char *next = reinterpret_cast<const char *>(given.bytes.data());
    for (int64_t rank : given.ranks) {
      if (outcome.ok())
        outcome = compare(own, std::string(next, kTextBytes), rank);
      next += kTextBytes;
    }
  }
  auto tell = [&](RankRange) -> Result<std::vector<std::byte>> {
    RETURN_IF_ERROR(outcome);
    return std::vector<std::byte>();
  };
  return communicator.scatter(tell, std::vector<size_t>(ranks, 0)).status();
}

} // namespace braid::runtime
