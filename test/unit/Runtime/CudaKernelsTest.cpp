//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/CudaKernels.h"
#include "SampleProgram.h"
#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

CudaLaunchTable sampleTable() {
  CudaKernel kernel;
  kernel.symbol = "gelu";
  kernel.function = "braid_gelu";
  kernel.operands = {{"x", DType::bf16, {kLaunchRows, 3, 8}, 16},
                     {"scale", DType::f32, {}, 4},
                     {"y", DType::f32, {kLaunchRows, 8}, 16}};
  kernel.threads = 128;
  kernel.sharedBytes = 64;
  kernel.itemsPerRow = 24;
  kernel.itemsPerBlock = 256;
  return {"sm_90a", {kernel}};
}

BundleContents cudaContents(const CudaLaunchTable &table) {
  BundleContents bundle = sampleContents();
  KernelLibrary library = cudaKernelLibrary("sm_90a");
  bundle.members[library.member] = toBytes("cubin");
  bundle.members[library.launchesMember] = toBytes(table.toJson());
  bundle.members[library.sourceMember] = toBytes("__global__ void braid_gelu();");
  bundle.manifest.kernels.push_back(library);
  return bundle;
}

TEST(CudaLaunchTable, ComesBackFromJson) {
  CudaLaunchTable table = sampleTable();
  Result<CudaLaunchTable> read = CudaLaunchTable::fromJson(table.toJson());
  ASSERT_OK(read);
  EXPECT_EQ(read->toJson(), table.toJson());
  ASSERT_NE(read->find("gelu"), nullptr);
  EXPECT_EQ(read->find("silu"), nullptr);
  const CudaKernel &kernel = *read->find("gelu");
  EXPECT_EQ(kernel.function, "braid_gelu");
  EXPECT_EQ(kernel.parameterBytes(), (std::vector<size_t>{8, 8, 8, 8, 8, 8, 4}));
  EXPECT_EQ(kernel.blocks(0), 0);
  EXPECT_EQ(kernel.blocks(10), 1);
  EXPECT_EQ(kernel.blocks(11), 2); // 264 items
  EXPECT_TRUE(kernel.operands[0].isRow());
  EXPECT_FALSE(kernel.operands[1].isRow());
}

/// A payload is handed over with what is needed to decode or encode it.
TEST(CudaLaunchTable, HasCodecs) {
  CudaLaunchTable table = sampleTable();
  CudaOperand &y = table.kernels[0].operands[2];
  y.codec = "braid_encode_int8_128_of_f32";
  EXPECT_EQ(y.numStrides(), 0u);
  EXPECT_EQ(table.kernels[0].parameterBytes(), (std::vector<size_t>{8, 8, 8, 8, 192, 4}));
  Result<CudaLaunchTable> read = CudaLaunchTable::fromJson(table.toJson());
  ASSERT_OK(read);
  EXPECT_EQ(read->kernels[0].operands[2].codec, y.codec);
  EXPECT_EQ(read->kernels[0].operands[0].codec, "");
  y.shape = {8};
  EXPECT_ERROR(
      CudaLaunchTable::fromJson(table.toJson()).status(),
      "kernel 'gelu': operand 2 'y': 'codec' expects a shape of rows and columns, got [8]");
}

TEST(CudaLaunchTable, SaysWhatIsWrong) {
  auto spoiled = [](auto spoil) {
    CudaLaunchTable table = sampleTable();
    spoil(table, table.kernels[0]);
    return CudaLaunchTable::fromJson(table.toJson()).status();
  };
  EXPECT_ERROR(spoiled([](auto &table, auto &) { table.architecture = ""; }),
               "'architecture' expects a name");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.threads = 1025; }),
               "kernel 'gelu': 'threads' expects 1 to 1024, got 1025");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.sharedBytes = -1; }),
               "kernel 'gelu': 'shared_bytes' expects 0 to 232448, got -1");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.itemsPerBlock = 0; }),
               "kernel 'gelu': 'items_per_block' expects 1 to 2147483647, got 0");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.outputs = 4; }),
               "kernel 'gelu': 'outputs' expects 0 to 3, got 4");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.operands[0].alignment = 24; }),
               "kernel 'gelu': operand 0 'x': 'alignment' expects a power of two of at most 128, "
               "got 24");
  EXPECT_ERROR(spoiled([](auto &, auto &kernel) { kernel.operands[2].shape = {8, kLaunchRows}; }),
               "kernel 'gelu': operand 2 'y': 'shape' expects extents of 0 or more, of which the "
               "first may be -1, got -1");
  EXPECT_ERROR(spoiled([](auto &table, auto &kernel) { table.kernels.push_back(kernel); }),
               "kernel 'gelu' occurs twice");
  EXPECT_ERROR(spoiled([](auto &table, auto kernel) {
                 kernel.symbol = "silu";
                 table.kernels.push_back(kernel);
               }),
               "function 'braid_gelu' occurs twice");
  std::string text = sampleTable().toJson();
  text.replace(text.find("bf16"), 4, "bf17");
  EXPECT_ERROR_HAS(CudaLaunchTable::fromJson(text), "bf17");
}

TEST(CudaLaunchTable, TravelsInABundle) {
  std::shared_ptr<const Bundle> bundle = bundleOf(cudaContents(sampleTable()));
  Result<Bytes> bytes = bundle->serialize();
  ASSERT_OK(bytes);
  Result<Bundle> read = Bundle::parse(bytes->data(), bytes->size(), "sample");
  ASSERT_OK(read);
  EXPECT_EQ(read->members(), bundle->members());
  const KernelLibrary &library = read->manifest().kernels.back();
  EXPECT_EQ(library.isa, "sm_90a");
  EXPECT_EQ(library.launchesMember, "cuda-sm_90a/kernels.json");
  EXPECT_EQ(library.sourceMember, "cuda-sm_90a/kernels.cu");
}

TEST(CudaLaunchTable, FaultsOfABundle) {
  CudaLaunchTable other = sampleTable();
  other.architecture = "sm_80";
  EXPECT_ERROR(Bundle::create(cudaContents(other)),
               "bundle: member 'cuda-sm_90a/kernels.json': expects architecture 'sm_90a', got "
               "'sm_80'");
  BundleContents without = cudaContents(sampleTable());
  without.members.erase("cuda-sm_90a/kernels.cu");
  EXPECT_ERROR(Bundle::create(without),
               "bundle: data of member 'cuda-sm_90a/kernels.cu' is missing");
  BundleContents unnamed = cudaContents(sampleTable());
  unnamed.manifest.kernels.back().launchesMember.clear();
  EXPECT_ERROR(Bundle::create(unnamed),
               "bundle: 'kernels[1].launches' expects the name of a member");
  BundleContents forCpu = cudaContents(sampleTable());
  forCpu.manifest.kernels[0].sourceMember = "kernels.cu";
  EXPECT_ERROR(Bundle::create(forCpu),
               "bundle: 'kernels[0].source' expects target cuda, got 'cpu'");
}

} // namespace
