//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// LLaMA and GPT-2, imported from their configurations without a checkpoint.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include <gmock/gmock.h>

using namespace braid;
using namespace braid::testing;
using ::testing::HasSubstr;
using ::testing::Not;

namespace {

struct ConfigFile {
  explicit ConfigFile(llvm::json::Object fields) : fields(std::move(fields)) {}
  std::string import(int64_t seq = 8, const std::string &result = "",
                     const std::string &logits = "all") {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object(fields));
    runtime::testing::put(folder.path("config.json"), text);
    ImportOptions request = options(folder.path("config.json"));
    request.seq = seq;
    request.result = result;
    request.logits = logits;
    return importText(request);
  }
  llvm::json::Object fields;
  runtime::testing::TemporaryFolder folder;
};

/// Four query heads of 6 elements, two key heads.
ConfigFile llama() {
  return ConfigFile(llvm::json::Object{{"model_type", "llama"},
                                       {"architectures", llvm::json::Array{"LlamaForCausalLM"}},
                                       {"vocab_size", 20},
                                       {"hidden_size", 16},
                                       {"intermediate_size", 40},
                                       {"num_hidden_layers", 2},
                                       {"num_attention_heads", 4},
                                       {"num_key_value_heads", 2},
                                       {"head_dim", 6},
                                       {"max_position_embeddings", 16},
                                       {"rms_norm_eps", 1e-5}});
}

ConfigFile gpt2() {
  return ConfigFile(llvm::json::Object{{"model_type", "gpt2"},
                                       {"architectures", llvm::json::Array{"GPT2LMHeadModel"}},
                                       {"vocab_size", 20},
                                       {"n_embd", 8},
                                       {"n_layer", 2},
                                       {"n_head", 2},
                                       {"n_positions", 16},
                                       {"layer_norm_epsilon", 1e-5}});
}

TEST(Llama, Logits) {
  std::string text = llama().import();
  EXPECT_THAT(text, HasSubstr("(tensor<3x8x20xf32> {nn.name = \"logits\"})"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"lm_head.weight\" : tensor<20x16xf32>"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"model.layers.1.self_attn.k_proj.weight\" : "
                              "tensor<12x16xf32>"));
  EXPECT_THAT(text, HasSubstr("init ones"));
  EXPECT_THAT(text, HasSubstr("nn.rotary_table [1.000000e+00, "));
  EXPECT_THAT(text, HasSubstr("nn.attention causal "));
  EXPECT_THAT(text, Not(HasSubstr("bias")));
}

TEST(Llama, Options) {
  ConfigFile config = llama();
  config.fields["tie_word_embeddings"] = true;
  config.fields["attention_bias"] = true;
  config.fields["mlp_bias"] = true;
  std::string text = config.import();
  EXPECT_THAT(text, Not(HasSubstr("lm_head.weight")));
  EXPECT_THAT(text, HasSubstr("\"model.layers.0.self_attn.o_proj.bias\" init zeros"));
  EXPECT_THAT(text, HasSubstr("\"model.layers.0.mlp.gate_proj.bias\" init zeros"));
  config.fields["architectures"] = llvm::json::Array{"LlamaModel"};
  text = config.import();
  EXPECT_THAT(text, HasSubstr("(tensor<3x8x16xf32> {nn.name = \"last_hidden_state\"})"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"embed_tokens.weight\""));
}

TEST(Llama, Result) {
  ConfigFile config = llama();
  std::string text = config.import(8, "last_hidden_state");
  EXPECT_THAT(text, HasSubstr("(tensor<3x8x16xf32> {nn.name = \"last_hidden_state\"})"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"model.embed_tokens.weight\""));
  EXPECT_THAT(text, Not(HasSubstr("lm_head")));
  config.fields["architectures"] = llvm::json::Array{"LlamaModel"};
  EXPECT_THAT(config.import(8, "logits"),
              HasSubstr("expects architecture LlamaForCausalLM for result 'logits'"));
}

TEST(Llama, LastLogits) {
  ConfigFile config = llama();
  std::string text = config.import(8, "", "last");
  EXPECT_THAT(text, HasSubstr("(tensor<3x1x20xf32> {nn.name = \"logits\"})"));
  EXPECT_THAT(text, HasSubstr("nn.last_token %"));
  EXPECT_THAT(text, HasSubstr("role \"lm_head\" : tensor<3x1x16xf32>, tensor<20x16xf32> -> "
                              "tensor<3x1x20xf32>"));
  EXPECT_EQ(config.import(8, "logits", "last"), text);
  EXPECT_THAT(config.import(8, "", "all"), Not(HasSubstr("last_token")));
  EXPECT_EQ(config.import(8, "", "first"), "error: expects logits all or last, got 'first'");
  EXPECT_EQ(config.import(8, "last_hidden_state", "last"),
            "error: expects result logits with logits last, got 'last_hidden_state'");
  // A model without a head gives its hidden state unless logits are asked for.
  config.fields["architectures"] = llvm::json::Array{"LlamaModel"};
  EXPECT_THAT(config.import(8, "", "last"),
              HasSubstr("expects architecture LlamaForCausalLM for result 'logits'"));
}

TEST(Llama, Errors) {
  struct {
    const char *field;
    llvm::json::Value value;
    const char *message;
  } cases[] = {
      {"num_key_value_heads", 3,
       "expects 'num_attention_heads' to be a multiple of 'num_key_value_heads', got 4 and 3"},
      {"head_dim", 5, "expects heads of an even number of elements"},
      {"head_dim", 65538,
       "expects heads of at most 65536 elements for rotary embedding, got 65538"},
      {"hidden_act", "xielu", "hidden_act 'xielu' is not supported, expects one of gelu, "},
      {"rms_norm_eps", 0, "expects field 'rms_norm_eps' to be a positive number, got 0"},
      {"rms_norm_eps", nullptr, "field 'rms_norm_eps' is missing"},
      {"vocab_size", -1, "expects field 'vocab_size' to be an integer in [1, "},
      {"attention_bias", 1, "expects field 'attention_bias' to be true or false, got 1"},
      {"max_position_embeddings", 7,
       "expects seq of at most 'max_position_embeddings', got 8 and 7"},
      {"architectures", llvm::json::Array{"LlamaForSequenceClassification"},
       "architecture 'LlamaForSequenceClassification' is not supported"},
      {"sliding_window", 4, "field 'sliding_window' is not supported"}};
  for (auto &test : cases) {
    ConfigFile config = llama();
    config.fields[test.field] = test.value;
    EXPECT_THAT(config.import(), HasSubstr(test.message));
  }
  ConfigFile config = llama();
  config.fields.erase("head_dim");
  config.fields["hidden_size"] = 18;
  EXPECT_THAT(config.import(), HasSubstr("expects 'hidden_size' to be a multiple of "
                                         "'num_attention_heads', or a 'head_dim', got 18 and 4"));
}

TEST(Gpt2, FusedProductsAreSplitBySlices) {
  std::string text = gpt2().import();
  EXPECT_THAT(text, HasSubstr("(tensor<3x8x20xf32> {nn.name = \"logits\"})"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"transformer.h.1.attn.c_attn.key.weight\" slices "
                              "[\"transformer.h.1.attn.c_attn.weight\"[8, 24] permuted [1, 0] from "
                              "[8, 0] size [8, 8]] : tensor<8x8xf32>"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"transformer.h.0.attn.c_attn.value.bias\" slices "
                              "[\"transformer.h.0.attn.c_attn.bias\"[24] from [16] size [8]] init "
                              "zeros : tensor<8xf32>"));
  EXPECT_THAT(text, HasSubstr("slices [\"transformer.h.0.mlp.c_fc.weight\"[8, 32] permuted [1, 0]] "
                              ": tensor<32x8xf32>"));
  EXPECT_THAT(text, HasSubstr("slices [\"transformer.wpe.weight\"[16, 8] size [8, 8]]"));
  EXPECT_THAT(text, HasSubstr("nn.activation gelu_tanh"));
  EXPECT_THAT(text, Not(HasSubstr("lm_head.weight")));
}

TEST(Gpt2, LastLogits) {
  std::string text = gpt2().import(8, "", "last");
  EXPECT_THAT(text, HasSubstr("(tensor<3x1x20xf32> {nn.name = \"logits\"})"));
  EXPECT_THAT(text, HasSubstr("role \"lm_head\" : tensor<3x1x8xf32>, tensor<20x8xf32> -> "
                              "tensor<3x1x20xf32>"));
}

TEST(Gpt2, Errors) {
  struct {
    const char *field;
    llvm::json::Value value;
    const char *message;
  } cases[] = {
      {"n_head", 3, "expects 'n_embd' to be a multiple of 'n_head', got 8 and 3"},
      {"activation_function", "prelu",
       "activation_function 'prelu' is not supported, expects one of "},
      {"scale_attn_weights", false, "field 'scale_attn_weights' is false, which is not supported"},
      {"scale_attn_by_inverse_layer_idx", true,
       "field 'scale_attn_by_inverse_layer_idx' is true, which is not supported"},
      {"n_positions", 7, "expects seq of at most 'n_positions', got 8 and 7"},
      {"n_inner", 0, "expects field 'n_inner' to be an integer in [1, "},
      {"layer_norm_epsilon", nullptr, "field 'layer_norm_epsilon' is missing"}};
  for (auto &test : cases) {
    ConfigFile config = gpt2();
    config.fields[test.field] = test.value;
    EXPECT_THAT(config.import(), HasSubstr(test.message));
  }
}

} // namespace
