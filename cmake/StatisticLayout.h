//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Read in front of everything else where code with assertions meets a libMLIR without.
//
// llvm/ADT/Statistic.h gives llvm::Statistic counters or none by whether NDEBUG is defined where it
// is read, and so mlir::Pass::Statistic, whose constructor is in libMLIR, a layout that libMLIR may
// not share: the members behind the counter would stay uninitialized. Here it is read as libMLIR
// has read it.
//
//===----------------------------------------------------------------------===//

#ifndef BRAID_CMAKE_STATISTICLAYOUT_H
#define BRAID_CMAKE_STATISTICLAYOUT_H

#ifdef LLVM_ADT_STATISTIC_H
#error "llvm/ADT/Statistic.h was read before its layout could be chosen"
#endif
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
// What <cassert> means changes with NDEBUG wherever it is read.
#include <cassert>

#endif // BRAID_CMAKE_STATISTICLAYOUT_H
