//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the row kernels of models, with the models' own widths, as CUDA and compares them with the
// interpreter.
//
//===----------------------------------------------------------------------===//
#include "KernelCheck.h"

#include "braid/Import/HuggingFace.h"
#include "braid/InitAll.h"
#include "braid/Pipelines/Pipelines.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {
struct Model {
  const char *name, *config;
};

const Model kModels[] = {
    {"MiniLM-L6", R"({"model_type": "bert", "architectures": ["BertModel"], "vocab_size": 100,
      "hidden_size": 384, "num_hidden_layers": 1, "num_attention_heads": 12,
      "intermediate_size": 1536, "max_position_embeddings": 512, "type_vocab_size": 2,
      "hidden_act": "gelu", "layer_norm_eps": 1e-12, "position_embedding_type": "absolute"})"},
    {"SmolLM2-135M", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "vocab_size": 100, "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 1,
      "num_attention_heads": 9, "num_key_value_heads": 3, "max_position_embeddings": 2048,
      "hidden_act": "silu", "rms_norm_eps": 1e-5, "tie_word_embeddings": true})"},
    {"a layer of LLaMA 3 8B", R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
      "vocab_size": 100, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 1,
      "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 8192,
      "hidden_act": "silu", "rms_norm_eps": 1e-5})"},
};

/// The module at the kernels level, with values of type `element`.
std::string kernelsOf(const Model &model, const std::string &element, const std::string &mesh) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SmallString<128> folder;
  EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("braid-models", folder));
  ImportOptions options;
  options.path = (folder + "/config.json").str();
  options.seq = 8;
  {
    std::error_code error;
    llvm::raw_fd_ostream(options.path, error) << model.config;
  }
  FailureOr<OwningOpRef<ModuleOp>> imported = importHuggingFace(
      &context, options, [](const std::string &message) { ADD_FAILURE() << message; });
  (void)llvm::sys::fs::remove_directories(folder);
  if (failed(imported))
    return "";
  auto print = [](ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os, OpPrintingFlags().enableDebugInfo());
    return text;
  };
  // Import writes f32 modules only; the text is rewritten to the other types.
  std::string text = print(**imported);
  for (size_t at = 0; element != "f32" && (at = text.find("xf32>", at)) != std::string::npos;)
    text.replace(at, 5, "x" + element + ">");
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  PipelineOptions pipeline;
  pipeline.mesh = mesh;
  if (!module || failed(runPhases(*module, Level::Kernels, pipeline))) {
    ADD_FAILURE() << "no kernels";
    return "";
  }
  return print(*module);
}

class CUDAModels : public ::testing::TestWithParam<std::tuple<int, std::string>> {};

std::string nameOf(const ::testing::TestParamInfo<CUDAModels::ParamType> &info) {
  static const char *const names[] = {"MiniLM", "SmolLM2", "LLaMALayer"};
  return std::string(names[std::get<0>(info.param)]) + "_" + std::get<1>(info.param);
}
} // namespace

TEST_P(CUDAModels, Kernels) {
  const Model &model = kModels[std::get<0>(GetParam())];
  std::string element = std::get<1>(GetParam());
  static const char *const kMeshes[] = {"tp=1", "tp=2", "tp=4"};
  for (const char *mesh : kMeshes) {
    SCOPED_TRACE(mesh);
    KernelModule module(kernelsOf(model, element, mesh));
    ASSERT_TRUE(module.ok());
    EXPECT_GE(module.symbols().size(), 2u);
    for (const std::string &kernel : module.symbols()) {
      module.check(kernel, {3, 0, 1});
      module.check(kernel, {2, 0, 2, /*inPlace=*/true});
    }
    if (mesh == kMeshes[0])
      module.compileForGPUs(getCUDAArchitectures(), /*tightly=*/true);
    std::cout << model.name << " at " << mesh << ":";
    for (const std::string &kernel : module.symbols())
      std::cout << " " << kernel;
    std::cout << "; largest relative L2 " << module.worst[element] << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(All, CUDAModels,
                         ::testing::Combine(::testing::Range(0, 3),
                                            ::testing::Values(std::string("f32"),
                                                              std::string("f16"),
                                                              std::string("bf16"))),
                         nameOf);
