//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The instruction sets that modules are compiled for, and the modules that are rejected.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

using namespace braid;
using namespace braid::test;

namespace {
std::string unary(const std::string &operation, const std::string &element = "f32") {
  return substitute(R"(
    rt.kernel @unary(%x: tensor<?x40x$T>) -> tensor<?x40x$T> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x40x$T>
      %e = tensor.empty(%n) : tensor<?x40x$T>
      %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>],
                           iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<?x40x$T>) outs(%e : tensor<?x40x$T>) {
        ^bb0(%a: $T, %o: $T):
          %y = $OP %a : $T
          linalg.yield %y : $T
      } -> tensor<?x40x$T>
      rt.yield %0 : tensor<?x40x$T>
    })",
                    {{"OP", operation}, {"T", element}});
}

/// A folder that temporary files of this process go to.
class TemporaryFolder {
public:
  TemporaryFolder() {
    if (const char *set = std::getenv("TMPDIR"))
      before = set;
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    setenv("TMPDIR", path.c_str(), 1);
  }
  ~TemporaryFolder() {
    before ? setenv("TMPDIR", before->c_str(), 1) : unsetenv("TMPDIR");
    std::filesystem::remove_all(path);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string path = std::filesystem::temp_directory_path() / "braid-compile-test-XXXXXX";

private:
  std::optional<std::string> before;
};
} // namespace

TEST(Compile, InstructionSets) {
  CompileResult result =
      compileKernels(unary("math.absf"), {{"x86-64-v3", "x86-64-v4", "x86-64-v3", "znver4"}});
  ASSERT_TRUE(result.ok) << result.messages;
  ASSERT_EQ(result.libraries.size(), 3u);
  EXPECT_EQ(result.libraries[0].isa.name, "x86-64-v3");
  EXPECT_EQ(result.libraries[1].isa.name, "x86-64-v4");
  EXPECT_EQ(result.libraries[2].isa.name, "znver4");
  auto has = [&](size_t library, const char *feature) {
    const std::vector<std::string> &features = result.libraries[library].isa.features;
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  EXPECT_TRUE(has(0, "avx2") && has(0, "fma"));
  EXPECT_FALSE(has(0, "avx512f"));
  EXPECT_TRUE(has(1, "avx512f"));
  for (const CPUKernelLibrary &library : result.libraries) {
    EXPECT_EQ(library.isa.triple, "x86_64-unknown-linux-gnu");
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(library.bytes.data()), 4), "\x7f"
                                                                                    "ELF");
  }
}

TEST(Compile, SameInputGivesTheSameBytes) {
  CompileResult first = compileKernels(unary("math.exp")),
                second = compileKernels(unary("math.exp"));
  ASSERT_TRUE(first.ok && second.ok) << first.messages << second.messages;
  for (size_t i = 0; i < first.libraries.size(); ++i)
    EXPECT_EQ(first.libraries[i].bytes, second.libraries[i].bytes);
}

TEST(Compile, LeavesNoTemporaryFiles) {
  TemporaryFolder folder;
  EXPECT_TRUE(compileKernels(unary("math.exp")).ok);
  EXPECT_FALSE(compileKernels(unary("math.log10")).ok);
  for (const auto &left : std::filesystem::directory_iterator(folder.path))
    ADD_FAILURE() << left.path() << " is left";
  // The folder is the one that the linker uses.
  setenv("TMPDIR", (folder.path + "/nothing").c_str(), 1);
  EXPECT_FALSE(compileKernels(unary("math.exp")).ok);
}

TEST(Compile, UsesVectorsAndNoCalls) {
  for (const char *operation : {"math.erf", "math.tanh", "math.exp", "math.log", "math.rsqrt"}) {
    CompileResult result = compileKernels(unary(operation), {{"x86-64-v3"}});
    ASSERT_TRUE(result.ok) << result.messages;
    EXPECT_EQ(result.messages, "");
    EXPECT_NE(result.ir.find("load <16 x float>"), std::string::npos) << result.ir;
    EXPECT_NE(result.ir.find("store <16 x float>"), std::string::npos) << result.ir;
    EXPECT_EQ(result.ir.find("load float,"), std::string::npos) << result.ir;
    for (const char *call : {"@erf", "@tanhf", "@llvm.exp", "@llvm.log", "@llvm.tanh"})
      EXPECT_EQ(result.ir.find(call), std::string::npos) << call << " in\n" << result.ir;
  }
}

TEST(Compile, RefusesFunctionsWithoutApproximation) {
  CompileResult result = compileKernels(unary("math.log10"));
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(
      result.messages,
      "kernel 'unary' calls 'log10f', for which the CPU target has neither instructions nor an "
      "approximation\n");
}

TEST(Compile, RefusesOtherElementTypes) {
  for (const char *type : {"bf16", "f16", "f64"}) {
    CompileResult result = compileKernels(unary("math.absf", type));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.messages,
              std::string("'rt.kernel' op 'unary' expects elements of f32, i32 or i64 on the CPU "
                          "target, got 'tensor<?x40x") +
                  type + ">'\n");
  }
}

TEST(Compile, RefusesUnknownInstructionSets) {
  CompileResult result = compileKernels(unary("math.absf"), {{"x86-64-v3", "pentagon"}});
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(
      result.messages,
      "unknown instruction set 'pentagon'; expects 'host', a level such as 'x86-64-v3' or the "
      "name of an x86-64 processor\n");
}

TEST(Compile, TellsOfKernelsThatAreNotVectorized) {
  CompileResult result = compileKernels(kColumnFreeKernel);
  ASSERT_TRUE(result.ok) << result.messages;
  EXPECT_NE(result.messages.find("nothing varies along a column"), std::string::npos)
      << result.messages;
  forEachISA(kColumnFreeKernel, [&](const LoadedKernels &kernels) {
    auto x = Tensor<float>::random({9}, 1);
    Tensor<float> out({9});
    kernels.call("column_free", {x.descriptor(), out.descriptor()});
    for (size_t i = 0; i < 9; ++i)
      EXPECT_EQ(out.data[i], x.data[i] + x.data[i]);
  });
}
