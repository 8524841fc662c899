//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads and writes files as a whole; messages name the path.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_FILES_H
#define BRAID_RUNTIME_FILES_H

#include "braid/Base/Status.h"
#include "braid/Base/Support.h"

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime {

struct InputFile {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> stream;
  uint64_t bytes = 0; ///< when it was opened
};
/// Opens a regular file.
Result<InputFile> openFile(const std::string &path);

/// Reads a regular file. A file of more than `maxBytes` is refused before anything is allocated.
Result<Bytes> readFile(const std::string &path, uint64_t maxBytes = uint64_t(1) << 40);

/// Bytes to write; the memory belongs to the caller.
struct ByteSpan {
  const void *data = nullptr;
  size_t size = 0;
};

/// Writes the pieces one after another to a temporary file beside `path` and renames it to `path`,
/// so that a failure leaves neither a partial file nor a damaged older one. Follows symbolic links;
/// writes to anything but a regular file (/dev/null, a pipe) in place.
Status writeFile(const std::string &path, const std::vector<ByteSpan> &pieces);

/// The user's folder for what Braid keeps: $BRAID_CACHE_DIR (set to nothing: none), else
/// $XDG_CACHE_HOME/braid, else ~/.cache/braid; empty if there is none.
std::string cacheDirectory();

/// Checks that a file can be created or replaced at `path`, unless the path is empty. Leaves
/// nothing behind.
Status checkWritable(const std::string &path);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_FILES_H
