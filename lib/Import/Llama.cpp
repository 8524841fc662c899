//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Llama.h"

#include "FamilyConfig.h"
#include "ModelBuilder.h"
#include "Rope.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

struct LlamaConfig {
  int64_t vocab, hidden, layers, heads, kvHeads, headDim, intermediate, positions;
  double epsilon;
  nn::ActivationKind activation;
  bool attentionBias, mlpBias, tied, causalLM, logits;
  std::vector<double> frequencies;
};

Expected<LlamaConfig> readConfig(const Config &config, const ImportOptions &options) {
  if (llvm::Error error = config.refuse({"quantization_config", "sliding_window", "layer_types"}))
    return error;
  LlamaConfig llama;
  if (llvm::Error error = readInto(llama.activation, activationKind(config, "hidden_act", "silu")))
    return error;
  if (llvm::Error error = config.readSizes({{"vocab_size", llama.vocab},
                                            {"hidden_size", llama.hidden},
                                            {"num_hidden_layers", llama.layers, kMaxLayers},
                                            {"num_attention_heads", llama.heads},
                                            {"intermediate_size", llama.intermediate},
                                            {"max_position_embeddings", llama.positions}}))
    return error;
  if (llvm::Error error =
          readInto(llama.kvHeads, config.size("num_key_value_heads", Config::kMaxSize,
                                              /*defaultValue=*/llama.heads)))
    return error;
  if (llama.heads % llama.kvHeads != 0)
    return importError(
        "'", config.path(),
        "': expects 'num_attention_heads' to be a multiple of 'num_key_value_heads', got ",
        llama.heads, " and ", llama.kvHeads);
  if (!config.has("head_dim") && llama.hidden % llama.heads != 0)
    return importError("'", config.path(),
                       "': expects 'hidden_size' to be a multiple of 'num_attention_heads', or a "
                       "'head_dim', got ",
                       llama.hidden, " and ", llama.heads);
  if (llvm::Error error =
          readInto(llama.headDim, config.size("head_dim", Config::kMaxSize,
                                              /*defaultValue=*/llama.hidden / llama.heads)))
    return error;
  if (llama.headDim % 2 != 0)
    return importError("'", config.path(),
                       "': expects heads of an even number of elements, which rotary embedding "
                       "pairs, got ",
                       llama.headDim);
  if (llvm::Error error = readInto(llama.epsilon, config.positive("rms_norm_eps")))
    return error;
  if (llvm::Error error = config.readFlags({{"attention_bias", llama.attentionBias},
                                            {"mlp_bias", llama.mlpBias},
                                            {"tie_word_embeddings", llama.tied}}))
    return error;
  if (llvm::Error error =
          readInto(llama.causalLM, hasHead(config, "LlamaForCausalLM", "LlamaModel")))
    return error;
  if (llvm::Error error =
          readInto(llama.logits, givesLogits(config, options, llama.causalLM,
                                             /*unasked=*/llama.causalLM, "LlamaForCausalLM")))
    return error;

  Expected<std::string> ropeType = rotaryType(config);
  if (!ropeType)
    return ropeType.takeError();
  // Dynamic scaling supports longer sequences.
  if (options.seq > llama.positions && *ropeType != "dynamic")
    return importError("'", config.path(),
                       "': expects seq of at most 'max_position_embeddings', got ", options.seq,
                       " and ", llama.positions);
  double hidden = llama.hidden, inner = llama.intermediate,
         queries = static_cast<double>(llama.heads) * llama.headDim,
         keys = static_cast<double>(llama.kvHeads) * llama.headDim;
  if (llvm::Error error = checkElements(
          config, options,
          2 * hidden * llama.vocab + llama.layers * hidden * (2 * queries + 2 * keys + 3 * inner),
          std::max({hidden, inner, queries, static_cast<double>(llama.vocab)})))
    return error;
  if (llvm::Error error =
          readInto(llama.frequencies, rotaryFrequencies(config, llama.headDim, options.seq)))
    return error;
  return llama;
}

LayerWeights layerWeights(const LlamaConfig &llama) {
  LayerWeights weights;
  int64_t queries = llama.heads * llama.headDim, keys = llama.kvHeads * llama.headDim;
  weights.norm("input_layernorm", llama.hidden, /*biased=*/false);
  weights.linear("self_attn.q_proj", queries, llama.hidden, llama.attentionBias);
  weights.linear("self_attn.k_proj", keys, llama.hidden, llama.attentionBias);
  weights.linear("self_attn.v_proj", keys, llama.hidden, llama.attentionBias);
  weights.linear("self_attn.o_proj", llama.hidden, queries, llama.attentionBias);
  weights.norm("post_attention_layernorm", llama.hidden, /*biased=*/false);
  weights.linear("mlp.gate_proj", llama.intermediate, llama.hidden, llama.mlpBias);
  weights.linear("mlp.up_proj", llama.intermediate, llama.hidden, llama.mlpBias);
  weights.linear("mlp.down_proj", llama.hidden, llama.intermediate, llama.mlpBias);
  return weights;
}

/// A bias in the checkpoint that the configuration lacks must not be ignored.
llvm::Error checkBiases(const Config &config, const Checkpoint *checkpoint,
                        const LlamaConfig &llama, const std::string &prefix) {
  for (const auto &[field, said, tensor] :
       {std::tuple("attention_bias", llama.attentionBias, "self_attn.q_proj.bias"),
        std::tuple("mlp_bias", llama.mlpBias, "mlp.gate_proj.bias")})
    if (std::string name = prefix + "layers.0." + tensor;
        !said && checkpoint && checkpoint->has(name))
      return importError("'", config.path(), "': '", field, "' is false, but '", checkpoint->path(),
                         "' has tensor '", name, "'");
  return llvm::Error::success();
}

class LlamaBuilder : ModelBuilder {
public:
  LlamaBuilder(MLIRContext *context, const ImportOptions &options, const Checkpoint *checkpoint,
               const LlamaConfig &llama, int64_t layers, std::string prefix)
      : ModelBuilder(context, options, checkpoint), llama(llama), layers(layers),
        prefix(std::move(prefix)) {}

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    return buildModule(modelName, {{"input_ids", llama.vocab}, kAttentionMask},
                       llama.logits ? "logits" : "last_hidden_state",
                       llama.logits ? llama.vocab : llama.hidden,
                       [&](ValueRange operands) { return buildModel(operands[0], operands[1]); });
  }

private:
  Value buildLayer(LayerBody &layer);
  Expected<Value> buildModel(Value ids, Value mask);

  const LlamaConfig &llama;
  int64_t layers;
  std::string prefix;
};

Value LlamaBuilder::buildLayer(LayerBody &layer) {
  Value hidden = layer.operand(0), mask = layer.operand(1), cos = layer.operand(2),
        sin = layer.operand(3);
  Value normed = layer.rmsNorm("attention.norm", hidden, llama.epsilon);
  auto heads = [&](StringRef role, int64_t count) {
    return splitHeads(role + ".heads", layer.linear(role, normed, llama.attentionBias), count);
  };
  auto rotated = [&](StringRef name, Value input) -> Value {
    return nn::RotaryOp::create(builder, at(name), input.getType(), input, cos, sin);
  };
  Value query = heads("attention.query", llama.heads), key = heads("attention.key", llama.kvHeads),
        value = heads("attention.value", llama.kvHeads);
  query = rotated("attention.query.rotary", query);
  key = rotated("attention.key.rotary", key);
  Value context = attention(query, key, value, mask, /*causal=*/true);
  Value output = layer.linear("attention.output", mergeHeads("attention.merged", context),
                              llama.attentionBias);
  Value attended = add("attention.residual", output, hidden);
  Value inner = layer.rmsNorm("mlp.norm", attended, llama.epsilon);
  Value gate = layer.linear("mlp.gate", inner, llama.mlpBias);
  Value up = layer.linear("mlp.up", inner, llama.mlpBias);
  Value activated = nn::ActivationOp::create(builder, at("mlp.activation"), gate, llama.activation);
  Value gated = nn::MulOp::create(builder, at("mlp.gated"), gate.getType(), activated, up);
  return add("mlp.residual", layer.linear("mlp.down", gated, llama.mlpBias), attended);
}

Expected<Value> LlamaBuilder::buildModel(Value ids, Value mask) {
  Expected<Value> table = parameter({prefix + "embed_tokens.weight", {llama.vocab, llama.hidden}});
  if (!table)
    return table.takeError();
  Value embedded = embedding("embedding.word", "embedding.word", ids, *table);
  auto rotary = nn::RotaryTableOp::create(
      builder, at("rotary"), type({seq, static_cast<int64_t>(llama.frequencies.size())}),
      /*positionOffset=*/Value(), llama.frequencies, /*scale=*/1.0);
  Expected<Value> hidden = buildLayers({"decoder_layer",
                                        {"hidden", "attention_mask", "rotary.cos", "rotary.sin"},
                                        prefix + "layers.",
                                        layerWeights(llama)},
                                       layers, {embedded, mask, rotary.getCos(), rotary.getSin()},
                                       [&](LayerBody &layer) { return buildLayer(layer); });
  if (!hidden)
    return hidden.takeError();
  Expected<Value> scale = parameter({prefix + "norm.weight", {llama.hidden}, nn::InitKind::Ones});
  if (!scale)
    return scale.takeError();
  Value normed = rmsNorm("norm", resultRows(*hidden, mask), *scale, llama.epsilon);
  return llama.logits ? buildHead(normed, *table, llama.tied) : Expected<Value>(normed);
}

} // namespace

Expected<OwningOpRef<ModuleOp>>
braid::importLlama(MLIRContext *context, const ImportOptions &options, const Config &config,
                   const Checkpoint *checkpoint, StringRef modelName) {
  Expected<LlamaConfig> llama = readConfig(config, options);
  if (!llama)
    return llama.takeError();
  Expected<int64_t> layers = importedLayers(config, options, llama->layers, "num_hidden_layers");
  if (!layers)
    return layers.takeError();
  std::string prefix = weightPrefix(checkpoint, "model.", llama->causalLM, "embed_tokens.weight");
  if (llvm::Error error =
          checkLayers(config, checkpoint, prefix + "layers.", llama->layers, "num_hidden_layers"))
    return error;
  if (llvm::Error error = checkBiases(config, checkpoint, *llama, prefix))
    return error;
  return LlamaBuilder(context, options, checkpoint, *llama, *layers, prefix).build(modelName);
}
