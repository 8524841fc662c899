//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parameters from checkpoints in Hugging Face's format.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_SAFETENSORS_H
#define BRAID_RUNTIME_SAFETENSORS_H

#include "braid/Base/Weights.h"

namespace braid::runtime {

/// Opens a .safetensors file, the .json index of a checkpoint in several files, or a directory that
/// holds model.safetensors or model.safetensors.index.json. The whole header of every file is
/// validated here: length, JSON, types, offsets (in range, no overlap, no gap), so that later reads
/// cannot go outside of the file; and an index names tensors that are there.
Result<std::unique_ptr<WeightSource>> openSafetensors(const std::string &path);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_SAFETENSORS_H
