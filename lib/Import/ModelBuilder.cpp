//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ModelBuilder.h"

#include <cmath>

using namespace mlir;
using namespace braid;
using llvm::Expected;

void LayerWeights::linear(StringRef name, int64_t out, int64_t in, bool biased) {
  push_back({(name + ".weight").str(), {out, in}});
  if (biased)
    push_back({(name + ".bias").str(), {out}, nn::InitKind::Zeros});
}

void LayerWeights::norm(StringRef name, int64_t size, bool biased) {
  push_back({(name + ".weight").str(), {size}, nn::InitKind::Ones});
  if (biased)
    push_back({(name + ".bias").str(), {size}, nn::InitKind::Zeros});
}

Value LayerBody::linear(StringRef role, Value input, bool biased) {
  Value matrix = weight(), bias = biased ? weight() : Value();
  return model.linear(role, input, matrix, bias);
}

Value LayerBody::layerNorm(const Twine &name, Value input, double epsilon) {
  Value scale = weight(), shift = weight();
  return model.layerNorm(name, input, scale, shift, epsilon);
}

Value LayerBody::rmsNorm(const Twine &name, Value input, double epsilon) {
  return model.rmsNorm(name, input, weight(), epsilon);
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

func::FuncOp ModelBuilder::buildEntry(ArrayRef<Input> operands, StringRef result, Type resultType) {
  SmallVector<Type> types(operands.size(), idsType());
  auto entry =
      func::FuncOp::create(builder, at("main"), "main", builder.getFunctionType(types, resultType));
  entry->setAttr(nn::NNDialect::kEntryAttrName, builder.getUnitAttr());
  SmallVector<Location> locations;
  for (auto [i, input] : llvm::enumerate(operands)) {
    entry.setArgAttr(i, nn::NNDialect::kNameAttrName, builder.getStringAttr(input.name));
    entry.setArgAttr(i, nn::NNDialect::kBelowAttrName, builder.getI64IntegerAttr(input.below));
    if (input.defaultValue)
      entry.setArgAttr(i, nn::NNDialect::kDefaultAttrName,
                       builder.getI64IntegerAttr(*input.defaultValue));
    locations.push_back(at(input.name));
  }
  entry.setResultAttr(0, nn::NNDialect::kNameAttrName, builder.getStringAttr(result));
  builder.createBlock(&entry.getBody(), {}, types, locations);
  return entry;
}

func::FuncOp ModelBuilder::buildFunction(StringRef name, ArrayRef<StringRef> names,
                                         ArrayRef<Value> operands, StringRef before) {
  SmallVector<Type> types;
  SmallVector<Location> locations;
  for (auto [i, operand] : llvm::enumerate(operands)) {
    types.push_back(operand.getType());
    if (i < names.size()) {
      locations.push_back(at(names[i]));
      continue;
    }
    StringRef weight = cast<NameLoc>(operand.getLoc()).getName().getValue();
    weight.consume_front(before);
    locations.push_back(at(weight));
  }
  auto function =
      func::FuncOp::create(builder, at(name), name, builder.getFunctionType(types, types[0]));
  function.setPrivate();
  builder.createBlock(&function.getBody(), {}, types, locations);
  return function;
}

Expected<OwningOpRef<ModuleOp>>
ModelBuilder::buildModule(StringRef name, ArrayRef<Input> operands, StringRef result, int64_t width,
                          llvm::function_ref<Expected<Value>(ValueRange)> body) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, at(name), name);
  builder.setInsertionPointToEnd(module->getBody());
  func::FuncOp entry = buildEntry(operands, result, type({batch, lastLogits ? 1 : seq, width}));
  Expected<Value> value = body(entry.getArguments());
  if (!value)
    return value.takeError();
  func::ReturnOp::create(builder, at("main"), *value);
  return module;
}

Expected<Value> ModelBuilder::buildLayers(const Layers &layers, int64_t count,
                                          ArrayRef<Value> operands,
                                          llvm::function_ref<Value(LayerBody &)> body) {
  func::FuncOp function;
  Value hidden = operands.front();
  for (int64_t i = 0; i < count; ++i) {
    std::string name = layers.path + std::to_string(i), inside = name + ".";
    SmallVector<Value> all(operands);
    all.front() = hidden;
    for (Weight weight : layers.weights) {
      weight.name = inside + weight.name;
      if (!weight.parameter.empty())
        weight.parameter = inside + weight.parameter;
      Expected<Value> value = parameter(weight);
      if (!value)
        return value.takeError();
      all.push_back(*value);
    }
    if (!function) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(builder.getBlock()->getParentOp());
      function = buildFunction(layers.function, layers.operands, all, inside);
      LayerBody layer(*this, function.front(), layers.operands.size());
      func::ReturnOp::create(builder, at(layers.function), body(layer));
    }
    hidden = func::CallOp::create(builder, at(name), function, all).getResult(0);
  }
  return hidden;
}

Value ModelBuilder::resultRows(Value hidden, Value mask) {
  if (!lastLogits)
    return hidden;
  Type last = type({batch, 1, typeOf(hidden).getDimSize(2)});
  return nn::LastTokenOp::create(builder, at("last_token"), last, hidden, mask);
}

Expected<Value> ModelBuilder::buildHead(Value hidden, Value table, bool tied) {
  if (!tied) {
    ArrayRef<int64_t> shape = typeOf(table).getShape();
    Expected<Value> own = parameter({"lm_head.weight", {shape[0], shape[1]}});
    if (!own)
      return own.takeError();
    table = *own;
  }
  return linear("lm_head", hidden, table);
}

Value ModelBuilder::linear(StringRef role, Value input, Value weight, Value bias) {
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = typeOf(weight).getDimSize(0);
  Value matmul = nn::LinearOp::create(builder, at(role), type(shape), input, weight,
                                      builder.getStringAttr(role));
  return bias ? add(role + ".biased", matmul, bias) : matmul;
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
  auto attention = nn::AttentionOp::create(
      builder, at("attention.context"), type(shape), /*log_sum=*/Type(), query, key, value, mask,
      /*valid_length=*/Value(), /*position_offset=*/Value(), builder.getF64FloatAttr(scale),
      causal ? builder.getUnitAttr() : UnitAttr());
  return attention.getResult();
}

Expected<Value> ModelBuilder::parameter(const Weight &weight) {
  if (checkpoint)
    if (llvm::Error error = checkpoint->expect(weight.name, weight.shape))
      return error;
  SmallVector<int64_t> zeros(weight.shape.size(), 0);
  SmallVector<int64_t> offsets(zeros), sizes(ArrayRef<int64_t>(weight.shape)), permutation;
  if (weight.slice) {
    permutation.assign(weight.slice->permutation.begin(), weight.slice->permutation.end());
    offsets.assign(weight.slice->offsets.begin(), weight.slice->offsets.end());
    sizes.assign(weight.slice->sizes.begin(), weight.slice->sizes.end());
  }
  auto slice = nn::SliceAttr::get(builder.getContext(), weight.name, weight.shape, permutation,
                                  offsets, zeros, sizes);
  StringRef name = weight.parameter.empty() ? weight.name : weight.parameter;
  return nn::ParameterOp::create(builder, at(name), type(sizes), name, builder.getArrayAttr(slice),
                                 weight.init, TypeAttr(), comm::ShardingAttr(),
                                 comm::ShardingAttr(), comm::PlaceAttr(), nn::QuantizedPartAttr())
      .getResult();
}

Expected<ModelBuilder::WeightAndBias>
ModelBuilder::weightAndBias(const std::string &name, ArrayRef<int64_t> shape, nn::InitKind init) {
  Expected<Value> weight = parameter({name + ".weight", llvm::to_vector<2>(shape), init});
  if (!weight)
    return weight.takeError();
  Expected<Value> bias = parameter({name + ".bias", {shape[0]}, nn::InitKind::Zeros});
  if (!bias)
    return bias.takeError();
  return WeightAndBias{*weight, *bias};
}
