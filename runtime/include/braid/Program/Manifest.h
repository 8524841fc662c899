//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The description of a bundle: its mesh, its entries with their parameters, states, operands and
// results,
// and its kernel libraries. ManifestJson.h is its form as manifest.json.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_PROGRAM_MANIFEST_H
#define BRAID_PROGRAM_MANIFEST_H

#include "braid/Base/Parameter.h"

namespace braid::runtime {

struct Entry {
  std::string name; ///< "main" unless the bundle has several
  std::vector<Parameter> parameters;
  std::vector<EntryValue> operands, results;
  /// What the model keeps between runs. States of one name are the same memory in all entries.
  std::vector<EntryValue> states = {};
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

/// The machine for which collectives were encoded where that is faster on it.
struct EncodedFor {
  std::string machine;               ///< its name
  std::vector<int64_t> ranksOfHosts; ///< of each host, in the order of ranks
};

/// A promise on the error of encoded collectives, and how it was kept when they were chosen. Values
/// are those of one batch: of `cosine` the mean over the rows of a result, else over all of it.
struct ErrorBudget {
  std::string metric;      ///< "cosine", "relative-l2", "kl" or "perplexity"
  double bound = 0;        ///< of the mean over batches
  double measured = 0;     ///< that mean
  double percentile95 = 0; ///< 95 of 100 batches are at least as good
  int64_t batches = 0;
  std::string encodings; ///< as --quantize takes them
};

struct Manifest {
  static constexpr int64_t kFormatVersion = 1;
  int64_t formatVersion = kFormatVersion;
  std::string producer;  ///< "braid 0.1.0"
  std::string modelName; ///< for reports
  Mesh mesh;
  std::vector<Entry> entries;
  std::vector<KernelLibrary> kernels;
  std::vector<std::string> transports; ///< that can run it
  std::string programMember = "program.brpg";
  /// Relative L2 distance from the results of the model without encodings that `--check` allows,
  /// greater than 0; none where nothing is encoded.
  std::optional<double> checkTolerance = {};
  /// None where nothing is encoded, or all is that was asked for.
  std::optional<EncodedFor> encodedFor = {};
  std::optional<ErrorBudget> errorBudget = {}; ///< that encodings were chosen under
  std::string moduleMember; ///< module as MLIR bytecode for --check reference; empty when stripped

  /// Checks everything that does not need the members: names, shapes against shardings and slices,
  /// and the members' paths. Reading a manifest and making a bundle include this.
  Status verify() const;
};

} // namespace braid::runtime
#endif // BRAID_PROGRAM_MANIFEST_H
