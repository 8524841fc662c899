//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Program.h"

#include "Support.h"
#include "braid/Runtime/program_generated.h"

namespace braid::runtime {

Status verifyProgram(const Bytes &bytes, const Manifest &manifest) {
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return Status::error("expects a program of less than 2 GiB, got " +
                         std::to_string(bytes.size()) + " bytes");
  constexpr unsigned kMaxDepth = 16, kMaxTables = 1 << 24;
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
                                 kMaxDepth, kMaxTables);
  if (!program::VerifyProgramBuffer(verifier))
    return Status::error("not a Braid program, or a damaged one");
  return {};
}

} // namespace braid::runtime
