//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Checkpoint.h"

#include "Config.h"
#include "braid/Base/Weights.h"
#include "braid/Runtime/Safetensors.h"

using namespace braid;
using llvm::StringRef;

llvm::Expected<Checkpoint> Checkpoint::read(const std::string &path) {
  runtime::Result<std::unique_ptr<runtime::WeightSource>> source = runtime::openSafetensors(path);
  if (!source.ok())
    return importError(source.status().message());
  Checkpoint checkpoint;
  checkpoint.file = path;
  for (runtime::TensorInfo &info : (*source)->tensors()) {
    checkpoint.names.push_back(info.name);
    checkpoint.tensors[info.name] = {std::move(info.dtype), std::move(info.shape)};
  }
  return checkpoint;
}

StringRef Checkpoint::firstWith(StringRef prefix) const {
  for (const std::string &name : names)
    if (StringRef(name).starts_with(prefix))
      return name;
  return {};
}

llvm::Error Checkpoint::expect(StringRef tensor, llvm::ArrayRef<int64_t> shape) const {
  auto it = tensors.find(tensor);
  if (it == tensors.end())
    return importError("'", file, "': tensor '", tensor, "' is missing, expects F32 of shape ",
                       shapeText(shape));
  const Tensor &got = it->second;
  if (!llvm::is_contained({"F32", "BF16", "F16"}, got.dtype))
    return importError("'", file, "': expects tensor '", tensor, "' to be F32, BF16 or F16, got ",
                       got.dtype);
  if (shape != llvm::ArrayRef<int64_t>(got.shape))
    return importError("'", file, "': expects tensor '", tensor, "' of shape ", shapeText(shape),
                       ", got ", shapeText(got.shape));
  return llvm::Error::success();
}
