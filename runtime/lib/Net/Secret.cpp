//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Secret.h"
#include "braid/Base/StatusMacros.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::runtime::net {

constexpr size_t kMinBytes = 16, kMaxBytes = 4096;

Result<JobSecret> JobSecret::fromText(const std::string &text) {
  if ((text.size() < kMinBytes && !text.empty()) || text.size() > kMaxBytes)
    return Status::error("a job secret expects ", kMinBytes, " to ", kMaxBytes, " bytes, got ",
                         text.size());
  JobSecret secret;
  secret.bytes = text;
  return secret;
}

Result<JobSecret> JobSecret::fromFile(const std::string &path) {
  const std::string where = "the file of the job secret '" + path + "'";
  // Opening a pipe would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    return Status::error("cannot open ", where, ": ", std::strerror(errno));
  struct stat info{};
  std::string text(kMaxBytes + 2, '\0');
  const bool known = fstat(file, &info) == 0;
  const bool isPrivate = known && S_ISREG(info.st_mode) && (info.st_mode & 077) == 0;
  const ssize_t got = isPrivate ? read(file, text.data(), text.size()) : 0;
  const int error = errno;
  close(file);
  if (!known || got < 0)
    return Status::error("cannot read ", where, ": ", std::strerror(error));
  if (!isPrivate)
    return Status::error(where, " expects to be a file that only its owner can use (chmod 600)");
  text.resize(static_cast<size_t>(got));
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (text.empty())
    return Status::error(where, " is empty");
  return fromText(text).within(where);
}

Result<Block> randomBlock() {
  Block block{};
  // So few bytes come at once or not at all.
  if (getrandom(block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()))
    return Status::error("the system gives no random bytes: ", std::strerror(errno));
  return block;
}

Mac &Mac::add(const void *data, size_t bytes) {
  for (size_t i = 0; i < 8; ++i)
    message.push_back(static_cast<std::byte>(static_cast<uint64_t>(bytes) >> (8 * i) & 0xff));
  const auto *begin = static_cast<const std::byte *>(data);
  message.insert(message.end(), begin, begin + bytes);
  return *this;
}

Block Mac::value() const {
  Block block{};
  unsigned length = 0;
  // It fails only where memory is short; a value that nobody else has makes the check fail.
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
            reinterpret_cast<const unsigned char *>(message.data()), message.size(),
            reinterpret_cast<unsigned char *>(block.data()), &length) ||
      length != block.size())
    (void)!getrandom(block.data(), block.size(), 0);
  return block;
}

bool areEqual(const Block &a, const Block &b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string keyOf(const Block &block) {
  return {reinterpret_cast<const char *>(block.data()), block.size()};
}

} // namespace braid::runtime::net
