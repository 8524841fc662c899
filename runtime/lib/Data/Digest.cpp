//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Digest.h"

#include <openssl/evp.h>

namespace braid::runtime {

std::string sha256(const void *data, size_t size) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(data, size, digest, &length, EVP_sha256(), nullptr) != 1)
    return {};
  std::string text;
  for (unsigned i = 0; i < length; ++i) {
    constexpr char kHex[] = "0123456789abcdef";
    text += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  }
  return text;
}

} // namespace braid::runtime
