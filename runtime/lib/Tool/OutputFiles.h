//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where results go: all files or none.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOL_OUTPUTFILES_H
#define BRAID_TOOL_OUTPUTFILES_H

#include "braid/Base/HostTensor.h"

#include <map>
#include <string>
#include <vector>

namespace braid::runtime {

class OutputFiles {
public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles &) = delete;
  OutputFiles &operator=(const OutputFiles &) = delete;
  /// Takes away what prepare() created, when nothing was written.
  ~OutputFiles();

  /// Makes sure that NAME.npy can be written into the directory, which is created when only its
  /// last part is missing. An empty directory name means that write() does nothing.
  Status prepare(const std::string &directory, const std::vector<std::string> &names);
  /// Writes all under temporary names first, then gives them their own.
  Status write(const std::map<std::string, HostTensor> &tensors);

private:
  std::string directory;
  bool created = false, written = false;
};

} // namespace braid::runtime
#endif // BRAID_TOOL_OUTPUTFILES_H
