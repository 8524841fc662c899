//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Llama.h"

#include "ModelBuilder.h"
#include "Rope.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

struct LlamaConfig {
  int64_t vocab, hidden, layers, heads, kvHeads, headDim, intermediate, positions;
  double epsilon;
  bool attentionBias, mlpBias, tied, causalLM, logits;
  std::vector<double> frequencies;
};

llvm::Error refuseVariants(const Config &config) {
  Expected<std::string> activation = config.string("hidden_act", "silu");
  if (!activation)
    return activation.takeError();
  if (*activation != "silu" && *activation != "swish")
    return importError("'", config.path(), "': hidden_act '", *activation,
                       "' is not supported, expects silu");
  for (StringRef field : {"quantization_config", "sliding_window", "layer_types"})
    if (config.isSet(field))
      return importError("'", config.path(), "': field '", field,
                         "' is not supported, expects it absent or empty");
  return llvm::Error::success();
}

Expected<LlamaConfig> readConfig(const Config &config, const ImportOptions &options) {
  constexpr int64_t kMaxLayers = 4096;
  if (llvm::Error error = refuseVariants(config))
    return error;
  LlamaConfig llama;
  struct {
    StringRef field;
    int64_t &value;
    int64_t max;
  } sizes[] = {{"vocab_size", llama.vocab, Config::kMaxSize},
               {"hidden_size", llama.hidden, Config::kMaxSize},
               {"num_hidden_layers", llama.layers, kMaxLayers},
               {"num_attention_heads", llama.heads, Config::kMaxSize},
               {"intermediate_size", llama.intermediate, Config::kMaxSize},
               {"max_position_embeddings", llama.positions, Config::kMaxSize}};
  for (auto &size : sizes) {
    Expected<int64_t> value = config.size(size.field, size.max);
    if (!value)
      return value.takeError();
    size.value = *value;
  }
  Expected<int64_t> kvHeads =
      config.size("num_key_value_heads", Config::kMaxSize, /*otherwise=*/llama.heads);
  if (!kvHeads)
    return kvHeads.takeError();
  llama.kvHeads = *kvHeads;
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
  Expected<int64_t> headDim =
      config.size("head_dim", Config::kMaxSize, /*otherwise=*/llama.hidden / llama.heads);
  if (!headDim)
    return headDim.takeError();
  llama.headDim = *headDim;
  if (llama.headDim % 2 != 0)
    return importError("'", config.path(),
                       "': expects heads of an even number of elements, which rotary embedding "
                       "pairs, got ",
                       llama.headDim);
  Expected<double> epsilon = config.positive("rms_norm_eps");
  if (!epsilon)
    return epsilon.takeError();
  llama.epsilon = *epsilon;
  struct {
    StringRef field;
    bool &value;
  } flags[] = {{"attention_bias", llama.attentionBias},
               {"mlp_bias", llama.mlpBias},
               {"tie_word_embeddings", llama.tied}};
  for (auto &flag : flags) {
    Expected<bool> value = config.flag(flag.field, false);
    if (!value)
      return value.takeError();
    flag.value = *value;
  }
  Expected<bool> head = hasHead(config, "LlamaForCausalLM", "LlamaModel");
  if (!head)
    return head.takeError();
  llama.causalLM = *head;
  Expected<bool> logits =
      givesLogits(config, options, *head, /*unasked=*/*head, "LlamaForCausalLM");
  if (!logits)
    return logits.takeError();
  llama.logits = *logits;

  Expected<std::string> ropeType = rotaryType(config);
  if (!ropeType)
    return ropeType.takeError();
  // Dynamic scaling is made for sequences beyond that.
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
  Expected<std::vector<double>> frequencies = rotaryFrequencies(config, llama.headDim, options.seq);
  if (!frequencies)
    return frequencies.takeError();
  llama.frequencies = std::move(*frequencies);
  return llama;
}

/// The weights of a layer in the order of the layer function's arguments, named from
/// "layers.N." on.
SmallVector<Weight> layerWeights(const LlamaConfig &llama) {
  SmallVector<Weight> weights;
  auto linear = [&](StringRef name, int64_t out, int64_t in, bool bias) {
    weights.push_back({(name + ".weight").str(), {out, in}});
    if (bias)
      weights.push_back({(name + ".bias").str(), {out}, nn::InitKind::Zeros});
  };
  auto norm = [&](StringRef name) {
    weights.push_back({(name + ".weight").str(), {llama.hidden}, nn::InitKind::Ones});
  };
  int64_t queries = llama.heads * llama.headDim, keys = llama.kvHeads * llama.headDim;
  norm("input_layernorm");
  linear("self_attn.q_proj", queries, llama.hidden, llama.attentionBias);
  linear("self_attn.k_proj", keys, llama.hidden, llama.attentionBias);
  linear("self_attn.v_proj", keys, llama.hidden, llama.attentionBias);
  linear("self_attn.o_proj", llama.hidden, queries, llama.attentionBias);
  norm("post_attention_layernorm");
  linear("mlp.gate_proj", llama.intermediate, llama.hidden, llama.mlpBias);
  linear("mlp.up_proj", llama.intermediate, llama.hidden, llama.mlpBias);
  linear("mlp.down_proj", llama.hidden, llama.intermediate, llama.mlpBias);
  return weights;
}

class LlamaBuilder : ModelBuilder {
public:
  LlamaBuilder(MLIRContext *context, const ImportOptions &options, const Config &config,
               const Checkpoint *checkpoint, const LlamaConfig &llama, int64_t layers)
      : ModelBuilder(context, options, checkpoint), config(config), llama(llama), layers(layers) {
    // A model with a head keeps its decoder under "model.".
    prefix = llama.causalLM ? "model." : "";
  }

  Expected<OwningOpRef<ModuleOp>> build(StringRef modelName) {
    if (llvm::Error error = checkNames())
      return error;
    OwningOpRef<ModuleOp> module = ModuleOp::create(builder, at(modelName), modelName);
    builder.setInsertionPointToEnd(module->getBody());
    if (llvm::Error error = buildModel())
      return error;
    return module;
  }

private:
  llvm::Error checkNames() {
    if (!checkpoint)
      return llvm::Error::success();
    if (!checkpoint->has(prefix + "embed_tokens.weight"))
      prefix = prefix.empty() ? "model." : "";
    std::string beyond = prefix + "layers." + std::to_string(llama.layers) + ".";
    if (StringRef extra = checkpoint->firstWith(beyond); !extra.empty())
      return importError("'", config.path(), "': 'num_hidden_layers' is ", llama.layers, ", but '",
                         checkpoint->path(), "' has tensor '", extra, "'");
    // What the configuration does not speak of must not be left out silently.
    for (const auto &[field, said, tensor] :
         {std::tuple("attention_bias", llama.attentionBias, "self_attn.q_proj.bias"),
          std::tuple("mlp_bias", llama.mlpBias, "mlp.gate_proj.bias")})
      if (std::string name = prefix + "layers.0." + tensor; !said && checkpoint->has(name))
        return importError("'", config.path(), "': '", field, "' is false, but '",
                           checkpoint->path(), "' has tensor '", name, "'");
    return llvm::Error::success();
  }

  llvm::Error buildModel();
  func::FuncOp buildLayer(ArrayRef<Value> operands);

  const Config &config;
  const LlamaConfig &llama;
  int64_t layers;
  std::string prefix;
};

/// All layers are equal, so there is one function.
func::FuncOp LlamaBuilder::buildLayer(ArrayRef<Value> operands) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(Value(operands[0]).getParentBlock()->getParentOp());
  func::FuncOp layer =
      buildFunction("decoder_layer", {"hidden", "attention_mask", "rotary.cos", "rotary.sin"},
                    operands, prefix + "layers.0.", operands[0].getType());
  Block *body = &layer.getBody().front();
  Value hidden = body->getArgument(0), mask = body->getArgument(1), cos = body->getArgument(2),
        sin = body->getArgument(3);
  auto *next = body->args_begin() + 4;
  auto projected = [&](StringRef role, Value input, bool biased) {
    Value weight = *next++;
    Value bias = biased ? Value(*next++) : Value();
    return linear(role, input, weight, bias);
  };
  auto rotated = [&](StringRef name, Value input) -> Value {
    return nn::RotaryOp::create(builder, at(name), input.getType(), input, cos, sin);
  };
  Value normed = rmsNorm("attention.norm", hidden, *next++, llama.epsilon);
  Value query = splitHeads("attention.query.heads",
                           projected("attention.query", normed, llama.attentionBias), llama.heads);
  Value key = splitHeads("attention.key.heads",
                         projected("attention.key", normed, llama.attentionBias), llama.kvHeads);
  Value value =
      splitHeads("attention.value.heads", projected("attention.value", normed, llama.attentionBias),
                 llama.kvHeads);
  Value context = attention(rotated("attention.query.rotary", query),
                            rotated("attention.key.rotary", key), value, mask, /*causal=*/true);
  Value output =
      projected("attention.output", mergeHeads("attention.merged", context), llama.attentionBias);
  Value attended = add("attention.residual", output, hidden);
  Value inner = rmsNorm("mlp.norm", attended, *next++, llama.epsilon);
  Value gate = projected("mlp.gate", inner, llama.mlpBias);
  Value up = projected("mlp.up", inner, llama.mlpBias);
  Value activated = nn::SiluOp::create(builder, at("mlp.activation"), gate.getType(), gate);
  Value gated = nn::MulOp::create(builder, at("mlp.gated"), gate.getType(), activated, up);
  Value down = projected("mlp.down", gated, llama.mlpBias);
  func::ReturnOp::create(builder, at("decoder_layer"), add("mlp.residual", down, attended));
  return layer;
}

llvm::Error LlamaBuilder::buildModel() {
  RankedTensorType hiddenType = type({batch, seq, llama.hidden});
  RankedTensorType result = llama.logits ? type({batch, seq, llama.vocab}) : hiddenType;
  func::FuncOp entry = buildEntry({"input_ids", "attention_mask"},
                                  llama.logits ? "logits" : "last_hidden_state", result);
  Value ids = entry.getArgument(0), mask = entry.getArgument(1);
  Expected<Value> table = parameter({prefix + "embed_tokens.weight", {llama.vocab, llama.hidden}});
  if (!table)
    return table.takeError();
  Value hidden = embedding("embedding.word", "embedding.word", ids, *table);
  auto rotary = nn::RotaryTableOp::create(
      builder, at("rotary"), type({seq, static_cast<int64_t>(llama.frequencies.size())}),
      /*positionOffset=*/Value(), llama.frequencies, /*scale=*/1.0);

  func::FuncOp layer;
  for (int64_t i = 0; i < layers; ++i) {
    std::string name = prefix + "layers." + std::to_string(i);
    SmallVector<Value> operands{hidden, mask, rotary.getCos(), rotary.getSin()};
    for (Weight weight : layerWeights(llama)) {
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
  Expected<Value> scale = parameter({prefix + "norm.weight", {llama.hidden}, nn::InitKind::Ones});
  if (!scale)
    return scale.takeError();
  hidden = rmsNorm("norm", hidden, *scale, llama.epsilon);
  if (llama.logits) {
    Value head = *table;
    if (!llama.tied) {
      Expected<Value> own = parameter({"lm_head.weight", {llama.vocab, llama.hidden}});
      if (!own)
        return own.takeError();
      head = *own;
    }
    hidden = linear("lm_head", hidden, head);
  }
  func::ReturnOp::create(builder, at("main"), hidden);
  return llvm::Error::success();
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
  return LlamaBuilder(context, options, config, checkpoint, *llama, *layers).build(modelName);
}
