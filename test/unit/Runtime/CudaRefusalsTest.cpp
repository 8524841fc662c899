//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Errors of a program, its launch table or the machine are detected and named.
//
//===----------------------------------------------------------------------===//
#include "CudaPrograms.h"
#include "NullDeviceTesting.h"
#include "Paths.h"
#include "runtime/lib/Cuda/Kernels.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;

namespace {

/// Runs feedForward(1, 2) after a change to its layer's procedure.
template <typename Change>
Status runChanged(Change change, const WorldOptions &options = onNullDevice()) {
  ProgramBuilder builder = feedForward(1, 2);
  change(*builder.program.procedures[1]);
  auto session = cudaSession(builder, options);
  if (!session.ok())
    return session.status();
  Status status = (*session)->loadWeights(*WeightSource::random(7));
  std::vector<float> x = randomValues(kBatch * kHidden, 1);
  if (status.ok())
    status = (*session)->setInput("x", f32, {kBatch, kHidden}, x.data());
  return status.ok() ? (*session)->run() : status;
}

template <typename Op, typename Commands> void eraseFirst(Commands &commands) {
  for (auto it = commands.begin(); it != commands.end(); ++it)
    if ((*it)->op.type == fb::OperationUnionTraits<Op>::enum_value) {
      commands.erase(it);
      return;
    }
  FAIL() << "there is no such command";
}

/// Rounding these sizes up, or multiplying them by the number of ranks, overflows to 0.
TEST(CudaRefusals, FramesThatNoMemoryHolds) {
  for (const char *transport : {"threads", "nccl"})
    for (const uint64_t bytes : {UINT64_MAX, UINT64_MAX - 510, uint64_t(1) << 63}) {
      ProgramBuilder builder = feedForward(1, 2);
      builder.program.procedures[0]->symmetric_bytes = bytes;
      EXPECT_ERROR(cudaSession(builder, onNullDevice(transport)),
                   "the symmetric arena of " + std::to_string(bytes) +
                       " bytes for each of 2 ranks is too large");
    }
}

TEST(CudaRefusals, AnAwaitThatIsMissingIsARace) {
  auto change = [](fb::ProcedureT &layer) { eraseFirst<fb::AwaitT>(communicationOf(layer)); };
  for (const char *transport : {"threads", "nccl"})
    for (bool graph : {false, true}) {
      WorldOptions options = onNullDevice(transport);
      options.cudaGraph = graph;
      EXPECT_ERROR_HAS(runChanged(change, options), "without being ordered after");
    }
}

TEST(CudaRefusals, AWaitForACollectiveThatIsMissingIsARace) {
  EXPECT_ERROR_HAS(
      runChanged([](fb::ProcedureT &layer) { eraseFirst<fb::CollectiveWaitT>(computeOf(layer)); }),
      "without being ordered after");
}

TEST(CudaRefusals, ALaunchThatDoesNotFitTheTable) {
  auto withTable = [](auto change) {
    ProgramBuilder builder = feedForward(1, 2);
    CudaLaunchTable table = nullKernelTable();
    change(table, table.kernels[0]);
    return cudaSession(builder, onNullDevice(), table).status();
  };
  const std::string at = "rank 0: kernel 'add_bias' in @layer (layer.0): ";
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.operands[0].shape = {kLaunchRows, 23}; }),
               at + "kernel 'add_bias', operand 0 'x': expects f32 [12, 23], got f32 [12, 24]");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.operands[1].dtype = DType::f16; }),
               at + "kernel 'add_bias', operand 1 'bias': expects f16 [24], got f32 [24]");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { std::swap(k.operands[0], k.operands[1]); }),
               at + "kernel 'add_bias', operand 0 'bias': expects f32 [24], got f32 [12, 24]");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.operands.pop_back(); }),
               "the bundle's member 'cuda-sm_90a/kernels.cubin': function 'braid_add_bias' expects "
               "parameters of 8, 8, 8, 4 bytes, got 8, 8, 8, 8, 8, 4");
  EXPECT_ERROR(
      withTable([](auto &, CudaKernel &k) { k.operands[0].alignment = 128; }),
      at + "kernel 'add_bias', operand 0 'x': expects an address and strides that are "
           "multiples of 128 bytes, got strides [24, 1] of f32 at 0 beyond such an address");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.outputs = 2; }),
               at + "kernel 'add_bias' expects 3 operands with 2 outputs, got 3 with 1");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.function = "braid_subtract"; }),
               "the bundle's member 'cuda-sm_90a/kernels.cubin' lacks function 'braid_subtract'");
  EXPECT_ERROR(withTable([](auto &, CudaKernel &k) { k.symbol = "subtract"; }),
               at + "kernel 'add_bias' is not in the launch table for sm_90a");
  EXPECT_ERROR(withTable([](CudaLaunchTable &table, auto &) { table.architecture = "sm_100"; }),
               "the bundle has no kernels for null device (compute capability 9.0): it has cuda "
               "sm_100");
}

/// The code was compiled with another launch table than the bundle's.
TEST(CudaRefusals, ALaunchThatTheCodeDoesNotExpect) {
  auto runWith = [](auto change) {
    ProgramBuilder builder = feedForward(1, 1);
    CudaLaunchTable table = nullKernelTable();
    change(table.kernels[0]);
    auto session = cudaSession(builder, onNullDevice(), table);
    if (!session.ok())
      return session.status();
    std::vector<float> x(kBatch * kHidden);
    EXPECT_OK((*session)->loadWeights(*WeightSource::random(7)));
    EXPECT_OK((*session)->setInput("x", f32, {kBatch, kHidden}, x.data()));
    return (*session)->run();
  };
  const std::string expects =
      "rank 0: kernel 'add_bias' in @layer (layer.0): the CUDA driver failed "
      "in cuLaunchKernel: 'braid_add_bias' over 12 rows expects 9 blocks of "
      "32 threads with 0 bytes, got ";
  EXPECT_ERROR(runWith([](CudaKernel &k) { k.itemsPerBlock = 36; }),
               expects + "8 of 32 with 0 (null device)");
  EXPECT_ERROR(runWith([](CudaKernel &k) { k.threads = 64; }),
               expects + "9 of 64 with 0 (null device)");
  EXPECT_ERROR(runWith([](CudaKernel &k) { k.sharedBytes = 16; }),
               expects + "9 of 32 with 16 (null device)");
  EXPECT_ERROR(runWith([](CudaKernel &k) { k.sharedBytes = 65536; }), // exceeds every device
               expects + "9 of 32 with 65536 (null device)");
}

TEST(CudaRefusals, WhatTheMachineLacks) {
  ProgramBuilder builder = feedForward(1, 2);
  WorldOptions options = onNullDevice();
  options.cudaLibrary = "/nowhere/libcuda.so.1";
  EXPECT_ERROR_HAS(
      cudaSession(builder, options),
      "target 'cuda' expects an NVIDIA GPU and its driver on this machine: cannot load "
      "the CUDA driver: /nowhere/libcuda.so.1: cannot open shared object file");
  options.cudaLibrary = kNullKernelsPath;
  EXPECT_ERROR(cudaSession(builder, options),
               std::string("the CUDA driver in '") + kNullKernelsPath +
                   "' lacks 'cuInit': target 'cuda' expects a driver for CUDA 12.4 or newer");
  auto *setDevices = ofNullDevice<void(int)>("braidNullDevices");
  setDevices(0);
  EXPECT_ERROR(cudaSession(builder), "target 'cuda' expects a GPU, this machine has none");
  setDevices(1);
  EXPECT_ERROR(cudaSession(builder, onNullDevice("nccl")),
               "transport 'nccl' expects a GPU for each of 2 ranks, this machine has 1 (transport "
               "'threads' puts all ranks on one)");
  setDevices(8);
  EXPECT_ERROR(cudaSession(builder, onNullDevice("shm")),
               "expects transport 'threads' or 'nccl' on target 'cuda', got 'shm'");
  options = onNullDevice();
  options.threadsPerRank = 2;
  EXPECT_ERROR(cudaSession(builder, options), "more than one thread per rank expects target 'cpu'");
  options = WorldOptions();
  options.cudaLibrary = kNullDevicePath;
  EXPECT_ERROR(cudaSession(builder, options),
               "a library in place of the CUDA driver expects target 'cuda', got 'cpu'");
}

TEST(CudaRefusals, AKernelThatDoesNotEnd) {
  for (bool graph : {false, true}) {
    ProgramBuilder builder = feedForward(1, 2);
    WorldOptions options = onNullDevice();
    options.timeLimitSeconds = 0.2;
    options.cudaGraph = graph;
    auto session = cudaSession(builder, options);
    ASSERT_OK(session);
    ASSERT_OK((*session)->loadWeights(*WeightSource::random(7)));
    std::vector<float> x(kBatch * kHidden);
    ASSERT_OK((*session)->setInput("x", f32, {kBatch, kHidden}, x.data()));
    for (int run = 0; run < 2; ++run)
      ASSERT_OK((*session)->run());
    stallNullDevice("braid_add_bias");
    Status status = (*session)->run();
    stallNullDevice("");
    EXPECT_EQ(status.code(), Code::rankFailed);
    EXPECT_THAT(status.message(),
                HasSubstr(graph ? "the graph of a run has not ended within 0.2 s"
                                : "kernel 'add_bias' in @layer (layer.0) on its compute queue"));
    EXPECT_ERROR((*session)->run(),
                 "the model cannot run again: a rank did not return from an earlier run");
    EXPECT_ERROR((*session)->setInput("x", f32, {kBatch, kHidden}, x.data()),
                 "rank 0: the device 'null device' is not used any more: work on it has not ended");
  }
}

/// Types that the program verifier accepts but no kernel supports.
TEST(CudaRefusals, TypesThatNoLibraryKernelHas) {
  const Shape heads{1, 2, 1, 4}, table{2, 2};
  auto with = [&](DType type, DType outType, auto add) {
    ProgramBuilder b({{"tp", 1}});
    b.operand("x", type, heads);
    b.result("y", outType, heads);
    auto p = b.procedure("main", 2, 256, 0, 0);
    add(p, argument(0, type, heads), argument(1, outType, heads));
    return cudaSession(b);
  };
  auto attend = [](ProcedureBuilder &p, const V &x, const V &y) {
    AttentionLaunch attention;
    for (auto *operand : {&attention.query, &attention.key, &attention.value})
      *operand = x.build();
    attention.out = y.build();
    p.compute("attend", std::move(attention));
  };
  EXPECT_ERROR(with(DType::f64, DType::f64, attend),
               "rank 0: attention 'attend' in @main: expects query of f32, f16 or bf16, got f64");
  EXPECT_ERROR(with(DType::bf16, DType::f32, attend),
               "rank 0: attention 'attend' in @main: expects out of bf16, got f32");
  auto makeTable = [&](ProcedureBuilder &p, const V &x, const V &y) {
    RotaryTableLaunch angles;
    angles.frequencies = {1, 0.5};
    angles.cos = local(0, DType::f64, table).build();
    angles.sin = local(64, DType::f64, table).build();
    p.compute("angles", std::move(angles));
    p.copy("out", x, y);
  };
  EXPECT_ERROR(with(f32, f32, makeTable),
               "rank 0: rotary_table 'angles' in @main: expects cos of f32, f16 or bf16, got f64");
  auto turn = [&](ProcedureBuilder &p, const V &x, const V &y) {
    RotaryLaunch rotary;
    rotary.input = x.build();
    rotary.cos = local(0, x.dtype, table).build();
    rotary.sin = local(64, x.dtype, table).build();
    rotary.out = y.build();
    p.compute("turn", std::move(rotary));
  };
  EXPECT_ERROR(with(DType::f64, DType::f64, turn),
               "rank 0: rotary 'turn' in @main: expects input of f32, f16 or bf16, got f64");
  auto quantize = [&](ProcedureBuilder &p, const V &x, const V &y) {
    QuantizeRowsLaunch rows;
    rows.input = x.build();
    rows.values = local(0, DType::i8, x.shape).build();
    rows.scales = local(64, f32, {x.shape.begin(), x.shape.end() - 1}).build();
    p.compute("quantize", std::move(rows));
    p.copy("out", x, y);
  };
  EXPECT_ERROR(
      with(DType::bf16, DType::bf16, quantize),
      "rank 0: quantize_rows 'quantize' in @main: quantize_rows of bf16 is not implemented "
      "on target 'cuda'");
}

TEST(CudaRefusals, MemoryOfTheCallerIsRefused) {
  ProgramBuilder builder = feedForward(1, 1);
  auto session = cudaSession(builder);
  ASSERT_OK(session);
  alignas(64) float memory[kBatch * kHidden];
  EXPECT_ERROR((*session)->bindInput(0, "x", memory, sizeof memory),
               "memory of the caller expects target 'cpu', got 'cuda'");
}

TEST(CudaKernels, ArchitecturesRunWhereTheyCan) {
  using cuda::runsOn;
  EXPECT_TRUE(runsOn("sm_90a", 9, 0));
  EXPECT_FALSE(runsOn("sm_90a", 9, 1)); // code for sm_90a runs only on 9.0
  EXPECT_FALSE(runsOn("sm_90a", 10, 0));
  EXPECT_TRUE(runsOn("sm_80", 8, 9));
  EXPECT_FALSE(runsOn("sm_86", 8, 0));
  EXPECT_FALSE(runsOn("sm_80", 9, 0)); // code does not run on another generation
  EXPECT_TRUE(runsOn("sm_100f", 10, 3));
  EXPECT_TRUE(runsOn("sm_120", 12, 0));
  EXPECT_FALSE(runsOn("compute_90", 9, 0));
  EXPECT_FALSE(runsOn("sm_90b", 9, 0));
  EXPECT_FALSE(runsOn("sm_", 0, 0));
}

} // namespace
