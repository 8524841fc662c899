//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a .npy file. An accepted file is the same after it was written and read.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Npy.h"
#include "Fuzz.h"
#include "braid/Base/HostTensor.h"

using namespace braid::runtime;
using namespace braid::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  folder.put("x.npy", data, size);
  Result<HostTensor> tensor = readNpy(folder.path("x.npy"));
  if (!tensor.ok())
    return 0;
  require(writeNpy(folder.path("y.npy"), *tensor).ok(), "what was read can be written");
  Result<HostTensor> back = readNpy(folder.path("y.npy"));
  require(back.ok(), "what was written can be read");
  require(back->dtype == tensor->dtype && back->shape == tensor->shape &&
              back->data == tensor->data,
          "a tensor is the same after it was written and read");
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned) {
  return LLVMFuzzerMutate(data, size, maxSize); // the header is text: a dictionary is enough
}
