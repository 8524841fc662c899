//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The data that a model is evaluated on, in batches of the size that it was imported for.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_DATA_H
#define BRAID_ACCURACY_DATA_H

#include "braid/Program/Manifest.h"

#include "braid/Base/HostTensor.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid {

struct EvaluationBatch {
  std::map<std::string, runtime::HostTensor> inputs; ///< by operand; those left out have defaults
  std::vector<int64_t> labels;                       ///< of each token, -1: none; empty: not given
};

struct EvaluationData {
  std::vector<EvaluationBatch> batches;
  int64_t sequences = 0, leftOver = 0; ///< used, and behind the last full batch
  std::vector<double> scores;          ///< of pairs of sequences, from scores.npy

  /// A file has the ids of tokens: a list, which is cut into sequences, or [sequences, tokens]. A
  /// directory has a file NAME.npy for each operand of the entry that has no default, [sequences,
  /// ...], and may have those of others, labels.npy, which has ids or -100 for each token, and
  /// scores.npy. `most` batches are read. Errors: files that do not fit the entry, ids that are
  /// none, less than a batch.
  static runtime::Result<EvaluationData> read(const std::string &path, const runtime::Entry &entry,
                                              std::optional<int64_t> most = std::nullopt);
};

} // namespace braid
#endif // BRAID_ACCURACY_DATA_H
