//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Row kernels as CUDA, run on the CPU, against the interpreter.
//
//===----------------------------------------------------------------------===//
#include "KernelCheck.h"
#include "RandomRows.h"

#include <iostream>

using namespace braid;
using namespace braid::test;

namespace {
std::string substitute(std::string source,
                       const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values)
    for (size_t at; (at = source.find("$" + name)) != std::string::npos;)
      source.replace(at, name.size() + 1, value);
  return source;
}

/// One map of (rows, column) with an operand for each column; `body` goes from %a and %b to %y.
std::string mapSource(const std::string &name, int64_t columns, const std::string &body) {
  return substitute(R"(
    rt.kernel @$NAME(%x: tensor<?x$Cxf32> {rt.name = "x"}, %w: tensor<$Cxf32>) -> tensor<?x$Cxf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?x$Cxf32>
      %e = tensor.empty(%n) : tensor<?x$Cxf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>,
                                            affine_map<(r, c) -> (r, c)>], iterator_types = ["parallel", "parallel"]}
          ins(%x, %w : tensor<?x$Cxf32>, tensor<$Cxf32>) outs(%e : tensor<?x$Cxf32>) {
        ^bb0(%a: f32, %b: f32, %o: f32):
          $BODY
          linalg.yield %y : f32
      } -> tensor<?x$Cxf32>
      rt.yield %0 : tensor<?x$Cxf32>
    })",
                    {{"NAME", name}, {"BODY", body}, {"C", std::to_string(columns)}});
}

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
    source += mapSource("map" + std::to_string(columns), columns,
                        "%0 = arith.mulf %a, %b : f32\n %y = arith.subf %0, %a : f32");
  KernelModule module(source);
  ASSERT_TRUE(module.ok());
  for (const std::string &kernel : module.symbols())
    for (int64_t rows : {1, 5})
      module.check(kernel, {rows});
}

TEST(CUDARows, StridedAndInPlace) {
  KernelModule module(mapSource("wide", 64, "%y = arith.addf %a, %b : f32") +
                      mapSource("odd", 33, "%y = arith.addf %a, %b : f32"));
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

TEST(CUDARows, NothingAlongAColumn) {
  KernelModule module(R"(
    rt.kernel @column_free(%x: tensor<?xf32>) -> tensor<?xf32> {
      %c0 = arith.constant 0 : index
      %n = tensor.dim %x, %c0 : tensor<?xf32>
      %e = tensor.empty(%n) : tensor<?xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(r) -> (r)>, affine_map<(r) -> (r)>],
                           iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
        ^bb0(%a: f32, %o: f32):
          %y = arith.addf %a, %a : f32
          linalg.yield %y : f32
      } -> tensor<?xf32>
      rt.yield %0 : tensor<?xf32>
    }
    rt.kernel @unchanged(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
      rt.yield %x : tensor<?x8xf32>
    })");
  ASSERT_TRUE(module.ok());
  module.check("column_free", {300});
  module.check("unchanged", {3, 8});
}

class CUDARandomRows : public ::testing::TestWithParam<const char *> {};

TEST_P(CUDARandomRows, AgainstTheInterpreter) {
  uint64_t seed = seedFromEnvironment();
  std::cout << "BRAID_DIFFERENTIAL_SEED=" << seed << "\n";
  std::string element = GetParam();
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
  for (const auto &[type, error] : module.worst)
    std::cout << element << " kernels, " << type << " results: largest relative L2 " << error
              << "\n";
  if (seed == kSeed)
    for (const char *skeleton : {"Map", "WarpRow", "BlockRow"})
      EXPECT_GE(count(module.cuda().text, std::string("braid::") + skeleton + "<"), 1) << skeleton;
}

INSTANTIATE_TEST_SUITE_P(All, CUDARandomRows, ::testing::Values("f32", "f16", "bf16"),
                         [](const auto &info) { return std::string(info.param); });
