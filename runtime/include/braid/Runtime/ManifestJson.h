//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_MANIFESTJSON_H
#define BRAID_RUNTIME_MANIFESTJSON_H

#include "braid/Program/Manifest.h"

#include <map>

namespace braid::runtime {

/// Member -> SHA-256 in lower-case hexadecimal.
using Digests = std::map<std::string, std::string>;

/// manifest.json of a bundle: the manifest and, unless `digests` is null, the field "sha256". Text
/// that is not UTF-8 is an error.
Result<std::string> manifestToJson(const Manifest &manifest, const Digests *digests);
/// The same without the field "sha256"; replaces text that is not UTF-8.
std::string toJson(const Manifest &manifest);
/// Checks the form strictly (types, missing and unknown fields, duplicates) and then as
/// Manifest::verify does. The field "sha256" may be missing; `digests`, unless null, receives it.
Result<Manifest> manifestFromJson(const std::string &text, Digests *digests = nullptr);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_MANIFESTJSON_H
