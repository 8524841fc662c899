//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Chunks.h"

#include "CollectiveUtils.h"

#include "braid/Transforms/Identity.h"
#include "dialects/Comm/IR/Bounds.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace braid {

/// So many chunks are sent before the first one is added, and so many sums are on their way before
/// the first one is decoded. A queue has as many under way at once; to encode more would only take
/// the processor from it.
static constexpr int64_t kAhead = 4;

void Chunks::decide(int64_t payloadBytes, int64_t messages, int64_t units) {
  chunks = limits.count(payloadBytes, messages, units);
  leastBytes = saturatingProduct({messages, limits.leastMessageBytes});
}

std::string Chunks::text() const {
  if (leastBytes == 0)
    return "";
  const std::string least = std::to_string(leastBytes) + " bytes of payload";
  if (chunks == 1)
    return ", in one chunk, as there are no two of whole rows with " + least;
  return ", in " + std::to_string(chunks) + " chunks of at least " + least;
}

Chunks::Cut Chunks::along(Value value, int64_t dim) const {
  return {tensorOf(value), value, chunks == 1 ? -1 : dim, 1};
}

Chunks::Cut Chunks::byRows(RankedTensorType type, Value value, int64_t unit) {
  if (chunks == 1 || type.getRank() == 1)
    return {type, value, -1, unit};
  if (type.getRank() == 2)
    return {type, value, 0, unit};
  auto flat =
      RankedTensorType::get({braid::rowsOf(type), type.getShape().back()}, type.getElementType());
  if (value)
    value = tensor::CollapseShapeOp::create(builder, collective->getLoc(), flat, value,
                                            matrixDims(type.getRank()));
  return {flat, value, 0, unit};
}

cost::ChunkRows Chunks::rowsOf(const Cut &cut, int64_t chunk) const {
  if (cut.along < 0)
    return {0, chunk == chunks - 1 ? 1 : 0};
  return cost::rowsOfChunk(cut.type.getDimSize(cut.along), cut.unit, chunk, chunks);
}

void Chunks::forValues(ArrayRef<Cut> values, int64_t chunk,
                       llvm::function_ref<void(size_t i, RankedTensorType type)> each) const {
  for (auto [i, cut] : llvm::enumerate(values))
    if (const int64_t size = rowsOf(cut, chunk).size; size != 0)
      each(i, cut.along < 0 ? cut.type : withSize(cut.type, cut.along, size));
}

Value Chunks::slice(const Cut &cut, int64_t chunk) {
  const cost::ChunkRows rows = rowsOf(cut, chunk);
  if (cut.along < 0 || rows.size == cut.type.getDimSize(cut.along))
    return cut.value;
  return nn::SliceOp::create(builder, collective->getLoc(), cut.value, cut.along, rows.from,
                             rows.size);
}

Value Chunks::join(ArrayRef<Value> parts, int64_t along) {
  return parts.size() == 1
             ? parts.front()
             : nn::ConcatOp::create(builder, collective->getLoc(), ValueRange(parts), along);
}

Value Chunks::joinRows(ArrayRef<Value> parts, RankedTensorType type) {
  Value joined = join(parts, 0);
  if (tensorOf(joined).getRank() == type.getRank())
    return joined;
  return tensor::ExpandShapeOp::create(builder, collective->getLoc(), type, joined,
                                       matrixDims(type.getRank()));
}

void Chunks::inOrder(Send send, Add add, Take take) {
  const int64_t behind = add ? 2 * kAhead : kAhead; // that a chunk is taken
  std::vector<Values> payloads(static_cast<size_t>(chunks));
  for (int64_t next = 0; next < chunks + behind; ++next) {
    // Others wait for a sum, and nobody for what is decoded.
    if (const int64_t chunk = next - kAhead; add && chunk >= 0 && chunk < chunks)
      payloads[chunk] = add(chunk, payloads[chunk]);
    if (next < chunks)
      payloads[next] = send(next);
    if (next >= behind)
      take(next - behind, payloads[next - behind]);
  }
}

void Chunks::name(Operation *part, ArrayRef<Cut> values, int64_t chunk, StringRef what) const {
  const SmallVector<std::string> all = valueNames(collective);
  SmallVector<std::string> names;
  forValues(values, chunk, [&](size_t i, RankedTensorType) {
    std::string &name = names.emplace_back(all[i]);
    if (name.empty())
      return;
    if (chunks > 1)
      name += "/chunk#" + std::to_string(chunk);
    if (!what.empty())
      name += ("/" + what).str();
  });
  setValueNames(part, names);
}

} // namespace braid
