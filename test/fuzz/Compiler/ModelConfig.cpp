//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Imports a config.json without a checkpoint: the result is an nn module or one error message.
//
//===----------------------------------------------------------------------===//
#include "../Fuzz.h"
#include "braid/Import/HuggingFace.h"

#include "mlir/IR/Verifier.h"

using namespace braid::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  folder.put("config.json", data, size);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  braid::ImportOptions options;
  options.path = folder.path("config.json");
  options.batch = 2;
  options.seq = 4;
  int messages = 0;
  std::string last;
  auto module = braid::importHuggingFace(&context, options, [&](const std::string &message) {
    ++messages;
    last = message;
  });
  require(failed(module) == (messages == 1), "an import gives a module or one message");
  // The text after the path may quote the input, so only the beginning is checked.
  require(last.rfind("'" + options.path + "': internal error", 0) != 0, last);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  std::string text = mutateJson(std::string(reinterpret_cast<const char *>(data), size), random);
  return put(text.data(), text.size(), data, size, maxSize);
}
