//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tensors as .npy files.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_NPY_H
#define BRAID_RUNTIME_NPY_H

#include "braid/Base/HostTensor.h"

namespace braid::runtime {

/// Reads format versions 1 to 3, C order and Fortran order, little endian f2 f4 f8 i1 i4 i8 (and
/// bool as i8).
Result<HostTensor> readNpy(const std::string &path);
/// Writes through a temporary file beside `path` and renames it, so that no partial file is left.
/// bf16 has no NumPy type: written as f4.
Status writeNpy(const std::string &path, const HostTensor &tensor);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_NPY_H
