//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_SCHEDULE_PASSES_H
#define BRAID_SCHEDULE_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace braid {

#define GEN_PASS_DECL
#include "braid/Schedule/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "braid/Schedule/Passes.h.inc"

} // namespace braid
#endif // BRAID_SCHEDULE_PASSES_H
