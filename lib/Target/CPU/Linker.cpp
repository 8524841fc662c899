//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Linker.h"

#include "mlir/IR/Diagnostics.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"

#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>
#include <set>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace {
/// A file that is always removed, also when the process is interrupted.
class TemporaryFile {
public:
  static FailureOr<std::unique_ptr<TemporaryFile>> create(StringRef suffix, Location loc) {
    SmallString<128> path;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("braid-kernels", suffix, path))
      return emitError(loc) << "cannot create a temporary file: " << error.message();
    return std::unique_ptr<TemporaryFile>(new TemporaryFile(path));
  }
  ~TemporaryFile() {
    // A file in the temporary directory that cannot be removed is not reported.
    (void)llvm::sys::fs::remove(name);
    llvm::sys::DontRemoveFileOnSignal(name);
  }
  const std::string name;

private:
  explicit TemporaryFile(StringRef path) : name(path) { llvm::sys::RemoveFileOnSignal(name); }
};

/// LLVM emits memset and memcpy for loops and copies; every process has them.
bool isAllowed(StringRef symbol) {
  return symbol == "memcpy" || symbol == "memset" || symbol == "memmove" ||
         symbol == "_GLOBAL_OFFSET_TABLE_";
}

LogicalResult write(StringRef bytes, StringRef path, Location loc) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (!error) {
    stream << bytes;
    stream.close();
    error = stream.error();
    stream.clear_error();
  }
  if (error)
    return emitError(loc) << "cannot write '" << path << "': " << error.message();
  return success();
}

/// The file of the loaded library with this function.
std::string libraryOf(const void *function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 && info.dli_fname ? info.dli_fname : "";
}

/// The linker's output in one message.
void reportLinking(StringRef log, ArrayRef<braid::CPUKernelArchive> archives, Location loc) {
  constexpr StringLiteral kUndefined = "error: undefined symbol: ";
  size_t begin = log.find(kUndefined);
  if (begin == StringRef::npos) {
    emitError(loc) << "cannot link kernels: " << log.rtrim();
    return;
  }
  StringRef symbol = log.drop_front(begin + kUndefined.size()).split('\n').first;
  InFlightDiagnostic diag = emitError(loc)
                            << "cannot link kernels: '" << symbol
                            << "' is neither of the C library nor of libm nor of the "
                               "libraries of kernels that dialects provide: ";
  llvm::interleaveComma(archives, diag, [&](const auto &archive) { diag << archive.name; });
}
} // namespace

LogicalResult braid::cpu::checkSelfContained(StringRef bytes, const llvm::StringSet<> &library,
                                             Location loc) {
  auto object =
      llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernels.o"));
  if (!object)
    return emitError(loc) << "cannot read the object file of the kernels: "
                          << llvm::toString(object.takeError());
  std::set<std::pair<std::string, std::string>> found;
  for (llvm::object::SectionRef section : (*object)->sections()) {
    auto patched = section.getRelocatedSection();
    if (!patched || *patched == (*object)->section_end())
      continue;
    std::string kernel = llvm::cantFail((*patched)->getName()).str();
    if (!StringRef(kernel).starts_with(".text."))
      continue;
    for (llvm::object::RelocationRef relocation : section.relocations()) {
      auto symbol = relocation.getSymbol();
      if (symbol == (*object)->symbol_end() ||
          !(llvm::cantFail(symbol->getFlags()) & llvm::object::SymbolRef::SF_Undefined))
        continue;
      std::string name = llvm::cantFail(symbol->getName()).str();
      if (!name.empty() && !isAllowed(name) && !library.contains(name))
        found.insert({kernel.substr(StringRef(".text.").size()), name});
    }
  }
  for (const auto &[kernel, symbol] : found)
    emitError(loc) << "kernel '" << kernel << "' calls '" << symbol
                   << "', for which the CPU target has neither instructions nor an approximation";
  return success(found.empty());
}

FailureOr<std::vector<std::byte>>
braid::cpu::linkSharedLibrary(StringRef object, ArrayRef<CPUKernelArchive> archives, Location loc) {
  SmallVector<std::unique_ptr<TemporaryFile>> inputs;
  SmallVector<StringRef> contents = {object};
  for (const CPUKernelArchive &archive : archives)
    contents.push_back(archive.bytes);
  for (StringRef bytes : contents) {
    auto input = TemporaryFile::create("o", loc);
    if (failed(input) || failed(write(bytes, (*input)->name, loc)))
      return failure();
    inputs.push_back(std::move(*input));
  }
  auto output = TemporaryFile::create("so", loc);
  if (failed(output))
    return failure();

  std::string messages;
  llvm::raw_string_ostream log(messages);
  SmallVector<std::string> arguments = {"ld.lld",           "-shared", "--threads=1",
                                        "--build-id=none",  "-z",      "noexecstack",
                                        "--hash-style=gnu", "-o",      (*output)->name};
  for (const auto &input : inputs)
    arguments.push_back(input->name);
  if (!archives.empty())
    // The runtime calls only kernels. Needed libraries are recorded, so that the loader loads them
    // where the process has not.
    llvm::append_values(
        arguments, "--exclude-libs=ALL", "--no-undefined", "--as-needed",
        libraryOf(reinterpret_cast<const void *>(&std::malloc)),
        libraryOf(reinterpret_cast<const void *>(static_cast<double (*)(double)>(&std::exp))));
  SmallVector<const char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(argument.c_str());
  {
    // lld keeps its state in globals; after a fatal failure it may not be called again.
    static std::mutex mutex;
    static bool usable = true;
    std::lock_guard<std::mutex> lock(mutex);
    if (!usable)
      return emitError(loc, "cannot link kernels: the linker failed before");
    lld::Result result = lld::lldMain(argv, log, log, {{lld::Gnu, &lld::elf::link}});
    usable = result.canRunAgain;
    if (result.retCode != 0) {
      reportLinking(log.str(), archives, loc);
      return failure();
    }
  }
  auto library = llvm::MemoryBuffer::getFile((*output)->name, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!library)
    return emitError(loc) << "cannot read '" << (*output)->name
                          << "': " << library.getError().message();
  const auto *begin = reinterpret_cast<const std::byte *>((*library)->getBufferStart());
  return std::vector<std::byte>(begin, begin + (*library)->getBufferSize());
}
