//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The subcommands of `braid`, separate from the command line that fills their options.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TOOLS_BRAID_COMMANDS_H
#define BRAID_TOOLS_BRAID_COMMANDS_H

#include "braid/Runtime/Explain.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace braid::tool {

/// Exit statuses of all subcommands.
enum ExitCode { kDone = 0, kInvalid = 1, kCheckFailed = 2, kRankFailed = 3 };

struct ImportArgs {
  std::string model;  ///< directory or config.json
  std::string output; ///< "-" for standard output
  int64_t batch = 1, seq = 128;
  std::optional<int64_t> layers; ///< all of them when absent
  std::string result;            ///< what the architecture gives when empty
  std::string logits = "all", dtype = "f32";
};
int runImport(const ImportArgs &args);

/// Libraries that bring dialects and passes.
struct PluginArgs {
  std::vector<std::string> dialects, passes;
};

/// Options to choose encodings under an error budget.
struct BudgetArgs {
  std::string bound;                     ///< "cosine>=0.999"; empty: none
  std::string calibration;               ///< EvaluationData::read
  std::string candidates;                ///< encodings with commas; empty: the default ones
  std::string weights;                   ///< of `braid compile`
  std::optional<uint64_t> randomWeights; ///< in place of weights
};

/// Options to compile a module to a bundle, or to the text of a level.
struct CompileArgs {
  PluginArgs plugins;
  std::string model; ///< .mlir text or bytecode of level nn, comm, kernels or scheduled
  std::string output;
  std::string mesh, strategy;  ///< empty: the module's own or one rank; auto
  std::string passes;          ///< to run on the partitioned module
  std::string quantize;        ///< how collectives are encoded
  std::string quantizeMatmuls; ///< which matmuls multiply 8-bit integers
  /// For `quantize`: where encodings are faster, by a machine file, a name or "host"; and where the
  /// ranks will be, as `braid run` takes it.
  std::string machine, transport, hosts;
  BudgetArgs budget; ///< in place of quantize
  std::string target = "cpu";
  std::string emit;                 ///< level to print instead of writing a bundle
  std::vector<std::string> isas;    ///< empty: x86-64-v3 and the host's own
  std::string dumpDirectory;        ///< IR after each phase, numbered
  bool stripModule = false;         ///< leave the module out of the bundle
  bool printLocations = false;      ///< in the text of a level
  std::vector<std::string> remarks; ///< categories of remarks to print
  std::string report;
};
int runCompile(const CompileArgs &args);

/// Options to run a model on data under many encodings.
struct EvaluateArgs {
  PluginArgs plugins;
  std::string model, mesh, strategy, passes, weights, data, entry, result, output;
  std::string quantizeMatmuls; ///< as in CompileArgs
  std::optional<uint64_t> randomWeights;
  std::string form;                     ///< logits, sentences or rows; empty: as the result says
  std::vector<std::string> encodings;   ///< each for all collectives, or PATTERN=ENCODING,...
  std::vector<std::string> sensitivity; ///< of single halves
  std::optional<int64_t> batches;       ///< all when absent
  int64_t sensitivityBatches = 2;
  int64_t threads = 1;
};
int runEvaluate(const EvaluateArgs &args);

/// Options to explain a bundle's program.
struct ExplainArgs {
  std::string bundle, procedure;
  std::optional<int64_t> rank;
  bool json = false;
  bool hasSchedule = false; ///< print the steps of collectives instead
  runtime::ScheduleOptions schedule;
};
int runExplain(const ExplainArgs &args);

/// Reports this host's features that Braid can use. kInvalid when the CPU target lacks something.
int runDoctor(bool json);

/// Options to measure this host.
struct CalibrateArgs {
  std::string output;                  ///< empty: cost::defaultMachinePath()
  std::string name;                    ///< of the machine; empty: the file's
  std::vector<std::string> transports; ///< empty: all
  bool quick = false;
  double maxLoad = 0.25; ///< cores that other programs may use
  /// Measures links between the hosts of a job in place of this host, and adds them to the file.
  bool links = false;
  /// Measures nothing: takes the medians of these machine files.
  std::vector<std::string> medianOf;
  std::string hosts; ///< that the job's processes are started on; empty: a launcher has
  std::string agent; ///< empty: ssh
};
int runCalibrate(const CalibrateArgs &args);

/// Options to move the range of activations into weights.
struct SmoothArgs {
  std::string model, weights;
  std::vector<std::string> inputs; ///< NAME=FILE.npy
  double alpha = 0.5;              ///< how much of it
  std::string output;              ///< .safetensors
};
int runSmooth(const SmoothArgs &args);

/// `braid run`: parses its own arguments (argv[0] is "run"), which are those of `braid-run` and a
/// few of the compiler's.
int runRun(int argc, const char *const *argv);

/// Removes the options that begin with --mlir- from the command line and passes them to LLVM's
/// parser: MLIR's own options for passes. False, with a message, for an unknown option.
bool takeMlirOptions(int &argc, char **argv);

} // namespace braid::tool
#endif // BRAID_TOOLS_BRAID_COMMANDS_H
