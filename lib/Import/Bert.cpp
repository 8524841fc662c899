//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Bert.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

/// What sets apart the families of this shape.
struct BertFamily {
  /// Of the encoder's weights in a model with a head.
  StringRef prefix;
  /// RoBERTa and what follows it count positions from the padding id on, padding not counted.
  bool countsTokens;
  /// Of the classes in `architectures`: "Bert" of BertModel, BertForMaskedLM and others.
  StringRef classes;
};

struct BertConfig {
  BertFamily family;
  std::optional<int64_t> padding; ///< when positions are counted from it
  int64_t vocab, hidden, layers, heads, intermediate, positions, tokenTypes;
  double epsilon;
  nn::GeluKind activation;
  int64_t headDim() const { return hidden / heads; }
};

/// A weight of the model: its name without the model's prefix, what it looks like in the
/// checkpoint, and what random weights it gets.
struct Weight {
  std::string name;
  SmallVector<int64_t, 2> shape;
  nn::InitKind init = nn::InitKind::Normal;
};

//===----------------------------------------------------------------------===//
// Configuration
//===----------------------------------------------------------------------===//

llvm::Error readActivation(const Config &config, nn::GeluKind &kind) {
  Expected<std::string> name = config.string("hidden_act");
  if (!name)
    return name.takeError();
  // Hugging Face's names; `gelu_fast` is the tanh form with its terms in another order.
  if (llvm::is_contained({"gelu", "gelu_python"}, *name))
    kind = nn::GeluKind::Erf;
  else if (llvm::is_contained({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, *name))
    kind = nn::GeluKind::Tanh;
  else
    return importError(
        "'", config.path(), "': hidden_act '", *name,
        "' is not supported, expects gelu, gelu_python, gelu_new, gelu_pytorch_tanh or gelu_fast");
  return llvm::Error::success();
}

/// What BERT's configuration can say and this importer would otherwise ignore.
llvm::Error refuseVariants(const Config &config, const BertFamily &family) {
  Expected<std::string> positions = config.string("position_embedding_type", "absolute");
  if (!positions)
    return positions.takeError();
  if (*positions != "absolute")
    return importError("'", config.path(), "': position_embedding_type '", *positions,
                       "' is not supported, expects absolute");
  for (StringRef field : {"is_decoder", "add_cross_attention"}) {
    Expected<bool> flag = config.flag(field, false);
    if (!flag)
      return flag.takeError();
    if (*flag)
      return importError("'", config.path(), "': field '", field,
                         "' is true; only encoders are supported");
  }
  for (StringRef field : {"pruned_heads", "quantization_config"})
    if (config.isSet(field))
      return importError("'", config.path(), "': field '", field,
                         "' is not supported, expects it absent or empty");

  Expected<std::vector<std::string>> architectures = config.strings("architectures");
  if (!architectures)
    return architectures.takeError();
  for (StringRef name : *architectures) {
    StringRef kind = name;
    if (!kind.consume_front(family.classes) ||
        !llvm::is_contained({"Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification",
                             "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice",
                             "ForNextSentencePrediction"},
                            kind))
      return importError("'", config.path(), "': architecture '", name,
                         "' is not supported, expects ", family.classes,
                         "Model or an encoder with a head, such as ", family.classes,
                         "ForMaskedLM");
  }
  return llvm::Error::success();
}

Expected<BertConfig> readConfig(const Config &config, const ImportOptions &options,
                                const BertFamily &family) {
  constexpr int64_t kMaxLayers = 4096;
  if (llvm::Error error = refuseVariants(config, family))
    return error;
  BertConfig bert;
  bert.family = family;
  struct {
    StringRef field;
    int64_t &value;
    int64_t max;
  } sizes[] = {{"vocab_size", bert.vocab, Config::kMaxSize},
               {"hidden_size", bert.hidden, Config::kMaxSize},
               {"num_hidden_layers", bert.layers, kMaxLayers},
               {"num_attention_heads", bert.heads, Config::kMaxSize},
               {"intermediate_size", bert.intermediate, Config::kMaxSize},
               {"max_position_embeddings", bert.positions, Config::kMaxSize},
               {"type_vocab_size", bert.tokenTypes, Config::kMaxSize}};
  for (auto &size : sizes) {
    Expected<int64_t> value = config.size(size.field, size.max);
    if (!value)
      return value.takeError();
    size.value = *value;
  }
  Expected<double> epsilon = config.positive("layer_norm_eps");
  if (!epsilon)
    return epsilon.takeError();
  bert.epsilon = *epsilon;
  if (llvm::Error error = readActivation(config, bert.activation))
    return error;

  if (bert.hidden % bert.heads != 0)
    return importError("'", config.path(),
                       "': expects 'hidden_size' to be a multiple of 'num_attention_heads', got ",
                       bert.hidden, " and ", bert.heads);
  int64_t positions = bert.positions;
  if (family.countsTokens) {
    Expected<int64_t> padding = config.index("pad_token_id", bert.vocab, /*otherwise=*/1);
    if (!padding)
      return padding.takeError();
    bert.padding = *padding;
    positions -= *padding + 1;
  }
  if (options.seq > positions)
    return importError("'", config.path(), "': expects seq of at most 'max_position_embeddings'",
                       family.countsTokens ? " - 'pad_token_id' - 1" : "", ", got ", options.seq,
                       " and ", positions);
  if (options.layers && (*options.layers < 1 || *options.layers > bert.layers))
    return importError("'", config.path(), "': expects layers in [1, ", bert.layers,
                       "] ('num_hidden_layers'), got ", *options.layers);
  // Sizes in bytes, and sums of them, must stay far inside of 64 bits.
  constexpr double kMaxElements = 1LL << 50;
  double hidden = bert.hidden, intermediate = bert.intermediate, layers = bert.layers;
  double weights = hidden * (static_cast<double>(bert.vocab) + bert.positions + bert.tokenTypes) +
                   layers * hidden * (4 * hidden + 2 * intermediate);
  if (weights > kMaxElements)
    return importError("'", config.path(),
                       "': expects a model of at most 2^50 weights, its sizes give ",
                       llvm::format("%.3g", weights));
  double activation =
      static_cast<double>(options.batch) * options.seq * std::max(hidden, intermediate);
  if (activation > kMaxElements)
    return importError("'", config.path(),
                       "': expects activations of at most 2^50 elements, batch ", options.batch,
                       " and seq ", options.seq, " give ", llvm::format("%.3g", activation));
  return bert;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The weights of layer 0 in the order of the layer function's arguments, named from
/// "encoder.layer.N." on.
SmallVector<Weight> layerWeights(const BertConfig &bert) {
  SmallVector<Weight> weights;
  auto linear = [&](StringRef name, int64_t out, int64_t in) {
    weights.push_back({(name + ".weight").str(), {out, in}});
    weights.push_back({(name + ".bias").str(), {out}, nn::InitKind::Zeros});
  };
  auto norm = [&](StringRef name) {
    weights.push_back({(name + ".weight").str(), {bert.hidden}, nn::InitKind::Ones});
    weights.push_back({(name + ".bias").str(), {bert.hidden}, nn::InitKind::Zeros});
  };
  linear("attention.self.query", bert.hidden, bert.hidden);
  linear("attention.self.key", bert.hidden, bert.hidden);
  linear("attention.self.value", bert.hidden, bert.hidden);
  linear("attention.output.dense", bert.hidden, bert.hidden);
  norm("attention.output.LayerNorm");
  linear("intermediate.dense", bert.intermediate, bert.hidden);
  linear("output.dense", bert.hidden, bert.intermediate);
  norm("output.LayerNorm");
  return weights;
}

/// Finds weights in the checkpoint, whose names may have a prefix, and old names for
/// normalizations.
class WeightNames {
public:
  static Expected<WeightNames> create(const Config &config, const Checkpoint *checkpoint,
                                      const BertConfig &bert) {
    Expected<std::vector<std::string>> architectures = config.strings("architectures");
    if (!architectures)
      return architectures.takeError();
    // A model with a head keeps its encoder under a name of its own.
    StringRef inner = bert.family.prefix;
    bool headed = !architectures->empty() && !StringRef(architectures->front()).ends_with("Model");
    WeightNames names(checkpoint, headed ? inner : "");
    if (!checkpoint)
      return names;
    const StringRef first = "embeddings.word_embeddings.weight";
    if (!checkpoint->has(names.prefix + first.str()))
      names.prefix = headed ? "" : inner;
    if (!checkpoint->has(names.prefix + first.str()))
      return importError(
          "'", checkpoint->path(), "': tensor '", first, "' is missing, expects F32 of shape ",
          shapeText({bert.vocab, bert.hidden}), " under this name or with '", inner, "' before it");
    std::string beyond = names.prefix + "encoder.layer." + std::to_string(bert.layers) + ".";
    if (StringRef extra = checkpoint->firstWith(beyond); !extra.empty())
      return importError("'", config.path(), "': 'num_hidden_layers' is ", bert.layers, ", but '",
                         checkpoint->path(), "' has tensor '", extra, "'");
    return names;
  }

  /// The checkpoint's name for a weight, after checking that it is as expected there.
  Expected<std::string> resolve(const Weight &weight) const {
    std::string name = prefix + weight.name;
    if (!checkpoint)
      return name;
    // Checkpoints converted from TensorFlow call a normalization's weight gamma and its bias beta.
    if (!checkpoint->has(name) && StringRef(name).contains("LayerNorm")) {
      StringRef base = StringRef(name).rsplit('.').first;
      std::string old = (base + (StringRef(name).ends_with(".weight") ? ".gamma" : ".beta")).str();
      if (checkpoint->has(old))
        name = old;
    }
    if (llvm::Error error = checkpoint->expect(name, "F32", weight.shape))
      return error;
    return name;
  }
  std::string parameterName(const Weight &weight) const { return prefix + weight.name; }

private:
  WeightNames(const Checkpoint *checkpoint, StringRef prefix)
      : checkpoint(checkpoint), prefix(prefix) {}
  const Checkpoint *checkpoint;
  std::string prefix;
};

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

class BertBuilder {
public:
  BertBuilder(MLIRContext *context, const ImportOptions &options, const BertConfig &bert,
              const WeightNames &names)
      : builder(context), bert(bert), names(names), batch(options.batch), seq(options.seq),
        layers(options.layers.value_or(bert.layers)) {
    hiddenType = type({batch, seq, bert.hidden});
    idsType = RankedTensorType::get({batch, seq}, builder.getI64Type());
  }

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder, at(modelName), modelName);
    builder.setInsertionPointToEnd(module->getBody());
    if (llvm::Error error = buildEntry())
      return error;
    return module;
  }

private:
  RankedTensorType type(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getF32Type());
  }
  /// Operations are called what the model calls them.
  Location at(const Twine &name) { return NameLoc::get(builder.getStringAttr(name)); }

  Value linear(StringRef role, Value input, Value weight, Value bias) {
    auto inputType = cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> shape(inputType.getShape());
    shape.back() = cast<RankedTensorType>(weight.getType()).getDimSize(0);
    return nn::LinearOp::create(builder, at(role), type(shape), input, weight, bias,
                                builder.getStringAttr(role));
  }
  Value layerNorm(const Twine &name, Value input, Value weight, Value bias) {
    return nn::LayerNormOp::create(builder, at(name), input.getType(), input, weight, bias,
                                   builder.getF64FloatAttr(bert.epsilon));
  }
  Value add(const Twine &name, Value lhs, Value rhs) {
    return nn::AddOp::create(builder, at(name), lhs.getType(), lhs, rhs);
  }
  /// Of `weight` the first `rows` rows (all when absent).
  Expected<Value> parameter(const Weight &weight, std::optional<int64_t> rows = std::nullopt) {
    Expected<std::string> tensor = names.resolve(weight);
    if (!tensor)
      return tensor.takeError();
    SmallVector<int64_t> sizes(ArrayRef<int64_t>(weight.shape)), zeros(weight.shape.size(), 0);
    if (rows)
      sizes.front() = *rows;
    auto slice =
        nn::SliceAttr::get(builder.getContext(), *tensor, weight.shape, {}, zeros, zeros, sizes);
    return nn::ParameterOp::create(builder, at(weight.name), type(sizes),
                                   names.parameterName(weight), builder.getArrayAttr(slice),
                                   weight.init, TypeAttr(), comm::ShardingAttr())
        .getResult();
  }

  func::FuncOp buildLayer();
  llvm::Error buildEntry();

  OpBuilder builder;
  const BertConfig &bert;
  const WeightNames &names;
  int64_t batch, seq, layers;
  RankedTensorType hiddenType, idsType;
};

/// All layers of a BERT encoder are equal, so there is one function.
func::FuncOp BertBuilder::buildLayer() {
  SmallVector<Type> types{hiddenType, idsType};
  SmallVector<Location> locations{at("hidden"), at("attention_mask")};
  for (const Weight &weight : layerWeights(bert)) {
    types.push_back(type(weight.shape));
    locations.push_back(at(weight.name));
  }
  auto layer = func::FuncOp::create(builder, at("encoder_layer"), "encoder_layer",
                                    builder.getFunctionType(types, hiddenType));
  layer.setPrivate();
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(&layer.getBody(), {}, types, locations);

  Value hidden = body->getArgument(0), mask = body->getArgument(1);
  auto *next = body->args_begin() + 2;
  auto weight = [&]() -> Value { return *next++; };
  auto projected = [&](StringRef role, Value input) {
    Value w = weight(), b = weight();
    return linear(role, input, w, b);
  };
  auto normalized = [&](StringRef name, Value input) {
    Value w = weight(), b = weight();
    return layerNorm(name, input, w, b);
  };
  RankedTensorType headsType = type({batch, seq, bert.heads, bert.headDim()});
  auto heads = [&](StringRef role) -> Value {
    return nn::SplitHeadsOp::create(builder, at(role + ".heads"), headsType,
                                    projected(role, hidden));
  };

  Value query = heads("attention.query"), key = heads("attention.key"),
        value = heads("attention.value");
  double scale = 1.0 / std::sqrt(static_cast<double>(bert.headDim()));
  Value context =
      nn::AttentionOp::create(builder, at("attention.context"), headsType, query, key, value, mask,
                              /*valid_length=*/Value(), /*position_offset=*/Value(),
                              builder.getF64FloatAttr(scale), /*causal=*/UnitAttr());
  Value merged = nn::MergeHeadsOp::create(builder, at("attention.merged"), hiddenType, context);
  Value attended = add("attention.residual", projected("attention.output", merged), hidden);
  Value attention = normalized("attention.norm", attended);
  Value up = projected("mlp.up", attention);
  Value activated = nn::GeluOp::create(builder, at("mlp.activation"), up, bert.activation);
  Value output = add("mlp.residual", projected("mlp.down", activated), attention);
  func::ReturnOp::create(builder, at("encoder_layer"), normalized("mlp.norm", output));
  return layer;
}

llvm::Error BertBuilder::buildEntry() {
  auto entry =
      func::FuncOp::create(builder, at("main"), "main",
                           builder.getFunctionType({idsType, idsType, idsType}, hiddenType));
  entry->setAttr(nn::NNDialect::kEntryAttrName, builder.getUnitAttr());
  SmallVector<StringRef> arguments{"input_ids", "attention_mask", "token_type_ids"};
  SmallVector<Location> locations;
  for (auto [i, name] : llvm::enumerate(arguments)) {
    entry.setArgAttr(i, nn::NNDialect::kNameAttrName, builder.getStringAttr(name));
    locations.push_back(at(name));
  }
  entry.setResultAttr(0, nn::NNDialect::kNameAttrName, builder.getStringAttr("last_hidden_state"));
  func::FuncOp layer = buildLayer();
  Block *body = builder.createBlock(&entry.getBody(), {}, entry.getArgumentTypes(), locations);
  Value ids = body->getArgument(0), mask = body->getArgument(1), tokenTypes = body->getArgument(2);

  Expected<Value> words =
      parameter({"embeddings.word_embeddings.weight", {bert.vocab, bert.hidden}});
  if (!words)
    return words.takeError();
  Expected<Value> types =
      parameter({"embeddings.token_type_embeddings.weight", {bert.tokenTypes, bert.hidden}});
  if (!types)
    return types.takeError();
  // Positions that are 0, 1, ..., seq - 1 in every sequence are the first rows of the table, with
  // nothing to look up.
  std::optional<int64_t> rows;
  if (!bert.padding)
    rows = seq;
  Expected<Value> positions =
      parameter({"embeddings.position_embeddings.weight", {bert.positions, bert.hidden}}, rows);
  if (!positions)
    return positions.takeError();
  Expected<Value> scale =
      parameter({"embeddings.LayerNorm.weight", {bert.hidden}, nn::InitKind::Ones});
  if (!scale)
    return scale.takeError();
  Expected<Value> shift =
      parameter({"embeddings.LayerNorm.bias", {bert.hidden}, nn::InitKind::Zeros});
  if (!shift)
    return shift.takeError();

  Value word = nn::EmbeddingOp::create(builder, at("embeddings.word"), hiddenType, ids, *words,
                                       builder.getStringAttr("embedding.word"));
  Value tokenType =
      nn::EmbeddingOp::create(builder, at("embeddings.token_type"), hiddenType, tokenTypes, *types,
                              builder.getStringAttr("embedding.token_type"));
  Value position = *positions;
  if (bert.padding) {
    Value counted = nn::PositionIdsOp::create(builder, at("embeddings.position_ids"), idsType, ids,
                                              *bert.padding);
    position = nn::EmbeddingOp::create(builder, at("embeddings.position"), hiddenType, counted,
                                       position, builder.getStringAttr("embedding.position"));
  }
  Value sum = add("embeddings.sum", add("embeddings.typed", word, tokenType), position);
  Value hidden = layerNorm("embeddings.norm", sum, *scale, *shift);

  for (int64_t i = 0; i < layers; ++i) {
    std::string name = "encoder.layer." + std::to_string(i);
    SmallVector<Value> operands{hidden, mask};
    for (Weight weight : layerWeights(bert)) {
      weight.name = name + "." + weight.name;
      Expected<Value> value = parameter(weight);
      if (!value)
        return value.takeError();
      operands.push_back(*value);
    }
    hidden = func::CallOp::create(builder, at(name), layer, operands).getResult(0);
  }
  func::ReturnOp::create(builder, at("main"), hidden);
  return llvm::Error::success();
}

} // namespace

static Expected<OwningOpRef<ModuleOp>>
importFamily(const BertFamily &family, MLIRContext *context, const ImportOptions &options,
             const Config &config, const Checkpoint *checkpoint, StringRef modelName) {
  Expected<BertConfig> bert = readConfig(config, options, family);
  if (!bert)
    return bert.takeError();
  Expected<WeightNames> names = WeightNames::create(config, checkpoint, *bert);
  if (!names)
    return names.takeError();
  return BertBuilder(context, options, *bert, *names).build(modelName);
}

Expected<OwningOpRef<ModuleOp>>
braid::importBert(MLIRContext *context, const ImportOptions &options, const Config &config,
                  const Checkpoint *checkpoint, StringRef modelName) {
  BertFamily family{"bert.", /*countsTokens=*/false, "Bert"};
  return importFamily(family, context, options, config, checkpoint, modelName);
}

Expected<OwningOpRef<ModuleOp>>
braid::importRoberta(MLIRContext *context, const ImportOptions &options, const Config &config,
                     const Checkpoint *checkpoint, StringRef modelName) {
  Expected<std::string> type = config.string("model_type");
  if (!type)
    return type.takeError();
  StringRef classes = llvm::StringSwitch<StringRef>(*type)
                          .Case("xlm-roberta", "XLMRoberta")
                          .Case("camembert", "Camembert")
                          .Default("Roberta");
  BertFamily family{"roberta.", /*countsTokens=*/true, classes};
  return importFamily(family, context, options, config, checkpoint, modelName);
}
