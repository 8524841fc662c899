//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/RuleNames.h"
#include "braid/Conversion/BufferCheck.h"
#include "braid/Conversion/Passes.h"

#include "llvm/ADT/StringSwitch.h"

namespace braid {
#define GEN_PASS_DEF_VERIFYBUFFERS
#include "braid/Conversion/Passes.h.inc"

namespace {

struct VerifyBuffers : impl::VerifyBuffersBase<VerifyBuffers> {
  using VerifyBuffersBase::VerifyBuffersBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    mlir::FailureOr<llvm::SmallVector<BufferRule>> rules =
        findRules(getOperation(), skip, "buffers", symbolizeBufferRule);
    if (failed(rules))
      return signalPassFailure();
    for (auto procedure : getOperation().getOps<rt::ProcedureOp>())
      if (failed(checkBuffers(procedure, *rules)))
        signalPassFailure();
  }
};

} // namespace

std::optional<BufferRule> symbolizeBufferRule(llvm::StringRef name) {
  return llvm::StringSwitch<std::optional<BufferRule>>(name)
      .Case("frame", BufferRule::Frame)
      .Case("events", BufferRule::Events)
      .Case("arguments", BufferRule::Arguments)
      .Case("once", BufferRule::Once)
      .Case("in-place", BufferRule::InPlace)
      .Case("race", BufferRule::Race)
      .Case("unwritten", BufferRule::Unwritten)
      .Case("result", BufferRule::Result)
      .Case("joined", BufferRule::Joined)
      .Case("sharing", BufferRule::Sharing)
      .Default(std::nullopt);
}

} // namespace braid
