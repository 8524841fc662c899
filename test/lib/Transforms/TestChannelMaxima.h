//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_LIB_TRANSFORMS_TESTCHANNELMAXIMA_H
#define BRAID_TEST_LIB_TRANSFORMS_TESTCHANNELMAXIMA_H

namespace braid::test {
void registerTestChannelMaximaPass();
} // namespace braid::test

#endif // BRAID_TEST_LIB_TRANSFORMS_TESTCHANNELMAXIMA_H
