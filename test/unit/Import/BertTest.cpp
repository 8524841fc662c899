//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace braid;
using namespace braid::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

namespace {

int count(const std::string &text, const std::string &part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
    ++n;
  return n;
}

TEST(Bert, EntryHasTheModelsNames) {
  BertDirectory model;
  model.config["_name_or_path"] = "someone/tiny-bert";
  model.write();
  std::string text = importText(options(model.path()));
  EXPECT_THAT(text, StartsWith("module @\"tiny-bert\" {\n"));
  EXPECT_THAT(
      text,
      HasSubstr("func.func @main(%input_ids: tensor<3x10xi64> {nn.below = 20 : i64, nn.name = "
                "\"input_ids\"}, "
                "%attention_mask: tensor<3x10xi64> {nn.below = 2 : i64, nn.default = 1 : i64, "
                "nn.name = \"attention_mask\"}, "
                "%token_type_ids: tensor<3x10xi64> {nn.below = 2 : i64, nn.default = 0 : i64, "
                "nn.name = \"token_type_ids\"}) -> "
                "(tensor<3x10x8xf32> {nn.name = \"last_hidden_state\"}) attributes {nn.entry} {"));
}

TEST(Bert, LayersAreOneFunction) {
  BertDirectory model;
  model.write();
  std::string text = importText(options(model.path()));
  EXPECT_EQ(count(text, "func.func private"), 1);
  EXPECT_EQ(count(text, "call @encoder_layer("), 2);
  // 5 in the embeddings and 16 in each layer. The pooler's do not contribute to the result.
  EXPECT_EQ(count(text, " = nn.parameter "), 5 + 2 * 16);
  EXPECT_THAT(text,
              HasSubstr("%encoder.layer.0 = call @encoder_layer(%embeddings.norm, %attention_mask, "
                        "%encoder.layer.0.attention.self.query.weight, "
                        "%encoder.layer.0.attention.self.query.bias, "));
  EXPECT_THAT(
      text,
      HasSubstr("%encoder.layer.1 = call @encoder_layer(%encoder.layer.0, %attention_mask, "));
}

TEST(Bert, Embeddings) {
  BertDirectory model;
  model.write();
  std::string text = importText(options(model.path()));
  EXPECT_THAT(
      text, HasSubstr("= nn.parameter \"embeddings.word_embeddings.weight\" : tensor<20x8xf32>\n"));
  // The first rows, as many as there are positions.
  EXPECT_THAT(
      text,
      HasSubstr(
          "= nn.parameter \"embeddings.position_embeddings.weight\" slices "
          "[\"embeddings.position_embeddings.weight\"[16, 8] size [10, 8]] : tensor<10x8xf32>\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "%embeddings.word = nn.embedding %input_ids, %embeddings.word_embeddings.weight role "
          "\"embedding.word\" : "));
  EXPECT_THAT(
      text, HasSubstr("%embeddings.token_type = nn.embedding %token_type_ids, "
                      "%embeddings.token_type_embeddings.weight role \"embedding.token_type\" : "));
  EXPECT_THAT(text,
              HasSubstr("%embeddings.typed = nn.add %embeddings.word, %embeddings.token_type : "));
  EXPECT_THAT(
      text,
      HasSubstr(
          "%embeddings.sum = nn.add %embeddings.typed, %embeddings.position_embeddings.weight : "
          "tensor<3x10x8xf32>, tensor<10x8xf32> -> tensor<3x10x8xf32>\n"));
  EXPECT_THAT(
      text,
      HasSubstr("%embeddings.norm = nn.layer_norm %embeddings.sum, %embeddings.LayerNorm.weight, "
                "%embeddings.LayerNorm.bias epsilon 9.9999999999999998E-13 : "));
}

TEST(Bert, Layer) {
  BertDirectory model;
  model.write();
  std::string text = importText(options(model.path()));
  std::string layer = text.substr(text.find("func.func private @encoder_layer"));
  for (const char *line :
       {"%attention.query = nn.linear %hidden, %attention.self.query.weight role "
        "\"attention.query\" : tensor<3x10x8xf32>, tensor<8x8xf32> -> tensor<3x10x8xf32>\n",
        "%attention.query.biased = nn.add %attention.query, %attention.self.query.bias : "
        "tensor<3x10x8xf32>, tensor<8xf32> -> tensor<3x10x8xf32>\n",
        "%attention.query.heads = nn.split_heads %attention.query.biased : tensor<3x10x8xf32> -> "
        "tensor<3x10x2x4xf32>\n",
        "%attention.key.biased = nn.add %attention.key, %attention.self.key.bias : ",
        "%attention.value.biased = nn.add %attention.value, %attention.self.value.bias : ",
        // 1 / sqrt(4)
        "%attention.context = nn.attention %attention.query.heads, %attention.key.heads, "
        "%attention.value.heads mask "
        "%attention_mask : tensor<3x10xi64> scale 5.000000e-01 : ",
        "%attention.merged = nn.merge_heads %attention.context : ",
        "%attention.output = nn.linear %attention.merged, %attention.output.dense.weight role "
        "\"attention.output\" : ",
        "%attention.output.biased = nn.add %attention.output, %attention.output.dense.bias : ",
        "%attention.residual = nn.add %attention.output.biased, %hidden : ",
        "%attention.norm = nn.layer_norm %attention.residual, %attention.output.LayerNorm.weight, "
        "%attention.output.LayerNorm.bias epsilon ",
        "%mlp.up = nn.linear %attention.norm, %intermediate.dense.weight role \"mlp.up\" : "
        "tensor<3x10x8xf32>, tensor<32x8xf32> -> tensor<3x10x32xf32>\n",
        "%mlp.up.biased = nn.add %mlp.up, %intermediate.dense.bias : ",
        "%mlp.activation = nn.activation gelu %mlp.up.biased : tensor<3x10x32xf32>\n",
        "%mlp.down = nn.linear %mlp.activation, %output.dense.weight role \"mlp.down\" : ",
        "%mlp.down.biased = nn.add %mlp.down, %output.dense.bias : ",
        "%mlp.residual = nn.add %mlp.down.biased, %attention.norm : ",
        "%mlp.norm = nn.layer_norm %mlp.residual, %output.LayerNorm.weight, %output.LayerNorm.bias "
        "epsilon ",
        "return %mlp.norm : tensor<3x10x8xf32>\n"})
    EXPECT_THAT(layer, HasSubstr(line));
}

TEST(Bert, RandomWeightsSuitTheParameter) {
  BertDirectory model;
  model.write();
  std::string text = importText(options(model.path()));
  // The scales of 5 normalizations; their shifts and the biases of 12 linear layers are zero.
  EXPECT_EQ(count(text, " init ones : "), 5);
  EXPECT_EQ(count(text, " init zeros : "), 5 + 12);
  EXPECT_EQ(count(text, "LayerNorm.weight\" init ones : "), 5);
}

TEST(Bert, FirstLayersOnly) {
  BertDirectory model;
  model.write();
  ImportOptions first = options(model.path());
  first.layers = 1;
  std::string text = importText(first);
  EXPECT_EQ(count(text, "call @encoder_layer("), 1);
  EXPECT_THAT(text, Not(HasSubstr("encoder.layer.1")));
}

TEST(Bert, ConfigurationAlone) {
  BertDirectory model;
  model.writeConfig();
  std::string expected = importText(options(model.path()));
  EXPECT_THAT(expected, StartsWith("module @model {"));
  EXPECT_EQ(importText(options(model.path("config.json"))), expected);
  // If the configuration is named itself, a checkpoint next to it is not read.
  model.tensors.erase("embeddings.word_embeddings.weight");
  model.writeWeights();
  EXPECT_EQ(importText(options(model.path("config.json"))), expected);
}

TEST(Bert, Prefix) {
  BertDirectory model;
  model.addPrefix("bert.");
  model.write();
  // The checkpoint decides whether names have a prefix, whatever the architecture is.
  std::string text = importText(options(model.path()));
  EXPECT_EQ(count(text, " = nn.parameter \"bert."), 5 + 2 * 16);
  EXPECT_EQ(count(text, " slices ["), 1); // positions; the other parameters are full tensors
  model.config["architectures"] = llvm::json::Array{"BertForMaskedLM"};
  model.write();
  EXPECT_EQ(importText(options(model.path())), text);
  // Without a checkpoint the architecture decides.
  std::filesystem::remove(model.path("model.safetensors"));
  EXPECT_EQ(importText(options(model.path())), text);
}

TEST(Bert, RobertaCountsPositionsFromThePadding) {
  BertDirectory model;
  model.config["model_type"] = "roberta";
  model.config["architectures"] = llvm::json::Array{"RobertaForMaskedLM"};
  model.config["pad_token_id"] = 1;
  model.addPrefix("roberta.");
  model.write();
  std::string text = importText(options(model.path()));
  EXPECT_THAT(text, HasSubstr("= nn.position_ids %input_ids padding 1 : tensor<3x10xi64>"));
  EXPECT_THAT(text, HasSubstr("role \"embedding.position\" : tensor<3x10xi64>, tensor<16x8xf32>"));
  EXPECT_EQ(count(text, " = nn.parameter \"roberta."), 5 + 2 * 16);
  EXPECT_EQ(count(text, " slices ["), 0);
  for (auto [type, name] : {std::pair("xlm-roberta", "XLMRobertaModel"),
                            {"camembert", "CamembertForTokenClassification"}}) {
    model.config["model_type"] = type;
    model.config["architectures"] = llvm::json::Array{name};
    model.write();
    EXPECT_EQ(importText(options(model.path())), text);
  }
}

TEST(Bert, LogitsWhenAskedFor) {
  BertDirectory model;
  model.config["architectures"] = llvm::json::Array{"BertForMaskedLM"};
  model.writeConfig();
  ImportOptions asked = options(model.path());
  EXPECT_THAT(importText(asked), HasSubstr("{nn.name = \"last_hidden_state\"}"));
  asked.result = "logits";
  std::string text = importText(asked);
  EXPECT_THAT(text, HasSubstr("(tensor<3x10x20xf32> {nn.name = \"logits\"})"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"cls.predictions.transform.dense.weight\" : "
                              "tensor<8x8xf32>"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"cls.predictions.bias\" init zeros : tensor<20xf32>"));
  EXPECT_THAT(text, Not(HasSubstr("decoder")));
  model.config["tie_word_embeddings"] = false;
  model.writeConfig();
  EXPECT_THAT(importText(asked), HasSubstr("nn.parameter \"cls.predictions.decoder.weight\" : "
                                           "tensor<20x8xf32>"));
}

TEST(Bert, NoPrefixInModelWithHead) {
  BertDirectory model;
  model.config["architectures"] = llvm::json::Array{"BertForMaskedLM"};
  model.write();
  EXPECT_THAT(importText(options(model.path())), Not(HasSubstr("\"bert.")));
}

TEST(Bert, OldNamesOfNormalizations) {
  BertDirectory model;
  for (const char *norm : {"embeddings.LayerNorm", "encoder.layer.0.output.LayerNorm"}) {
    std::string base = norm;
    model.tensors[base + ".gamma"] = model.tensors.extract(base + ".weight").mapped();
    model.tensors[base + ".beta"] = model.tensors.extract(base + ".bias").mapped();
  }
  model.write();
  std::string text = importText(options(model.path()));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"embeddings.LayerNorm.weight\" slices "
                              "[\"embeddings.LayerNorm.gamma\"[8]] init "
                              "ones : tensor<8xf32>"));
  EXPECT_THAT(text, HasSubstr("nn.parameter \"embeddings.LayerNorm.bias\" slices "
                              "[\"embeddings.LayerNorm.beta\"[8]] init "
                              "zeros : tensor<8xf32>"));
  EXPECT_EQ(count(text, ".gamma\"[8]"), 2);
}

TEST(Bert, Activations) {
  for (auto [name, kind] : {std::pair("gelu", "gelu"),
                            {"gelu_accurate", "gelu_tanh"},
                            {"gelu_fast", "gelu_tanh"},
                            {"gelu_new", "gelu_tanh"},
                            {"gelu_python", "gelu"},
                            {"gelu_python_tanh", "gelu_tanh"},
                            {"gelu_pytorch_tanh", "gelu_tanh"},
                            {"gelu_10", "gelu_10"},
                            {"hardswish", "hardswish"},
                            {"laplace", "laplace"},
                            {"leaky_relu", "leaky_relu"},
                            {"mish", "mish"},
                            {"quick_gelu", "quick_gelu"},
                            {"relu", "relu"},
                            {"relu2", "relu2"},
                            {"relu6", "relu6"},
                            {"sigmoid", "sigmoid"},
                            {"tanh", "tanh"},
                            {"silu", "silu"},
                            {"swish", "silu"}}) {
    BertDirectory model;
    model.config["hidden_act"] = name;
    model.writeConfig();
    EXPECT_THAT(importText(options(model.path())),
                HasSubstr(std::string("nn.activation ") + kind + " %mlp.up"))
        << name;
  }
}

TEST(Bert, FieldsThatDoNotMatter) {
  BertDirectory model;
  model.writeConfig();
  std::string expected = importText(options(model.path()));
  model.config["hidden_dropout_prob"] = 0.5;
  model.config["position_embedding_type"] = nullptr;
  model.config["is_decoder"] = false;
  model.config["pruned_heads"] = llvm::json::Object{};
  model.writeConfig();
  EXPECT_EQ(importText(options(model.path())), expected);
}

TEST(Bert, OperationsCarryTheModelsNames) {
  BertDirectory model;
  model.write();
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = importHuggingFace(&context, options(model.path()),
                                  [](const std::string &message) { FAIL() << message; });
  ASSERT_TRUE(mlir::succeeded(module));
  (*module)->walk([](mlir::Operation *op) { EXPECT_TRUE(mlir::isa<mlir::NameLoc>(op->getLoc())); });
}

} // namespace
