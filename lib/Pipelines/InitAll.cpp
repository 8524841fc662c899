//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/InitAll.h"

#include "braid/Conversion/Passes.h"
#include "braid/Pipelines/Pipelines.h"
#include "braid/Schedule/Passes.h"
#include "braid/Target/CPU/Passes.h"
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/TablePasses.h"
#include "braid/Transforms/UpstreamShardingModels.h"
#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void braid::registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry.insert<comm::CommDialect>();
  registry.insert<nn::NNDialect>();
  registry.insert<rt::RTDialect>();
  registerUpstreamShardingModels(registry);
}

void braid::registerAllPasses() {
  mlir::registerAllPasses();
  cpu::registerCPUPasses();
  cpu::registerPipeline();
  registerBraidPasses();
  registerBraidConversionPasses();
  registerBraidSchedulePasses();
  registerBraidTablePasses();
  registerPipelines();
}
