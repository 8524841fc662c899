//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Compilers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

#include <dlfcn.h>

using namespace braid;
using namespace braid::cuda;
using runtime::Result;
using runtime::Status;

namespace {
using Program = struct OpaqueProgram *;

/// The used functions of nvrtc.h; every function returns 0 on success.
struct Functions {
  int (*nvrtcVersion)(int *major, int *minor);
  const char *(*nvrtcGetErrorString)(int result);
  int (*nvrtcCreateProgram)(Program *program, const char *source, const char *name, int numHeaders,
                            const char *const *headers, const char *const *includeNames);
  int (*nvrtcDestroyProgram)(Program *program);
  int (*nvrtcCompileProgram)(Program program, int numOptions, const char *const *options);
  int (*nvrtcGetProgramLogSize)(Program program, size_t *size);
  int (*nvrtcGetProgramLog)(Program program, char *log);
  int (*nvrtcGetCUBINSize)(Program program, size_t *size);
  int (*nvrtcGetCUBIN)(Program program, char *cubin);
};

/// The first missing symbol, or empty.
std::string resolve(void *library, Functions &functions) {
  std::string missing;
  auto find = [&](auto &function, const char *symbol) {
    void *address = dlsym(library, symbol);
    if (!address && missing.empty())
      missing = symbol;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  };
  find(functions.nvrtcVersion, "nvrtcVersion");
  find(functions.nvrtcGetErrorString, "nvrtcGetErrorString");
  find(functions.nvrtcCreateProgram, "nvrtcCreateProgram");
  find(functions.nvrtcDestroyProgram, "nvrtcDestroyProgram");
  find(functions.nvrtcCompileProgram, "nvrtcCompileProgram");
  find(functions.nvrtcGetProgramLogSize, "nvrtcGetProgramLogSize");
  find(functions.nvrtcGetProgramLog, "nvrtcGetProgramLog");
  find(functions.nvrtcGetCUBINSize, "nvrtcGetCUBINSize");
  find(functions.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  return missing;
}

constexpr const char *kOptions[] = {"--std=c++17", "--ptxas-options=-v"};

class NVRTC : public Compiler {
public:
  NVRTC(const Functions &functions, std::string version, std::string path)
      : functions(functions), version(std::move(version)), library(std::move(path)) {}

  std::string name() const override { return "NVRTC " + version; }
  std::string path() const override { return library; }
  std::string identity() const override {
    return name() + " " + llvm::join(llvm::ArrayRef(kOptions), " ");
  }

  Result<Compiled> compile(llvm::StringRef source, llvm::StringRef architecture) override {
    std::vector<const char *> texts, names;
    for (const Header &header : kernelHeaders()) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    Program program = nullptr;
    if (int result = functions.nvrtcCreateProgram(&program, source.str().c_str(), "kernels.cu",
                                                  static_cast<int>(names.size()), texts.data(),
                                                  names.data()))
      return failed("nvrtcCreateProgram", result);
    Result<Compiled> compiled = compileProgram(program, architecture);
    functions.nvrtcDestroyProgram(&program);
    return compiled;
  }

private:
  Result<Compiled> compileProgram(Program program, llvm::StringRef architecture) {
    // A real architecture gives machine code instead of PTX.
    std::string gpu = "--gpu-architecture=" + architecture.str();
    std::vector<const char *> options(std::begin(kOptions), std::end(kOptions));
    options.push_back(gpu.c_str());
    int result =
        functions.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    Compiled compiled;
    size_t size = 0;
    if (functions.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
      compiled.log.resize(size);
      functions.nvrtcGetProgramLog(program, compiled.log.data());
      compiled.log.resize(size - 1); // It is null-terminated.
    }
    if (result)
      return Status::error(compiled.log.empty() ? failed("nvrtcCompileProgram", result).message()
                                                : compiled.log);
    if (int error = functions.nvrtcGetCUBINSize(program, &size))
      return failed("nvrtcGetCUBINSize", error);
    compiled.cubin.resize(size);
    if (int error =
            functions.nvrtcGetCUBIN(program, reinterpret_cast<char *>(compiled.cubin.data())))
      return failed("nvrtcGetCUBIN", error);
    return compiled;
  }

  Status failed(const char *function, int result) const {
    return Status::error(std::string(function) +
                         " gives: " + functions.nvrtcGetErrorString(result));
  }

  Functions functions;
  std::string version, library;
};

/// Folders of the library in PyPI's wheel: in the active environment, and in the one that
/// scripts/setup.sh creates next to this program.
void addWheels(llvm::SmallVectorImpl<std::string> &folders) {
  llvm::SmallVector<std::string> environments;
  if (auto active = llvm::sys::Process::GetEnv("VIRTUAL_ENV"))
    environments.push_back(*active);
  static int anchor;
  std::string program = llvm::sys::fs::getMainExecutable(nullptr, &anchor);
  llvm::StringRef build = llvm::sys::path::parent_path(llvm::sys::path::parent_path(program));
  environments.push_back((build + "/venv").str());
  for (const std::string &environment : environments) {
    std::error_code error;
    for (llvm::sys::fs::directory_iterator at(environment + "/lib", error), end;
         !error && at != end; at.increment(error))
      if (llvm::sys::path::filename(at->path()).starts_with("python3"))
        folders.push_back(at->path() + "/site-packages/nvidia/cu13/lib");
  }
}
} // namespace

llvm::SmallVector<std::string> braid::cuda::toolkitFolders() {
  llvm::SmallVector<std::string> folders;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto folder = llvm::sys::Process::GetEnv(variable))
      folders.push_back(*folder);
  folders.push_back("/usr/local/cuda");
  return folders;
}

std::unique_ptr<Compiler> braid::cuda::findNVRTC(std::string &searched) {
  llvm::SmallVector<std::string> paths;
  if (auto chosen = llvm::sys::Process::GetEnv("BRAID_NVRTC")) {
    paths.push_back(*chosen);
  } else {
    llvm::SmallVector<std::string> folders;
    addWheels(folders);
    for (const std::string &toolkit : toolkitFolders())
      folders.push_back(toolkit + "/lib64");
    paths.push_back("libnvrtc.so.13");
    for (const std::string &folder : folders)
      paths.push_back(folder + "/libnvrtc.so.13");
  }
  for (const std::string &path : paths) {
    // NVRTC looks for its builtins by name only, which succeeds if they are already loaded.
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    if (!folder.empty())
      dlopen((folder + "/libnvrtc-builtins.so.13.0").str().c_str(), RTLD_NOW | RTLD_GLOBAL);
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string why = library ? "" : dlerror();
    Functions functions{};
    if (library)
      if (std::string missing = resolve(library, functions); !missing.empty())
        why = path + " has no symbol " + missing;
    if (why.empty()) {
      int major = 0, minor = 0;
      functions.nvrtcVersion(&major, &minor);
      return std::make_unique<NVRTC>(functions, std::to_string(major) + "." + std::to_string(minor),
                                     path);
    }
    searched += "\n  " + why;
  }
  return nullptr;
}
