//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "braid/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include "gtest/gtest.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace braid;
using namespace braid::test;

LoadedKernels::LoadedKernels(const CPUKernelLibrary &library) : isa(library.isa.name) {
  int file = memfd_create("kernels", 0);
  EXPECT_EQ(write(file, library.bytes.data(), library.bytes.size()),
            static_cast<ssize_t>(library.bytes.size()));
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    ADD_FAILURE() << dlerror();
  close(file);
}

LoadedKernels::~LoadedKernels() {
  if (handle)
    dlclose(handle);
}

void LoadedKernels::call(const std::string &kernel,
                         std::vector<std::vector<int64_t>> descriptors) const {
  if (!handle)
    return;
  auto function = reinterpret_cast<void (*)(void *const *)>(dlsym(handle, kernel.c_str()));
  ASSERT_NE(function, nullptr) << kernel << " is not exported";
  std::vector<void *> pointers;
  for (std::vector<int64_t> &words : descriptors)
    pointers.push_back(words.data());
  function(pointers.data());
}

CompileResult braid::test::compileKernels(const std::string &source,
                                          const CPUTargetOptions &options) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  CompileResult result;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    result.messages += diagnostic.str() + "\n";
    return success();
  });
  remark::RemarkCategories categories{std::nullopt, std::nullopt, std::string("cpu"), std::nullopt,
                                      std::nullopt};
  (void)remark::enableOptimizationRemarks(context, nullptr,
                                          std::make_unique<remark::RemarkEmittingPolicyAll>(),
                                          categories, /*printAsEmitRemarks=*/true);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  if (!module)
    return result;
  FailureOr<std::vector<CPUKernelLibrary>> libraries = compileKernelsForCPU(*module, options);
  if (failed(libraries))
    return result;
  result.libraries = std::move(*libraries);
  llvm::raw_string_ostream stream(result.ir);
  result.ok = succeeded(emitLLVMForCPU(*module, options, stream));
  return result;
}

void braid::test::forEachISA(const std::string &source,
                             const std::function<void(const LoadedKernels &)> &body) {
  CompileResult result = compileKernels(source);
  ASSERT_TRUE(result.ok) << result.messages << source;
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (const CPUKernelLibrary &library : result.libraries) {
    bool runs =
        !library.isa.name.rfind("x86-64-v3", 0) ? host.lookup("avx2") && host.lookup("fma") : true;
    if (!runs)
      continue;
    SCOPED_TRACE(library.isa.name);
    body(LoadedKernels(library));
  }
}
