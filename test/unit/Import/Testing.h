//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Small BERT directories that tests import and damage.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_IMPORT_TESTING_H
#define BRAID_TEST_UNIT_IMPORT_TESTING_H

#include "braid/Import/HuggingFace.h"
#include "test/unit/Runtime/Testing.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <string>
#include <vector>

namespace braid::testing {

struct Tensor {
  std::string dtype = "F32";
  std::vector<int64_t> shape;
};

/// A directory with config.json and model.safetensors of a BERT of two layers, hidden size 8 and
/// two heads.
class BertDirectory {
public:
  BertDirectory() {
    config = llvm::json::Object{{"architectures", llvm::json::Array{"BertModel"}},
                                {"model_type", "bert"},
                                {"hidden_act", "gelu"},
                                {"hidden_size", 8},
                                {"intermediate_size", 32},
                                {"layer_norm_eps", 1e-12},
                                {"max_position_embeddings", 16},
                                {"num_attention_heads", 2},
                                {"num_hidden_layers", 2},
                                {"type_vocab_size", 2},
                                {"vocab_size", 20}};
    tensor("embeddings.word_embeddings.weight", {20, 8});
    tensor("embeddings.position_embeddings.weight", {16, 8});
    tensor("embeddings.token_type_embeddings.weight", {2, 8});
    both("embeddings.LayerNorm", {8}, 8);
    for (const std::string &layer :
         {std::string("encoder.layer.0."), std::string("encoder.layer.1.")}) {
      for (const char *name : {"attention.self.query", "attention.self.key", "attention.self.value",
                               "attention.output.dense"})
        both(layer + name, {8, 8}, 8);
      both(layer + "attention.output.LayerNorm", {8}, 8);
      both(layer + "intermediate.dense", {32, 8}, 32);
      both(layer + "output.dense", {8, 32}, 8);
      both(layer + "output.LayerNorm", {8}, 8);
    }
    both("pooler.dense", {8, 8}, 8);
  }

  void write() const {
    writeConfig();
    writeWeights();
  }
  void writeConfig() const {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object(config));
    runtime::testing::put(path("config.json"), text);
  }
  void writeWeights() const {
    llvm::json::Object header;
    int64_t offset = 0;
    for (const auto &[name, tensor] : tensors) {
      int64_t bytes = tensor.dtype == "F32" ? 4 : tensor.dtype == "I64" ? 8 : 2;
      for (int64_t size : tensor.shape)
        bytes *= size;
      header[name] =
          llvm::json::Object{{"dtype", tensor.dtype},
                             {"shape", llvm::json::Array(tensor.shape)},
                             {"data_offsets", llvm::json::Array{offset, offset + bytes}}};
      offset += bytes;
    }
    std::string json;
    llvm::raw_string_ostream(json) << llvm::json::Value(std::move(header));
    std::string file;
    for (uint64_t length = json.size(), i = 0; i < 8; ++i)
      file.push_back(static_cast<char>(length >> (8 * i)));
    file += json;
    file.append(static_cast<size_t>(offset), '\0');
    runtime::testing::put(path("model.safetensors"), file);
  }
  /// Adds a prefix to every tensor's name.
  void addPrefix(const std::string &prefix) {
    std::map<std::string, Tensor> renamed;
    for (auto &[name, tensor] : tensors)
      renamed[prefix + name] = tensor;
    tensors = std::move(renamed);
  }
  std::string path(const std::string &name = "") const {
    return name.empty() ? folder.path("model") : folder.path("model/" + name);
  }

  llvm::json::Object config;
  std::map<std::string, Tensor> tensors;

private:
  void tensor(const std::string &name, std::vector<int64_t> shape) {
    tensors[name] = {"F32", std::move(shape)};
  }
  void both(const std::string &name, std::vector<int64_t> weight, int64_t bias) {
    tensor(name + ".weight", std::move(weight));
    tensor(name + ".bias", {bias});
  }

  struct Folder : runtime::testing::TemporaryFolder {
    Folder() { std::filesystem::create_directory(path("model")); }
  } folder;
};

/// The module's text, or "error: " and the messages.
inline std::string importText(const ImportOptions &options) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string messages;
  auto module = importHuggingFace(
      &context, options, [&](const std::string &message) { messages += "error: " + message; });
  if (failed(module))
    return messages;
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  flags.printNameLocAsPrefix();
  (*module)->print(os, flags);
  return messages + text;
}

inline ImportOptions options(const std::string &path) {
  ImportOptions options;
  options.path = path;
  options.batch = 3;
  options.seq = 10;
  return options;
}

} // namespace braid::testing
#endif // BRAID_TEST_UNIT_IMPORT_TESTING_H
