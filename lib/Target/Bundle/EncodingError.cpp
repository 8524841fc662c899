//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "EncodingError.h"

#include "braid/Base/Encoding.h"
#include "braid/Base/RowQuantization.h"
#include "dialects/RT/IR/RT.h"

#include "llvm/ADT/StringSet.h"

#include <cmath>

using namespace mlir;

namespace braid {

namespace {

/// Of a payload that is a chunk of a value, or a piece of one, the name that all chunks share:
/// "mlp.down/all_gather" of "mlp.down/chunk#2/all_gather". Empty for other payloads.
std::string valueOfChunk(Value payload) {
  while (auto piece = payload.getDefiningOp<rt::SubviewOp>())
    payload = piece.getSource();
  for (Operation *user : payload.getUsers()) {
    auto start = dyn_cast<rt::StartOp>(user);
    if (!start || !start.getRole())
      continue;
    SmallVector<StringRef> names; // one for each value, or one of all
    start.getRole()->split(names, '+');
    for (auto [i, input] : llvm::enumerate(start.getInputs())) {
      auto [value, chunk] = names[std::min(i, names.size() - 1)].split("/chunk#");
      if (input == payload && !chunk.empty())
        return (value + "/" + chunk.split('/').second).str();
    }
  }
  return "";
}

/// The square of the error of a matmul of 8-bit integers: both of its operands have one.
double matmulError(rt::LaunchOp launch) {
  auto lhs = cast<ShapedType>(launch.getInputs().front().getType());
  if (!lhs.getElementType().isInteger(8))
    return 0;
  const double error = runtime::expectedRowError(lhs.getShape().back());
  return 2 * error * error;
}

/// Sums of squares, by procedure.
class ErrorsOf {
public:
  double operator()(rt::ProcedureOp procedure) {
    if (auto it = known.find(procedure); it != known.end())
      return it->second;
    known[procedure] = 0; // the verifier refuses recursion
    double sum = 0;
    llvm::StringSet<> cut; // values in chunks, which together lose what the value would
    procedure.walk([&](Operation *op) {
      if (auto call = dyn_cast<rt::CallOp>(op))
        sum += (*this)(call.getProcedure());
      auto launch = dyn_cast<rt::LaunchOp>(op);
      rt::KernelOp kernel = launch ? launch.getKernelOp() : rt::KernelOp();
      if (!kernel)
        return;
      auto isFirst = [&](Value payload) {
        const std::string whole = valueOfChunk(payload);
        return whole.empty() || cut.insert(whole).second;
      };
      auto add = [&](const runtime::Encoding &encoding) {
        sum += encoding.expectedError() * encoding.expectedError();
      };
      for (unsigned i = 0, end = kernel.getResultTypes().size(); i < end; ++i)
        if (auto payload = kernel.getPayload(kernel.getArgumentTypes().size() + i);
            payload && isFirst(launch.getOutputs()[i]))
          add(payload.getEncoding().getPair().reduce);
      if (kernel.getLibrary() == "matmul")
        sum += matmulError(launch);
      if (kernel.getLibrary() != "encode")
        return;
      const auto encoding = runtime::Encoding::fromCode(
          static_cast<uint32_t>(cast<IntegerAttr>(kernel.getScalars()[0]).getInt()));
      if (encoding.ok() && isFirst(launch.getOutputs().front()))
        add(*encoding);
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
