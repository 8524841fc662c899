//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

#ifdef BRAID_INCLUDE_TESTS
#include "test/lib/Interpreter/Equivalence.h"
#include "test/lib/Schedule/TestPolicy.h"
#include "test/lib/Transforms/TestChannelMaxima.h"
#endif

int main(int argc, char **argv) {
  braid::registerAllPasses();
#ifdef BRAID_INCLUDE_TESTS
  braid::test::registerTestInterpretPass();
  braid::test::registerTestEquivalencePass();
  braid::test::registerTestPolicyPass();
  braid::test::registerTestChannelMaximaPass();
#endif
  mlir::DialectRegistry registry;
  braid::registerAllDialects(registry);
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Braid's optimizer driver\n", registry));
}
