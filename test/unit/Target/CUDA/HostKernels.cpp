//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "HostKernels.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <dlfcn.h>

using namespace braid::test;

namespace {
/// A file that is gone when the test is done with it.
struct TemporaryFile {
  explicit TemporaryFile(const char *suffix) {
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("braid-cuda-on-host", suffix, path));
  }
  ~TemporaryFile() { (void)llvm::sys::fs::remove(path); }
  TemporaryFile(const TemporaryFile &) = delete;
  llvm::SmallString<128> path;
};
} // namespace

std::unique_ptr<HostKernels> HostKernels::compile(const std::string &source,
                                                  const std::vector<std::string> &kernels) {
  TemporaryFile text("cpp"), library("so"), messages("txt");
  {
    std::error_code error;
    llvm::raw_fd_ostream os(text.path, error);
    os << source;
    for (const std::string &kernel : kernels)
      os << "extern \"C\" const char *" << kernel
         << "_on_host(unsigned blocks, unsigned threads, void *const *arguments, uint64_t seed) {\n"
         << "  return braid::on_host::launch(" << kernel
         << ", blocks, threads, arguments, seed);\n}\n";
  }
  const std::string root = BRAID_SOURCE_DIR, fibers = "-I" + root + "/test/lib/cuda-on-host",
                    skeletons = "-I" + root + "/runtime/kernels/cuda";
  std::vector<llvm::StringRef> command{BRAID_HOST_COMPILER,
                                       "-std=c++20",
                                       "-O1",
                                       "-ffp-contract=off",
                                       "-Wall",
                                       "-Werror",
                                       "-Wno-unused-variable",
                                       "-Wno-unused-function",
                                       "-Wno-uninitialized",
                                       "-fPIC",
                                       "-shared",
                                       fibers,
                                       skeletons,
                                       "-include",
                                       "cuda_on_host.h",
                                       text.path,
                                       "-o",
                                       library.path};
  std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(messages.path),
                                                llvm::StringRef(messages.path)};
  std::string error;
  int status = llvm::sys::ExecuteAndWait(BRAID_HOST_COMPILER, command, std::nullopt, redirects, 0,
                                         0, &error);
  if (status != 0) {
    auto said = llvm::MemoryBuffer::getFile(messages.path);
    ADD_FAILURE() << "kernels do not compile: " << error << (said ? (*said)->getBuffer().str() : "")
                  << "\n"
                  << source;
    return nullptr;
  }
  std::unique_ptr<HostKernels> loaded(new HostKernels);
  loaded->library = dlopen(library.path.c_str(), RTLD_NOW | RTLD_LOCAL);
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
