//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What processes of a job know and others do not, and what they prove with it. HMAC-SHA256 shows
// that a frame comes from a process with the secret and was not changed. Nothing is encrypted.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_SECRET_H
#define BRAID_NET_SECRET_H

#include "Wire.h"

#include <string>

namespace braid::runtime::net {

/// The secret of a job; empty when none was given: then frames are protected against errors only.
class JobSecret {
public:
  JobSecret() = default;
  /// At least 16 bytes, or none.
  static Result<JobSecret> fromText(const std::string &text);
  /// The content of a file that only its owner can read, without the end of its last line.
  static Result<JobSecret> fromFile(const std::string &path);
  bool isEmpty() const { return bytes.empty(); }
  const std::string &text() const { return bytes; }

private:
  std::string bytes;
};

/// Bytes that nobody can foretell.
Result<Block> randomBlock();
/// HMAC-SHA256 of a purpose and of parts, each with its length before it.
class Mac {
public:
  Mac(const std::string &key, const std::string &purpose) : key(key) {
    add(purpose.data(), purpose.size());
  }
  Mac &add(const void *data, size_t bytes);
  Mac &add(const Block &block) { return add(block.data(), block.size()); }
  Mac &add(const FrameBytes &frame) { return add(frame.data(), frame.size()); }
  Block value() const;

private:
  std::string key;
  FrameBytes message;
};
/// In a time that does not tell where they differ.
bool areEqual(const Block &a, const Block &b);
/// A key for one purpose.
std::string keyOf(const Block &block);

} // namespace braid::runtime::net
#endif // BRAID_NET_SECRET_H
