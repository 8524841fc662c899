//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The arithmetic of kernels, by classes of operations that cost about the same.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_KERNELWORK_H
#define BRAID_COST_KERNELWORK_H

#include "dialects/Comm/IR/SaturatingCount.h"
#include "dialects/RT/IR/RT.h"

#include "llvm/ADT/MapVector.h"

namespace braid {

/// Counts by class, in the order in which the kernel first uses them.
using KernelWork = llvm::MapVector<llvm::StringRef, SaturatingCount>;

/// What a kernel computes on a number of rows: each arithmetic operation on an element counts as
/// one. Classes are "divide" (divisions, remainders and square roots), "reduce" (of what combines
/// the elements of a row), a function of the math dialect by its name ("exp"), and "simple", which
/// is everything else. Constants, casts and indices are free. Of a kernel that is written by hand
/// all FLOPs that it states are simple; of the library's kernels there is none
/// (braid/Base/LibraryKernels.h counts theirs).
KernelWork kernelWork(rt::KernelOp kernel, int64_t rows);

} // namespace braid
#endif // BRAID_COST_KERNELWORK_H
