//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole files in and out of memory, with messages that name the path.
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

/// A piece of what is written; the memory belongs to the caller.
struct ByteSpan {
  const void *data = nullptr;
  size_t size = 0;
};

/// Writes the pieces one after another to a temporary file beside `path` and renames it to `path`,
/// so that a failure leaves neither a partial file nor a damaged older one. A symbolic link is
/// followed; what is not a regular file (/dev/null, a pipe) is written in
/// place.
Status writeFile(const std::string &path, const std::vector<ByteSpan> &pieces);

/// Whether a file can be created at `path` (or replaced there); an empty path is no file. Leaves
/// nothing behind.
Status checkWritable(const std::string &path);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_FILES_H
