//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the passes that rewrite collectives: types of shards and gathered values, values whose
// rows are cut, and remarks.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TRANSFORMS_COLLECTIVEUTILS_H
#define BRAID_LIB_TRANSFORMS_COLLECTIVEUTILS_H

#include "dialects/Comm/IR/Comm.h"
#include "dialects/Comm/IR/SaturatingCount.h"

#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Builders.h"

namespace braid {

/// `type` with dimension `dim` multiplied by `n`: the type of a gather's result.
mlir::RankedTensorType gatheredType(mlir::Type type, int64_t dim, int64_t n);
/// `type` with dimension `dim` divided by `n`, which divides it: the type of a slice's result.
mlir::RankedTensorType shardType(mlir::Type type, int64_t dim, int64_t n);
/// `type` with dimension `dim` of this size; without it; with one more before it.
mlir::RankedTensorType withSize(mlir::RankedTensorType type, int64_t dim, int64_t size);
mlir::RankedTensorType withoutDim(mlir::RankedTensorType type, int64_t dim);
mlir::RankedTensorType withDim(mlir::RankedTensorType type, int64_t dim, int64_t size);
/// How a value of `rank` dimensions is reshaped whose dimension `dim` becomes two.
llvm::SmallVector<mlir::ReassociationIndices> splitDims(int64_t rank, int64_t dim);
/// How a value of `rank` dimensions becomes a matrix of its rows.
llvm::SmallVector<mlir::ReassociationIndices> matrixDims(int64_t rank);
/// A value whose dimension `dim` is two: [.., pieces, size / pieces, ..]; and a value of type
/// `type` again, unless it is one.
mlir::Value splitDim(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim,
                     int64_t pieces);
mlir::Value mergeDim(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, int64_t dim,
                     mlir::RankedTensorType type);

inline mlir::RankedTensorType tensorOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
/// Whether `dim` is the dimension of columns.
inline bool isLast(mlir::Value value, int64_t dim) { return dim == tensorOf(value).getRank() - 1; }
/// The number of rows: of all dimensions but the last.
int64_t rowsOf(mlir::RankedTensorType type);
/// Into how many pieces each row of an operand is cut before it is encoded, as they go to different
/// ranks, or travel by themselves. An all_reduce cuts rows as its encodings allow (rowPieces).
int64_t piecesOfRows(comm::CollectiveOpInterface op, mlir::Value operand);

/// The bytes that a rank sends when n ranks gather their shards of a value.
SaturatingCount gatherBytes(mlir::Type shard, int64_t n);

/// Of a collective that sends nothing.
inline constexpr llvm::StringLiteral kOneRank = "its group has one rank, so that nothing is sent";

/// Whether the operation is inside a comm.start, whose body must keep its form.
bool isStarted(mlir::Operation *collective);
/// The collectives of `root` that may take another form, in order: those that are neither started
/// nor encoded. What is encoded was chosen for the form that it has.
template <typename OpT> llvm::SmallVector<OpT> collectivesIn(mlir::Operation *root) {
  llvm::SmallVector<OpT> found;
  root->walk([&](OpT op) {
    if (!isStarted(op) && !op->hasAttr(comm::CommDialect::kEncodingAttrName))
      found.push_back(op);
  });
  return found;
}

/// This rank's shard of `value`, by a part.
comm::PartOp createSlice(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value,
                         int64_t dim, comm::GroupAttr group);
/// The reduce_scatter along `dim` of what an all_reduce reduces, before it.
comm::ReduceScatterOp createReduceScatter(comm::AllReduceOp reduce, int64_t dim);
/// Replaces a reduce_scatter by an all_reduce. The results of `gather`, which gathers all shards,
/// become those of the all_reduce; other users of a shard take a slice.
void replaceByAllReduce(comm::ReduceScatterOp scatter, comm::AllGatherOp gather = {});

/// Remarks of category `communication` begin with the collective's name and role.
void remarkDone(mlir::Operation *collective, llvm::StringRef name, const llvm::Twine &what);
void remarkMissed(mlir::Operation *collective, llvm::StringRef name, const llvm::Twine &why);

} // namespace braid
#endif // BRAID_LIB_TRANSFORMS_COLLECTIVEUTILS_H
