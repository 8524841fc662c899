//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TRANSFORMS_TABLEPASSES_H
#define BRAID_TRANSFORMS_TABLEPASSES_H

#include "dialects/Comm/IR/Comm.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace braid {

/// In place of a list of encodings: they are chosen when the program is loaded.
constexpr llvm::StringLiteral kEncodingTable = "table";

/// Why a collective is not in the table; empty if it is.
std::string tableObstacle(comm::CollectiveOpInterface op);

#define GEN_PASS_DECL
#include "braid/Transforms/TablePasses.h.inc"

#define GEN_PASS_REGISTRATION
#include "braid/Transforms/TablePasses.h.inc"

} // namespace braid
#endif // BRAID_TRANSFORMS_TABLEPASSES_H
