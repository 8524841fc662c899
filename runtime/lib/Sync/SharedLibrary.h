//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Libraries that are loaded at run time (NVIDIA's, UCX), so that one build runs with and without
// them. Each has a table of the functions in use, which is filled completely at load time, so that
// an error names a missing function before anything runs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_SYNC_SHAREDLIBRARY_H
#define BRAID_SYNC_SHAREDLIBRARY_H

#include "braid/Base/Status.h"

#include <type_traits>
#include <vector>

namespace braid::runtime {

class SharedLibrary {
public:
  SharedLibrary() = default;
  SharedLibrary(const SharedLibrary &) = delete;
  SharedLibrary &operator=(const SharedLibrary &) = delete;
  /// Does not unload the library, as these libraries keep threads and state of their own.
  ~SharedLibrary() = default;

  /// Opens the first of `names` that exists; messages call it `what` ("the CUDA driver").
  Status open(const std::string &what, const std::vector<std::string> &names);
  /// Sets `status` for a missing symbol, unless it is an error already.
  void *find(const char *symbol, Status &status) const;

private:
  void *handle = nullptr;
  std::string what, name;
};

/// Members of a table: one pointer for each function of a list `X(name, type)`.
#define BRAID_DECLARE_SYMBOL(name, ...) std::add_pointer_t<__VA_ARGS__> name{};
#define BRAID_FIND_SYMBOL(name, ...)                                                               \
  this->name = reinterpret_cast<decltype(this->name)>(library.find(#name, status));

} // namespace braid::runtime
#endif // BRAID_SYNC_SHAREDLIBRARY_H
