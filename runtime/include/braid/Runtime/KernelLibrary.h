//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generated kernels: chosen among a bundle's libraries by what this host can do, and loaded from
// memory.
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
  /// Loads the library whose features this host has, of several the one that uses most of them.
  /// Equal libraries, as several sessions of one bundle have them, are loaded once in a process.
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
