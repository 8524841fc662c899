//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Import/HuggingFace.h"

#include "Bert.h"
#include "Gpt2.h"
#include "Llama.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace braid;
using llvm::Expected;

namespace {

/// The paths of the configuration and, if any, the checkpoint.
struct Files {
  std::string config, checkpoint;
};

Expected<Files> findFiles(const std::string &path) {
  auto inside = [&](StringRef name) {
    SmallString<128> file(path);
    llvm::sys::path::append(file, name);
    return std::string(file);
  };
  if (!llvm::sys::fs::exists(path))
    return importError("'", path,
                       "' does not exist, expects a model's directory or its config.json");
  if (!llvm::sys::fs::is_directory(path))
    return Files{path, ""};

  Files files{inside("config.json"), inside("model.safetensors")};
  if (!llvm::sys::fs::exists(files.config))
    return importError("directory '", path, "' has no config.json");
  for (StringRef suffix : {"", ".index.json"})
    if (std::string file = files.checkpoint + suffix.str(); llvm::sys::fs::exists(file))
      return Files{files.config, file};
  // A checkpoint in another format is an error; it must not be treated as an absent checkpoint.
  for (StringRef other : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (llvm::sys::fs::exists(inside(other)))
      return importError("directory '", path, "' has '", other,
                         "' but neither model.safetensors nor model.safetensors.index.json; to "
                         "import without weights, name its config.json");
  files.checkpoint.clear();
  return files;
}

/// The model's own name, or that of its directory.
std::string modelName(const Files &files, StringRef declared, StringRef family) {
  StringRef name = llvm::sys::path::filename(declared.rtrim('/'));
  if (name.empty() || name == "." || name == "..")
    name = llvm::sys::path::filename(llvm::sys::path::parent_path(files.config));
  return name.empty() || name == "." || name == ".." ? family.str() : name.str();
}

Expected<OwningOpRef<ModuleOp>> import(MLIRContext *context, const ImportOptions &options) {
  if (options.dtype != "f32")
    return importError("dtype '", options.dtype, "' is not supported, expects f32");
  if (options.batch < 1 || options.batch > Config::kMaxSize)
    return importError("expects batch in [1, ", Config::kMaxSize, "], got ", options.batch);
  if (options.seq < 1 || options.seq > Config::kMaxSize)
    return importError("expects seq in [1, ", Config::kMaxSize, "], got ", options.seq);

  if (!llvm::is_contained({"", "last_hidden_state", "logits"}, options.result))
    return importError("expects result last_hidden_state or logits, got '", options.result, "'");

  if (!llvm::is_contained({"all", "last"}, options.logits))
    return importError("expects logits all or last, got '", options.logits, "'");
  if (options.logits == "last" && options.result == "last_hidden_state")
    return importError("expects result logits with logits last, got '", options.result, "'");

  Expected<Files> files = findFiles(options.path);
  if (!files)
    return files.takeError();
  Expected<Config> config = Config::read(files->config);
  if (!config)
    return config.takeError();
  std::optional<Checkpoint> checkpoint;
  if (!files->checkpoint.empty()) {
    Expected<Checkpoint> read = Checkpoint::read(files->checkpoint);
    if (!read)
      return read.takeError();
    checkpoint = std::move(*read);
  }

  Expected<std::string> family = config->string("model_type");
  if (!family)
    return family.takeError();
  Expected<std::string> declared = config->string("_name_or_path", "");
  if (!declared)
    return declared.takeError();
  auto *importer = llvm::StringSwitch<decltype(&importBert)>(*family)
                       .Case("bert", importBert)
                       .Case("gpt2", importGpt2)
                       .Case("llama", importLlama)
                       .Cases({"roberta", "xlm-roberta", "camembert"}, importRoberta)
                       .Default(nullptr);
  if (options.logits == "last" && (importer == importBert || importer == importRoberta))
    return importError("'", config->path(),
                       "': expects a decoder (model_type gpt2 or llama) for "
                       "logits last, got model_type '",
                       *family, "'");
  if (importer)
    return importer(context, options, *config, checkpoint ? &*checkpoint : nullptr,
                    modelName(*files, *declared, *family));
  return importError(
      "'", config->path(), "': model_type '", *family,
      "' is not supported, expects bert, roberta, xlm-roberta, camembert, gpt2 or llama");
}

} // namespace

FailureOr<OwningOpRef<ModuleOp>>
braid::importHuggingFace(MLIRContext *context, const ImportOptions &options,
                         llvm::function_ref<void(const std::string &message)> onError) {
  context->loadDialect<func::FuncDialect, nn::NNDialect>();
  Expected<OwningOpRef<ModuleOp>> module = import(context, options);
  if (!module) {
    onError(llvm::toString(module.takeError()));
    return failure();
  }
  if (failed(verify(module->get()))) {
    onError("'" + options.path + "': internal error: the imported module is invalid");
    return failure();
  }
  return std::move(*module);
}
