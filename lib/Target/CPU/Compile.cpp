//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Target/CPU/CPUTarget.h"

#include "Linker.h"

#include "braid/Target/CPU/Passes.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;
using namespace braid;
using namespace braid::cpu;

namespace {
/// A module of copies of the kernels, in the LLVM dialect.
FailureOr<OwningOpRef<ModuleOp>> lowerKernels(ModuleOp module) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  context->appendDialectRegistry(registry);

  OwningOpRef<ModuleOp> kernels = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(kernels->getBody());
  for (auto kernel : module.getOps<rt::KernelOp>())
    if (!kernel.getLibrary())
      builder.clone(*kernel);
  PassManager pm(context);
  pm.enableVerifier(false);
  buildPipeline(pm, PipelineOptions());
  if (failed(pm.run(*kernels)) || failed(verify(*kernels)))
    return failure();
  return kernels;
}

FailureOr<std::unique_ptr<llvm::TargetMachine>> targetMachine(const CPUInstructionSet &isa,
                                                              Location loc) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  llvm::Triple triple(isa.triple);
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return emitError(loc) << "cannot generate code for " << isa.triple << ": " << message;
  llvm::TargetOptions options;
  options.FunctionSections = true; // checkSelfContained distinguishes kernels by them.
  std::string features;
  for (const std::string &feature : isa.features)
    features += (features.empty() ? "+" : ",+") + feature;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, isa.level, features, options, llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// The kernels as LLVM IR optimized for the machine.
FailureOr<std::unique_ptr<llvm::Module>> optimize(ModuleOp kernels, const CPUInstructionSet &isa,
                                                  llvm::TargetMachine &machine,
                                                  llvm::LLVMContext &context) {
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(kernels, context, "kernels");
  if (!module)
    return kernels.emitError("cannot translate kernels to LLVM IR");
  module->setTargetTriple(machine.getTargetTriple());
  module->setDataLayout(machine.createDataLayout());
  for (llvm::Function &function : *module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("tune-cpu", isa.tune);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }

  llvm::PipelineTuningOptions tuning;
  // The loops are vectorized already; LLVM's vectorizer would cost time and, by unrolling entire
  // rows, spill.
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(*module, modules);
  return module;
}

/// Runs `action` on the optimized kernels for each instruction set.
LogicalResult
forEachInstructionSet(ModuleOp module, const CPUTargetOptions &options,
                      llvm::function_ref<LogicalResult(const CPUInstructionSet &,
                                                       llvm::TargetMachine &, llvm::Module &)>
                          action) {
  // Names are checked first.
  std::vector<CPUInstructionSet> isas;
  for (const std::string &name : options.isas) {
    FailureOr<CPUInstructionSet> isa = resolveInstructionSet(name, module.getLoc());
    if (failed(isa))
      return failure();
    if (llvm::none_of(isas,
                      [&](const CPUInstructionSet &other) { return other.name == isa->name; }))
      isas.push_back(std::move(*isa));
  }
  FailureOr<OwningOpRef<ModuleOp>> kernels = lowerKernels(module);
  if (failed(kernels))
    return failure();
  for (const CPUInstructionSet &isa : isas) {
    FailureOr<std::unique_ptr<llvm::TargetMachine>> machine = targetMachine(isa, module.getLoc());
    if (failed(machine))
      return failure();
    llvm::LLVMContext context;
    FailureOr<std::unique_ptr<llvm::Module>> optimized =
        optimize(**kernels, isa, **machine, context);
    if (failed(optimized) || failed(action(isa, **machine, **optimized)))
      return failure();
  }
  return success();
}
} // namespace

FailureOr<std::vector<CPUKernelLibrary>>
braid::compileKernelsForCPU(ModuleOp module, const CPUTargetOptions &options) {
  llvm::StringSet<> library;
  for (auto kernel : module.getOps<rt::KernelOp>())
    if (std::optional<StringRef> symbol = kernel.getLibrarySymbol())
      library.insert(*symbol);
  // Unless a kernel calls them, a bundle does not depend on the registered dialects.
  SmallVector<CPUKernelArchive> archives;
  if (!library.empty())
    for (Dialect *dialect : module.getContext()->getLoadedDialects())
      if (const auto *provider = dialect->getRegisteredInterface<CPUKernelProvider>())
        archives.push_back(provider->getKernels());
  if (!library.empty() && archives.empty())
    return module.emitError("expects a dialect that provides kernels, for '")
           << library.begin()->first() << "'";

  std::vector<CPUKernelLibrary> libraries;
  auto compile = [&](const CPUInstructionSet &isa, llvm::TargetMachine &machine,
                     llvm::Module &kernels) -> LogicalResult {
    SmallVector<char, 0> object;
    llvm::raw_svector_ostream stream(object);
    llvm::legacy::PassManager codegen;
    if (machine.addPassesToEmitFile(codegen, stream, nullptr, llvm::CodeGenFileType::ObjectFile))
      return module.emitError("cannot emit object files for ") << isa.triple;
    codegen.run(kernels);
    StringRef bytes(object.data(), object.size());
    if (failed(checkSelfContained(bytes, library, module.getLoc())))
      return failure();
    FailureOr<std::vector<std::byte>> linked = linkSharedLibrary(bytes, archives, module.getLoc());
    if (failed(linked))
      return failure();
    libraries.push_back({isa, std::move(*linked)});
    return success();
  };
  if (failed(forEachInstructionSet(module, options, compile)))
    return failure();
  return libraries;
}

LogicalResult braid::emitLLVMForCPU(ModuleOp module, const CPUTargetOptions &options,
                                    llvm::raw_ostream &os) {
  return forEachInstructionSet(
      module, options,
      [&](const CPUInstructionSet &isa, llvm::TargetMachine &, llvm::Module &kernels) {
        os << "; " << isa.name << "\n";
        kernels.print(os, nullptr);
        return success();
      });
}
