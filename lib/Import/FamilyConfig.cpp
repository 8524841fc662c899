//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FamilyConfig.h"

#include "llvm/Support/Format.h"

using namespace braid;
using llvm::Expected;
using llvm::StringLiteral;
using llvm::StringRef;

/// The names that the `transformers` library has for activation functions.
static constexpr std::pair<StringLiteral, nn::ActivationKind> kActivations[] = {
    {"gelu", nn::ActivationKind::Gelu},
    {"gelu_10", nn::ActivationKind::Gelu10},
    {"gelu_accurate", nn::ActivationKind::GeluTanh},
    {"gelu_fast", nn::ActivationKind::GeluTanh},
    {"gelu_new", nn::ActivationKind::GeluTanh},
    {"gelu_python", nn::ActivationKind::Gelu},
    {"gelu_python_tanh", nn::ActivationKind::GeluTanh},
    {"gelu_pytorch_tanh", nn::ActivationKind::GeluTanh},
    {"hardswish", nn::ActivationKind::Hardswish},
    {"laplace", nn::ActivationKind::Laplace},
    {"leaky_relu", nn::ActivationKind::LeakyRelu},
    {"mish", nn::ActivationKind::Mish},
    {"quick_gelu", nn::ActivationKind::QuickGelu},
    {"relu", nn::ActivationKind::Relu},
    {"relu2", nn::ActivationKind::Relu2},
    {"relu6", nn::ActivationKind::Relu6},
    {"sigmoid", nn::ActivationKind::Sigmoid},
    {"silu", nn::ActivationKind::Silu},
    {"swish", nn::ActivationKind::Silu},
    {"tanh", nn::ActivationKind::Tanh},
};

Expected<nn::ActivationKind> braid::activationKind(const Config &config, StringRef field,
                                                   StringRef defaultValue) {
  Expected<std::string> name =
      defaultValue.empty() ? config.string(field) : config.string(field, defaultValue);
  if (!name)
    return name.takeError();
  std::string known;
  for (const auto &[called, kind] : kActivations) {
    if (*name == called)
      return kind;
    known += (known.empty() ? "" : ", ") + called.str();
  }
  return importError("'", config.path(), "': ", field, " '", *name,
                     "' is not supported, expects one of ", known);
}

Expected<int64_t> braid::importedLayers(const Config &config, const ImportOptions &options,
                                        int64_t layers, StringRef field) {
  if (!options.layers)
    return layers;
  if (*options.layers < 1 || *options.layers > layers)
    return importError("'", config.path(), "': expects layers in [1, ", layers, "] ('", field,
                       "'), got ", *options.layers);
  return *options.layers;
}

llvm::Error braid::checkElements(const Config &config, const ImportOptions &options, double weights,
                                 double widest) {
  constexpr double kMaxElements = 1LL << 50;
  if (weights > kMaxElements)
    return importError("'", config.path(),
                       "': expects a model of at most 2^50 weights, its sizes give ",
                       llvm::format("%.3g", weights));
  if (static_cast<double>(options.batch) * static_cast<double>(options.seq) * widest > kMaxElements)
    return importError("'", config.path(),
                       "': expects activations of at most 2^50 elements, batch ", options.batch,
                       " and seq ", options.seq, " give ",
                       llvm::format("%.3g", static_cast<double>(options.batch) *
                                                static_cast<double>(options.seq) * widest));
  return llvm::Error::success();
}

Expected<bool> braid::hasHead(const Config &config, StringRef headed, StringRef bare) {
  Expected<std::vector<std::string>> architectures = config.strings("architectures");
  if (!architectures)
    return architectures.takeError();
  for (StringRef name : *architectures)
    if (name != headed && name != bare)
      return importError("'", config.path(), "': architecture '", name,
                         "' is not supported, expects ", headed, " or ", bare);
  return architectures->empty() || architectures->front() == headed;
}

Expected<bool> braid::givesLogits(const Config &config, const ImportOptions &options, bool hasHead,
                                  bool unasked, StringRef headed) {
  bool logits =
      options.result.empty() ? unasked || options.logits == "last" : options.result == "logits";
  if (logits && !hasHead)
    return importError("'", config.path(), "': expects architecture ", headed,
                       " for result 'logits'");
  return logits;
}

std::string braid::weightPrefix(const Checkpoint *checkpoint, StringRef inner, bool headed,
                                StringRef first) {
  StringRef expected = headed ? inner : "", other = headed ? "" : inner;
  bool asExpected = !checkpoint || checkpoint->has((expected + first).str());
  return (asExpected ? expected : other).str();
}

llvm::Error braid::checkLayers(const Config &config, const Checkpoint *checkpoint, StringRef path,
                               int64_t layers, StringRef field) {
  if (!checkpoint)
    return llvm::Error::success();
  StringRef extra = checkpoint->firstWith((path + llvm::Twine(layers) + ".").str());
  if (extra.empty())
    return llvm::Error::success();
  return importError("'", config.path(), "': '", field, "' is ", layers, ", but '",
                     checkpoint->path(), "' has tensor '", extra, "'");
}
