//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Mutations that keep a program valid by the schema. Random byte mutations hardly ever do.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_FUZZ_PROGRAMMUTATOR_H
#define BRAID_TEST_FUZZ_PROGRAMMUTATOR_H

#include "Fuzz.h"
#include "ProgramInput.h"

namespace braid::fuzz {

/// Mutates a few fields, views or commands. Other input is mutated as bytes.
runtime::Bytes mutateProgram(const runtime::Bytes &program, Random &random);

/// Replaces one extent everywhere, in manifest and program, so that they still agree.
void mutateExtent(ProgramInput &input, Random &random);

} // namespace braid::fuzz
#endif // BRAID_TEST_FUZZ_PROGRAMMUTATOR_H
