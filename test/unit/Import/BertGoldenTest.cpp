//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An imported model computes what PyTorch computes: a small BERT with a ragged batch is compared
// with PyTorch's result.
//
//===----------------------------------------------------------------------===//
#include "Testing.h"

#include "braid/Interpreter/Evaluate.h"
#include "braid/Runtime/Npy.h"
#include "braid/Runtime/Safetensors.h"

using namespace braid;

namespace {

TEST(Bert, AgreesWithPyTorch) {
  std::string folder = BRAID_GOLDEN_DIR "/tiny-bert";
  auto read = [&](const std::string &name) {
    runtime::Result<runtime::HostTensor> tensor = runtime::readNpy(folder + "/" + name + ".npy");
    EXPECT_TRUE(tensor.ok()) << tensor.status().message();
    return tensor.ok() ? *tensor : runtime::HostTensor();
  };
  interp::EvaluateOptions options;
  ImportOptions request;
  request.path = folder;
  for (const char *name : {"input_ids", "attention_mask", "token_type_ids"}) {
    runtime::HostTensor value = read(name);
    ASSERT_EQ(value.shape.size(), 2U);
    request.batch = value.shape[0];
    request.seq = value.shape[1];
    options.inputs.push_back({name, interp::Tensor::fromHost(value)});
  }
  auto weights = runtime::openSafetensors(folder);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  options.weights = weights->get();

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module =
      importHuggingFace(&context, request, [](const std::string &message) { FAIL() << message; });
  ASSERT_TRUE(mlir::succeeded(module));
  auto evaluation = interp::evaluate(**module, options);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().message();
  ASSERT_EQ(evaluation->results.size(), 1U);
  EXPECT_EQ(evaluation->results[0].name, "last_hidden_state");
  interp::Tensor expected = interp::Tensor::fromHost(read("last_hidden_state"));
  ASSERT_EQ(evaluation->results[0].value.typeString(), expected.typeString());
  EXPECT_LT(interp::relativeL2(evaluation->results[0].value, expected), 2e-6);
}

} // namespace
