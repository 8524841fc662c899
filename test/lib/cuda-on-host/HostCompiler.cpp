//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "test/lib/cuda-on-host/HostCompiler.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"
#include "llvm/Support/raw_ostream.h"

std::vector<std::string> braid::test::codecKernels(const std::string &source) {
  llvm::Regex definition("^(braid_(en|de)code_[a-z0-9_]+)\\(");
  llvm::SmallVector<llvm::StringRef> lines, parts;
  llvm::StringRef(source).split(lines, '\n');
  std::vector<std::string> names;
  for (llvm::StringRef line : lines)
    if (definition.match(line, &parts))
      names.push_back(parts[1].str());
  return names;
}

std::string braid::test::compileForHost(const std::string &text, const std::string &path) {
  llvm::SmallString<128> source, messages;
  for (auto [file, suffix] : {std::pair(&source, "cpp"), std::pair(&messages, "txt")})
    if (std::error_code error =
            llvm::sys::fs::createTemporaryFile("braid-cuda-on-host", suffix, *file))
      return "cannot create a temporary file: " + error.message();
  {
    std::error_code error;
    llvm::raw_fd_ostream(source, error) << text;
  }
  const std::string root = BRAID_SOURCE_DIR, repository = "-I" + root,
                    fibers = "-I" + root + "/test/lib/cuda-on-host",
                    skeletons = "-I" + root + "/runtime/kernels/cuda";
  const llvm::StringRef command[] = {BRAID_HOST_COMPILER,
                                     "-std=c++20",
                                     "-O0",
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
                                     repository,
                                     "-include",
                                     "cuda_on_host.h",
                                     source,
                                     "-o",
                                     path};
  const std::optional<llvm::StringRef> redirects[] = {std::nullopt, llvm::StringRef(messages),
                                                      llvm::StringRef(messages)};
  std::string said;
  int status =
      llvm::sys::ExecuteAndWait(BRAID_HOST_COMPILER, command, std::nullopt, redirects, 0, 0, &said);
  if (status != 0) {
    if (auto log = llvm::MemoryBuffer::getFile(messages))
      said += (*log)->getBuffer();
    if (said.empty())
      said = "exit status " + std::to_string(status);
  }
  (void)llvm::sys::fs::remove(source);
  (void)llvm::sys::fs::remove(messages);
  return status == 0 ? "" : said;
}
