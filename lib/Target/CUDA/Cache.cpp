//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Compilers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace braid;
using namespace braid::cuda;

// An entry: a magic number, the SHA-256 of all that follows, the size of the log, log, code.
static constexpr llvm::StringLiteral kMagic = "BRAIDCU1";
static constexpr size_t kDigest = 32, kHead = kMagic.size() + kDigest;

static std::array<uint8_t, kDigest> digestOf(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::SHA256 hash;
  for (llvm::StringRef part : parts)
    hash.update(part);
  return hash.final();
}

std::string Cache::key(llvm::ArrayRef<llvm::StringRef> parts) {
  llvm::SHA256 hash;
  for (llvm::StringRef part : parts) {
    // With its size, so that different lists never have the same text.
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  std::array<uint8_t, kDigest> digest = hash.final();
  return llvm::toHex(llvm::ArrayRef<uint8_t>(digest), /*LowerCase=*/true);
}

bool Cache::read(const std::string &key, Compiled &compiled) const {
  runtime::Result<runtime::Bytes> bytes = runtime::readFile(path(key));
  if (!bytes.ok())
    return false;
  llvm::StringRef text(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  if (!text.starts_with(kMagic) || text.size() < kHead + sizeof(uint64_t))
    return false;
  llvm::StringRef digest = text.substr(kMagic.size(), kDigest), rest = text.drop_front(kHead);
  std::array<uint8_t, kDigest> expected = digestOf(rest);
  if (digest != llvm::StringRef(reinterpret_cast<const char *>(expected.data()), kDigest))
    return false;
  uint64_t size = llvm::support::endian::read64le(rest.data());
  rest = rest.drop_front(sizeof(uint64_t));
  if (size > rest.size())
    return false;
  compiled.log = rest.take_front(size).str();
  const auto *code = reinterpret_cast<const std::byte *>(rest.data());
  compiled.cubin.assign(code + size, code + rest.size());
  return true;
}

runtime::Status Cache::write(const std::string &key, const Compiled &compiled) const {
  std::string file = path(key);
  llvm::StringRef folder = llvm::sys::path::parent_path(file);
  if (std::error_code error = llvm::sys::fs::create_directories(folder))
    return runtime::Status::error("cannot create '" + folder.str() + "': " + error.message());
  char size[sizeof(uint64_t)];
  llvm::support::endian::write64le(size, compiled.log.size());
  llvm::StringRef code(reinterpret_cast<const char *>(compiled.cubin.data()),
                       compiled.cubin.size());
  std::array<uint8_t, kDigest> digest =
      digestOf({llvm::StringRef(size, sizeof(size)), compiled.log, code});
  return runtime::writeFile(file, {{kMagic.bytes_begin(), kMagic.size()},
                                   {digest.data(), digest.size()},
                                   {size, sizeof(size)},
                                   {compiled.log.data(), compiled.log.size()},
                                   {code.bytes_begin(), code.size()}});
}
