//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Gpt2.h"

#include "ModelBuilder.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

struct Gpt2Config {
  int64_t vocab, hidden, layers, heads, intermediate, positions;
  double epsilon;
  nn::GeluKind activation;
  bool tied, causalLM, logits;
};

llvm::Error refuseVariants(const Config &config) {
  struct {
    StringRef field;
    bool otherwise, expected;
  } flags[] = {{"scale_attn_weights", true, true},
               {"scale_attn_by_inverse_layer_idx", false, false},
               {"add_cross_attention", false, false}};
  for (auto &flag : flags) {
    Expected<bool> value = config.flag(flag.field, flag.otherwise);
    if (!value)
      return value.takeError();
    if (*value != flag.expected)
      return importError("'", config.path(), "': field '", flag.field, "' is ",
                         *value ? "true" : "false", ", which is not supported");
  }
  for (StringRef field : {"pruned_heads", "quantization_config"})
    if (config.isSet(field))
      return importError("'", config.path(), "': field '", field,
                         "' is not supported, expects it absent or empty");
  return llvm::Error::success();
}

Expected<nn::GeluKind> readActivation(const Config &config) {
  Expected<std::string> name = config.string("activation_function", "gelu_new");
  if (!name)
    return name.takeError();
  if (llvm::is_contained({"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}, *name))
    return nn::GeluKind::Tanh;
  if (llvm::is_contained({"gelu", "gelu_python"}, *name))
    return nn::GeluKind::Erf;
  return importError("'", config.path(), "': activation_function '", *name,
                     "' is not supported, expects gelu_new, gelu_pytorch_tanh, gelu_fast, gelu or "
                     "gelu_python");
}

Expected<Gpt2Config> readConfig(const Config &config, const ImportOptions &options) {
  constexpr int64_t kMaxLayers = 4096;
  if (llvm::Error error = refuseVariants(config))
    return error;
  Gpt2Config gpt2;
  struct {
    StringRef field;
    int64_t &value;
    int64_t max;
  } sizes[] = {{"vocab_size", gpt2.vocab, Config::kMaxSize},
               {"n_embd", gpt2.hidden, Config::kMaxSize / 4},
               {"n_layer", gpt2.layers, kMaxLayers},
               {"n_head", gpt2.heads, Config::kMaxSize},
               {"n_positions", gpt2.positions, Config::kMaxSize}};
  for (auto &size : sizes) {
    Expected<int64_t> value = config.size(size.field, size.max);
    if (!value)
      return value.takeError();
    size.value = *value;
  }
  Expected<int64_t> inner = config.size("n_inner", Config::kMaxSize, /*otherwise=*/4 * gpt2.hidden);
  if (!inner)
    return inner.takeError();
  gpt2.intermediate = *inner;
  Expected<double> epsilon = config.positive("layer_norm_epsilon");
  if (!epsilon)
    return epsilon.takeError();
  gpt2.epsilon = *epsilon;
  Expected<nn::GeluKind> activation = readActivation(config);
  if (!activation)
    return activation.takeError();
  gpt2.activation = *activation;
  Expected<bool> tied = config.flag("tie_word_embeddings", true);
  if (!tied)
    return tied.takeError();
  gpt2.tied = *tied;
  Expected<bool> head = hasHead(config, "GPT2LMHeadModel", "GPT2Model");
  if (!head)
    return head.takeError();
  gpt2.causalLM = *head;
  Expected<bool> logits = givesLogits(config, options, *head, /*unasked=*/*head, "GPT2LMHeadModel");
  if (!logits)
    return logits.takeError();
  gpt2.logits = *logits;

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

class Gpt2Builder : ModelBuilder {
public:
  Gpt2Builder(MLIRContext *context, const ImportOptions &options, const Config &config,
              const Checkpoint *checkpoint, const Gpt2Config &gpt2, int64_t layers)
      : ModelBuilder(context, options, checkpoint), config(config), gpt2(gpt2), layers(layers) {
    // A model with a head keeps its decoder under "transformer.".
    prefix = gpt2.causalLM ? "transformer." : "";
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
    if (!checkpoint->has(prefix + "wte.weight"))
      prefix = prefix.empty() ? "transformer." : "";
    std::string beyond = prefix + "h." + std::to_string(gpt2.layers) + ".";
    if (StringRef extra = checkpoint->firstWith(beyond); !extra.empty())
      return importError("'", config.path(), "': 'n_layer' is ", gpt2.layers, ", but '",
                         checkpoint->path(), "' has tensor '", extra, "'");
    return llvm::Error::success();
  }

  llvm::Error layerParameters(const std::string &layer, SmallVectorImpl<Value> &values);
  func::FuncOp buildLayer(ArrayRef<Value> operands);
  llvm::Error buildModel();

  const Config &config;
  const Gpt2Config &gpt2;
  int64_t layers;
  std::string prefix;
};

/// In the order of the layer function's arguments. The checkpoint holds products as [in, out], and
/// query, key and value side by side in one tensor.
llvm::Error Gpt2Builder::layerParameters(const std::string &layer, SmallVectorImpl<Value> &values) {
  auto take = [&](const Weight &weight, const WeightPart *part, StringRef name) -> llvm::Error {
    Expected<Value> value = parameter(weight, part, name);
    if (!value)
      return value.takeError();
    values.push_back(*value);
    return llvm::Error::success();
  };
  auto norm = [&](StringRef name) -> llvm::Error {
    std::string base = layer + name.str();
    if (llvm::Error error =
            take({base + ".weight", {gpt2.hidden}, nn::InitKind::Ones}, nullptr, ""))
      return error;
    return take({base + ".bias", {gpt2.hidden}, nn::InitKind::Zeros}, nullptr, "");
  };
  /// Columns [first, first + out) of `of` columns, under the name `part` when it is one of several.
  auto linear = [&](StringRef name, int64_t in, int64_t of, int64_t first, int64_t out,
                    StringRef part) -> llvm::Error {
    std::string base = layer + name.str();
    std::string called = part.empty() ? base : base + "." + part.str();
    WeightPart transposed{{1, 0}, {first, 0}, {out, in}}, bias{{}, {first}, {out}};
    if (llvm::Error error = take({base + ".weight", {in, of}}, &transposed, called + ".weight"))
      return error;
    return take({base + ".bias", {of}, nn::InitKind::Zeros}, &bias, called + ".bias");
  };
  int64_t hidden = gpt2.hidden, inner = gpt2.intermediate;
  if (llvm::Error error = norm("ln_1"))
    return error;
  for (auto [i, part] : llvm::enumerate(ArrayRef<StringRef>{"query", "key", "value"}))
    if (llvm::Error error = linear("attn.c_attn", hidden, 3 * hidden,
                                   static_cast<int64_t>(i) * hidden, hidden, part))
      return error;
  if (llvm::Error error = linear("attn.c_proj", hidden, hidden, 0, hidden, ""))
    return error;
  if (llvm::Error error = norm("ln_2"))
    return error;
  if (llvm::Error error = linear("mlp.c_fc", hidden, inner, 0, inner, ""))
    return error;
  return linear("mlp.c_proj", inner, hidden, 0, hidden, "");
}

/// All layers are equal, so there is one function.
func::FuncOp Gpt2Builder::buildLayer(ArrayRef<Value> operands) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(Value(operands[0]).getParentBlock()->getParentOp());
  func::FuncOp layer = buildFunction("decoder_layer", {"hidden", "attention_mask"}, operands,
                                     prefix + "h.0.", operands[0].getType());
  Block *body = &layer.getBody().front();
  Value hidden = body->getArgument(0), mask = body->getArgument(1);
  auto *next = body->args_begin() + 2;
  auto projected = [&](StringRef role, Value input) {
    Value weight = *next++, bias = *next++;
    return linear(role, input, weight, bias);
  };
  auto normalized = [&](StringRef name, Value input) {
    Value weight = *next++, bias = *next++;
    return layerNorm(name, input, weight, bias, gpt2.epsilon);
  };
  Value normed = normalized("attention.norm", hidden);
  Value query =
      splitHeads("attention.query.heads", projected("attention.query", normed), gpt2.heads);
  Value key = splitHeads("attention.key.heads", projected("attention.key", normed), gpt2.heads);
  Value value =
      splitHeads("attention.value.heads", projected("attention.value", normed), gpt2.heads);
  Value context =
      mergeHeads("attention.merged", attention(query, key, value, mask, /*causal=*/true));
  Value attended = add("attention.residual", projected("attention.output", context), hidden);
  Value up = projected("mlp.up", normalized("mlp.norm", attended));
  Value activated = nn::GeluOp::create(builder, at("mlp.activation"), up, gpt2.activation);
  func::ReturnOp::create(builder, at("decoder_layer"),
                         add("mlp.residual", projected("mlp.down", activated), attended));
  return layer;
}

llvm::Error Gpt2Builder::buildModel() {
  RankedTensorType hiddenType = type({batch, seq, gpt2.hidden});
  RankedTensorType result = gpt2.logits ? type({batch, seq, gpt2.vocab}) : hiddenType;
  func::FuncOp entry = buildEntry({"input_ids", "attention_mask"},
                                  gpt2.logits ? "logits" : "last_hidden_state", result);
  Value ids = entry.getArgument(0), mask = entry.getArgument(1);
  Expected<Value> table = parameter({prefix + "wte.weight", {gpt2.vocab, gpt2.hidden}});
  if (!table)
    return table.takeError();
  // Positions are 0, 1, ..., seq - 1 in every sequence: the first rows of the table, with nothing
  // to look up.
  WeightPart first{{}, {0, 0}, {seq, gpt2.hidden}};
  Expected<Value> positions =
      parameter({prefix + "wpe.weight", {gpt2.positions, gpt2.hidden}}, &first);
  if (!positions)
    return positions.takeError();
  Value hidden =
      add("embeddings.sum", embedding("embedding.word", "embedding.word", ids, *table), *positions);

  func::FuncOp layer;
  for (int64_t i = 0; i < layers; ++i) {
    std::string name = prefix + "h." + std::to_string(i);
    SmallVector<Value> operands{hidden, mask};
    if (llvm::Error error = layerParameters(name + ".", operands))
      return error;
    if (!layer)
      layer = buildLayer(operands);
    hidden = func::CallOp::create(builder, at(name), layer, operands).getResult(0);
  }
  Expected<Value> scale = parameter({prefix + "ln_f.weight", {gpt2.hidden}, nn::InitKind::Ones});
  if (!scale)
    return scale.takeError();
  Expected<Value> shift = parameter({prefix + "ln_f.bias", {gpt2.hidden}, nn::InitKind::Zeros});
  if (!shift)
    return shift.takeError();
  hidden = layerNorm("norm", hidden, *scale, *shift, gpt2.epsilon);
  if (gpt2.logits) {
    Value head = *table;
    if (!gpt2.tied) {
      Expected<Value> own = parameter({"lm_head.weight", {gpt2.vocab, gpt2.hidden}});
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
braid::importGpt2(MLIRContext *context, const ImportOptions &options, const Config &config,
                  const Checkpoint *checkpoint, StringRef modelName) {
  Expected<Gpt2Config> gpt2 = readConfig(config, options);
  if (!gpt2)
    return gpt2.takeError();
  Expected<int64_t> layers = importedLayers(config, options, gpt2->layers, "n_layer");
  if (!layers)
    return layers.takeError();
  return Gpt2Builder(context, options, config, checkpoint, *gpt2, *layers).build(modelName);
}
