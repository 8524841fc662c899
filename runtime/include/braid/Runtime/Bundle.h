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

struct BundleContents {
  Manifest manifest;
  std::map<std::string, Bytes> members; ///< without manifest.json
};

/// Verified when it is made, and immutable: whoever holds a bundle need not check it again.
class Bundle {
public:
  /// Checks the manifest, that exactly the members it lists are present, the launch tables, and the
  /// program by the FlatBuffers verifier and by verifyProgram (Program.h).
  static Result<Bundle> create(BundleContents contents);
  /// Both check the archive's structure and the SHA-256 of each member as well. Members are the
  /// only copy that they make of the file or the memory.
  static Result<Bundle> read(const std::string &path);
  static Result<Bundle> parse(const void *archive, size_t bytes,
                              const std::string &nameForMessages);

  const Manifest &manifest() const { return contents.manifest; }
  const std::map<std::string, Bytes> &members() const { return contents.members; }
  const Bytes &program() const { return members().at(manifest().programMember); }
  const Bytes *find(const std::string &member) const;
  /// A copy, to make another bundle from.
  BundleContents copyContents() const { return contents; }

  /// Equal bundles give equal bytes: members stand in order of their names, without time stamps.
  Result<Bytes> serialize() const;
  /// Through a temporary file and a rename: a failed write leaves nothing behind.
  Status write(const std::string &path) const;

private:
  explicit Bundle(BundleContents contents) : contents(std::move(contents)) {}

  BundleContents contents;
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_BUNDLE_H
