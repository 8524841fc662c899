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

/// A verified and immutable bundle: its users need no checks of their own.
class Bundle {
public:
  /// Verifies the manifest, that exactly its members are present, the launch tables, and the
  /// program (verifyProgram).
  static Result<Bundle> create(BundleContents contents);
  /// Both also check the archive's structure and the SHA-256 of each member. They copy each member
  /// once, and the archive not at all.
  static Result<Bundle> read(const std::string &path);
  static Result<Bundle> parse(const void *archive, size_t bytes,
                              const std::string &nameForMessages);

  const Manifest &manifest() const { return contents.manifest; }
  const std::map<std::string, Bytes> &members() const { return contents.members; }
  const Bytes &program() const { return members().at(manifest().programMember); }
  const Bytes *find(const std::string &member) const;
  /// A copy of the contents, for making another bundle.
  BundleContents copyContents() const { return contents; }

  /// Equal bundles give equal bytes: members are in the order of their names, without time stamps.
  Result<Bytes> serialize() const;
  /// Through a temporary file and a rename: a failed write leaves nothing behind.
  Status write(const std::string &path) const;

private:
  explicit Bundle(BundleContents contents) : contents(std::move(contents)) {}

  BundleContents contents;
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_BUNDLE_H
