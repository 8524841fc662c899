//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The command line of `braid`. CLI11 throws, so this file, unlike the rest of the driver, is built
// with exceptions.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "braid/Runtime/Version.h"
#include "runtime/lib/Tool/OptionChecks.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace braid::tool;

namespace {

void addImport(CLI::App &app, ImportArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand("import", "read a Hugging Face model into an nn module");
  cmd->add_option(
         "model", args.model,
         "directory with config.json and model.safetensors (or its .index.json and the files "
         "that it names), or a config.json alone (its weights are then random at run "
         "time)")
      ->required();
  cmd->add_option("-o,--output", args.output, "output file of the module; - for standard output")
      ->required();
  cmd->add_option("--batch", args.batch, "sequences in a batch")->capture_default_str();
  cmd->add_option("--seq", args.seq, "tokens in a sequence")->capture_default_str();
  cmd->add_option("--layers", args.layers, "import only the first N layers (default: all)");
  cmd->add_option("--result", args.result,
                  "last_hidden_state, or logits over the vocabulary (default: what a decoder's "
                  "architecture gives; last_hidden_state of an encoder)");
  cmd->add_option("--logits", args.logits,
                  "logits of all positions, or of the last valid token of each sequence only, as "
                  "[batch, 1, vocab], for a decoder's next token: all or last")
      ->capture_default_str();
  cmd->add_option("--dtype", args.dtype, "type of weights and activations: f32")
      ->capture_default_str();
  cmd->footer(
      "Example:\n  braid import path/to/all-MiniLM-L6-v2 --batch 8 --seq 128 -o minilm.mlir");
  cmd->callback([&] { status = runImport(args); });
}

void addCompileOptions(CLI::App *cmd, CompileArgs &args) {
  cmd->add_option("--mesh", args.mesh,
                  "grid of ranks: axes and sizes, major first, such as dp=2,tp=2 (default: the "
                  "module's own mesh, or one rank)");
  cmd->add_option(
      "--strategy", args.strategy,
      "how the axes are used: a list of tp (attention heads and feed-forward over tp) or "
      "tp-sp (and the sequence between them), vocab (embedding and head over tp), dp "
      "(batch over dp) and fsdp (weights stored cut over dp, and gathered before use); auto, which "
      "takes tp, dp and for a decoder vocab; or none, for a module "
      "that states its shardings, over axes of any names (default: auto)");
  cmd->add_option("--passes", args.passes,
                  "passes to run on the partitioned module, before its collectives are started, "
                  "such as braid-split-all-reduce,braid-sink-all-gathers (`braid-opt --help` lists "
                  "them)");
  cmd->add_option(
         "--quantize", args.quantize,
         "how collectives travel: a list of PATTERN=ENCODING, where a pattern is a role or "
         "a path to it with * and ?, and an encoding has a half for the ranks that add and "
         "one for the sum, or one for both, such as '*=int8:128' or "
         "'mlp.down=int4:128+spikes/int8:128' (`braid-opt --help` has more under "
         "braid-quantize-collectives). With --machine only where that is faster; ! behind an "
         "encoding "
         "takes it in any case. Or table: encodings are given when the program is run (`braid run "
         "--encodings`)")
      ->check(isGiven);
  cmd->add_option(
      "--machine", args.machine,
      "with --quantize or --quantize-budget: encode only where this machine is predicted to be "
      "faster by it, and under a budget what is predicted to take the least time: "
      "a file that `braid calibrate` wrote, host, or a known machine");
  cmd->add_option("--hosts", args.hosts,
                  "with --machine: the hosts that the ranks will be on, as `braid run` takes them "
                  "(default: one)");
  cmd->add_option("--transport", args.transport,
                  "with --machine: by which ranks will reach each other: threads, shm or ucx "
                  "(default: shm on one host, ucx over several)");
  CLI::Option *budget = cmd->add_option(
      "--quantize-budget", args.budget.bound,
      "choose the encodings: the cheapest that keep a promise on the result over the batches of "
      "--calibration: cosine>=0.999, relative-l2<=0.02, kl<=0.01 or perplexity<=+1%");
  CLI::Option *calibration = cmd->add_option(
      "--calibration", args.budget.calibration,
      "with --quantize-budget: ids of tokens (.npy), or a directory with NAME.npy for each input");
  budget->check(isGiven)->needs(calibration);
  calibration->check(isGiven)->needs(budget);
  cmd->add_option(
         "--quantize-candidates", args.budget.candidates,
         "with --quantize-budget: the encodings to choose from, with commas (default: int8 "
         "to int4, int6 to int3 with spikes, int6 to int4 with hadamard64, all with zero-point "
         "and in groups of 128)")
      ->check(isGiven)
      ->needs(budget);
  CLI::Option *weights =
      cmd->add_option("--weights", args.budget.weights,
                      "with --quantize-budget: the checkpoint that calibration data runs through")
          ->needs(budget);
  cmd->add_option("--random-weights", args.budget.randomWeights,
                  "with --quantize-budget: in place of --weights, random ones of this seed")
      ->needs(budget)
      ->excludes(weights);
  cmd->add_option(
         "--quantize-matmuls", args.quantizeMatmuls,
         "which linear operations multiply 8-bit integers, with a scale per output channel of the "
         "weight and one per row of the input: a list of PATTERN=int8 or PATTERN=none, where a "
         "pattern is a role with * and ?, such as '*=int8' or '*=int8,lm_head=none'")
      ->check(isGiven);
  cmd->add_option("--load-dialect-plugin", args.plugins.dialects,
                  "shared libraries with dialects whose operations the module may have")
      ->delimiter(',');
  cmd->add_option("--load-pass-plugin", args.plugins.passes,
                  "shared libraries with passes that --passes may name")
      ->delimiter(',');
  cmd->add_option("--isa", args.isas,
                  "instruction sets to compile kernels for, by LLVM's processor names or 'host' "
                  "(default: x86-64-v3 and host)")
      ->delimiter(',');
  cmd->add_option("--dump-ir", args.dumpDirectory,
                  "write the IR after each phase into this directory, numbered");
  cmd->add_option("--remarks", args.remarks,
                  "print what was done and why not, by category: padding, sharding, "
                  "communication, kernels, buffers, cpu, or all")
      ->delimiter(',');
}

void addCompile(CLI::App &app, CompileArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand("compile", "compile a module into a bundle");
  cmd->add_option("model", args.model,
                  "module of level nn, as `braid import` writes it, or of level comm, kernels, "
                  "scheduled or rt: the program of every rank; - for standard input")
      ->required();
  cmd->add_option("-o,--output", args.output,
                  "the bundle (.braid); with --emit the text, default standard output");
  cmd->add_option("--target", args.target, "cpu, or cuda: and a list of sm_80, sm_90a and sm_100")
      ->capture_default_str();
  cmd->add_option(
      "--emit", args.emit,
      "print the IR of a level instead: nn, comm, kernels, scheduled, rt or llvm; or cuda, "
      "the kernels' source");
  addCompileOptions(cmd, args);
  cmd->add_flag("--strip", args.stripModule,
                "leave the module out of the bundle (no --check reference later)");
  cmd->add_flag("--print-locations", args.printLocations,
                "with --emit or --dump-ir: print where each operation comes from");
  cmd->add_option("--report", args.report, "write times and sizes of the compilation as JSON");
  cmd->footer(
      "A module of level comm, kernels, scheduled or rt, which may be written by hand, is "
      "partitioned: "
      "its mesh is its own, and --strategy is rejected; --passes expects level comm or nn. "
      "Operands and results of the entry are replicated, or sharded by their comm.sharding beside "
      "comm.global_type.\n\n"
      "Examples:\n"
      "  braid compile minilm.mlir --mesh tp=2 -o minilm.braid\n"
      "  braid compile minilm.mlir --mesh dp=2,tp=2 --emit=scheduled\n"
      "  braid compile examples/write-your-own/pipeline.mlir -o pipeline.braid");
  cmd->callback([&] { status = runCompile(args); });
}

void addExplain(CLI::App &app, ExplainArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand("explain", "print a bundle's program and its waits");
  cmd->add_option("bundle", args.bundle, "bundle, as `braid compile -o` writes it (.braid)")
      ->required();
  cmd->add_option("--procedure", args.procedure, "only this procedure (default: all of them)");
  cmd->add_option("--rank", args.rank,
                  "name the ranks that this one exchanges values with, and its parts of inputs and "
                  "results (default: all groups)");
  cmd->add_flag("--json", args.json, "print JSON");
  CLI::Option *schedule = cmd->add_option(
      "--schedule", args.schedule.collective,
      "print the steps of each rank in the collectives instead, or only in those named so "
      "(--schedule=NAME)");
  schedule->expected(0, 1);
  CLI::Option *algorithm =
      cmd->add_option("--algorithm", args.schedule.algorithm,
                      "with --schedule: direct, one_shot, ring, recursive_doubling, tree or "
                      "hierarchical (default: the one that the transport runs)");
  algorithm->needs(schedule);
  CLI::Option *chunk =
      cmd->add_option("--chunk", args.schedule.chunkBytes,
                      "with --schedule: the longest message, in bytes (default: the transport's)");
  chunk->needs(schedule);
  cmd->add_option("--transport", args.schedule.transport,
                  "with --schedule: threads, shm or ucx (default: threads)")
      ->check(CLI::IsMember({"threads", "shm", "ucx"}))
      ->needs(schedule);
  cmd->add_option("--ranks-per-host", args.schedule.ranksPerHost,
                  "with --schedule: as if so many consecutive ranks of a group shared a host "
                  "(default: all of them)")
      ->needs(schedule);
  cmd->add_option("--ranks-per-node", args.schedule.ranksPerNode,
                  "with --schedule: as if so many consecutive ranks of a host shared a NUMA node "
                  "(default: all of them)")
      ->needs(schedule);
  CLI::Option *machine = cmd->add_option(
      "--machine", args.schedule.machine,
      "with --schedule: print the times of the algorithms on this machine, a file or a name, and "
      "which takes the least");
  machine->needs(schedule)->excludes(algorithm)->excludes(chunk);
  cmd->add_flag("--any-order", args.schedule.anyOrder,
                "with --machine: also algorithms whose sums are not those of rank order")
      ->needs(machine);
  cmd->footer(
      "Examples:\n"
      "  braid explain minilm.braid\n"
      "  braid explain minilm.braid --procedure main --rank 1 --json\n"
      "  braid explain minilm.braid --schedule=attention.output --algorithm ring\n"
      "  braid explain minilm.braid --schedule --algorithm hierarchical --ranks-per-node 2\n"
      "  braid explain minilm.braid --schedule --machine h100 --ranks-per-host 8");
  cmd->callback([&args, &status, schedule] {
    args.hasSchedule = schedule->count() > 0;
    status = runExplain(args);
  });
}

void addDoctor(CLI::App &app, bool &json, int &status) {
  CLI::App *cmd = app.add_subcommand(
      "doctor", "report which features of this host Braid can use, and which it will use");
  cmd->add_flag("--json", json, "print JSON");
  cmd->footer("used     present and used\n"
              "unused   present but not used\n"
              "absent   not present and not needed on the CPU\n"
              "missing  not present although the CPU target needs it; the exit status is then 1");
  cmd->callback([&] { status = runDoctor(json); });
}

void addCalibrate(CLI::App &app, CalibrateArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand(
      "calibrate", "measure this host, so that times can be predicted (docs/costs.md)");
  cmd->add_option(
      "-o,--output", args.output,
      "the machine file (.json; default: machine.json in the user's cache folder, which "
      "`braid run --machine host` reads)");
  cmd->add_option("--name", args.name, "of the machine (default: the file's)");
  CLI::Option *transports =
      cmd->add_option("--transports", args.transports, "only these: threads, shm (default: both)")
          ->delimiter(',');
  CLI::Option *load =
      cmd->add_option("--max-load", args.maxLoad,
                      "cores that other programs may use; with more, nothing is measured")
          ->capture_default_str()
          ->check(CLI::Range(0.0, 1e6).description(""));
  CLI::Option *quick =
      cmd->add_flag("--quick", args.quick,
                    "measure few sizes once: shows that it works, but not how fast the host is");
  CLI::Option *links = cmd->add_flag(
      "--links", args.links,
      "measure the links between hosts instead, by a process on each, and put them into the file "
      "(on the first host); with --hosts, or started by torchrun, mpirun or srun");
  CLI::Option *hosts =
      cmd->add_option("--hosts", args.hosts, "with --links: start a process on each of these")
          ->type_name("a,b,...")
          ->needs(links);
  cmd->add_option("--agent", args.agent, "with --hosts: what reaches them (default: ssh)")
      ->needs(hosts);
  cmd->add_option("--median-of", args.medianOf,
                  "measure nothing, and write the medians of machine files that were measured on "
                  "this host at different moments")
      ->type_name("FILE FILE ...")
      ->excludes(links)
      ->excludes(transports)
      ->excludes(load)
      ->excludes(quick);
  cmd->footer("Takes about a minute; the host should do nothing else. A virtual machine, whose "
              "neighbours have a part in its memory,\nis slower or faster at times: calibrate it "
              "at several, and take the median.\n\nExamples:\n"
              "  braid calibrate -o machine.json\n"
              "  braid calibrate --links --hosts a,b,c -o machine.json\n"
              "  braid calibrate --median-of morning.json noon.json evening.json -o machine.json\n"
              "  braid run minilm.braid --random-weights 1 --random-inputs 1 --repeat 20 --machine "
              "machine.json");
  cmd->callback([&] { status = runCalibrate(args); });
}

void addEvaluate(CLI::App &app, EvaluateArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand(
      "evaluate", "run a model on data under many encodings, and say what each sends and loses");
  cmd->add_option("model", args.model, "module of level nn or comm, as `braid import` writes it")
      ->required();
  cmd->add_option("--mesh", args.mesh, "grid of ranks, such as tp=3 (default: the module's own)");
  cmd->add_option("--strategy", args.strategy,
                  "how the axes are used (`braid compile --help`; default: auto)");
  cmd->add_option("--passes", args.passes, "passes to run on the partitioned module");
  cmd->add_option("--quantize-matmuls", args.quantizeMatmuls,
                  "matmuls of 8-bit integers (`braid compile --help`); results are compared with "
                  "those of floats, also without encodings (none)")
      ->check(isGiven);
  CLI::Option *weights =
      cmd->add_option("--weights", args.weights, "checkpoint, a file or directory");
  cmd->add_option("--random-weights", args.randomWeights, "in place of --weights: of this seed")
      ->excludes(weights);
  cmd->add_option("--data", args.data,
                  "ids of tokens (.npy: a list, which is cut into sequences, or [sequences, "
                  "tokens]), or a directory with NAME.npy for each input of the model, [sequences, "
                  "...], and labels.npy and scores.npy if there are any")
      ->required();
  cmd->add_option("--encodings", args.encodings,
                  "an encoding for all collectives, such as int4:128/int8:128, or a list of "
                  "PATTERN=ENCODING; once for each that is compared (default: integers of 8 to 4 "
                  "bits, with a zero point, with spikes, rotated)")
      ->take_all()
      ->allow_extra_args(false);
  cmd->add_option("--sensitivity", args.sensitivity,
                  "also encode each half of each collective alone, as this; may be given again")
      ->take_all()
      ->allow_extra_args(false);
  cmd->add_option("--sensitivity-batches", args.sensitivityBatches, "batches for that")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 32).description(""))
      ->capture_default_str();
  cmd->add_option("--batches", args.batches, "only the first batches of the data (default: all)")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 32).description(""));
  cmd->add_option("--entry", args.entry, "entry of the model (default: the only one)");
  cmd->add_option("--result", args.result, "the result that is compared (default: the first)");
  cmd->add_option("--form", args.form,
                  "what is compared of it: logits; sentences, the means of hidden states over a "
                  "sequence's tokens; or rows (default: as its name says)")
      ->check(CLI::IsMember({"logits", "sentences", "rows"}));
  cmd->add_option("--threads", args.threads, "threads that share the computation of a rank")
      ->check(CLI::Range(1, 1024).description(""))
      ->capture_default_str();
  cmd->add_option("--output", args.output,
                  "write evaluation.txt, evaluation.json and charts (.svg) into this directory");
  cmd->add_option("--load-dialect-plugin", args.plugins.dialects,
                  "shared libraries with dialects whose operations the module may have")
      ->delimiter(',');
  cmd->add_option("--load-pass-plugin", args.plugins.passes,
                  "shared libraries with passes that --passes may name")
      ->delimiter(',');
  cmd->footer("The model is compiled once, with a table of encodings; results have the bits of "
              "programs compiled with them. Perplexity is that of each token's successor in its "
              "sequence, or of labels.npy.\n\nExamples:\n"
              "  braid evaluate smollm2.mlir --mesh tp=3 --weights checkpoint --data ids.npy "
              "--output accuracy\n"
              "  braid evaluate minilm.mlir --mesh tp=4 --weights checkpoint --data pairs "
              "--encodings int8:128 --encodings 'mlp.down=int4:128+spikes/int8:128' --sensitivity "
              "int4:128");
  cmd->callback([&] { status = runEvaluate(args); });
}

void addSmooth(CLI::App &app, SmoothArgs &args, int &status) {
  CLI::App *cmd = app.add_subcommand(
      "smooth", "move the range of activations' channels into weights, for 8-bit matmuls");
  cmd->add_option("model", args.model, "module of level nn, as `braid import` writes it (.mlir)")
      ->required();
  cmd->add_option("--weights", args.weights,
                  "checkpoint: a safetensors file, its index, or a directory with one of them")
      ->required();
  cmd->add_option("--input", args.inputs,
                  "NAME=FILE.npy: data on which the largest activations are measured")
      ->required();
  cmd->add_option("--alpha", args.alpha,
                  "how much of the range moves: 0 evens out the weights, 1 the activations")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1.0));
  cmd->add_option("-o,--output", args.output, "the checkpoint to write (.safetensors, in f32)")
      ->required();
  cmd->footer("The model computes the same numbers with either checkpoint: factors are powers of "
              "two, and go from a normalization, or a linear operation that is a factor of a "
              "product, to the linear operations after it (docs/quantized-matmuls.md).\n\n"
              "Example:\n"
              "  braid smooth smollm2.mlir --weights smollm2 --input input_ids=ids.npy -o "
              "smooth.safetensors\n"
              "  braid run smollm2.mlir --weights smooth.safetensors --quantize-matmuls '*=int8' "
              "--input input_ids=ids.npy --check reference");
  cmd->callback([&] { status = runSmooth(args); });
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app{"Braid compiles transformer models into one program per rank in which communication "
               "hides behind "
               "computation.\n\nA model goes: import -> compile -> run. `braid COMMAND --help` "
               "explains each.",
               "braid"};
  app.set_version_flag("--version", std::string("braid ") + braid::runtime::version());
  app.require_subcommand(1);
  app.footer("Options that begin with --mlir- are MLIR's own, for the passes: --mlir-timing, "
             "--mlir-print-ir-after=PASS, --mlir-pass-pipeline-crash-reproducer=FILE and what else "
             "`braid-opt --help` lists.\nExit status: 0 done and checks passed, 1 the input or the "
             "request is wrong, 2 a "
             "check failed, 3 a rank failed.");
  int status = kDone;
  ImportArgs importArgs;
  CompileArgs compileArgs;
  ExplainArgs explainArgs;
  EvaluateArgs evaluateArgs;
  bool doctorJson = false;
  addImport(app, importArgs, status);
  addCompile(app, compileArgs, status);
  // `run` has the command line of braid-run, which lives with the runtime; it is listed here for
  // --help only.
  app.add_subcommand("run", "run a module or a bundle on several ranks, and check what comes out");
  addEvaluate(app, evaluateArgs, status);
  addExplain(app, explainArgs, status);
  addDoctor(app, doctorJson, status);
  CalibrateArgs calibrateArgs;
  addCalibrate(app, calibrateArgs, status);
  SmoothArgs smoothArgs;
  addSmooth(app, smoothArgs, status);
  if (!takeMlirOptions(argc, argv))
    return kInvalid;
  if (argc > 1 && std::string(argv[1]) == "run")
    return runRun(argc - 1, argv + 1);
  // CLI11 would only say that a subcommand is missing.
  auto isNamed = [&](CLI::App *cmd) { return cmd->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(isNamed).empty()) {
    std::cerr
        << "braid: error: unknown command '" << argv[1]
        << "'; expects import, compile, run, evaluate, explain, doctor, calibrate or smooth\n";
    return kInvalid;
  }
  if (argc == 1) {
    std::cerr
        << "braid: error: expects a command: import, compile, run, evaluate, explain, doctor, "
           "calibrate or smooth\n"
        << "run with --help for what they do\n";
    return kInvalid;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0) // help and version
      return app.exit(error, std::cout, std::cerr);
    // CLI11 numbers its errors from 100; ours has one status for a wrong request.
    std::cerr << "braid: error: " << error.what() << "\nrun with --help for the options\n";
    return kInvalid;
  }
  return status;
}
