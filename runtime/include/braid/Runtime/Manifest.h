//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a bundle says about itself besides its code: the mesh, the entries with their parameters,
// operands and results, and which kernel libraries it carries. Written as manifest.json, read by
// the one reader here, which the compiler uses too. Depends on neither MLIR nor LLVM.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_MANIFEST_H
#define BRAID_RUNTIME_MANIFEST_H

#include "braid/Base/Status.h"
#include "braid/Runtime/Mesh.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

enum class DType : int8_t { f32 = 0, f16, bf16, f64, i32, i64, i8 }; // values equal program.fbs
int64_t byteSize(DType type);
inline bool isInteger(DType type) {
  return type == DType::i32 || type == DType::i64 || type == DType::i8;
}
const char *name(DType type);                      // "f32", ...
Result<DType> parseDType(const std::string &name); // "f32", ...

/// One piece of a parameter: part of a tensor of the checkpoint, permuted, put at a place in the
/// parameter. parameter[destOffsets + i] = permute(tensor, permutation)[sourceOffsets + i] for 0 <=
/// i < sizes. All vectors have the parameter's rank and speak of the *permuted* tensor; elements
/// that no slice covers are zero. Slices do not overlap, and a parameter has at least one.
struct Slice {
  std::string tensor;               ///< name in the checkpoint
  std::vector<int64_t> tensorShape; ///< the shape it must have there
  std::vector<int64_t>
      permutation; ///< permuted dim d is the tensor's dim permutation[d]; identity when empty
  std::vector<int64_t> sourceOffsets, destOffsets, sizes;
};

/// What random weights a tensor gets (RandomWeights.h).
enum class Init : int8_t { normal = 0, ones, zeros };

struct Parameter {
  std::string name;
  DType dtype = DType::f32;
  Init init = Init::normal;
  std::vector<int64_t> globalShape;
  Sharding sharding; ///< which part each rank has; empty dims: all of it
  std::vector<Slice> slices;

  const std::vector<int64_t> &cutShape() const { return globalShape; }
};

/// An operand or a result of an entry, under the name that --input and --output use.
struct EntryValue {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> globalShape;
  Sharding sharding;
  /// Of a result: the shape that is cut, at least as large in every dimension; what is beyond
  /// `globalShape` is padding that nobody gets to see. Empty: there is none.
  std::vector<int64_t> paddedShape = {};

  /// Of an operand of integers: what every element is when nobody gives it a value, and what all
  /// elements are below.
  std::optional<int64_t> defaultValue = std::nullopt, below = std::nullopt;

  const std::vector<int64_t> &cutShape() const {
    return paddedShape.empty() ? globalShape : paddedShape;
  }
};

struct Entry {
  std::string name; ///< "main" unless the bundle has several
  std::vector<Parameter> parameters;
  std::vector<EntryValue> operands, results;
};

struct KernelLibrary {
  std::string target; ///< "cpu"
  std::string triple; ///< "x86_64-unknown-linux-gnu"
  std::string isa;    ///< "x86-64-v3" or a processor's name, as LLVM spells it
  std::vector<std::string>
      features;       ///< LLVM feature names without "+", all of which the host must have
  std::string member; ///< "kernels/cpu-x86_64-unknown-linux-gnu-x86-64-v3/kernels.so"
  /// Of target cuda only (CudaKernels.h): how the kernels are launched, and their source.
  std::string launchesMember = {}, sourceMember = {};
};

struct Manifest {
  static constexpr int64_t kFormatVersion = 1;
  int64_t formatVersion = kFormatVersion;
  std::string producer;  ///< "braid 0.1.0"
  std::string modelName; ///< for reports
  Mesh mesh;
  std::vector<Entry> entries;
  std::vector<KernelLibrary> kernels;
  std::vector<std::string> transports; ///< which transports can run it
  std::string programMember = "program.brpg";
  std::string moduleMember; ///< module as MLIR bytecode for --check reference; empty when stripped

  /// Everything that can be checked without the members: names, shapes against shardings and
  /// slices, members that stay inside of the archive. Reading and writing do this themselves.
  Status verify() const;
  /// As manifest.json, but without the field "sha256" that a bundle adds.
  std::string toJson() const;
  /// Checks the form strictly (types, missing and unknown fields, duplicates) and then as verify()
  /// does.
  static Result<Manifest> fromJson(const std::string &text);
};

} // namespace braid::runtime
#endif // BRAID_RUNTIME_MANIFEST_H
