//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs a bundle. Links only the runtime, not the compiler.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/RunOptions.h"

int main(int argc, char **argv) {
  braid::runtime::RunHooks hooks;
  return braid::runtime::runMain(argc, argv, hooks);
}
