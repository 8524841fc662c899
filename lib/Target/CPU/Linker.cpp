//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Linker.h"

#include "mlir/IR/Diagnostics.h"

#include "lld/Common/Driver.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Signals.h"

#include <memory>
#include <mutex>
#include <set>

LLD_HAS_DRIVER(elf)

using namespace mlir;

namespace {
/// A file that is removed whatever happens, also when the process is interrupted.
class TemporaryFile {
public:
  static FailureOr<std::unique_ptr<TemporaryFile>> create(StringRef suffix, Location loc) {
    SmallString<128> path;
    if (std::error_code error = llvm::sys::fs::createTemporaryFile("braid-kernels", suffix, path))
      return emitError(loc) << "cannot create a temporary file: " << error.message(), failure();
    return std::unique_ptr<TemporaryFile>(new TemporaryFile(path));
  }
  ~TemporaryFile() {
    // Nobody is left to tell that a file in the temporary directory could not be removed.
    (void)llvm::sys::fs::remove(name);
    llvm::sys::DontRemoveFileOnSignal(name);
  }
  const std::string name;

private:
  explicit TemporaryFile(StringRef path) : name(path) { llvm::sys::RemoveFileOnSignal(name); }
};

/// memset and memcpy are what LLVM makes of loops and copies; every process has them.
bool isAllowed(StringRef symbol) {
  return symbol == "memcpy" || symbol == "memset" || symbol == "memmove" ||
         symbol == "_GLOBAL_OFFSET_TABLE_";
}
} // namespace

LogicalResult braid::cpu::checkSelfContained(StringRef bytes, Location loc) {
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
      if (!name.empty() && !isAllowed(name))
        found.insert({kernel.substr(StringRef(".text.").size()), name});
    }
  }
  for (const auto &[kernel, symbol] : found)
    emitError(loc) << "kernel '" << kernel << "' calls '" << symbol
                   << "', for which the CPU target has neither instructions nor an approximation";
  return success(found.empty());
}

FailureOr<std::vector<std::byte>> braid::cpu::linkSharedLibrary(StringRef object, Location loc) {
  auto input = TemporaryFile::create("o", loc);
  if (failed(input))
    return failure();
  auto output = TemporaryFile::create("so", loc);
  if (failed(output))
    return failure();
  std::error_code error;
  {
    llvm::raw_fd_ostream stream((*input)->name, error);
    if (!error) {
      stream << object;
      stream.close();
      error = stream.error();
      stream.clear_error();
    }
  }
  if (error)
    return emitError(loc) << "cannot write '" << (*input)->name << "': " << error.message(),
           failure();

  std::string messages;
  llvm::raw_string_ostream log(messages);
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "--threads=1",
                             "--build-id=none",
                             "-z",
                             "noexecstack",
                             "--hash-style=gnu",
                             (*input)->name.c_str(),
                             "-o",
                             (*output)->name.c_str()};
  {
    // lld keeps its state in globals; one that has failed badly may not be called again.
    static std::mutex mutex;
    static bool usable = true;
    std::lock_guard<std::mutex> lock(mutex);
    if (!usable)
      return emitError(loc, "cannot link kernels: the linker failed before"), failure();
    lld::Result result = lld::lldMain(arguments, log, log, {{lld::Gnu, &lld::elf::link}});
    usable = result.canRunAgain;
    if (result.retCode != 0)
      return emitError(loc) << "cannot link kernels: " << log.str(), failure();
  }
  auto library = llvm::MemoryBuffer::getFile((*output)->name, /*IsText=*/false,
                                             /*RequiresNullTerminator=*/false);
  if (!library)
    return emitError(loc) << "cannot read '" << (*output)->name
                          << "': " << library.getError().message(),
           failure();
  const auto *begin = reinterpret_cast<const std::byte *>((*library)->getBufferStart());
  return std::vector<std::byte>(begin, begin + (*library)->getBufferSize());
}
