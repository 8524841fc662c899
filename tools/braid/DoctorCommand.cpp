//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "braid/Runtime/Doctor.h"
#include "braid/Target/CUDA/CUDACompiler.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

namespace braid::tool {

/// The compilers for GPUs, which concern this tool and not the runtime.
static runtime::Finding findCUDACompiler() {
  std::string searched, found = describeCUDACompiler(searched);
  if (!found.empty())
    return {"CUDA compiler", runtime::Finding::State::used, found, "compiles kernels for GPUs"};
  return {"CUDA compiler", runtime::Finding::State::absent, "no libnvrtc.so.13, no nvcc",
          "--target cuda makes no bundles"};
}

int runDoctor(bool json) {
  runtime::Diagnosis diagnosis = runtime::diagnose();
  diagnosis.findings.insert(diagnosis.findings.begin(), {"LLVM", runtime::Finding::State::used,
                                                         LLVM_VERSION_STRING, "generates kernels"});
  diagnosis.findings.push_back(findCUDACompiler());
  llvm::outs() << (json ? diagnosis.json() : diagnosis.text());
  llvm::outs().flush();
  return diagnosis.ready() ? kDone : kInvalid;
}

} // namespace braid::tool
