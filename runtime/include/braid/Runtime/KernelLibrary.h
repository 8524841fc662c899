//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generated kernels: chooses the bundle's library for this host, and loads it from memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_KERNELLIBRARY_H
#define BRAID_RUNTIME_KERNELLIBRARY_H

#include "braid/Program/Program.h"
#include "braid/Runtime/Bundle.h"

#include <memory>
#include <string>

namespace braid::runtime {

class KernelLibraryHandle {
public:
  ~KernelLibraryHandle();
  /// Loads the library with the most features among those that this host can run. Equal libraries,
  /// such as those of several sessions of one bundle, are loaded once in a process.
  static Result<std::shared_ptr<const KernelLibraryHandle>> load(const Bundle &bundle);
  Result<KernelFunction> find(const std::string &symbol) const;
  const std::string &isa() const { return chosenIsa; }

private:
  void *handle = nullptr;
  int file = -1;
  std::string chosenIsa, member;
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_KERNELLIBRARY_H
