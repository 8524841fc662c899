//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The tensors in a checkpoint's header, and checks that they are what the model needs.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_CHECKPOINT_H
#define BRAID_LIB_IMPORT_CHECKPOINT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace braid {

class Checkpoint {
public:
  /// Reads the header of a safetensors file.
  static llvm::Expected<Checkpoint> read(const std::string &path);

  bool has(llvm::StringRef tensor) const { return tensors.contains(tensor); }
  /// The first tensor in the file's own order whose name starts with `prefix`, or empty.
  llvm::StringRef firstWith(llvm::StringRef prefix) const;
  /// An error unless the tensor exists with this shape and a type that loads as f32: F32, or BF16
  /// or F16, which widen without loss.
  llvm::Error expect(llvm::StringRef tensor, llvm::ArrayRef<int64_t> shape) const;

  const std::string &path() const { return file; }

private:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
  };
  std::string file;
  std::vector<std::string> names;
  llvm::StringMap<Tensor> tensors;
};

} // namespace braid
#endif // BRAID_LIB_IMPORT_CHECKPOINT_H
