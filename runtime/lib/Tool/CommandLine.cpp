//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "OptionChecks.h"
#include "braid/Cost/Machine.h"
#include "braid/Runtime/Version.h"

#include <CLI/CLI.hpp>
#include <cmath>

#include <cstdio>
#include <iostream>

namespace braid::runtime {

using tool::isGiven;
using tool::isNotNegative;

namespace {

/// "name=path"
Status parseInput(const std::string &text, RunOptions &options) {
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return Status::error("--input expects NAME=FILE.npy, got '", text, "'");
  for (const auto &input : options.inputs)
    if (input.first == text.substr(0, equals))
      return Status::error("--input '", input.first, "' is given twice");
  options.inputs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  return {};
}

/// "rank" or "rank:command"
Status parseStall(const std::string &text, RunOptions &options) {
  size_t colon = text.find(':');
  std::string rank = text.substr(0, colon);
  if (rank.empty() || rank.size() > 9 || rank.find_first_not_of("0123456789") != std::string::npos)
    return Status::error("--inject-stall expects RANK or RANK:COMMAND, got '", text, "'");
  options.world.stall =
      StallInjection{std::stoll(rank), colon == std::string::npos ? "" : text.substr(colon + 1)};
  return {};
}

/// A file, a name, or "host".
Status openMachine(const std::string &given, RunOptions &options) {
  if (options.target != "cpu")
    return Status::error("--machine expects --target cpu");
  const std::string path = given == "host" ? cost::defaultMachinePath() : given;
  if (path.empty())
    return Status::error("--machine host: no folder for caches is known");
  Result<cost::Machine> machine = cost::openMachine(path);
  if (!machine.ok())
    return machine.status().within(given == "host" ? "--machine host (`braid calibrate` writes it)"
                                                   : "--machine");
  if (machine->compute.empty())
    return Status::error("--machine expects a file that `braid calibrate` wrote, got '",
                         machine->name, "', which has no rates of a processor");
  options.world.machine = std::make_shared<const cost::Machine>(std::move(*machine));
  options.machine = path;
  return {};
}

const char *const kBraidRunExamples = R"(Examples:
  # run once on all ranks of the bundle; write results to out/NAME.npy
  braid-run model.braid --weights model.safetensors --input input_ids=ids.npy --output out

  # compare with known values; exit status 2 if they differ
  braid-run model.braid --weights model.safetensors --input input_ids=ids.npy --check last_hidden_state.npy

  # measure the speed and the exposed communication
  braid-run model.braid --random-weights 1 --random-inputs 1 --warmup 3 --repeat 20 --report r.json --trace t.json

Exit status: 0 done and checks passed; 1 the input or the request is wrong; 2 a check failed; 3 a rank failed.
A bundle contains machine code: run only bundles from sources that you trust.
)";

} // namespace

std::optional<int> parseCommandLine(int argc, const char *const *argv, const RunHooks &hooks,
                                    RunOptions &options) {
  CLI::App app("Runs a compiled model on all ranks of its mesh, as threads or as processes.",
               hooks.program);
  app.footer(hooks.examples.empty() ? kBraidRunExamples : hooks.examples);
  app.set_version_flag("--version", std::string(version()));
  app.get_formatter()->column_width(38);

  std::vector<std::string> inputs, states;
  std::string stall, machine;
  WorldOptions &world = options.world;
  app.add_option("MODEL", options.model, hooks.modelHelp)->required();

  const char *values = "Inputs and outputs";
  auto *weights = app.add_option(
      "--weights", options.weights,
      "checkpoint: a .safetensors file, the .json index of several, or a directory that holds "
      "model.safetensors or model.safetensors.index.json");
  weights->type_name("FILE|DIR")->group(values);
  app.add_option("--random-weights", options.randomWeights,
                 "in place of --weights: weights that depend on this seed, the parameter's name "
                 "and the element only")
      ->type_name("SEED")
      ->check(isNotNegative)
      ->excludes(weights)
      ->group(values);
  app.add_option("--input", inputs,
                 "an input's full value; once per input. One with a default, such as "
                 "attention_mask (ones) and token_type_ids (zeros), may be left out")
      ->type_name("NAME=FILE.npy")
      ->take_all()
      ->allow_extra_args(false)
      ->group(values);
  app.add_option("--random-inputs", options.randomInputs,
                 "in place of the other inputs: values that depend on this seed, the input's name "
                 "and the element only, integers below the model's bound")
      ->type_name("SEED")
      ->check(isNotNegative)
      ->group(values);
  app.add_option(
         "--state", states,
         "a state's full value before each run (default: zeros), or a directory with a file "
         "NAME.npy for each of the entry's states, such as an --output of another run")
      ->type_name("NAME=FILE.npy|DIR")
      ->take_all()
      ->allow_extra_args(false)
      ->group(values);
  app.add_option("--encodings", options.encodings,
                 "of a program that was compiled with --quantize table: how its collectives would "
                 "travel, such as '*=int8:128' or 'mlp.down=int4:128/none'; the last pattern that "
                 "matches counts")
      ->type_name("PATTERN=ENCODING,...")
      ->check(isGiven)
      ->group(values);
  app.add_option("--inputs-from", options.inputsFrom,
                 "where ranks are processes on several hosts: only the process of rank 0 reads "
                 "inputs and states (or draws them), and sends each rank its part")
      ->type_name("0")
      ->check([](const std::string &text) {
        return text == "0" ? std::string()
                           : "expects 0, the only rank that can give them, got " + text;
      })
      ->group(values);
  app.add_option("--output", options.output,
                 "write every result and every state after the last run to DIR/NAME.npy, gathered "
                 "from the ranks; nothing is written unless all succeeds")
      ->type_name("DIR")
      ->group(values);

  const char *how = "Execution";
  app.add_option("--ranks", world.ranks,
                 "must equal the bundle's number of ranks (default: that number)")
      ->type_name("N")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 24).description(""))
      ->group(how);
  app.add_option("--threads", world.threadsPerRank, "threads that share the computation of a rank")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str()
      ->group(how);
  app.add_flag("--pin", world.pin,
               "keep each thread that computes on a core, its own where there are enough; the "
               "report says "
               "which")
      ->group(how);
  app.add_flag("--copy-payloads", world.copyPayloads,
               "of encoded collectives between ranks that see each other's memory: copy payloads "
               "to each rank before they are decoded, instead of decoding them where they lie")
      ->group(how);
  app.add_option(
         "--transport", world.transport,
         "how ranks exchange data; threads: every rank is a thread, or on target cuda all "
         "ranks share a GPU; shm: every rank is a process of this host; nccl: every rank has "
         "a GPU; ucx: this process has one rank, the others are on any host, as --hosts, "
         "torchrun, Slurm, Open MPI or PMI start them")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(how);
  std::vector<std::string> targets{"cpu", "cuda"};
  std::string help = "cpu: the compiled program; cuda: the same on GPUs of NVIDIA";
  if (hooks.reference) {
    targets.emplace_back("reference");
    help += "; reference: the partitioned model in the interpreter, with a thread for every rank";
    if (hooks.interpretProgram) {
      targets.emplace_back("program-interpreter");
      help += "; program-interpreter: the compiled program on memory, in orders that its queues "
              "and events allow, to find commands that they fail to order and buffers that share "
              "bytes";
    }
  }
  app.add_option("--target", options.target, help)
      ->check(CLI::IsMember(targets))
      ->capture_default_str()
      ->group(how);
  app.add_flag("--cuda-graph", world.cudaGraph,
               "on target cuda, give the devices a run as one graph, captured in the second run")
      ->group(how);
  app.add_option("--entry", options.entry, "entry of the model (default: the only one)")
      ->type_name("NAME")
      ->group(how);
  app.add_option("--time-limit", world.timeLimitSeconds,
                 "stop when no rank makes progress for this long; 0: never")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->capture_default_str()
      ->group(how);
  app.add_option(
         "--spin-us", world.spinMicroseconds,
         "poll for this long before a waiting thread sleeps (default: 50, or 1 under a quota of "
         "processor time that is less than 0.8 of what the threads need)")
      ->type_name("MICROSECONDS")
      ->check(CLI::Range(0.0, 1e6).description(""))
      ->group(how);

  app.add_option("--hosts", options.hosts,
                 "run a rank of the mesh in each of N processes (1) on each host, which has this "
                 "program and the files at the same paths")
      ->type_name("HOST[:N],...")
      ->group(how);
  app.add_option("--agent", options.agent,
                 "for --hosts: runs a command on a host (default: ssh -x -o BatchMode=yes)")
      ->type_name("PROGRAM")
      ->group(how);
  app.add_option("--rendezvous", options.rendezvous,
                 "where processes that a launcher started meet: tcp://HOST:PORT or file:PATH "
                 "(default: as the launcher says)")
      ->type_name("PLACE")
      ->group(how);

  const char *check = "Checking";
  app.add_option(
         "--check", options.checks,
         std::string("compare with the result that FILE is named after, or with the only result") +
             (hooks.reference
                  ? "; 'reference': compare all with the interpreter's results of the compiled "
                    "module: on one device, or on all ranks if it was the program of a rank"
                  : ""))
      ->type_name(hooks.reference ? "FILE.npy|reference" : "FILE.npy")
      ->take_all()
      ->allow_extra_args(false)
      ->group(check);
  app.add_option(
         "--tolerance", options.tolerance,
         "largest relative L2 distance that passes (default: 2e-5 for f32, 2e-3 for f16, and "
         "where collectives are encoded what the bundle expects of that); "
         "integers must be equal")
      ->type_name("X")
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""))
      ->group(check);
  if (hooks.interpretProgram) {
    app.add_option("--schedules", options.schedules,
                   "orders that the program interpreter runs, which must all give the same bits "
                   "(default: 10)")
        ->type_name("K")
        ->check(CLI::Range(int64_t(1), int64_t(1) << 32).description(""))
        ->group(check);
    app.add_option("--schedule-seed", options.scheduleSeed,
                   "seed of the first of those orders; the next ones have the next seeds (default: "
                   "1)")
        ->type_name("SEED")
        ->check(isNotNegative)
        ->group(check);
  }
  app.add_option("--inject-stall", stall,
                 "stop this rank on purpose before a command (default: its first), to test the "
                 "handling of a stalled rank")
      ->type_name("RANK[:COMMAND]")
      ->group(check);

  app.add_option(
         "--cuda-library", world.cudaLibrary,
         "on target cuda, for tests: a library that stands in for the CUDA driver, cuBLASLt "
         "and NCCL")
      ->type_name("FILE")
      ->group(check);

  const char *measure = "Measuring";
  app.add_option("--repeat", options.repeat, "runs that are measured")
      ->type_name("K")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 32).description(""))
      ->capture_default_str()
      ->group(measure);
  app.add_option("--warmup", options.warmup, "runs before the measured ones")
      ->type_name("K")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 32).description(""))
      ->capture_default_str()
      ->group(measure);
  app.add_option("--report", options.report, "write times, bytes and memory as JSON")
      ->type_name("FILE")
      ->group(measure);
  app.add_option("--trace", options.trace,
                 "write the times of all commands of the last run in the Chrome trace event format "
                 "(ui.perfetto.dev opens it)")
      ->type_name("FILE")
      ->group(measure);
  app.add_option("--machine", machine,
                 "choose the algorithms of collectives by their predicted times, in place of fixed "
                 "rules, and print and report the predicted times of runs, calls and collectives "
                 "beside the measured ones, on target cpu: a "
                 "machine file that `braid calibrate` wrote, the same on all hosts, or host for "
                 "the one that it writes by default")
      ->type_name("FILE|host")
      ->group(measure);
  for (const ExtraOption &extra : hooks.extraOptions)
    if (CLI::Option *added =
            app.add_option(extra.flag, *extra.value, extra.help)->group("Compiling");
        !extra.mayBeEmpty)
      added->check(isGiven);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0) // help and version
      return app.exit(e);
    std::cerr << hooks.program << ": error: " << e.what() << "\nrun with --help for the options\n";
    return 1;
  }
  Status status;
  for (size_t i = 0; i < inputs.size() && status.ok(); ++i)
    status = parseInput(inputs[i], options);
  for (const std::string &state : states) {
    const size_t equals = state.find('=');
    if (equals == std::string::npos)
      options.states.emplace_back("", state);
    else
      options.states.emplace_back(state.substr(0, equals), state.substr(equals + 1));
  }
  if (status.ok() && !stall.empty())
    status = parseStall(stall, options);
  // A comparison with NaN is false, so the range check above lets it pass.
  if (status.ok() && options.tolerance && std::isnan(*options.tolerance))
    status = Status::error("--tolerance expects a number, got nan");
  if (status.ok() && !options.trace.empty() && options.trace == options.report)
    status = Status::error("--trace and --report name the same file '", options.trace, "'");
  if (status.ok() && options.target != "program-interpreter" &&
      (options.schedules || options.scheduleSeed))
    status = Status::error(options.schedules ? "--schedules" : "--schedule-seed",
                           " expects --target program-interpreter");
  if (status.ok() && options.target != "cuda" && (world.cudaGraph || !world.cudaLibrary.empty()))
    status = Status::error(world.cudaGraph ? "--cuda-graph" : "--cuda-library",
                           " expects --target cuda");
  if (status.ok() && !machine.empty())
    status = openMachine(machine, options);
  if (!status.ok()) {
    std::cerr << hooks.program << ": error: " << status.message() << "\n";
    return 1;
  }
  world.trace = !options.trace.empty() || world.machine;
  if (options.target == "cuda")
    world.target = options.target;
  return std::nullopt;
}

} // namespace braid::runtime
