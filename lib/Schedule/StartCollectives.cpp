//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Schedule/Passes.h"
#include "braid/Schedule/Placement.h"

namespace braid {
#define GEN_PASS_DEF_STARTCOLLECTIVES
#include "braid/Schedule/Passes.h.inc"

namespace {
struct StartCollectives : impl::StartCollectivesBase<StartCollectives> {
  using Base::Base;

  void runOnOperation() override {
    std::unique_ptr<schedule::PlacementPolicy> chosen = schedule::findPolicy(policy);
    if (!chosen) {
      getOperation().emitError("expects policy 'eager', got '") << policy << "'";
      return signalPassFailure();
    }
    mlir::FailureOr<unsigned> number = schedule::placeCollectives(getOperation(), *chosen);
    if (mlir::failed(number))
      return signalPassFailure();
    numStarted += *number;
  }
};
} // namespace
} // namespace braid
