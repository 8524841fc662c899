//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Bert.h"

#include "ModelBuilder.h"

#include "llvm/ADT/StringSwitch.h"

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
  /// The head over the vocabulary: what its weights' names begin with, and two of its parts.
  StringRef head, headDense, headNorm;
};

struct BertConfig {
  BertFamily family;
  std::optional<int64_t> padding; ///< when positions are counted from it
  int64_t vocab, hidden, layers, heads, intermediate, positions, tokenTypes;
  double epsilon;
  nn::GeluKind activation;
  bool logits, tied;
  int64_t headDim() const { return hidden / heads; }
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

  Expected<std::vector<std::string>> architectures = config.strings("architectures");
  if (!architectures)
    return architectures.takeError();
  std::string headed = (family.classes + "ForMaskedLM").str();
  Expected<bool> logits =
      givesLogits(config, options, architectures->empty() || architectures->front() == headed,
                  /*unasked=*/false, headed);
  if (!logits)
    return logits.takeError();
  bert.logits = *logits;
  Expected<bool> tied = config.flag("tie_word_embeddings", true);
  if (!tied)
    return tied.takeError();
  bert.tied = *tied;

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
  double hidden = bert.hidden, intermediate = bert.intermediate, layers = bert.layers;
  if (llvm::Error error = checkElements(
          config, options,
          hidden * (static_cast<double>(bert.vocab) + bert.positions + bert.tokenTypes) +
              layers * hidden * (4 * hidden + 2 * intermediate),
          std::max({hidden, intermediate, bert.logits ? static_cast<double>(bert.vocab) : 0})))
    return error;
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
    WeightNames names(checkpoint, headed ? inner : "", bert.family.head);
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
    std::string name = parameterName(weight);
    if (!checkpoint)
      return name;
    // Checkpoints converted from TensorFlow call a normalization's weight gamma and its bias beta.
    if (!checkpoint->has(name) && StringRef(name).contains("LayerNorm")) {
      StringRef base = StringRef(name).rsplit('.').first;
      std::string old = (base + (StringRef(name).ends_with(".weight") ? ".gamma" : ".beta")).str();
      if (checkpoint->has(old))
        name = old;
    }
    if (llvm::Error error = checkpoint->expect(name, weight.shape))
      return error;
    return name;
  }
  std::string parameterName(const Weight &weight) const {
    // The head stands beside the encoder.
    return StringRef(weight.name).starts_with(head) ? weight.name : prefix + weight.name;
  }

private:
  WeightNames(const Checkpoint *checkpoint, StringRef prefix, StringRef head)
      : checkpoint(checkpoint), prefix(prefix), head(head) {}
  const Checkpoint *checkpoint;
  std::string prefix;
  StringRef head;
};

//===----------------------------------------------------------------------===//
// Module
//===----------------------------------------------------------------------===//

class BertBuilder : ModelBuilder {
public:
  BertBuilder(MLIRContext *context, const ImportOptions &options, const BertConfig &bert,
              const WeightNames &names, int64_t layers)
      : ModelBuilder(context, options, /*checkpoint=*/nullptr), bert(bert), names(names),
        layers(layers), hiddenType(type({batch, seq, bert.hidden})) {}

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder, at(modelName), modelName);
    builder.setInsertionPointToEnd(module->getBody());
    if (llvm::Error error = buildModel())
      return error;
    return module;
  }

private:
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

  func::FuncOp buildLayer(ArrayRef<Value> operands);
  Expected<Value> buildHead(Value hidden, Value words);
  llvm::Error buildModel();

  const BertConfig &bert;
  const WeightNames &names;
  int64_t layers;
  RankedTensorType hiddenType;
};

/// All layers of a BERT encoder are equal, so there is one function.
func::FuncOp BertBuilder::buildLayer(ArrayRef<Value> operands) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(Value(operands[0]).getParentBlock()->getParentOp());
  func::FuncOp layer = buildFunction("encoder_layer", {"hidden", "attention_mask"}, operands,
                                     "encoder.layer.0.", hiddenType);
  Block *body = &layer.getBody().front();
  Value hidden = body->getArgument(0), mask = body->getArgument(1);
  auto *next = body->args_begin() + 2;
  auto projected = [&](StringRef role, Value input) {
    Value weight = *next++, bias = *next++;
    return linear(role, input, weight, bias);
  };
  auto normalized = [&](StringRef name, Value input) {
    Value weight = *next++, bias = *next++;
    return layerNorm(name, input, weight, bias, bert.epsilon);
  };
  auto heads = [&](StringRef role) {
    return splitHeads(role + ".heads", projected(role, hidden), bert.heads);
  };

  Value query = heads("attention.query"), key = heads("attention.key"),
        value = heads("attention.value");
  Value context = attention(query, key, value, mask, /*causal=*/false);
  Value merged = mergeHeads("attention.merged", context);
  Value attended = add("attention.residual", projected("attention.output", merged), hidden);
  Value normed = normalized("attention.norm", attended);
  Value up = projected("mlp.up", normed);
  Value activated = nn::GeluOp::create(builder, at("mlp.activation"), up, bert.activation);
  Value output = add("mlp.residual", projected("mlp.down", activated), normed);
  func::ReturnOp::create(builder, at("encoder_layer"), normalized("mlp.norm", output));
  return layer;
}

/// Logits over the vocabulary; `words` is the table of the embedding.
Expected<Value> BertBuilder::buildHead(Value hidden, Value words) {
  const BertFamily &family = bert.family;
  struct Both {
    Value weight, bias;
  };
  auto both = [&](StringRef part, ArrayRef<int64_t> shape, nn::InitKind init) -> Expected<Both> {
    std::string name = (family.head + part).str();
    Expected<Value> weight = parameter({name + ".weight", SmallVector<int64_t, 2>(shape), init});
    if (!weight)
      return weight.takeError();
    Expected<Value> bias = parameter({name + ".bias", {shape[0]}, nn::InitKind::Zeros});
    if (!bias)
      return bias.takeError();
    return Both{*weight, *bias};
  };
  Expected<Both> dense = both(family.headDense, {bert.hidden, bert.hidden}, nn::InitKind::Normal);
  if (!dense)
    return dense.takeError();
  Expected<Both> norm = both(family.headNorm, {bert.hidden}, nn::InitKind::Ones);
  if (!norm)
    return norm.takeError();
  Both decoder{words, {}};
  if (bert.tied) {
    Expected<Value> bias =
        parameter({family.head.str() + "bias", {bert.vocab}, nn::InitKind::Zeros});
    if (!bias)
      return bias.takeError();
    decoder.bias = *bias;
  } else {
    Expected<Both> own = both("decoder", {bert.vocab, bert.hidden}, nn::InitKind::Normal);
    if (!own)
      return own.takeError();
    decoder = *own;
  }
  Value inner = linear("head.dense", hidden, dense->weight, dense->bias);
  // RoBERTa's head has this activation whatever its layers have.
  nn::GeluKind kind = family.countsTokens ? nn::GeluKind::Erf : bert.activation;
  Value activated = nn::GeluOp::create(builder, at("head.activation"), inner, kind);
  Value normed = layerNorm("head.norm", activated, norm->weight, norm->bias, bert.epsilon);
  return linear("lm_head", normed, decoder.weight, decoder.bias);
}

llvm::Error BertBuilder::buildModel() {
  RankedTensorType result = bert.logits ? type({batch, seq, bert.vocab}) : hiddenType;
  func::FuncOp entry = buildEntry({"input_ids", "attention_mask", "token_type_ids"},
                                  bert.logits ? "logits" : "last_hidden_state", result);
  Value ids = entry.getArgument(0), mask = entry.getArgument(1), tokenTypes = entry.getArgument(2);

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

  Value word = embedding("embeddings.word", "embedding.word", ids, *words);
  Value tokenType = embedding("embeddings.token_type", "embedding.token_type", tokenTypes, *types);
  Value position = *positions;
  if (bert.padding) {
    Value counted = nn::PositionIdsOp::create(builder, at("embeddings.position_ids"), idsType(),
                                              ids, *bert.padding);
    position = embedding("embeddings.position", "embedding.position", counted, position);
  }
  Value sum = add("embeddings.sum", add("embeddings.typed", word, tokenType), position);
  Value hidden = layerNorm("embeddings.norm", sum, *scale, *shift, bert.epsilon);

  func::FuncOp layer;
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
    if (!layer)
      layer = buildLayer(operands);
    hidden = func::CallOp::create(builder, at(name), layer, operands).getResult(0);
  }
  if (bert.logits) {
    Expected<Value> logits = buildHead(hidden, *words);
    if (!logits)
      return logits.takeError();
    hidden = *logits;
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
  Expected<int64_t> layers = importedLayers(config, options, bert->layers, "num_hidden_layers");
  if (!layers)
    return layers.takeError();
  return BertBuilder(context, options, *bert, *names, *layers).build(modelName);
}

Expected<OwningOpRef<ModuleOp>>
braid::importBert(MLIRContext *context, const ImportOptions &options, const Config &config,
                  const Checkpoint *checkpoint, StringRef modelName) {
  BertFamily family{"bert.",           /*countsTokens=*/false, "Bert", "cls.predictions.",
                    "transform.dense", "transform.LayerNorm"};
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
  BertFamily family{"roberta.", /*countsTokens=*/true, classes, "lm_head.", "dense", "layer_norm"};
  return importFamily(family, context, options, config, checkpoint, modelName);
}
