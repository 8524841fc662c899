//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_CONVERSION_PASSES_H
#define BRAID_CONVERSION_PASSES_H

#include "braid/Analysis/CodecFusion.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace braid {

#define GEN_PASS_DECL
#include "braid/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "braid/Conversion/Passes.h.inc"

} // namespace braid
#endif // BRAID_CONVERSION_PASSES_H
