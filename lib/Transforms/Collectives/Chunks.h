//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The values of an encoded collective in chunks of whole rows: while some are on their way, others
// are encoded, added or decoded. Of several values, a chunk has the rows of those that have some
// for it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_CHUNKS_H
#define BRAID_LIB_TRANSFORMS_CHUNKS_H

#include "braid/Cost/EncodedChunks.h"

#include "mlir/IR/Builders.h"

#include <string>

namespace braid {

class Chunks {
public:
  /// One chunk, until `decide` says more.
  Chunks(mlir::Operation *collective, mlir::OpBuilder &builder, const cost::EncodedChunks &limits)
      : collective(collective), builder(builder), limits(limits) {}

  /// Decides the number of chunks as EncodedChunks::count does.
  void decide(int64_t payloadBytes, int64_t messages, int64_t units);
  int64_t count() const { return chunks; }
  /// What a remark says of them; empty where nothing is cut.
  std::string text() const;

  /// A value that is cut along a dimension into units of so many positions; of one that is not cut
  /// (-1), the last chunk has all. What is received has no value yet.
  struct Cut {
    mlir::RankedTensorType type;
    mlir::Value value;
    int64_t along = -1, unit = 1;
  };
  /// A value that is cut along a dimension, or is not (-1).
  Cut along(mlir::Value value, int64_t dim) const;
  /// A value that is cut at its rows, as a matrix of them.
  Cut byRows(mlir::RankedTensorType type, mlir::Value value, int64_t unit = 1);

  /// Calls `each` for every value that a chunk has rows of, with its number and the rows' type.
  void forValues(llvm::ArrayRef<Cut> values, int64_t chunk,
                 llvm::function_ref<void(size_t i, mlir::RankedTensorType type)> each) const;
  /// The rows of a value that a chunk has.
  mlir::Value slice(const Cut &cut, int64_t chunk);
  /// The rows of all chunks along a dimension; and as a value of type `type`.
  mlir::Value join(llvm::ArrayRef<mlir::Value> parts, int64_t along);
  mlir::Value joinRows(llvm::ArrayRef<mlir::Value> parts, mlir::RankedTensorType type);

  using Values = llvm::SmallVector<mlir::Value>;
  using Send = llvm::function_ref<Values(int64_t chunk)>;
  using Add = llvm::function_ref<Values(int64_t chunk, llvm::ArrayRef<mlir::Value> payloads)>;
  using Take = llvm::function_ref<void(int64_t chunk, llvm::ArrayRef<mlir::Value> payloads)>;
  /// Sends every chunk. Some chunks later, what comes of it is added and sent on, where `add` is
  /// given, and some chunks later still it is taken.
  void inOrder(Send send, Take take) { inOrder(send, nullptr, take); }
  void inOrder(Send send, Add add, Take take);

  /// Names an operation that exchanges a chunk: "mlp.down/chunk#2/all_gather" or, of one chunk,
  /// "mlp.down/all_gather", for each value that the chunk has rows of. Without `what` it has the
  /// collective's name.
  void name(mlir::Operation *part, llvm::ArrayRef<Cut> values, int64_t chunk,
            llvm::StringRef what = "") const;

private:
  cost::ChunkRows rowsOf(const Cut &cut, int64_t chunk) const;

  mlir::Operation *const collective;
  mlir::OpBuilder &builder;
  const cost::EncodedChunks limits;
  int64_t chunks = 1;
  int64_t leastBytes = 0; ///< of payload, in each of several chunks
};

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_CHUNKS_H
