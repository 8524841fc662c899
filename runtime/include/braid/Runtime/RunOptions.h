//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The command line that `braid-run` and `braid run` share: options, messages and exit status. The
// compiler adds its part by hooks, so that braid-run does not link it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_RUNOPTIONS_H
#define BRAID_RUNTIME_RUNOPTIONS_H

#include "braid/Runtime/Launch.h"
#include "braid/Runtime/Model.h"

namespace braid::runtime {

/// The options of the command line.
struct RunOptions {
  std::string model; ///< a bundle, or any file that RunHooks::open takes
  std::string target = "cpu";
  WorldOptions world;
  std::string machine; ///< the file or name of world.machine; empty: none
  std::string entry;   ///< empty: the only one
  std::string weights; ///< empty: none given
  std::optional<uint64_t> randomWeights;
  std::vector<std::pair<std::string, std::string>> inputs; ///< name, path of a .npy file
  std::optional<uint64_t> randomInputs;
  std::string encodings; ///< of a program with a table of them (EncodingTable::set)
  /// Values of states before a run: name and path of a .npy file, or an empty name and a directory
  /// of NAME.npy files. A state without a value is zeros.
  std::vector<std::pair<std::string, std::string>> states;
  /// The rank, 0, whose process gives the values of inputs and states to the others.
  std::optional<int64_t> inputsFrom;
  std::string output;              ///< directory; empty: nothing is written
  std::vector<std::string> checks; ///< paths of .npy files, or "reference"
  std::optional<double> tolerance;
  int64_t repeat = 1, warmup = 0;
  std::string trace, report; ///< paths; empty: none
  /// Where processes of the model are started, what starts one there, and where they meet.
  std::optional<std::string> hosts, agent, rendezvous;
  /// If this process is one of several that serve the ranks: which one. Not of the command line.
  std::optional<LaunchInfo> launch;
  /// For `--target program-interpreter`: how many orders to run, and the seed of the first.
  std::optional<int64_t> schedules;
  std::optional<uint64_t> scheduleSeed;
};

/// The input of an executor other than a model's execution.
struct ReferenceRequest {
  const RunOptions &options;
  const Bundle &bundle;
  const Entry &entry;
  WeightSource *weights; ///< null if the entry has no parameters and no weights were given
  const std::map<std::string, HostTensor> &inputs; ///< all of the entry's operands, unpartitioned
  const std::map<std::string, HostTensor> &states; ///< those that are not zeros before the run
  /// True for `--target reference`: run the program of every rank of the mesh. False for
  /// `--check reference`: run the model as one device would.
  bool partitioned;
};

/// An option that only one tool has.
struct ExtraOption {
  std::string flag; ///< "--mesh"
  std::string help;
  std::string *value;
  bool mayBeEmpty = true; ///< whether an empty value stands for none
};

struct RunHooks {
  std::string program = "braid-run";
  std::string modelHelp = "bundle to run, as `braid compile -o` writes it (.braid)";
  std::string examples; ///< put after the help
  std::vector<ExtraOption> extraOptions;
  /// Opens the model; null: Bundle::read.
  std::function<Result<std::shared_ptr<const Bundle>>(const RunOptions &)> open;
  /// Computes the unpartitioned results and new values of states by name, for `--target reference`
  /// and `--check reference`; null: neither exists.
  std::function<Result<std::map<std::string, HostTensor>>(const ReferenceRequest &)> reference;
  /// Computes the same by running the bundle's program on memory in several orders, for
  /// `--target program-interpreter`; null: there is no such target.
  std::function<Result<std::map<std::string, HostTensor>>(const ReferenceRequest &)>
      interpretProgram;
};

/// Parses the arguments (argv[0] is skipped), runs, prints. Returns the exit status: 0 done and
/// checks passed; 1 the input or the request is wrong; 2 a check failed; 3 a rank failed.
int runMain(int argc, const char *const *argv, const RunHooks &hooks);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_RUNOPTIONS_H
