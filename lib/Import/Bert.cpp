//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Bert.h"

#include "FamilyConfig.h"
#include "ModelBuilder.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

/// The differences between families of this architecture.
struct BertFamily {
  /// The prefix of the encoder's weights in a model with a head.
  StringRef prefix;
  /// Whether positions count only valid tokens, from the padding id on, as in RoBERTa.
  bool countsTokens;
  /// The prefix of the classes in `architectures`: "Bert" of BertModel, BertForMaskedLM and others.
  StringRef classes;
  /// The head over the vocabulary: the prefix of its weights, and two of its modules.
  StringRef head, headDense, headNorm;
};

struct BertConfig {
  BertFamily family;
  std::optional<int64_t> padding; ///< the id from which positions are counted, if any
  int64_t vocab, hidden, layers, heads, intermediate, positions, tokenTypes;
  double epsilon;
  nn::ActivationKind activation;
  bool logits, tied;
  int64_t headDim() const { return hidden / heads; }
};

//===----------------------------------------------------------------------===//
// Configuration
//===----------------------------------------------------------------------===//

/// Fields of BERT's configuration that this importer would ignore unnoticed.
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
  if (llvm::Error error = config.refuse({"pruned_heads", "quantization_config"}))
    return error;

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
  if (llvm::Error error = refuseVariants(config, family))
    return error;
  BertConfig bert;
  bert.family = family;
  if (llvm::Error error = config.readSizes({{"vocab_size", bert.vocab},
                                            {"hidden_size", bert.hidden},
                                            {"num_hidden_layers", bert.layers, kMaxLayers},
                                            {"num_attention_heads", bert.heads},
                                            {"intermediate_size", bert.intermediate},
                                            {"max_position_embeddings", bert.positions},
                                            {"type_vocab_size", bert.tokenTypes}}))
    return error;
  if (llvm::Error error = readInto(bert.epsilon, config.positive("layer_norm_eps")))
    return error;
  if (llvm::Error error = readInto(bert.activation, activationKind(config, "hidden_act")))
    return error;

  Expected<std::vector<std::string>> architectures = config.strings("architectures");
  if (!architectures)
    return architectures.takeError();
  std::string headed = (family.classes + "ForMaskedLM").str();
  bool head = architectures->empty() || architectures->front() == headed;
  if (llvm::Error error =
          readInto(bert.logits, givesLogits(config, options, head, /*unasked=*/false, headed)))
    return error;
  if (llvm::Error error = readInto(bert.tied, config.flag("tie_word_embeddings", true)))
    return error;

  if (bert.hidden % bert.heads != 0)
    return importError("'", config.path(),
                       "': expects 'hidden_size' to be a multiple of 'num_attention_heads', got ",
                       bert.hidden, " and ", bert.heads);
  int64_t positions = bert.positions;
  if (family.countsTokens) {
    if (llvm::Error error =
            readInto(bert.padding, config.index("pad_token_id", bert.vocab, /*defaultValue=*/1)))
      return error;
    positions -= *bert.padding + 1;
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

LayerWeights layerWeights(const BertConfig &bert) {
  LayerWeights weights;
  weights.linear("attention.self.query", bert.hidden, bert.hidden);
  weights.linear("attention.self.key", bert.hidden, bert.hidden);
  weights.linear("attention.self.value", bert.hidden, bert.hidden);
  weights.linear("attention.output.dense", bert.hidden, bert.hidden);
  weights.norm("attention.output.LayerNorm", bert.hidden);
  weights.linear("intermediate.dense", bert.intermediate, bert.hidden);
  weights.linear("output.dense", bert.hidden, bert.intermediate);
  weights.norm("output.LayerNorm", bert.hidden);
  return weights;
}

/// Finds weights in the checkpoint, whose names may have a prefix or old names of normalizations.
class WeightNames {
public:
  static Expected<WeightNames> create(const Config &config, const Checkpoint *checkpoint,
                                      const BertConfig &bert) {
    Expected<std::vector<std::string>> architectures = config.strings("architectures");
    if (!architectures)
      return architectures.takeError();
    // A model with a head has a prefix for its encoder.
    StringRef inner = bert.family.prefix;
    bool headed = !architectures->empty() && !StringRef(architectures->front()).ends_with("Model");
    const StringRef first = "embeddings.word_embeddings.weight";
    std::string prefix = weightPrefix(checkpoint, inner, headed, first);
    if (checkpoint && !checkpoint->has(prefix + first.str()))
      return importError(
          "'", checkpoint->path(), "': tensor '", first, "' is missing, expects F32 of shape ",
          shapeText({bert.vocab, bert.hidden}), " under this name or with '", inner, "' before it");
    if (llvm::Error error = checkLayers(config, checkpoint, prefix + "encoder.layer.", bert.layers,
                                        "num_hidden_layers"))
      return error;
    WeightNames names;
    names.checkpoint = checkpoint;
    names.prefix = std::move(prefix);
    names.head = bert.family.head;
    return names;
  }

  /// The checkpoint's name of a weight, after checking its type and shape.
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
    // The head is outside of the encoder's prefix.
    return StringRef(weight.name).starts_with(head) ? weight.name : prefix + weight.name;
  }

private:
  WeightNames() = default;
  const Checkpoint *checkpoint = nullptr;
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
        layers(layers) {}

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    return buildModule(
        modelName,
        {{"input_ids", bert.vocab}, kAttentionMask, {"token_type_ids", bert.tokenTypes, 0}},
        bert.logits ? "logits" : "last_hidden_state", bert.logits ? bert.vocab : bert.hidden,
        [&](ValueRange operands) { return buildModel(operands[0], operands[1], operands[2]); });
  }

private:
  /// Weights are looked up under the checkpoint's names; operations are named without the prefix.
  Expected<Value> parameter(const Weight &weight) override {
    Weight named = weight;
    named.parameter = names.parameterName(weight);
    if (llvm::Error error = readInto(named.name, names.resolve(weight)))
      return error;
    Expected<Value> value = ModelBuilder::parameter(named);
    if (value)
      value->setLoc(at(weight.name));
    return value;
  }

  Value buildLayer(LayerBody &layer);
  Expected<Value> buildHead(Value hidden, Value words);
  Expected<Value> buildModel(Value ids, Value mask, Value tokenTypes);

  const BertConfig &bert;
  const WeightNames &names;
  int64_t layers;
};

Value BertBuilder::buildLayer(LayerBody &layer) {
  Value hidden = layer.operand(0), mask = layer.operand(1);
  auto heads = [&](StringRef role) {
    return splitHeads(role + ".heads", layer.linear(role, hidden), bert.heads);
  };
  Value query = heads("attention.query"), key = heads("attention.key"),
        value = heads("attention.value");
  Value context = attention(query, key, value, mask, /*causal=*/false);
  Value merged = mergeHeads("attention.merged", context);
  Value attended = add("attention.residual", layer.linear("attention.output", merged), hidden);
  Value normed = layer.layerNorm("attention.norm", attended, bert.epsilon);
  Value up = layer.linear("mlp.up", normed);
  Value activated = nn::ActivationOp::create(builder, at("mlp.activation"), up, bert.activation);
  Value output = add("mlp.residual", layer.linear("mlp.down", activated), normed);
  return layer.layerNorm("mlp.norm", output, bert.epsilon);
}

/// Logits over the vocabulary; `words` is the table of the embedding.
Expected<Value> BertBuilder::buildHead(Value hidden, Value words) {
  const BertFamily &family = bert.family;
  const std::string head = family.head.str();
  Expected<WeightAndBias> dense = weightAndBias(head + family.headDense.str(),
                                                {bert.hidden, bert.hidden}, nn::InitKind::Normal);
  if (!dense)
    return dense.takeError();
  Expected<WeightAndBias> norm =
      weightAndBias(head + family.headNorm.str(), {bert.hidden}, nn::InitKind::Ones);
  if (!norm)
    return norm.takeError();
  WeightAndBias decoder{words, {}};
  if (bert.tied) {
    if (llvm::Error error =
            readInto(decoder.bias, parameter({head + "bias", {bert.vocab}, nn::InitKind::Zeros})))
      return error;
  } else if (llvm::Error error =
                 readInto(decoder, weightAndBias(head + "decoder", {bert.vocab, bert.hidden},
                                                 nn::InitKind::Normal))) {
    return error;
  }
  Value inner = linear("head.dense", hidden, dense->weight, dense->bias);
  // RoBERTa's head has this activation whichever one its layers have.
  nn::ActivationKind kind = family.countsTokens ? nn::ActivationKind::Gelu : bert.activation;
  Value activated = nn::ActivationOp::create(builder, at("head.activation"), inner, kind);
  Value normed = layerNorm("head.norm", activated, norm->weight, norm->bias, bert.epsilon);
  return linear("lm_head", normed, decoder.weight, decoder.bias);
}

Expected<Value> BertBuilder::buildModel(Value ids, Value mask, Value tokenTypes) {
  Expected<Value> words =
      parameter({"embeddings.word_embeddings.weight", {bert.vocab, bert.hidden}});
  if (!words)
    return words.takeError();
  Expected<Value> types =
      parameter({"embeddings.token_type_embeddings.weight", {bert.tokenTypes, bert.hidden}});
  if (!types)
    return types.takeError();
  Weight table{"embeddings.position_embeddings.weight", {bert.positions, bert.hidden}};
  // Positions 0, 1, ..., seq - 1 in every sequence are the first rows of the table, without a
  // look-up.
  if (!bert.padding)
    table.slice = WeightSlice{{}, {0, 0}, {seq, bert.hidden}};
  Expected<Value> positions = parameter(table);
  if (!positions)
    return positions.takeError();
  Expected<WeightAndBias> norm =
      weightAndBias("embeddings.LayerNorm", {bert.hidden}, nn::InitKind::Ones);
  if (!norm)
    return norm.takeError();

  Value word = embedding("embeddings.word", "embedding.word", ids, *words);
  Value tokenType = embedding("embeddings.token_type", "embedding.token_type", tokenTypes, *types);
  Value position = *positions;
  if (bert.padding) {
    Value counted = nn::PositionIdsOp::create(builder, at("embeddings.position_ids"), idsType(),
                                              ids, *bert.padding);
    position = embedding("embeddings.position", "embedding.position", counted, position);
  }
  Value sum = add("embeddings.sum", add("embeddings.typed", word, tokenType), position);
  Value embedded = layerNorm("embeddings.norm", sum, norm->weight, norm->bias, bert.epsilon);
  Expected<Value> hidden = buildLayers(
      {"encoder_layer", {"hidden", "attention_mask"}, "encoder.layer.", layerWeights(bert)}, layers,
      {embedded, mask}, [&](LayerBody &layer) { return buildLayer(layer); });
  if (!hidden || !bert.logits)
    return hidden;
  return buildHead(*hidden, *words);
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
