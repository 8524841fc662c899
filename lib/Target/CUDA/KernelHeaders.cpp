//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Compilers.h"

using namespace braid::cuda;

llvm::ArrayRef<Header> braid::cuda::kernelHeaders() {
  static const Header headers[] = {
#include "KernelHeaders.inc"
  };
  return headers;
}
