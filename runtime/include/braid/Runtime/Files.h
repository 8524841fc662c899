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

/// Writes to a temporary file beside a path and renames it to the path, so that a failure leaves
/// neither a partial file nor a damaged older one. Follows symbolic links; writes to anything but a
/// regular file (/dev/null, a pipe) in place.
class FileWriter {
public:
  FileWriter() = default;
  FileWriter(const FileWriter &) = delete;
  FileWriter &operator=(const FileWriter &) = delete;
  /// Without a commit before, nothing is left.
  ~FileWriter();
  Status create(const std::string &path);
  Status append(ByteSpan piece);
  Status append(const std::string &text) { return append(ByteSpan{text.data(), text.size()}); }
  Status commit();

private:
  std::string path, target, temporary; ///< as given, where it leads, and where it is written
  int file = -1;
};

/// Writes the pieces one after another, as FileWriter does.
Status writeFile(const std::string &path, const std::vector<ByteSpan> &pieces);

/// The user's folder for what Braid keeps: $BRAID_CACHE_DIR (set to nothing: none), else
/// $XDG_CACHE_HOME/braid, else ~/.cache/braid; empty if there is none.
std::string cacheDirectory();

/// Checks that a file can be created or replaced at `path`, unless the path is empty. Leaves
/// nothing behind.
Status checkWritable(const std::string &path);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_FILES_H
