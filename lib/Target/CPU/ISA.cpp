//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CPU/CPUTarget.h"

#include "mlir/IR/Diagnostics.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <set>

using namespace mlir;
using namespace braid;

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

namespace {
std::set<std::string> featuresOf(StringRef cpu) {
  SmallVector<StringRef> names;
  llvm::X86::getFeaturesForCPU(cpu, names);
  std::set<std::string> features;
  for (StringRef name : names) {
    llvm::StringMap<bool> implied;
    llvm::X86::updateImpliedFeatures(name, /*Enabled=*/true, implied);
    features.insert(name.str());
    for (const auto &entry : implied)
      features.insert(entry.first().str());
  }
  // Every 64-bit processor has these features.
  features.erase("x87");
  return features;
}

/// The highest x86-64 level all of whose features this machine has.
StringRef hostLevel(const llvm::StringMap<bool> &host) {
  for (StringRef level : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    if (llvm::all_of(featuresOf(level), [&](const std::string &name) { return host.lookup(name); }))
      return level;
  return "x86-64";
}

CPUInstructionSet hostISA() {
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  CPUInstructionSet isa;
  isa.name = isa.tune = llvm::sys::getHostCPUName().str();
  isa.triple = kTriple.str();
  isa.level = hostLevel(host).str();
  // Beyond the level only vector arithmetic: a bundle then requires few features that it does not
  // use, and a processor's name would imply features that a virtual machine may hide.
  std::set<std::string> features = featuresOf(isa.level);
  for (StringRef name : {"avx512bf16", "avx512fp16", "avx512vnni", "avxvnni"})
    if (host.lookup(name))
      features.insert(name.str());
  isa.features.assign(features.begin(), features.end());
  return isa;
}
} // namespace

FailureOr<CPUInstructionSet> braid::resolveInstructionSet(StringRef name, Location loc) {
  llvm::Triple process(llvm::sys::getProcessTriple());
  if (name == "host") {
    if (process.getArch() != llvm::Triple::x86_64)
      return emitError(loc) << "instruction set 'host' expects an x86-64 machine, got "
                            << process.str();
    return hostISA();
  }
  SmallVector<StringRef> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (!llvm::is_contained(known, name))
    return emitError(loc) << "unknown instruction set '" << name
                          << "'; expects 'host', a level such as 'x86-64-v3' or the name of an "
                             "x86-64 processor",
           failure();
  CPUInstructionSet isa;
  isa.name = isa.level = name.str();
  isa.triple = kTriple.str();
  isa.tune = name.starts_with("x86-64") ? "generic" : isa.name;
  std::set<std::string> features = featuresOf(name);
  isa.features.assign(features.begin(), features.end());
  return isa;
}
