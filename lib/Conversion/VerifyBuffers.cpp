//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Conversion/BufferCheck.h"
#include "braid/Conversion/Passes.h"

namespace braid {
#define GEN_PASS_DEF_VERIFYBUFFERS
#include "braid/Conversion/Passes.h.inc"

namespace {

struct VerifyBuffers : impl::VerifyBuffersBase<VerifyBuffers> {
  void runOnOperation() override {
    for (auto procedure : getOperation().getOps<rt::ProcedureOp>())
      if (failed(checkBuffers(procedure)))
        signalPassFailure();
  }
};

} // namespace
} // namespace braid
