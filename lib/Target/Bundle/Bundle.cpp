//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/Bundle/Bundle.h"

using namespace mlir;
using namespace braid;

FailureOr<runtime::BundleContents> braid::buildBundle(ModuleOp module,
                                                      ArrayRef<CPUKernelLibrary> libraries,
                                                      runtime::Bytes moduleBytecode) {
  FailureOr<runtime::Manifest> manifest = buildManifest(module);
  FailureOr<runtime::Bytes> program = buildProgram(module);
  if (failed(manifest) || failed(program))
    return failure();

  runtime::BundleContents bundle;
  for (const CPUKernelLibrary &library : libraries) {
    runtime::KernelLibrary entry;
    entry.target = "cpu";
    entry.triple = library.isa.triple;
    entry.isa = library.isa.name;
    entry.features = library.isa.features;
    entry.member = "kernels/cpu-" + entry.triple + "-" + entry.isa + "/kernels.so";
    bundle.members[entry.member] = library.bytes;
    manifest->kernels.push_back(std::move(entry));
  }
  if (!moduleBytecode.empty()) {
    manifest->moduleMember = "module.mlirbc";
    bundle.members[manifest->moduleMember] = std::move(moduleBytecode);
  }
  bundle.members[manifest->programMember] = std::move(*program);
  bundle.manifest = std::move(*manifest);
  return bundle;
}
