//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "EncodingError.h"

#include "braid/Base/Encoding.h"
#include "dialects/RT/IR/RT.h"

#include <cmath>

using namespace mlir;

namespace braid {

namespace {

/// Sums of squares, by procedure.
class ErrorsOf {
public:
  double operator()(rt::ProcedureOp procedure) {
    if (auto it = known.find(procedure); it != known.end())
      return it->second;
    known[procedure] = 0; // the verifier refuses recursion
    double sum = 0;
    procedure.walk([&](Operation *op) {
      if (auto call = dyn_cast<rt::CallOp>(op))
        sum += (*this)(call.getProcedure());
      auto launch = dyn_cast<rt::LaunchOp>(op);
      rt::KernelOp kernel = launch ? launch.getKernelOp() : rt::KernelOp();
      if (!kernel || kernel.getLibrary() != "encode")
        return;
      const auto encoding = runtime::Encoding::fromCode(
          static_cast<uint32_t>(cast<IntegerAttr>(kernel.getScalars()[0]).getInt()));
      if (encoding.ok())
        sum += encoding->expectedError() * encoding->expectedError();
    });
    known[procedure] = sum;
    return sum;
  }

private:
  llvm::DenseMap<Operation *, double> known;
};

} // namespace

std::optional<double> expectedTolerance(ModuleOp module) {
  ErrorsOf errorsOf;
  double most = 0;
  for (auto procedure : module.getOps<rt::ProcedureOp>())
    if (procedure.getEntry())
      most = std::max(most, errorsOf(procedure));
  if (most == 0)
    return std::nullopt;
  return std::min(3 * std::sqrt(most), 0.9);
}

} // namespace braid
