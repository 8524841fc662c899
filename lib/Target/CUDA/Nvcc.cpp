//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Compilers.h"

#include "braid/Base/StatusMacros.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cstring>

using namespace braid;
using namespace braid::cuda;
using runtime::Result;
using runtime::Status;

namespace {
/// A temporary folder that is removed with its content.
class TemporaryFolder {
public:
  TemporaryFolder() { error = llvm::sys::fs::createUniqueDirectory("braid-nvcc", path); }
  ~TemporaryFolder() {
    if (!error)
      (void)llvm::sys::fs::remove_directories(path);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  std::string file(llvm::StringRef name) const { return (path + "/" + name).str(); }

  std::error_code error;

private:
  llvm::SmallString<128> path;
};

std::string readText(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Runs a program; `output` receives both streams.
bool run(llvm::ArrayRef<llvm::StringRef> command, const std::string &log, std::string &output) {
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""), llvm::StringRef(log),
                                                llvm::StringRef(log)};
  std::string error;
  int status =
      llvm::sys::ExecuteAndWait(command.front(), command, std::nullopt, redirects, 0, 0, &error);
  output = readText(log) + error;
  return status == 0;
}

class NVCC : public Compiler {
public:
  NVCC(std::string path, std::string release)
      : program(std::move(path)), release(std::move(release)) {}
  std::string name() const override { return "nvcc " + release; }
  std::string path() const override { return program; }
  std::string identity() const override { return name() + " -std=c++17"; }

  Result<Compiled> compile(llvm::StringRef source, llvm::StringRef architecture) override {
    TemporaryFolder folder;
    if (folder.error)
      return Status::error("cannot create a temporary folder: " + folder.error.message());
    std::string text = folder.file("kernels.cu"), cubin = folder.file("kernels.cubin");
    RETURN_IF_ERROR(runtime::writeFile(text, {{source.bytes_begin(), source.size()}}));
    for (const Header &header : kernelHeaders()) {
      std::string file = folder.file(header.name);
      if (std::error_code error =
              llvm::sys::fs::create_directories(llvm::sys::path::parent_path(file)))
        return Status::error("cannot create a temporary folder: " + error.message());
      RETURN_IF_ERROR(runtime::writeFile(file, {{header.text, std::strlen(header.text)}}));
    }
    Compiled compiled;
    std::string arch = "-arch=" + architecture.str(), include = "-I" + folder.file("");
    if (!run({program, "-cubin", arch, "-std=c++17", "-Xptxas", "-v", include, text, "-o", cubin},
             folder.file("log.txt"), compiled.log))
      return Status::error(compiled.log);
    ASSIGN_OR_RETURN(compiled.cubin, runtime::readFile(cubin));
    return compiled;
  }

private:
  std::string program, release;
};
} // namespace

std::unique_ptr<Compiler> braid::cuda::findNVCC(std::string &searched) {
  llvm::SmallVector<llvm::SmallString<64>> storage;
  llvm::SmallVector<std::string> folders;
  for (const std::string &toolkit : toolkitFolders())
    folders.push_back(toolkit + "/bin");
  llvm::SmallVector<llvm::StringRef> places(folders.begin(), folders.end());
  llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName("nvcc", places);
  if (!path)
    path = llvm::sys::findProgramByName("nvcc");
  if (!path) {
    for (const std::string &folder : folders)
      searched += "\n  no " + folder + "/nvcc";
    searched += "\n  no nvcc in PATH";
    return nullptr;
  }
  TemporaryFolder folder;
  std::string said;
  if (folder.error || !run({*path, "--version"}, folder.file("log.txt"), said)) {
    searched += "\n  " + *path + " does not run: " + said;
    return nullptr;
  }
  // "Cuda compilation tools, release 13.0, V13.0.88"
  llvm::StringRef release = llvm::StringRef(said).split(", release ").second.split('\n').first;
  return std::make_unique<NVCC>(*path, release.rtrim().str());
}
