//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The .braid file: a ZIP archive whose members are stored uncompressed and 64-byte aligned.
//   manifest.json     Manifest.h, with the SHA-256 of every other member
//   program.brpg      FlatBuffers, runtime/program.fbs
//   module.mlirbc     the module that was compiled (optional)
//   kernels/<target>-<triple>-<isa>/kernels.so
//   cuda-<architecture>/kernels.{cubin,json,cu}   CudaKernels.h
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_BUNDLE_H
#define BRAID_RUNTIME_BUNDLE_H

#include "braid/Program/Manifest.h"
#include "braid/Runtime/Files.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace braid::runtime {

struct Bundle {
  Manifest manifest;
  std::map<std::string, Bytes> members; ///< without manifest.json

  const Bytes *find(const std::string &member) const;
  /// Reads and checks everything: archive structure, manifest, presence and SHA-256 of each member,
  /// and the program by the FlatBuffers verifier and by verifyProgram (Program.h).
  static Result<Bundle> read(const std::string &path);
  static Result<Bundle> parse(const Bytes &archive, const std::string &nameForMessages);
  /// Checks the same as reading does. Equal bundles give equal bytes: members stand in order of
  /// their names, without time stamps.
  Result<Bytes> serialize() const;
  /// Through a temporary file and a rename: a failed write leaves nothing behind.
  Status write(const std::string &path) const;
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_BUNDLE_H
