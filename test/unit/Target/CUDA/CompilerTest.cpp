//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Machine code from CUDA source, and its cache.
//
//===----------------------------------------------------------------------===//
#include "braid/Target/CUDA/CUDACompiler.h"
#include "braid/Target/CUDA/CUDATarget.h"
#include "lib/Target/CUDA/Compilers.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <cstdlib>
#include <thread>

using namespace mlir;
using namespace braid;

namespace {
const char *kScale = R"(
#include <braid/rows.cuh>
extern "C" __global__ void __launch_bounds__(256) scale(const float *x, float *y, unsigned rows) {
  using Row = braid::BlockRow<2048, 4, 256>;
  if (Row::row() >= rows)
    return;
  float sum = 0.0f;
  for (int s = 0; s < Row::steps; ++s) {
    const auto v = braid::load<4>(x + Row::row() * 2048ll + Row::column(s));
    sum += v[0] + v[1] + v[2] + v[3];
  }
  sum = Row::reduce<braid::Sum>(sum);
  if (Row::first())
    y[Row::row()] = sum;
}
extern "C" __global__ void nothing() {}
)";

struct Folder {
  Folder() { EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("braid-cuda-test", path)); }
  ~Folder() { (void)llvm::sys::fs::remove_directories(path); }
  Folder(const Folder &) = delete;
  /// The files in the folder and its subfolders.
  std::vector<std::string> files() const {
    std::vector<std::string> all;
    std::error_code error;
    for (llvm::sys::fs::recursive_directory_iterator at(path, error), end; !error && at != end;
         at.increment(error))
      if (!llvm::sys::fs::is_directory(at->path()))
        all.push_back(at->path());
    return all;
  }
  llvm::SmallString<128> path;
};

struct CUDACompile : ::testing::Test {
  CUDACompile()
      : handler(&context, [this](Diagnostic &diagnostic) {
          messages += diagnostic.str() + "\n";
          return success();
        }) {
    options.cacheDirectory = "";
  }
  FailureOr<CUDABinary> compile(const std::string &source, StringRef architecture) {
    messages.clear();
    return compileCUDA(source, architecture, UnknownLoc::get(&context), options);
  }
  /// Whether this machine has the compiler.
  static bool has(CUDACompilerKind kind) {
    std::string searched;
    return kind == CUDACompilerKind::NVRTC ? cuda::findNVRTC(searched) != nullptr
                                           : cuda::findNVCC(searched) != nullptr;
  }

  MLIRContext context;
  std::string messages;
  ScopedDiagnosticHandler handler;
  CUDACompileOptions options;
};

struct EachCompiler : CUDACompile, ::testing::WithParamInterface<CUDACompilerKind> {
  void SetUp() override {
    if (!has(GetParam()))
      GTEST_SKIP() << "this machine has no "
                   << (GetParam() == CUDACompilerKind::NVRTC ? "NVRTC" : "nvcc");
    options.compiler = GetParam();
  }
};
} // namespace

TEST_P(EachCompiler, EveryArchitecture) {
  for (StringRef architecture : getCUDAArchitectures()) {
    SCOPED_TRACE(architecture.str());
    FailureOr<CUDABinary> binary = compile(kScale, architecture);
    ASSERT_TRUE(succeeded(binary)) << messages;
    EXPECT_EQ(messages, "");
    EXPECT_FALSE(binary->cached);
    ASSERT_GT(binary->cubin.size(), 4u);
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(binary->cubin.data()), 4), "\x7f"
                                                                                    "ELF");
    EXPECT_TRUE(StringRef(binary->compiler)
                    .starts_with(GetParam() == CUDACompilerKind::NVRTC ? "NVRTC 1" : "nvcc 1"))
        << binary->compiler;
    ASSERT_EQ(binary->usage.size(), 2u);
    EXPECT_EQ(binary->usage[0].function, "nothing");
    const CUDAUsage &scale = binary->usage[1];
    EXPECT_EQ(scale.function, "scale");
    EXPECT_GT(scale.registers, binary->usage[0].registers);
    EXPECT_LE(scale.registers, 64);
    EXPECT_EQ(scale.sharedBytes, 32); // One float for each of 8 warps.
    EXPECT_EQ(scale.spillStoreBytes + scale.spillLoadBytes + scale.stackBytes, 0);
  }
}

TEST_P(EachCompiler, ReportsSpills) {
  // More live values than registers are available to a thread of a full block.
  std::string source = "extern \"C\" __global__ void __launch_bounds__(1024, 2) spills(const float "
                       "*x, float *y) {\n  float v[96];\n#pragma unroll\n  for (int i = 0; i < 96; "
                       "++i)\n    v[i] = x[i * 1024 + threadIdx.x];\n  __syncthreads();\n#pragma "
                       "unroll\n  for (int i = 0; i < 96; ++i)\n    y[i * 1024 + threadIdx.x] = "
                       "v[i] * v[(i * 7 + 5) % 96];\n}\n";
  FailureOr<CUDABinary> binary = compile(source, "sm_80");
  ASSERT_TRUE(succeeded(binary)) << messages;
  ASSERT_EQ(binary->usage.size(), 1u);
  EXPECT_LE(binary->usage[0].registers, 32);
  EXPECT_GT(binary->usage[0].spillStoreBytes, 0);
  EXPECT_GT(binary->usage[0].spillLoadBytes, 0);
}

TEST_P(EachCompiler, SaysWhatTheCompilerSays) {
  EXPECT_TRUE(failed(compile("#include <braid/rows.cuh>\nextern \"C\" __global__ void bad() { "
                             "undeclared(); }\n",
                             "sm_90a")));
  EXPECT_NE(messages.find("does not compile the kernels for sm_90a: "), std::string::npos)
      << messages;
  EXPECT_NE(messages.find("kernels.cu(2): error: identifier \"undeclared\" is undefined"),
            std::string::npos)
      << messages;
}

TEST_P(EachCompiler, KeepsWhatItMade) {
  Folder folder;
  options.cacheDirectory = (folder.path + "/cache").str();
  FailureOr<CUDABinary> first = compile(kScale, "sm_90a"), second = compile(kScale, "sm_90a");
  ASSERT_TRUE(succeeded(first) && succeeded(second)) << messages;
  EXPECT_FALSE(first->cached);
  EXPECT_TRUE(second->cached);
  EXPECT_EQ(first->cubin, second->cubin);
  ASSERT_EQ(second->usage.size(), 2u);
  EXPECT_EQ(second->usage[1].registers, first->usage[1].registers);
  // Another source or architecture makes another entry.
  FailureOr<CUDABinary> other = compile(std::string(kScale) + "\n", "sm_90a"),
                        older = compile(kScale, "sm_80");
  ASSERT_TRUE(succeeded(other) && succeeded(older)) << messages;
  EXPECT_FALSE(other->cached || older->cached);
  EXPECT_EQ(folder.files().size(), 3u);
}

INSTANTIATE_TEST_SUITE_P(All, EachCompiler,
                         ::testing::Values(CUDACompilerKind::NVRTC, CUDACompilerKind::NVCC),
                         [](const auto &info) {
                           return info.param == CUDACompilerKind::NVRTC ? "NVRTC" : "NVCC";
                         });

TEST_F(CUDACompile, SaysWhereItLookedForACompiler) {
  ::setenv("BRAID_NVRTC", "/nowhere/libnvrtc.so.13", 1);
  options.compiler = CUDACompilerKind::NVRTC;
  EXPECT_TRUE(failed(compile(kScale, "sm_90a")));
  ::unsetenv("BRAID_NVRTC");
  EXPECT_EQ(messages,
            "found no compiler for CUDA; scripts/setup.sh installs PyPI's nvidia-cuda-nvrtc, and "
            "CUDA_HOME or BRAID_NVRTC say where another one is:\n  /nowhere/libnvrtc.so.13: cannot "
            "open shared object file: No such file or directory\n");
}

TEST(CUDACache, DamagedEntriesAreNone) {
  Folder folder;
  cuda::Cache cache(folder.path.str().str());
  cuda::Compiled entry{runtime::Bytes(1000, std::byte{7}), "log"}, read;
  EXPECT_FALSE(cache.read("key", read));
  ASSERT_TRUE(cache.write("key", entry).ok());
  ASSERT_TRUE(cache.read("key", read));
  EXPECT_EQ(read.cubin, entry.cubin);
  EXPECT_EQ(read.log, entry.log);
  std::vector<std::string> files = folder.files();
  ASSERT_EQ(files.size(), 1u);
  runtime::Bytes whole = *runtime::readFile(files[0]);
  for (size_t at : {size_t(0), size_t(20), size_t(41), whole.size() - 1}) {
    runtime::Bytes damaged = whole;
    damaged[at] ^= std::byte{1};
    ASSERT_TRUE(runtime::writeFile(files[0], {{damaged.data(), damaged.size()}}).ok());
    EXPECT_FALSE(cache.read("key", read)) << "byte " << at;
  }
  for (size_t size : {size_t(0), size_t(8), size_t(44), whole.size() - 1}) {
    ASSERT_TRUE(runtime::writeFile(files[0], {{whole.data(), size}}).ok());
    EXPECT_FALSE(cache.read("key", read)) << size << " bytes";
  }
  ASSERT_TRUE(cache.write("key", entry).ok());
  EXPECT_TRUE(cache.read("key", read));
}

TEST(CUDACache, WritersAtTheSameTime) {
  Folder folder;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      cuda::Cache cache(folder.path.str().str());
      cuda::Compiled entry{runtime::Bytes(100000, std::byte{42}), "log"}, read;
      for (int i = 0; i < 50; ++i) {
        wrong += !cache.write("key", entry).ok();
        // Whichever writer is last, a read must find one complete entry.
        wrong += !cache.read("key", read) || read.cubin != entry.cubin;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(folder.files().size(), 1u);
}

TEST(CUDACache, KeysTellListsOfPartsApart) {
  EXPECT_NE(cuda::Cache::key({"ab", "c"}), cuda::Cache::key({"a", "bc"}));
  EXPECT_NE(cuda::Cache::key({"a"}), cuda::Cache::key({"a", ""}));
  EXPECT_EQ(cuda::Cache::key({"a", "b"}), cuda::Cache::key({"a", "b"}));
}
