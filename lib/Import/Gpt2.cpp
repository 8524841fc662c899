//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Gpt2.h"

#include "FamilyConfig.h"
#include "ModelBuilder.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

struct Gpt2Config {
  int64_t vocab, hidden, layers, heads, intermediate, positions;
  double epsilon;
  nn::ActivationKind activation;
  bool tied, causalLM, logits;
};

llvm::Error refuseVariants(const Config &config) {
  struct {
    StringRef field;
    bool defaultValue, expected;
  } flags[] = {{"scale_attn_weights", true, true},
               {"scale_attn_by_inverse_layer_idx", false, false},
               {"add_cross_attention", false, false}};
  for (auto &flag : flags) {
    Expected<bool> value = config.flag(flag.field, flag.defaultValue);
    if (!value)
      return value.takeError();
    if (*value != flag.expected)
      return importError("'", config.path(), "': field '", flag.field, "' is ",
                         *value ? "true" : "false", ", which is not supported");
  }
  return config.refuse({"pruned_heads", "quantization_config"});
}

Expected<Gpt2Config> readConfig(const Config &config, const ImportOptions &options) {
  if (llvm::Error error = refuseVariants(config))
    return error;
  Gpt2Config gpt2;
  if (llvm::Error error = config.readSizes({{"vocab_size", gpt2.vocab},
                                            {"n_embd", gpt2.hidden, Config::kMaxSize / 4},
                                            {"n_layer", gpt2.layers, kMaxLayers},
                                            {"n_head", gpt2.heads},
                                            {"n_positions", gpt2.positions}}))
    return error;
  if (llvm::Error error =
          readInto(gpt2.intermediate, config.size("n_inner", Config::kMaxSize,
                                                  /*defaultValue=*/4 * gpt2.hidden)))
    return error;
  if (llvm::Error error = readInto(gpt2.epsilon, config.positive("layer_norm_epsilon")))
    return error;
  if (llvm::Error error =
          readInto(gpt2.activation, activationKind(config, "activation_function", "gelu_new")))
    return error;
  if (llvm::Error error = readInto(gpt2.tied, config.flag("tie_word_embeddings", true)))
    return error;
  if (llvm::Error error = readInto(gpt2.causalLM, hasHead(config, "GPT2LMHeadModel", "GPT2Model")))
    return error;
  if (llvm::Error error =
          readInto(gpt2.logits, givesLogits(config, options, gpt2.causalLM,
                                            /*unasked=*/gpt2.causalLM, "GPT2LMHeadModel")))
    return error;

  if (gpt2.hidden % gpt2.heads != 0)
    return importError("'", config.path(), "': expects 'n_embd' to be a multiple of 'n_head', got ",
                       gpt2.hidden, " and ", gpt2.heads);
  if (options.seq > gpt2.positions)
    return importError("'", config.path(), "': expects seq of at most 'n_positions', got ",
                       options.seq, " and ", gpt2.positions);
  double hidden = gpt2.hidden, intermediate = gpt2.intermediate, vocab = gpt2.vocab;
  if (llvm::Error error = checkElements(config, options,
                                        hidden * (2 * vocab + gpt2.positions) +
                                            gpt2.layers * hidden * (4 * hidden + 2 * intermediate),
                                        std::max({hidden, intermediate, vocab})))
    return error;
  return gpt2;
}

/// The checkpoint stores weights as [in, out], and query, key and value side by side in one tensor.
LayerWeights layerWeights(const Gpt2Config &gpt2) {
  LayerWeights weights;
  /// Columns [first, first + out) of `of` columns. One of several projections in a tensor has a
  /// name.
  auto linear = [&](const std::string &name, int64_t in, int64_t of, int64_t first, int64_t out,
                    StringRef projection) {
    std::string called = projection.empty() ? name : name + "." + projection.str();
    weights.push_back({name + ".weight",
                       {in, of},
                       nn::InitKind::Normal,
                       WeightSlice{{1, 0}, {first, 0}, {out, in}},
                       called + ".weight"});
    weights.push_back({name + ".bias",
                       {of},
                       nn::InitKind::Zeros,
                       WeightSlice{{}, {first}, {out}},
                       called + ".bias"});
  };
  int64_t hidden = gpt2.hidden, inner = gpt2.intermediate;
  weights.norm("ln_1", hidden);
  const StringRef projections[] = {"query", "key", "value"};
  for (auto [i, projection] : llvm::enumerate(projections))
    linear("attn.c_attn", hidden, 3 * hidden, static_cast<int64_t>(i) * hidden, hidden, projection);
  linear("attn.c_proj", hidden, hidden, 0, hidden, "");
  weights.norm("ln_2", hidden);
  linear("mlp.c_fc", hidden, inner, 0, inner, "");
  linear("mlp.c_proj", inner, hidden, 0, hidden, "");
  return weights;
}

class Gpt2Builder : ModelBuilder {
public:
  Gpt2Builder(MLIRContext *context, const ImportOptions &options, const Checkpoint *checkpoint,
              const Gpt2Config &gpt2, int64_t layers, std::string prefix)
      : ModelBuilder(context, options, checkpoint), gpt2(gpt2), layers(layers),
        prefix(std::move(prefix)) {}

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    return buildModule(modelName, {{"input_ids", gpt2.vocab}, kAttentionMask},
                       gpt2.logits ? "logits" : "last_hidden_state",
                       gpt2.logits ? gpt2.vocab : gpt2.hidden,
                       [&](ValueRange operands) { return buildModel(operands[0], operands[1]); });
  }

private:
  Value buildLayer(LayerBody &layer);
  Expected<Value> buildModel(Value ids, Value mask);

  const Gpt2Config &gpt2;
  int64_t layers;
  std::string prefix;
};

Value Gpt2Builder::buildLayer(LayerBody &layer) {
  Value hidden = layer.operand(0), mask = layer.operand(1);
  Value normed = layer.layerNorm("attention.norm", hidden, gpt2.epsilon);
  auto heads = [&](StringRef role) {
    return splitHeads(role + ".heads", layer.linear(role, normed), gpt2.heads);
  };
  Value query = heads("attention.query"), key = heads("attention.key"),
        value = heads("attention.value");
  Value context =
      mergeHeads("attention.merged", attention(query, key, value, mask, /*causal=*/true));
  Value attended = add("attention.residual", layer.linear("attention.output", context), hidden);
  Value up = layer.linear("mlp.up", layer.layerNorm("mlp.norm", attended, gpt2.epsilon));
  Value activated = nn::ActivationOp::create(builder, at("mlp.activation"), up, gpt2.activation);
  return add("mlp.residual", layer.linear("mlp.down", activated), attended);
}

Expected<Value> Gpt2Builder::buildModel(Value ids, Value mask) {
  Expected<Value> table = parameter({prefix + "wte.weight", {gpt2.vocab, gpt2.hidden}});
  if (!table)
    return table.takeError();
  // Positions are 0, 1, ..., seq - 1 in every sequence: the first rows of the table, without a
  // look-up.
  Expected<Value> positions = parameter({prefix + "wpe.weight",
                                         {gpt2.positions, gpt2.hidden},
                                         nn::InitKind::Normal,
                                         WeightSlice{{}, {0, 0}, {seq, gpt2.hidden}}});
  if (!positions)
    return positions.takeError();
  Value embedded =
      add("embeddings.sum", embedding("embedding.word", "embedding.word", ids, *table), *positions);
  Expected<Value> hidden = buildLayers(
      {"decoder_layer", {"hidden", "attention_mask"}, prefix + "h.", layerWeights(gpt2)}, layers,
      {embedded, mask}, [&](LayerBody &layer) { return buildLayer(layer); });
  if (!hidden)
    return hidden.takeError();
  Expected<WeightAndBias> norm = weightAndBias(prefix + "ln_f", {gpt2.hidden}, nn::InitKind::Ones);
  if (!norm)
    return norm.takeError();
  Value normed =
      layerNorm("norm", resultRows(*hidden, mask), norm->weight, norm->bias, gpt2.epsilon);
  return gpt2.logits ? buildHead(normed, *table, gpt2.tied) : Expected<Value>(normed);
}

} // namespace

Expected<OwningOpRef<ModuleOp>>
braid::importGpt2(MLIRContext *context, const ImportOptions &options, const Config &config,
                  const Checkpoint *checkpoint, StringRef modelName) {
  Expected<Gpt2Config> gpt2 = readConfig(config, options);
  if (!gpt2)
    return gpt2.takeError();
  Expected<int64_t> layers = importedLayers(config, options, gpt2->layers, "n_layer");
  if (!layers)
    return layers.takeError();
  std::string prefix = weightPrefix(checkpoint, "transformer.", gpt2->causalLM, "wte.weight");
  if (llvm::Error error = checkLayers(config, checkpoint, prefix + "h.", gpt2->layers, "n_layer"))
    return error;
  return Gpt2Builder(context, options, checkpoint, *gpt2, *layers, prefix).build(modelName);
}
