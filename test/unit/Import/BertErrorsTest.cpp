//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Models with one mistake each. The full error message is compared.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

using namespace braid;
using namespace braid::testing;

namespace {

/// The error message of importing the model.
std::string message(const ImportOptions &options) { return importText(options); }

#define EXPECT_MESSAGE(options, expected)                                                          \
  EXPECT_EQ(message(options), std::string("error: ") + (expected))

std::string configError(const BertDirectory &model, const std::string &rest) {
  return "'" + model.path("config.json") + "': " + rest;
}
std::string weightsError(const BertDirectory &model, const std::string &rest) {
  return "'" + model.path("model.safetensors") + "': " + rest;
}

//===----------------------------------------------------------------------===//
// The request
//===----------------------------------------------------------------------===//

TEST(BertErrors, Request) {
  BertDirectory model;
  model.write();
  ImportOptions wrong = options(model.path());
  wrong.dtype = "bf16";
  EXPECT_MESSAGE(wrong, "dtype 'bf16' is not supported, expects f32");
  wrong = options(model.path());
  wrong.batch = 0;
  EXPECT_MESSAGE(wrong, "expects batch in [1, 2147483647], got 0");
  wrong = options(model.path());
  wrong.seq = -1;
  EXPECT_MESSAGE(wrong, "expects seq in [1, 2147483647], got -1");
  wrong.seq = 17;
  EXPECT_MESSAGE(
      wrong, configError(model, "expects seq of at most 'max_position_embeddings', got 17 and 16"));
  wrong = options(model.path());
  wrong.layers = 3;
  EXPECT_MESSAGE(wrong,
                 configError(model, "expects layers in [1, 2] ('num_hidden_layers'), got 3"));
  wrong.layers = 0;
  EXPECT_MESSAGE(wrong,
                 configError(model, "expects layers in [1, 2] ('num_hidden_layers'), got 0"));
}

TEST(BertErrors, TooLarge) {
  BertDirectory model;
  model.config["max_position_embeddings"] = 1 << 20;
  model.writeConfig();
  // 2^30 * 2^20 * 32
  ImportOptions wrong = options(model.path());
  wrong.seq = 1 << 20;
  wrong.batch = 1 << 30;
  EXPECT_MESSAGE(
      wrong,
      configError(model,
                  "expects activations of at most 2^50 elements, batch 1073741824 and seq 1048576 "
                  "give 3.6e+16"));
  // 4 * 2^60 weights in each of 2 layers, and fewer in the other tensors.
  model.config["hidden_size"] = 1 << 30;
  model.writeConfig();
  EXPECT_MESSAGE(
      options(model.path()),
      configError(model, "expects a model of at most 2^50 weights, its sizes give 9.22e+18"));
}

TEST(BertErrors, Files) {
  BertDirectory model;
  EXPECT_MESSAGE(options(model.path("nothing")),
                 "'" + model.path("nothing") +
                     "' does not exist, expects a model's directory or its config.json");
  EXPECT_MESSAGE(options(model.path()), "directory '" + model.path() + "' has no config.json");
  model.writeConfig();
  for (const char *other : {"pytorch_model.bin.index.json", "pytorch_model.bin"}) {
    runtime::testing::put(model.path(other), "x");
    EXPECT_MESSAGE(options(model.path()),
                   "directory '" + model.path() + "' has '" + other +
                       "' but neither model.safetensors nor model.safetensors.index.json; to "
                       "import without weights, name its config.json");
    std::filesystem::remove(model.path(other));
  }
}

//===----------------------------------------------------------------------===//
// config.json
//===----------------------------------------------------------------------===//

TEST(BertErrors, NotJson) {
  BertDirectory model;
  runtime::testing::put(model.path("config.json"), "{\"model_type\": ");
  EXPECT_MESSAGE(options(model.path()),
                 configError(model, "bad JSON: [1:15, byte=15]: Unexpected EOF"));
  runtime::testing::put(model.path("config.json"), "[]");
  EXPECT_MESSAGE(options(model.path()), configError(model, "expects a JSON object"));
  runtime::testing::put(model.path("config.json"), "");
  EXPECT_MESSAGE(options(model.path()),
                 configError(model, "bad JSON: [1:0, byte=0]: Unexpected EOF"));
}

TEST(BertErrors, HostileJson) {
  BertDirectory model;
  // Deep enough to overflow the stack of a recursive parser.
  runtime::testing::put(model.path("config.json"), std::string(8 << 20, '['));
  EXPECT_MESSAGE(options(model.path()), configError(model, "expects JSON nested at most 64 deep"));
  runtime::testing::put(model.path("config.json"), std::string((16 << 20) + 1, ' '));
  EXPECT_MESSAGE(
      options(model.path()),
      configError(model, "expects a configuration of at most 16777216 bytes, got 16777217"));
  // Brackets in strings do not nest.
  model.config["note"] = std::string(100, '[') + "\"\\";
  model.writeConfig();
  EXPECT_EQ(message(options(model.path())).substr(0, 6), "module");
}

TEST(BertErrors, MissingField) {
  const char *size = "an integer in [1, 2147483647]";
  for (auto [field, expected] : {std::pair("vocab_size", size),
                                 {"hidden_size", size},
                                 {"num_hidden_layers", "an integer in [1, 4096]"},
                                 {"num_attention_heads", size},
                                 {"intermediate_size", size},
                                 {"max_position_embeddings", size},
                                 {"type_vocab_size", size},
                                 {"layer_norm_eps", "a positive number"},
                                 {"hidden_act", "a string"},
                                 {"model_type", "a string"}}) {
    BertDirectory model;
    model.config.erase(field);
    model.write();
    std::string expects = std::string("field '") + field + "' is missing, expects " + expected;
    EXPECT_MESSAGE(options(model.path()), configError(model, expects));
  }
}

TEST(BertErrors, WrongField) {
  struct Case {
    const char *field;
    llvm::json::Value value;
    const char *expected;
  };
  const Case cases[] = {
      {"model_type", "mamba",
       "model_type 'mamba' is not supported, expects bert, roberta, "
       "xlm-roberta, camembert, gpt2 or llama"},
      {"model_type", 3, "expects field 'model_type' to be a string, got 3"},
      {"hidden_size", 0, "expects field 'hidden_size' to be an integer in [1, 2147483647], got 0"},
      {"hidden_size", 8.5,
       "expects field 'hidden_size' to be an integer in [1, 2147483647], got 8.5"},
      {"hidden_size", "8",
       "expects field 'hidden_size' to be an integer in [1, 2147483647], got \"8\""},
      {"hidden_size", int64_t(1) << 40,
       "expects field 'hidden_size' to be an integer in [1, 2147483647], got 1099511627776"},
      {"num_hidden_layers", 5000,
       "expects field 'num_hidden_layers' to be an integer in [1, 4096], got 5000"},
      {"type_vocab_size", 0,
       "expects field 'type_vocab_size' to be an integer in [1, 2147483647], got 0"},
      {"layer_norm_eps", 0, "expects field 'layer_norm_eps' to be a positive number, got 0"},
      {"layer_norm_eps", "tiny",
       "expects field 'layer_norm_eps' to be a positive number, got \"tiny\""},
      {"hidden_act", "prelu",
       "hidden_act 'prelu' is not supported, expects one of gelu, gelu_10, gelu_accurate, "
       "gelu_fast, gelu_new, gelu_python, gelu_python_tanh, gelu_pytorch_tanh, hardswish, laplace, "
       "leaky_relu, mish, quick_gelu, relu, relu2, relu6, sigmoid, silu, swish, tanh"},
      {"num_attention_heads", 3,
       "expects 'hidden_size' to be a multiple of 'num_attention_heads', got 8 and 3"},
      {"position_embedding_type", "relative_key",
       "position_embedding_type 'relative_key' is not supported, expects absolute"},
      {"is_decoder", true, "field 'is_decoder' is true; only encoders are supported"},
      {"is_decoder", "yes", "expects field 'is_decoder' to be true or false, got \"yes\""},
      {"add_cross_attention", true,
       "field 'add_cross_attention' is true; only encoders are supported"},
      {"pruned_heads", llvm::json::Object{{"0", llvm::json::Array{1}}},
       "field 'pruned_heads' is not supported, expects it absent or empty"},
      {"quantization_config", llvm::json::Object{{"bits", 4}},
       "field 'quantization_config' is not supported, expects it absent or empty"},
      {"architectures", "BertModel",
       "expects field 'architectures' to be a list of strings, got \"BertModel\""},
      {"architectures", llvm::json::Array{"BertLMHeadModel"},
       "architecture 'BertLMHeadModel' is not supported, expects BertModel or an encoder with a "
       "head, such as "
       "BertForMaskedLM"}};
  for (const Case &one : cases) {
    BertDirectory model;
    model.config[one.field] = one.value;
    model.write();
    EXPECT_MESSAGE(options(model.path()), configError(model, one.expected));
  }
}

TEST(BertErrors, Result) {
  BertDirectory model;
  model.write();
  ImportOptions wrong = options(model.path());
  wrong.result = "pooled";
  EXPECT_MESSAGE(wrong, "expects result last_hidden_state or logits, got 'pooled'");
  wrong.result = "logits";
  EXPECT_MESSAGE(wrong,
                 configError(model, "expects architecture BertForMaskedLM for result 'logits'"));
  model.config["architectures"] = llvm::json::Array{"BertForMaskedLM"};
  model.write();
  EXPECT_MESSAGE(wrong,
                 "'" + model.path("model.safetensors") +
                     "': tensor 'cls.predictions.transform.dense.weight' is missing, expects "
                     "F32 of shape [8, 8]");
}

TEST(BertErrors, LastLogits) {
  BertDirectory model;
  model.write();
  ImportOptions last = options(model.path());
  last.logits = "last";
  EXPECT_MESSAGE(last, configError(model, "expects a decoder (model_type gpt2 or llama) for logits "
                                          "last, got model_type 'bert'"));
}

TEST(BertErrors, Roberta) {
  BertDirectory model;
  model.config["model_type"] = "roberta";
  model.write();
  EXPECT_MESSAGE(options(model.path()),
                 configError(model, "architecture 'BertModel' is not supported, expects "
                                    "RobertaModel or an encoder with a head, such as "
                                    "RobertaForMaskedLM"));
  model.config["architectures"] = llvm::json::Array{"RobertaModel"};
  model.config["pad_token_id"] = 20;
  model.write();
  EXPECT_MESSAGE(options(model.path()),
                 configError(model, "expects field 'pad_token_id' to be an integer in [0, 19], got "
                                    "20"));
  // 16 rows, of which rows 0 to 7 come before the first position.
  model.config["pad_token_id"] = 7;
  model.write();
  ImportOptions wrong = options(model.path());
  wrong.seq = 9;
  EXPECT_MESSAGE(wrong, configError(model, "expects seq of at most 'max_position_embeddings' - "
                                           "'pad_token_id' - 1, got 9 and 8"));
}

//===----------------------------------------------------------------------===//
// model.safetensors
//===----------------------------------------------------------------------===//

TEST(BertErrors, EveryMissingTensor) {
  BertDirectory whole;
  int missed = 0;
  for (const auto &[name, tensor] : whole.tensors) {
    if (name.rfind("pooler.", 0) == 0)
      continue;
    BertDirectory model;
    model.tensors.erase(name);
    model.write();
    std::string shape = "[";
    for (int64_t size : tensor.shape)
      shape += (shape.size() > 1 ? ", " : "") + std::to_string(size);
    std::string expected = "tensor '" + name + "' is missing, expects F32 of shape " + shape + "]";
    // This tensor tells whether names have a prefix.
    if (name == "embeddings.word_embeddings.weight")
      expected += " under this name or with 'bert.' before it";
    EXPECT_MESSAGE(options(model.path()), weightsError(model, expected));
    ++missed;
  }
  EXPECT_EQ(missed, 5 + 2 * 16);
}

TEST(BertErrors, WrongTensor) {
  BertDirectory model;
  model.tensors["encoder.layer.1.output.dense.weight"].shape = {32, 8};
  model.write();
  EXPECT_MESSAGE(
      options(model.path()),
      weightsError(
          model,
          "expects tensor 'encoder.layer.1.output.dense.weight' of shape [8, 32], got [32, 8]"));
  model.tensors["encoder.layer.1.output.dense.weight"] = {"I16", {8, 32}};
  model.write();
  EXPECT_MESSAGE(
      options(model.path()),
      weightsError(
          model,
          "expects tensor 'encoder.layer.1.output.dense.weight' to be F32, BF16 or F16, got I16"));
}

TEST(BertErrors, ConfigurationAndCheckpointDisagree) {
  BertDirectory model;
  model.config["num_hidden_layers"] = 1;
  model.write();
  EXPECT_MESSAGE(
      options(model.path()),
      configError(model, "'num_hidden_layers' is 1, but '" + model.path("model.safetensors") +
                             "' has tensor 'encoder.layer.1.attention.output.LayerNorm.bias'"));
}

TEST(BertErrors, DamagedCheckpoint) {
  BertDirectory model;
  model.write();
  std::string file = runtime::testing::get(model.path("model.safetensors"));
  runtime::testing::put(model.path("model.safetensors"), file.substr(0, file.size() - 1));
  EXPECT_MESSAGE(options(model.path()), "cannot read weights from '" +
                                            model.path("model.safetensors") +
                                            "': tensor 'pooler.dense.weight': 'data_offsets' "
                                            "[8288, 8544] go beyond the 8543 bytes of data");
}

} // namespace
