//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs row kernels as CUDA on the CPU and compares them with the interpreter.
//
//===----------------------------------------------------------------------===//
#include "KernelCheck.h"
#include "RandomRows.h"
#include "test/unit/Target/KernelText.h"

#include <cstring>
#include <iostream>
#include <limits>

using namespace braid;
using namespace braid::test;

namespace {
int count(const std::string &text, const std::string &part) {
  int times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++times;
  return times;
}

constexpr uint64_t kSeed = 20250321;

uint64_t seedFromEnvironment() {
  const char *text = std::getenv("BRAID_DIFFERENTIAL_SEED");
  return text ? std::strtoull(text, nullptr, 10) : kSeed;
}
} // namespace

TEST(CUDARows, EveryWidthOfAMap) {
  std::string source;
  for (int64_t columns : {1, 2, 6, 7, 16, 383, 384, 4097})
    source += mapKernel("map" + std::to_string(columns), columns,
                        "%0 = arith.mulf %a, %b : f32\n %y = arith.subf %0, %a : f32");
  KernelModule module(source);
  ASSERT_TRUE(module.ok());
  for (const std::string &kernel : module.symbols())
    for (int64_t rows : {1, 5})
      module.check(kernel, {rows});
}

TEST(CUDARows, StridedAndInPlace) {
  KernelModule module(mapKernel("wide", 64, "%y = arith.addf %a, %b : f32") +
                      mapKernel("odd", 33, "%y = arith.addf %a, %b : f32"));
  ASSERT_TRUE(module.ok());
  for (bool inPlace : {false, true}) {
    module.check("wide", {4, 4, 1, inPlace});
    module.check("wide", {4, 64, 2, inPlace});
    module.check("odd", {4, 1, 3, inPlace});
  }
}

TEST(CUDARows, IntegersAndIndices) {
  KernelModule module(R"(
    #rc = affine_map<(r, c) -> (r, c)>
    rt.kernel @mask(%m: tensor<?x37xi64>, %k: tensor<37xi32>) -> (tensor<?x37xf32>, tensor<?x37xi64>, tensor<?x37xi32>) {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %m, %c0 : tensor<?x37xi64>
      %e = tensor.empty(%n) : tensor<?x37xf32>
      %e64 = tensor.empty(%n) : tensor<?x37xi64>
      %e32 = tensor.empty(%n) : tensor<?x37xi32>
      %0:3 = linalg.generic {indexing_maps = [#rc, affine_map<(r, c) -> (c)>, #rc, #rc, #rc],
                             iterator_types = ["parallel", "parallel"]}
          ins(%m, %k : tensor<?x37xi64>, tensor<37xi32>)
          outs(%e, %e64, %e32 : tensor<?x37xf32>, tensor<?x37xi64>, tensor<?x37xi32>) {
        ^bb0(%a: i64, %b: i32, %o: f32, %o64: i64, %o32: i32):
          %zero = arith.constant 0 : i64
          %low = arith.constant -100.0 : f32
          %high = arith.constant 0.25 : f32
          %most = arith.constant 2147483647 : i32
          %three = arith.constant 3 : i32
          %is = arith.cmpi sgt, %a, %zero : i64
          %f = arith.select %is, %high, %low : f32
          %i = linalg.index 1 : index
          %i64 = arith.index_cast %i : index to i64
          %s = arith.muli %i64, %a : i64
          %bits = arith.extui %is : i1 to i32
          %small = arith.trunci %a : i64 to i32
          %wrapped = arith.addi %small, %most : i32
          %below = arith.cmpi ult, %small, %three : i32
          %either = arith.select %below, %b, %wrapped : i32
          %mixed = arith.xori %either, %bits : i32
          linalg.yield %f, %s, %mixed : f32, i64, i32
      } -> (tensor<?x37xf32>, tensor<?x37xi64>, tensor<?x37xi32>)
      rt.yield %0#0, %0#1, %0#2 : tensor<?x37xf32>, tensor<?x37xi64>, tensor<?x37xi32>
    })");
  ASSERT_TRUE(module.ok());
  module.check("mask");
}

// One kernel for each operation that the random ones and the models do not reach.
/// The kernels k0, k1, ... of `source`, which have these bodies.
static void checkEach(const std::string &source, llvm::ArrayRef<const char *> bodies) {
  KernelModule module(source);
  ASSERT_TRUE(module.ok());
  for (size_t i = 0; i < bodies.size(); ++i) {
    SCOPED_TRACE(bodies[i]);
    module.check("k" + std::to_string(i));
  }
  module.compileForGPUs({"sm_90a"});
}

TEST(CUDARows, EveryFloatOperation) {
  const char *const bodies[] = {
      "%y = arith.subf %a, %b : f32",
      "%y = arith.subf %a, %b fastmath<contract> : f32",
      "%y = arith.minimumf %a, %b : f32",
      "%y = arith.maxnumf %a, %b : f32",
      "%y = math.copysign %a, %b : f32",
      "%y = math.fma %a, %b, %a : f32",
      "%y = math.ceil %a : f32",
      "%y = math.floor %a : f32",
      "%y = math.roundeven %a : f32",
      "%y = math.cos %a : f32",
      "%y = math.sin %a fastmath<afn> : f32",
      "%y = math.exp2 %a : f32",
      "%y = math.expm1 %a : f32",
      "%0 = math.absf %a : f32\n %y = math.log %0 : f32",
      "%0 = math.absf %a : f32\n %y = math.log2 %0 : f32",
      "%0 = math.absf %a : f32\n %y = math.sqrt %0 : f32",
      "%y = arith.divf %a, %b fastmath<arcp> : f32",
      "%k = arith.constant 3.0e38 : f32\n %y = arith.divf %a, %k : f32",
      "%k = arith.constant 0.001 : f32\n %y = arith.divf %a, %k : f32",
      "%k = arith.constant 0x7F800000 : f32\n %y = arith.minimumf %a, %k : f32",
      "%k = arith.constant -2.5 : f32\n %y = arith.addf %k, %a : f32",
      "%0 = arith.negf %a : f32\n %1 = arith.negf %0 : f32\n %y = arith.subf %1, %0 : f32",
      "%0 = arith.fptosi %a : f32 to i32\n %y = arith.sitofp %0 : i32 to f32",
      R"(%0 = arith.fptosi %a : f32 to i64
         %1 = arith.trunci %0 : i64 to i1
         %y = arith.uitofp %1 : i1 to f32)",
      "%0 = arith.cmpf ogt, %a, %b : f32\n %y = arith.sitofp %0 : i1 to f32",
      R"(%i = linalg.index 1 : index
         %0 = arith.index_cast %i : index to i32
         %y = arith.uitofp %0 : i32 to f32)",
      // On a storage type: computed in f32, then rounded.
      R"(%0 = arith.truncf %a : f32 to bf16
         %1 = arith.truncf %b : f32 to bf16
         %2 = arith.mulf %0, %1 : bf16
         %k = arith.constant 1.5 : bf16
         %3 = arith.addf %2, %k : bf16
         %y = arith.extf %3 : bf16 to f32)",
      R"(%0 = arith.truncf %a : f32 to f16
         %1 = math.exp %0 : f16
         %2 = arith.cmpf olt, %0, %1 : f16
         %3 = arith.select %2, %0, %1 : f16
         %y = arith.extf %3 : f16 to f32)",
  };
  std::string source;
  for (size_t i = 0; i < std::size(bodies); ++i)
    source += mapKernel("k" + std::to_string(i), 16, bodies[i]);
  checkEach(source, bodies);
}

TEST(CUDARows, EveryComparisonAndCombinerOfNaNs) {
  std::string source;
  std::vector<std::string> names;
  for (const char *predicate : {"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq",
                                "ugt", "uge", "ult", "ule", "une", "uno", "true"}) {
    names.push_back(std::string("compare_") + predicate);
    source += mapKernel(names.back(), 4,
                        std::string("%0 = arith.cmpf ") + predicate +
                            ", %a, %b : f32\n %y = arith.uitofp %0 : i1 to f32");
  }
  for (auto [combiner, identity] : {std::pair("addf", "0.0"),
                                    {"mulf", "1.0"},
                                    {"maximumf", "0xFF800000"},
                                    {"minimumf", "0x7F800000"},
                                    {"maxnumf", "0xFF800000"},
                                    {"minnumf", "0x7F800000"}}) {
    names.push_back(std::string("reduce_") + combiner);
    source += substitute(R"(
      rt.kernel @$NAME(%x: tensor<?x4xf32>, %w: tensor<4xf32>) -> tensor<?xf32> {
        %c0 = arith.constant 0 : index
        %k = arith.constant $ID : f32
        %n = tensor.dim %x, %c0 : tensor<?x4xf32>
        %e = tensor.empty(%n) : tensor<?xf32>
        %z = linalg.fill ins(%k : f32) outs(%e : tensor<?xf32>) -> tensor<?xf32>
        %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
                             iterator_types = ["parallel", "reduction"]}
            ins(%x : tensor<?x4xf32>) outs(%z : tensor<?xf32>) {
          ^bb0(%a: f32, %acc: f32):
            %1 = arith.$OP %acc, %a : f32
            linalg.yield %1 : f32
        } -> tensor<?xf32>
        rt.yield %0 : tensor<?xf32>
      })",
                         {{"NAME", names.back()}, {"OP", combiner}, {"ID", identity}});
  }
  KernelModule module(source);
  ASSERT_TRUE(module.ok());
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  auto x = interp::Tensor::ofFloats(interp::DType::f32, {4, 4},
                                    {1, 1, 1, 1, 0, 1, 2, nan, nan, nan, nan, nan, 3, -1, 2, 0.5});
  auto w = interp::Tensor::ofFloats(interp::DType::f32, {4}, {1, nan, 0, 2});
  for (const std::string &name : names)
    module.check(name, {x, w}, {4});
  module.compileForGPUs({"sm_90a"});
}

TEST(CUDARows, EveryIntegerOperation) {
  const char *const bodies[] = {
      "%y = arith.subi %a, %b : i32",
      R"(%k = arith.constant 2147483647 : i32
         %0 = arith.muli %a, %k : i32
         %y = arith.muli %0, %b : i32)",
      "%k = arith.constant -2147483648 : i32\n %y = arith.addi %a, %k : i32",
      "%y = arith.andi %a, %b : i32",
      "%y = arith.ori %a, %b : i32",
      "%y = arith.maxsi %a, %b : i32",
      "%y = arith.minsi %a, %b : i32",
      R"(%0 = arith.extsi %a : i32 to i64
         %1 = arith.extui %b : i32 to i64
         %2 = arith.subi %0, %1 : i64
         %3 = arith.trunci %2 : i64 to i8
         %y = arith.extsi %3 : i8 to i32)",
      R"(%0 = arith.cmpi eq, %a, %b : i32
         %1 = arith.cmpi uge, %a, %b : i32
         %2 = arith.ori %0, %1 : i1
         %y = arith.extsi %2 : i1 to i32)",
      R"(%0 = arith.cmpi ne, %a, %b : i32
         %1 = arith.cmpi sle, %a, %b : i32
         %2 = arith.andi %0, %1 : i1
         %3 = arith.xori %2, %1 : i1
         %y = arith.extui %3 : i1 to i32)",
      R"(%0 = arith.index_castui %a : i32 to index
         %i = linalg.index 1 : index
         %1 = arith.addi %0, %i : index
         %y = arith.index_cast %1 : index to i32)",
  };
  std::string source;
  for (size_t i = 0; i < std::size(bodies); ++i) {
    std::string text = mapKernel("k" + std::to_string(i), 16, bodies[i]);
    for (size_t at; (at = text.find("xf32>")) != std::string::npos;)
      text.replace(at, 5, "xi32>");
    for (const char *name : {"%a: f32", "%b: f32", "%o: f32", "yield %y : f32"})
      text.replace(text.find(name) + std::strlen(name) - 3, 3, "i32");
    source += text;
  }
  checkEach(source, bodies);
}

TEST(CUDARows, NothingAlongAColumn) {
  KernelModule module(std::string(kColumnFreeKernel) + R"(
    rt.kernel @unchanged(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      rt.yield %x : tensor<?x8xf32>
    })");
  ASSERT_TRUE(module.ok());
  module.check("column_free", {300});
  module.check("unchanged", {3, 8});
}

class CUDARandomRows : public ::testing::TestWithParam<std::string> {};

TEST_P(CUDARandomRows, AgainstTheInterpreter) {
  uint64_t seed = seedFromEnvironment();
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << "\n";
  const std::string &element = GetParam();
  std::mt19937_64 random(seed);
  std::vector<std::string> texts;
  std::string source;
  for (int64_t columns : {1, 6, 33, 64, 100, 384, 385, 512, 1000, 2048, 5000, 70000}) {
    RandomRows rows(random, element, columns);
    texts.push_back(rows.text("k" + std::to_string(texts.size())));
    source += texts.back();
  }
  KernelModule module(source);
  ASSERT_TRUE(module.ok());
  for (size_t i = 0; i < texts.size(); ++i) {
    SCOPED_TRACE(texts[i]);
    module.check("k" + std::to_string(i), {3, 0, random()});
  }
  module.compileForGPUs({"sm_90a"});
  for (const auto &[type, error] : module.worst)
    std::cout << element << " kernels, " << type << " results: largest relative L2 " << error
              << "\n";
  if (seed == kSeed)
    for (const char *skeleton : {"Map", "WarpRow", "BlockRow"})
      EXPECT_GE(count(module.cuda().text, std::string("braid::") + skeleton + "<"), 1) << skeleton;
}

INSTANTIATE_TEST_SUITE_P(All, CUDARandomRows,
                         ::testing::Values(std::string("f32"), std::string("f16"),
                                           std::string("bf16")),
                         [](const auto &info) { return info.param; });
