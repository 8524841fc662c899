//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Random models with encoded collectives, compiled with codecs in kernels and beside them: the same
// bits in the executor, in the program interpreter and in the interpreter of kernels.
//
//===----------------------------------------------------------------------===//
#include "Compiled.h"
#include "RandomModel.h"
#include "Testing.h"

#include "braid/Target/CUDA/CUDATarget.h"
#include "dialects/RT/IR/RT.h"
#include "test/lib/Interpreter/Equivalence.h"

#include "mlir/Parser/Parser.h"

#include <iostream>

using namespace mlir;
using namespace braid;
using namespace braid::test;

namespace {

constexpr const char *kEncodings[] = {"bf16",       "f16",       "int8:32",
                                      "int4:32",    "int5:64",   "int4:32+spikes",
                                      "int8:128",   "mxfp4",     "int3:32+hadamard16+bf16-scale",
                                      "fp8e4m3:32", "nvfp4",     "int6:32+zero-point",
                                      "mxfp8e5m2",  "fp6e2m3:32"};

struct CodecFusion : DifferentialTest {
  Tally codecs;

  /// The module with its kernels, on tensors, or at the rt level.
  OwningOpRef<ModuleOp> kernelsOf(ModuleOp model, const CompileOptions &options,
                                  KernelTarget target = KernelTarget::CPU,
                                  Level level = Level::Kernels) {
    OwningOpRef<ModuleOp> copy = model.clone();
    PipelineOptions pipeline;
    pipeline.mesh = options.mesh;
    pipeline.strategy = options.strategy;
    pipeline.quantize = options.quantize;
    pipeline.fuseCodecs = options.fuseCodecs;
    pipeline.target = target;
    return succeeded(runPhases(*copy, level, pipeline)) ? std::move(copy) : OwningOpRef<ModuleOp>();
  }

  /// Counts the codecs at the borders of kernels.
  void count(ModuleOp module) {
    for (auto kernel : module.getOps<rt::KernelOp>()) {
      const auto inputs = static_cast<unsigned>(kernel.getArgumentTypes().size());
      for (unsigned i = 0, end = inputs + kernel.getResultTypes().size(); i < end; ++i)
        if (rt::PayloadAttr payload = kernel.getPayload(i))
          ++codecs[i >= inputs ? "encode" : payload.getSenders() ? "decode_sum" : "decode"];
      if (kernel.hasPayloads() && kernel.getBody().front().getOps<linalg::GenericOp>().empty())
        ++codecs["without row operations"];
    }
  }
};

std::vector<std::byte> bitsOf(const std::vector<interp::NamedTensor> &results) {
  std::vector<std::byte> bits;
  for (const interp::NamedTensor &result : results) {
    const runtime::HostTensor host = result.value.toHost();
    bits.insert(bits.end(), host.data.begin(), host.data.end());
  }
  return bits;
}

} // namespace

TEST_F(CodecFusion, GivesTheSameBits) {
  const uint64_t seed = fromEnvironment("BRAID_DIFFERENTIAL_SEED", 20261125);
  const uint64_t cases = fromEnvironment("BRAID_DIFFERENTIAL_CASES", 60);
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << " BRAID_DIFFERENTIAL_CASES=" << cases << "\n";
  for (uint64_t i = 0; i < cases && !HasFailure(); ++i) {
    std::seed_seq sequence{uint32_t(seed), uint32_t(seed >> 32), uint32_t(i), 10U};
    Random random(sequence);
    RandomModel model;
    do {
      ModelKind kind{/*encoder=*/random() % 4 == 0, ModelKind::Strategy};
      kind.anyRows = true;
      model = drawModel(random, kind);
    } while (model.tp == 1 || model.strategy.find("tp") == std::string::npos);
    const std::string text = buildModule(model, random);
    const std::string first = kEncodings[random() % std::size(kEncodings)],
                      second = kEncodings[random() % std::size(kEncodings)];
    SCOPED_TRACE("case " + std::to_string(i) + ": " + model.describe() + ", " + first + "/" +
                 second + "\n" + text);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    runtime::Result<std::vector<interp::NamedTensor>> inputs = randomInputs(*module, seed + i);
    ASSERT_TRUE(inputs.ok()) << inputs.status().message();
    LargeWeights weights(seed + i);
    CompileOptions options;
    options.strategy = model.strategy;
    options.mesh = model.mesh();
    options.quantize = "*=" + first + "/" + second;
    OwningOpRef<ModuleOp> fused = kernelsOf(*module, options);
    ASSERT_TRUE(fused);
    count(*fused);
    // A GPU has the same kernels, whose rows are not too long.
    OwningOpRef<ModuleOp> forCUDA = kernelsOf(*module, options, KernelTarget::CUDA, Level::RT);
    ASSERT_TRUE(forCUDA);
    auto areCoded = [](rt::KernelOp kernel) { return kernel.hasPayloads(); };
    ASSERT_EQ(llvm::count_if(forCUDA->getOps<rt::KernelOp>(), areCoded),
              llvm::count_if(fused->getOps<rt::KernelOp>(), areCoded));
    FailureOr<CUDASource> source = emitCUDA(*forCUDA);
    ASSERT_TRUE(succeeded(source));
    for (const char *call : {"codec::encode_rows<", "codec::decode_row<"})
      codecs["in CUDA"] += StringRef(source->text).count(call);
    runtime::Result<CompiledRun> together =
        compileAndRun(*module, options, *inputs, weights, /*orders=*/2);
    ASSERT_TRUE(together.ok()) << together.status().message();
    options.fuseCodecs = false;
    runtime::Result<CompiledRun> apart =
        compileAndRun(*module, options, *inputs, weights, /*orders=*/2);
    ASSERT_TRUE(apart.ok()) << apart.status().message();
    ASSERT_TRUE(bitsOf(together->results) == bitsOf(apart->results));
    ASSERT_TRUE(bitsOf(together->resultsInOrders) == bitsOf(apart->resultsInOrders));

    OwningOpRef<ModuleOp> unfused = kernelsOf(*module, options);
    ASSERT_TRUE(unfused);
    runtime::Result<Equivalence> interpreted = compareForms(*unfused, *fused, *inputs, weights);
    ASSERT_TRUE(interpreted.ok()) << interpreted.status().message();
    ASSERT_EQ(interpreted->relativeL2, 0);
  }
  print("codecs in kernels:", codecs);
  if (isDefaultSize())
    for (const char *name : {"encode", "decode", "decode_sum", "without row operations", "in CUDA"})
      EXPECT_GE(codecs[name], 20U) << name;
}
