//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "braid/Runtime/Doctor.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/raw_ostream.h"

namespace braid::tool {

int runDoctor(bool json) {
  runtime::Diagnosis diagnosis = runtime::diagnose();
  diagnosis.findings.insert(diagnosis.findings.begin(), {"LLVM", runtime::Finding::State::used,
                                                         LLVM_VERSION_STRING, "generates kernels"});
  llvm::outs() << (json ? diagnosis.json() : diagnosis.text());
  llvm::outs().flush();
  return diagnosis.ready() ? kDone : kInvalid;
}

} // namespace braid::tool
