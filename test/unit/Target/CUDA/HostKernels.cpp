//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "test/lib/cuda-on-host/HostCompiler.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <dlfcn.h>

using namespace braid::test;

std::unique_ptr<HostKernels> HostKernels::compile(const std::string &source,
                                                  const std::vector<std::string> &kernels) {
  std::string text = source;
  for (const std::string &kernel : kernels)
    text += "extern \"C\" const char *" + kernel +
            "_on_host(unsigned blocks, unsigned threads, void *const *arguments, uint64_t seed) {\n"
            "  return braid::on_host::launch(" +
            kernel + ", blocks, threads, arguments, seed);\n}\n";
  llvm::SmallString<128> path;
  EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("braid-kernels", "so", path));
  llvm::scope_exit remove([&] { (void)llvm::sys::fs::remove(path); });
  if (std::string said = compileForHost(text, path.str().str()); !said.empty()) {
    ADD_FAILURE() << "kernels do not compile: " << said << "\n" << text;
    return nullptr;
  }
  std::unique_ptr<HostKernels> loaded(new HostKernels);
  loaded->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!loaded->library) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  return loaded;
}

HostKernels::~HostKernels() {
  if (library)
    dlclose(library);
}

std::string HostKernels::launch(const std::string &kernel, uint64_t blocks, unsigned threads,
                                const std::vector<void *> &arguments, uint64_t seed) const {
  auto function = reinterpret_cast<const char *(*)(unsigned, unsigned, void *const *, uint64_t)>(
      dlsym(library, (kernel + "_on_host").c_str()));
  if (!function)
    return "there is no kernel '" + kernel + "'";
  const char *error = function(static_cast<unsigned>(blocks), threads, arguments.data(), seed);
  return error ? error : "";
}
