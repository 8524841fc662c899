//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "SharedLibrary.h"

#include <dlfcn.h>

namespace braid::runtime {

Status SharedLibrary::open(const std::string &description, const std::vector<std::string> &names) {
  what = description;
  std::string reasons;
  for (const std::string &candidate : names) {
    handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) {
      name = candidate;
      return {};
    }
    const char *reason = dlerror();
    reasons += (reasons.empty() ? "" : "; ") + std::string(reason ? reason : candidate);
  }
  return Status::error("cannot load " + what + ": " + reasons);
}

void *SharedLibrary::find(const char *symbol, Status &status) const {
  void *address = dlsym(handle, symbol);
  if (!address && status.ok())
    status = Status::error(what + " in '" + name + "' lacks '" + symbol + "'");
  return address;
}

} // namespace braid::runtime
