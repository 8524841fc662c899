//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writes results: all files or none.
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
  /// Removes the directory that prepare() created if nothing was written.
  ~OutputFiles();

  /// Checks that NAME.npy can be written into the directory, and creates it if only its last
  /// component is missing. With an empty directory name write() does nothing.
  Status prepare(const std::string &directory, const std::vector<std::string> &names);
  /// Writes all files under temporary names first, then renames them.
  Status write(const std::map<std::string, HostTensor> &tensors);

private:
  std::string directory;
  bool created = false, written = false;
};

} // namespace braid::runtime
#endif // BRAID_TOOL_OUTPUTFILES_H
