//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The collectives of a program that may be encoded, and the bytes that they send.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_ENCODEDCOLLECTIVES_H
#define BRAID_ACCURACY_ENCODEDCOLLECTIVES_H

#include "braid/Base/CollectiveKind.h"
#include "braid/Base/EncodingTable.h"
#include "braid/Cost/CollectiveTimes.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace braid {

/// One collective of an entry, by its calls.
struct EncodedCollective {
  /// What one of its values is cut into: rows of columns, in parts.
  struct Value {
    runtime::DType type;
    int64_t rows, columns, parts;
  };
  std::string identity; ///< "@main/@layer#3/mlp.down"
  runtime::CollectiveKind kind = runtime::CollectiveKind::allReduce;
  int64_t ranks = 1;
  std::vector<Value> values;
  PlacedCollective placed; ///< on the machine, if one is given

  /// The halves that it has: an all_reduce both, a reduce_scatter the first, others the second.
  bool hasReduce() const;
  bool hasGather() const;
  /// The bytes that a rank sends with these encodings; none: as the values are.
  int64_t bytesSent(const std::optional<runtime::Encoding> &reduce,
                    const std::optional<runtime::Encoding> &gather) const;
};

/// Those of an entry of a module of level comm whose collectives are not encoded, in the order in
/// which braid-tabulate-encodings lists them. With `times`, which may be null, they are placed; an
/// error if the hosts have other ranks than the mesh.
runtime::Result<std::vector<EncodedCollective>>
encodableCollectives(mlir::ModuleOp module, llvm::StringRef entry, CollectiveTimes *times);

/// The bytes that a rank sends in a run in these collectives.
int64_t bytesSent(const std::vector<EncodedCollective> &collectives,
                  const runtime::EncodingTable &table);

} // namespace braid
#endif // BRAID_ACCURACY_ENCODEDCOLLECTIVES_H
