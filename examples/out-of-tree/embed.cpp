//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiler and runtime embedded in a program: a model as text is partitioned over two ranks,
// compiled, run, and compared with plain loops.
//
//   embed [OUT.braid]
//
//===----------------------------------------------------------------------===//
#include "braid/InitAll.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/Model.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <cmath>
#include <cstdio>

namespace rt = braid::runtime;

namespace {

constexpr int64_t kRows = 4, kInner = 64, kColumns = 32;

// The weight is split by columns, so each rank has a partial sum of every element of y.
const char kModel[] = R"mlir(
  comm.mesh @mesh <tp = 2>
  func.func @main(%x: tensor<4x64xf32> {nn.name = "x"}) -> (tensor<4x32xf32> {nn.name = "y"})
      attributes {nn.entry} {
    %w = nn.parameter "w" {comm.shardings = [#comm.sharding<@mesh, [{}, {tp}]>]} : tensor<32x64xf32>
    %y = nn.linear %x, %w role "mlp.down" : tensor<4x64xf32>, tensor<32x64xf32> -> tensor<4x32xf32>
    return %y : tensor<4x32xf32>
  }
)mlir";

int fail(const std::string &message) {
  std::fprintf(stderr, "embed: error: %s\n", message.c_str());
  return 1;
}

/// The full weight, which is the same for every sharding.
rt::Result<rt::HostTensor> fullWeight(const rt::Manifest &manifest, rt::WeightSource &weights) {
  const rt::Parameter &parameter = manifest.entries.front().parameters.front();
  rt::HostTensor full = rt::HostTensor::zeros(parameter.dtype, parameter.globalShape);
  rt::Box all{{0, 0}, parameter.globalShape};
  if (rt::Status status = weights.read(parameter, all, full.data.data()); !status.ok())
    return status;
  return full;
}

/// The largest difference from plain loops.
double compare(const rt::HostTensor &x, const rt::HostTensor &w, const rt::HostTensor &y) {
  double largest = 0;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < kInner; ++k)
        sum += double(x.as<float>()[i * kInner + k]) * double(w.as<float>()[j * kInner + k]);
      largest = std::max(largest, std::abs(sum - double(y.as<float>()[i * kColumns + j])));
    }
  return largest;
}

} // namespace

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  braid::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(kModel, &context);
  if (!module)
    return fail("the model is not a valid module");
  braid::CompileOptions options;
  options.isas = {"host"};
  mlir::FailureOr<rt::Bundle> compiled = braid::compileToBundle(*module, options);
  if (mlir::failed(compiled))
    return fail("the model cannot be compiled");
  if (argc > 1)
    if (rt::Status status = compiled->write(argv[1]); !status.ok())
      return fail(status.message());

  auto bundle = std::make_shared<const rt::Bundle>(std::move(*compiled));
  rt::Result<std::shared_ptr<const rt::World>> world = rt::World::create({});
  if (!world.ok())
    return fail(world.status().message());
  rt::Result<std::unique_ptr<rt::Model>> model = rt::Model::load(*world, bundle);
  if (!model.ok())
    return fail(model.status().message());
  std::unique_ptr<rt::WeightSource> weights = rt::WeightSource::random(/*seed=*/7);
  if (rt::Status status = (*model)->loadWeights(*weights); !status.ok())
    return fail(status.message());
  rt::Result<rt::Execution *> execution = (*model)->execution();
  if (!execution.ok())
    return fail(execution.status().message());
  rt::HostTensor x = rt::HostTensor::zeros(rt::DType::f32, {kRows, kInner});
  for (int64_t i = 0; i < x.numElements(); ++i)
    x.as<float>()[i] = float(i % 17) - 8;
  if (rt::Status status = (*execution)->setInput("x", x); !status.ok())
    return fail(status.message());
  if (rt::Status status = (*execution)->run(); !status.ok())
    return fail(status.message());
  rt::Result<rt::HostTensor> y = (*execution)->output("y");
  if (!y.ok())
    return fail(y.status().message());

  rt::Result<rt::HostTensor> w = fullWeight(bundle->manifest(), *weights);
  if (!w.ok())
    return fail(w.status().message());
  double difference = compare(x, *w, *y);
  std::printf("%lld ranks, largest difference from plain loops %.1e\n",
              static_cast<long long>(bundle->manifest().mesh.numRanks()), difference);
  std::printf("y begins with %.9g\n", double(y->as<float>()[0]));
  return difference < 1e-5 ? 0 : 2;
}
