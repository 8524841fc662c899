//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/InitAll.h"
#include "braid/Interpreter/Core/Tensor.h"
#include "braid/Schedule/Passes.h"
#include "braid/Transforms/Passes.h"
#include "dialects/Comm/IR/Comm.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

#include <cstdlib>
#include <iostream>

using namespace mlir;

namespace braid::test {

uint64_t fromEnvironment(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

bool isDefaultSize() {
  return !std::getenv("BRAID_DIFFERENTIAL_SEED") && !std::getenv("BRAID_DIFFERENTIAL_CASES");
}

runtime::Status LargeWeights::read(const runtime::Parameter &parameter, const runtime::Box &box,
                                   void *dest) {
  runtime::Status status = source->read(parameter, box, dest);
  for (int64_t i = 0, n = interp::numElements(box.sizes); status.ok() && i < n; ++i)
    static_cast<float *>(dest)[i] *= 25;
  return status;
}

void print(const char *title, const Tally &tally) {
  std::cout << title;
  for (const auto &[name, times] : tally)
    std::cout << "  " << name << " " << times;
  std::cout << "\n";
}

DifferentialTest::DifferentialTest() {
  static const bool registered =
      (registerBraidPasses(), registerBraidSchedulePasses(), registerTransformsPasses(), true);
  (void)registered;
  DialectRegistry registry;
  registerAllDialects(registry);
  context.appendDialectRegistry(registry);
}

bool DifferentialTest::apply(ModuleOp module, const std::string &passes) {
  PassManager manager(&context);
  if (failed(parsePassPipeline(passes, manager)) || failed(manager.run(module)))
    return false;
  bool partitioned = false;
  module.walk([&](comm::CollectiveOpInterface) { partitioned = true; });
  if (!partitioned)
    return true;
  PassManager check(&context);
  check.addPass(createCheckPlacements());
  return succeeded(check.run(module));
}

OwningOpRef<ModuleOp> DifferentialTest::transformed(ModuleOp module, const std::string &passes) {
  OwningOpRef<ModuleOp> result = module.clone();
  return apply(*result, passes) ? std::move(result) : nullptr;
}

std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

} // namespace braid::test
