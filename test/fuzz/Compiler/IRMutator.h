//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Mutates a module's text by lines and words, so that many results still parse.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_IRMUTATOR_H
#define BRAID_TEST_FUZZ_IRMUTATOR_H

#include "../Fuzz.h"

namespace braid::fuzz {

constexpr char kPipelinePrefix[] = "// pipeline: ";

std::string mutateIR(const std::string &text, Random &random);
/// Combines lines of both modules.
std::string crossIR(const std::string &first, const std::string &second, Random &random);

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_IRMUTATOR_H
