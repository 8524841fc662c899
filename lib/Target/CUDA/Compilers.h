//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compilers that compileCUDA uses, and its cache.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_TARGET_CUDA_COMPILERS_H
#define BRAID_LIB_TARGET_CUDA_COMPILERS_H

#include "braid/Runtime/Files.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <string>
#include <utility>

namespace braid::cuda {

/// The headers of runtime/kernels/cuda, embedded in this program: "braid/rows.cuh" and so on.
struct Header {
  const char *name, *text;
};
llvm::ArrayRef<Header> kernelHeaders();

struct Compiled {
  runtime::Bytes cubin;
  std::string log; ///< Contains the assembler's report on each function.
};

class Compiler {
public:
  virtual ~Compiler() = default;
  virtual std::string name() const = 0;
  /// Path of the library or the program; only its name where the loader found it.
  virtual std::string path() const = 0;
  /// Everything that determines the code of a source, except headers and architecture.
  virtual std::string identity() const = 0;
  virtual runtime::Result<Compiled> compile(llvm::StringRef source,
                                            llvm::StringRef architecture) = 0;
};

/// Null when there is none; `searched` then lists the places searched.
std::unique_ptr<Compiler> findNVRTC(std::string &searched);
std::unique_ptr<Compiler> findNVCC(std::string &searched);

/// Folders of toolkits, by environment and custom.
llvm::SmallVector<std::string> toolkitFolders();

/// Machine code on disk, by a hash of its inputs. Entries are written atomically; a damaged entry
/// is ignored.
class Cache {
public:
  explicit Cache(std::string directory) : directory(std::move(directory)) {}
  static std::string key(llvm::ArrayRef<llvm::StringRef> parts);
  bool read(const std::string &key, Compiled &compiled) const;
  runtime::Status write(const std::string &key, const Compiled &compiled) const;

private:
  std::string path(const std::string &key) const { return directory + "/cuda/" + key + ".bin"; }
  std::string directory;
};

} // namespace braid::cuda
#endif // BRAID_LIB_TARGET_CUDA_COMPILERS_H
