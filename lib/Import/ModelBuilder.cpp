//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ModelBuilder.h"

#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace braid;
using llvm::Expected;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

func::FuncOp ModelBuilder::buildEntry(ArrayRef<StringRef> operands, StringRef result,
                                      Type resultType) {
  SmallVector<Type> types(operands.size(), idsType());
  auto entry =
      func::FuncOp::create(builder, at("main"), "main", builder.getFunctionType(types, resultType));
  entry->setAttr(nn::NNDialect::kEntryAttrName, builder.getUnitAttr());
  SmallVector<Location> locations;
  for (auto [i, name] : llvm::enumerate(operands)) {
    entry.setArgAttr(i, nn::NNDialect::kNameAttrName, builder.getStringAttr(name));
    locations.push_back(at(name));
  }
  entry.setResultAttr(0, nn::NNDialect::kNameAttrName, builder.getStringAttr(result));
  builder.createBlock(&entry.getBody(), {}, types, locations);
  return entry;
}

func::FuncOp ModelBuilder::buildFunction(StringRef name, ArrayRef<StringRef> names,
                                         ArrayRef<Value> operands, StringRef before, Type result) {
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    types.push_back(operand.getType());
    if (i < names.size()) {
      locations.push_back(at(names[i]));
      continue;
    }
    StringRef part = cast<NameLoc>(operand.getLoc()).getName().getValue();
    part.consume_front(before);
    locations.push_back(at(part));
  }
  auto function =
      func::FuncOp::create(builder, at(name), name, builder.getFunctionType(types, result));
  function.setPrivate();
  builder.createBlock(&function.getBody(), {}, types, locations);
  return function;
}

Value ModelBuilder::linear(StringRef role, Value input, Value weight, Value bias) {
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = typeOf(weight).getDimSize(0);
  return nn::LinearOp::create(builder, at(role), type(shape), input, weight, bias,
                              builder.getStringAttr(role));
}

Value ModelBuilder::layerNorm(const Twine &name, Value input, Value weight, Value bias,
                              double epsilon) {
  return nn::LayerNormOp::create(builder, at(name), input.getType(), input, weight, bias,
                                 builder.getF64FloatAttr(epsilon));
}

Value ModelBuilder::rmsNorm(const Twine &name, Value input, Value weight, double epsilon) {
  return nn::RmsNormOp::create(builder, at(name), input.getType(), input, weight,
                               builder.getF64FloatAttr(epsilon));
}

Value ModelBuilder::add(const Twine &name, Value lhs, Value rhs) {
  return nn::AddOp::create(builder, at(name), lhs.getType(), lhs, rhs);
}

Value ModelBuilder::embedding(const Twine &name, StringRef role, Value ids, Value table) {
  SmallVector<int64_t> shape(typeOf(ids).getShape());
  shape.push_back(typeOf(table).getDimSize(1));
  return nn::EmbeddingOp::create(builder, at(name), type(shape), ids, table,
                                 builder.getStringAttr(role));
}

Value ModelBuilder::splitHeads(const Twine &name, Value input, int64_t heads) {
  ArrayRef<int64_t> shape = typeOf(input).getShape();
  return nn::SplitHeadsOp::create(builder, at(name),
                                  type({shape[0], shape[1], heads, shape[2] / heads}), input);
}

Value ModelBuilder::mergeHeads(const Twine &name, Value input) {
  ArrayRef<int64_t> shape = typeOf(input).getShape();
  return nn::MergeHeadsOp::create(builder, at(name),
                                  type({shape[0], shape[1], shape[2] * shape[3]}), input);
}

Value ModelBuilder::attention(Value query, Value key, Value value, Value mask, bool causal) {
  SmallVector<int64_t> shape(typeOf(query).getShape());
  double scale = 1.0 / std::sqrt(static_cast<double>(shape.back()));
  shape.back() = typeOf(value).getShape().back();
  return nn::AttentionOp::create(builder, at("attention.context"), type(shape), query, key, value,
                                 mask, /*valid_length=*/Value(), /*position_offset=*/Value(),
                                 builder.getF64FloatAttr(scale),
                                 causal ? builder.getUnitAttr() : UnitAttr());
}

Expected<Value> ModelBuilder::parameter(const Weight &weight, const WeightPart *part,
                                        StringRef name) {
  if (checkpoint)
    if (llvm::Error error = checkpoint->expect(weight.name, weight.shape))
      return error;
  SmallVector<int64_t> zeros(weight.shape.size(), 0);
  SmallVector<int64_t> offsets(zeros), sizes(ArrayRef<int64_t>(weight.shape)), permutation;
  if (part) {
    permutation.assign(part->permutation.begin(), part->permutation.end());
    offsets.assign(part->offsets.begin(), part->offsets.end());
    sizes.assign(part->sizes.begin(), part->sizes.end());
  }
  auto slice = nn::SliceAttr::get(builder.getContext(), weight.name, weight.shape, permutation,
                                  offsets, zeros, sizes);
  StringRef called = name.empty() ? StringRef(weight.name) : name;
  return nn::ParameterOp::create(builder, at(called), type(sizes), called,
                                 builder.getArrayAttr(slice), weight.init, TypeAttr(),
                                 comm::ShardingAttr())
      .getResult();
}

Expected<int64_t> braid::importedLayers(const Config &config, const ImportOptions &options,
                                        int64_t layers, StringRef field) {
  if (!options.layers)
    return layers;
  if (*options.layers < 1 || *options.layers > layers)
    return importError("'", config.path(), "': expects layers in [1, ", layers, "] ('", field,
                       "'), got ", *options.layers);
  return *options.layers;
}

llvm::Error braid::checkElements(const Config &config, const ImportOptions &options, double weights,
                                 double widest) {
  constexpr double kMaxElements = 1LL << 50;
  if (weights > kMaxElements)
    return importError("'", config.path(),
                       "': expects a model of at most 2^50 weights, its sizes give ",
                       llvm::format("%.3g", weights));
  if (static_cast<double>(options.batch) * static_cast<double>(options.seq) * widest > kMaxElements)
    return importError("'", config.path(),
                       "': expects activations of at most 2^50 elements, batch ", options.batch,
                       " and seq ", options.seq, " give ",
                       llvm::format("%.3g", static_cast<double>(options.batch) *
                                                static_cast<double>(options.seq) * widest));
  return llvm::Error::success();
}

Expected<bool> braid::hasHead(const Config &config, StringRef headed, StringRef bare) {
  Expected<std::vector<std::string>> architectures = config.strings("architectures");
  if (!architectures)
    return architectures.takeError();
  for (StringRef name : *architectures)
    if (name != headed && name != bare)
      return importError("'", config.path(), "': architecture '", name,
                         "' is not supported, expects ", headed, " or ", bare);
  return architectures->empty() || architectures->front() == headed;
}

Expected<bool> braid::givesLogits(const Config &config, const ImportOptions &options, bool hasHead,
                                  bool unasked, StringRef headed) {
  bool logits = options.result.empty() ? unasked : options.result == "logits";
  if (logits && !hasHead)
    return importError("'", config.path(), "': expects architecture ", headed,
                       " for result 'logits'");
  return logits;
}
