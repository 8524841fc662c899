//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "test/unit/Target/KernelText.h"

std::string
braid::test::substitute(std::string source,
                        const std::vector<std::pair<std::string, std::string>> &values) {
  for (const auto &[name, value] : values)
    for (size_t at; (at = source.find("$" + name)) != std::string::npos;)
      source.replace(at, name.size() + 1, value);
  return source;
}

std::string braid::test::mapKernel(const std::string &name, int64_t columns,
                                   const std::string &body) {
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

const char *const braid::test::kColumnFreeKernel = R"(
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
    })";
