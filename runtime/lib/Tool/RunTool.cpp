//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs braid-run's options. Errors that can be found before the first run are.
//
//===----------------------------------------------------------------------===//
#include "CommandLine.h"
#include "OutputFiles.h"
#include "RunHosts.h"
#include "SameOptions.h"
#include "braid/Base/EncodingTable.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Npy.h"
#include "braid/Runtime/Safetensors.h"
#include "runtime/lib/Launcher/RankStarter.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

namespace braid::runtime {

namespace {

using Tensors = std::map<std::string, HostTensor>;

std::string describeValue(const EntryValue &value) {
  return "'" + value.name + "' " + name(value.dtype) + " " + shapeString(value.globalShape);
}

/// A requested comparison of a result with its expected value.
struct Check {
  const EntryValue *result;
  std::string against; ///< a path, or "reference"
  HostTensor expected;
  double allowed = 0;
  Difference measured{};
  bool passed = false;
};

class RunTool {
public:
  RunTool(const RunOptions &options, const RunHooks &hooks) : options(options), hooks(hooks) {}

  Status run() {
    RETURN_IF_ERROR(open());
    RETURN_IF_ERROR(gatherStates());
    RETURN_IF_ERROR(gatherInputs());
    // Results are put together, compared and written by the process of rank 0.
    if (isFirst()) {
      RETURN_IF_ERROR(prepareChecks());
      RETURN_IF_ERROR(output.prepare(options.output, resultNames()));
      for (const std::string &path : {options.trace, options.report})
        RETURN_IF_ERROR(checkWritable(path));
    }
    RETURN_IF_ERROR(options.target == "cpu" || options.target == "cuda" ? execute() : interpret());
    if (!isFirst())
      return {};
    Status checked = check();
    RETURN_IF_ERROR(writeReport());
    RETURN_IF_ERROR(checked);
    return output.write(results);
  }

private:
  Status open() {
    if (hooks.open) {
      ASSIGN_OR_RETURN(bundle, hooks.open(options));
    } else {
      ASSIGN_OR_RETURN(Bundle read, Bundle::read(options.model));
      bundle = std::make_shared<const Bundle>(std::move(read));
    }
    ASSIGN_OR_RETURN(entry, selectEntry(bundle->manifest(), options.entry));
    // A model checks this, too, but the interpreter has none.
    const int64_t ranks = bundle->manifest().mesh.numRanks();
    if (options.target != "cpu" && options.world.ranks != 0 && options.world.ranks != ranks)
      return Status::error("'", options.model, "' has a mesh of ", ranks,
                           ranks == 1 ? " rank" : " ranks", ", got --ranks ", options.world.ranks);
    return {};
  }

  /// Reads the values of states.
  Status gatherStates() {
    auto read = [&](const EntryValue &state, const std::string &path) -> Status {
      if (getsInputs()) {
        states[state.name] = {};
        return {};
      }
      ASSIGN_OR_RETURN(HostTensor tensor, readNpy(path));
      if (tensor.dtype != state.dtype || tensor.shape != state.globalShape)
        return Status::error("state '", state.name, "' expects ", name(state.dtype), " ",
                             shapeString(state.globalShape), ", got ", name(tensor.dtype), " ",
                             shapeString(tensor.shape), " in '", path, "'");
      states[state.name] = std::move(tensor);
      return {};
    };
    for (const auto &[stateName, path] : options.states) {
      bool found = false;
      for (const EntryValue &state : entry->states)
        if (stateName.empty() || state.name == stateName) {
          found = true;
          RETURN_IF_ERROR(read(state, stateName.empty() ? path + "/" + state.name + ".npy" : path));
        }
      if (!found)
        return Status::error(stateName.empty() ? "--state '" + path + "': the entry has no states"
                                               : "the entry has no state '" + stateName +
                                                     "', it has " + list(entry->states));
    }
    return {};
  }

  /// Reads the input files and opens the weights; lists all that is missing at once.
  Status gatherInputs() {
    for (const auto &[inputName, path] : options.inputs) {
      if (getsInputs())
        break;
      auto known = std::find_if(entry->operands.begin(), entry->operands.end(),
                                [&, &n = inputName](const EntryValue &v) { return v.name == n; });
      if (known == entry->operands.end())
        return Status::error("the model has no input '", inputName, "', it has ",
                             list(entry->operands));
      ASSIGN_OR_RETURN(HostTensor tensor, readNpy(path));
      if (tensor.dtype != known->dtype || tensor.shape != known->globalShape)
        return Status::error("input '", inputName, "' expects ", name(known->dtype), " ",
                             shapeString(known->globalShape), ", got ", name(tensor.dtype), " ",
                             shapeString(tensor.shape), " in '", path, "'");
      inputs[inputName] = std::move(tensor);
    }
    if (!options.encodings.empty()) {
      EncodingTable table = EncodingTable::of(entry->operands);
      RETURN_IF_ERROR(table.set(options.encodings).within("--encodings"));
      for (const EncodingTable::Entry &one : table.entries)
        inputs[one.operand()] = one.codes();
    }
    std::string missing;
    for (const EntryValue &operand : entry->operands) {
      if (inputs.count(operand.name) || getsInputs())
        continue;
      if (operand.defaultValue) {
        inputs[operand.name] = defaultInput(operand);
        continue;
      }
      if (!options.randomInputs) {
        missing += "\n  --input " + operand.name + "=FILE.npy   with " + name(operand.dtype) + " " +
                   shapeString(operand.globalShape);
        continue;
      }
      ASSIGN_OR_RETURN(inputs[operand.name],
                       randomInput(operand, *options.randomInputs).within("--random-inputs"));
    }
    if (!missing.empty())
      missing += "\n      (or --random-inputs SEED)";
    const bool noWeights = options.weights.empty() && !options.randomWeights;
    if (noWeights && !entry->parameters.empty()) {
      missing += "\n  --weights FILE.safetensors   with " +
                 std::to_string(entry->parameters.size()) +
                 " parameters (or --random-weights SEED):";
      constexpr size_t kShown = 8;
      for (size_t i = 0; i < std::min(kShown, entry->parameters.size()); ++i)
        missing += "\n      " + entry->parameters[i].name + " " + name(entry->parameters[i].dtype) +
                   " " + shapeString(entry->parameters[i].globalShape);
      if (entry->parameters.size() > kShown)
        missing += "\n      ... and " + std::to_string(entry->parameters.size() - kShown) + " more";
    }
    if (!missing.empty())
      return Status::error("the model also needs:", missing);
    if (options.randomWeights) {
      weights = WeightSource::random(*options.randomWeights);
    } else if (!options.weights.empty()) {
      ASSIGN_OR_RETURN(weights, openSafetensors(options.weights));
    }
    return {};
  }

  Status prepareChecks() {
    for (const std::string &file : options.checks) {
      if (file == "reference") {
        if (!hooks.reference)
          return Status::error("--check reference needs the compiler: use `braid run`");
        for (const auto *values : {&entry->results, &entry->states})
          for (const EntryValue &value : *values)
            RETURN_IF_ERROR(addCheck(value, file, {}));
        continue;
      }
      size_t slash = file.rfind('/');
      std::string stem = file.substr(slash == std::string::npos ? 0 : slash + 1);
      if (stem.size() > 4 && stem.compare(stem.size() - 4, 4, ".npy") == 0)
        stem.resize(stem.size() - 4);
      const EntryValue *result = entry->results.size() == 1 ? &entry->results[0] : nullptr;
      for (const EntryValue &candidate : entry->results)
        if (candidate.name == stem)
          result = &candidate;
      if (!result)
        return Status::error("--check expects a file named after a result, got '", file,
                             "'; the results are ", list(entry->results));
      ASSIGN_OR_RETURN(HostTensor expected, readNpy(file));
      if (expected.shape != result->globalShape)
        return Status::error("--check '", file, "' expects ", shapeString(result->globalShape),
                             " of result '", result->name, "', got ", shapeString(expected.shape));
      RETURN_IF_ERROR(addCheck(*result, file, std::move(expected)));
    }
    return {};
  }

  Status addCheck(const EntryValue &result, const std::string &against, HostTensor expected) {
    Check check{&result, against, std::move(expected)};
    if (isInteger(result.dtype))
      check.allowed = 0; // whatever the tolerance of floats
    else if (options.tolerance)
      check.allowed = *options.tolerance;
    else {
      const bool isRounded = result.dtype == DType::f32 || result.dtype == DType::f16;
      const std::optional<double> &expected = bundle->manifest().checkTolerance;
      if (!isRounded && !expected)
        return Status::error("--check of result ", describeValue(result), " needs --tolerance");
      // What encodings lose is besides what rounding does.
      const double rounding = !isRounded ? 0 : result.dtype == DType::f32 ? 2e-5 : 2e-3;
      check.allowed = std::max(rounding, expected.value_or(0));
    }
    checks.push_back(std::move(check));
    return {};
  }

  /// Whether inputs and states come from another process.
  bool getsInputs() const { return options.inputsFrom && !isFirst(); }
  bool isFirst() const { return !options.launch || options.launch->rank == 0; }

  /// Meets the other processes.
  Result<std::shared_ptr<Communicator>> meet() const {
    if (!options.launch)
      return std::shared_ptr<Communicator>();
    UcxOptions given;
    given.launch = *options.launch;
    given.timeLimitSeconds = options.world.timeLimitSeconds;
    given.machine = options.world.machine;
    if (const int64_t ranks = bundle->manifest().mesh.numRanks(); ranks != given.launch.size)
      return Status::error("'", options.model, "' has a mesh of ", ranks,
                           ranks == 1 ? " rank" : " ranks", ", this process is ",
                           given.launch.describe());
    return createUcxCommunicator(*bundle, given);
  }

  /// Encodings that are faster between hosts need not be on one.
  void warnOfOtherPlace(const Communicator *communicator) const {
    const Manifest &manifest = bundle->manifest();
    const int64_t here = communicator ? communicator->ranksOfHost() : manifest.mesh.numRanks();
    if (!manifest.encodedFor || manifest.encodedFor->ranksOfHosts.front() == here)
      return;
    const EncodedFor &place = *manifest.encodedFor;
    auto count = [](int64_t number, const char *of) {
      return std::to_string(number) + " " + of + (number == 1 ? "" : "s");
    };
    std::fprintf(stderr,
                 "%s: warning: collectives are encoded where that is faster on '%s' with %s on the "
                 "first of %s; with %s on it they may take longer than without encodings\n",
                 hooks.program.c_str(), place.machine.c_str(),
                 count(place.ranksOfHosts.front(), "rank").c_str(),
                 count(static_cast<int64_t>(place.ranksOfHosts.size()), "host").c_str(),
                 count(here, "rank").c_str());
  }

  Status execute() {
    WorldOptions worldOptions = options.world;
    ASSIGN_OR_RETURN(worldOptions.communicator, meet());
    if (isFirst())
      warnOfOtherPlace(worldOptions.communicator.get());
    if (worldOptions.communicator) {
      worldOptions.machine = nullptr; // which it has
      RETURN_IF_ERROR(compareOptions(options, entry->name, *worldOptions.communicator));
    }
    ASSIGN_OR_RETURN(std::shared_ptr<const World> world, World::create(worldOptions));
    ASSIGN_OR_RETURN(model, Model::load(std::move(world), bundle));
    ASSIGN_OR_RETURN(execution, model->execution(entry->name));
    auto begin = std::chrono::steady_clock::now();
    if (weights) {
      const bool terminal = isatty(STDERR_FILENO) == 1;
      auto progress = [&](size_t done, size_t total) {
        if (terminal)
          std::fprintf(stderr, "\rloading weights %zu/%zu%s", done, total,
                       done == total ? "\n" : "");
      };
      if (Status s = model->loadWeights(*weights, progress); !s.ok()) {
        if (terminal)
          std::fprintf(stderr, "\n");
        return s;
      }
    }
    loadSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (const EntryValue &operand : entry->operands) {
      const HostTensor &tensor = inputs[operand.name];
      RETURN_IF_ERROR(options.inputsFrom ? execution->scatterInput(operand.name, tensor.dtype,
                                                                   tensor.shape, tensor.data.data())
                                         : execution->setInput(operand.name, tensor));
    }
    std::clock_t processorBegin = 0;
    for (int64_t i = 0; i < options.warmup + options.repeat; ++i) {
      if (i == options.warmup) {
        execution->resetStatistics();
        processorBegin = std::clock();
      }
      // Each run begins with the states that were given, so that all compute the same.
      if (i > 0)
        RETURN_IF_ERROR(model->resetStates());
      for (const auto &[stateName, tensor] : states)
        RETURN_IF_ERROR(options.inputsFrom ? model->scatterState(stateName, tensor.dtype,
                                                                 tensor.shape, tensor.data.data())
                                           : model->setState(stateName, tensor));
      RETURN_IF_ERROR(execution->run());
    }
    processorSeconds = static_cast<double>(std::clock() - processorBegin) / CLOCKS_PER_SEC;
    for (const EntryValue &result : entry->results) {
      ASSIGN_OR_RETURN(results[result.name], execution->output(result.name));
    }
    for (const EntryValue &state : entry->states) {
      ASSIGN_OR_RETURN(results[state.name], model->state(state.name));
    }
    ASSIGN_OR_RETURN(report, execution->gatherReport());
    if (isFirst())
      printSummary();
    return options.trace.empty() ? Status() : execution->writeTrace(options.trace);
  }

  Status interpret() {
    if (!options.trace.empty() || !options.report.empty())
      return Status::error("--trace and --report expect --target cpu or cuda");
    const auto &compute = options.target == "reference" ? hooks.reference : hooks.interpretProgram;
    Result<Tensors> computed =
        compute({options, *bundle, *entry, weights.get(), inputs, states, /*partitioned=*/true});
    if (!computed.ok() && bundle->manifest().entries.size() > 1)
      return computed.status().within("entry '" + entry->name + "'");
    ASSIGN_OR_RETURN(results, std::move(computed));
    return {};
  }

  Status check() {
    bool needsReference = false;
    for (const Check &c : checks)
      needsReference |= c.against == "reference";
    Tensors reference;
    if (needsReference) {
      ASSIGN_OR_RETURN(reference, hooks.reference({options, *bundle, *entry, weights.get(), inputs,
                                                   states, /*partitioned=*/false}));
    }
    std::string failed;
    for (Check &c : checks) {
      if (c.against == "reference")
        c.expected = std::move(reference[c.result->name]);
      ASSIGN_OR_RETURN(c.measured,
                       compare(results[c.result->name], c.expected).within("--check " + c.against));
      c.passed = c.measured.relativeL2 <= c.allowed;
      std::printf(
          "check %s against %s: relative L2 %.3g, allowed %.3g, largest difference %.3g: %s\n",
          c.result->name.c_str(), c.against.c_str(), c.measured.relativeL2, c.allowed,
          c.measured.maxAbs, c.passed ? "passed" : "FAILED");
      if (!c.passed)
        failed += (failed.empty() ? "'" : ", '") + c.result->name + "'";
    }
    return failed.empty() ? Status()
                          : Status::error("check failed for ", failed, Code::checkFailed);
  }

  void printSummary() const {
    const auto report = nlohmann::json::parse(this->report);
    auto ms = [&](const char *field) { return report[field].get<double>() * 1e3; };
    std::printf("%s on %" PRId64 " rank%s x %" PRId64
                " thread%s: median %.3f ms, least %.3f ms of %" PRId64 " run%s\n",
                bundle->manifest().modelName.c_str(), bundle->manifest().mesh.numRanks(),
                bundle->manifest().mesh.numRanks() == 1 ? "" : "s", options.world.threadsPerRank,
                options.world.threadsPerRank == 1 ? "" : "s", ms("median_run_s"), ms("min_run_s"),
                options.repeat, options.repeat == 1 ? "" : "s");
    std::printf("communication: %" PRId64 " bytes sent per rank, %s\n",
                report["bytes_sent_per_rank"].get<int64_t>(), timesOf(report).c_str());
    // The totals of a function's collective over all calls of the function.
    struct Line {
      std::string what;
      int64_t count = 0, bytes = 0;
      bool byForm = true, readInPlace = true;
      nlohmann::json times = nlohmann::json::object();
    };
    std::vector<Line> lines;
    for (const auto &c : report["collectives"]) {
      const std::string identity = c["identity"];
      // "@layer/mlp.down" of "@main/@layer#3/mlp.down"
      const size_t last = identity.rfind('@'), slash = identity.find('/', last),
                   end = std::min(identity.find('#', last), slash);
      std::string what = c["kind"].get<std::string>() + " " + identity.substr(last, end - last) +
                         identity.substr(slash);
      auto line =
          std::find_if(lines.begin(), lines.end(), [&](const Line &l) { return l.what == what; });
      if (line == lines.end())
        line = lines.emplace(line);
      line->what = std::move(what);
      ++line->count;
      line->bytes += c["bytes_sent_per_rank"].get<int64_t>();
      line->byForm &= c["exposed_by_form"].get<bool>();
      line->readInPlace &= c.contains("read_in_place");
      for (const char *field : {"exposed_comm_s", "hidden_comm_s", "peer_wait_s"})
        line->times[field] =
            c[field].is_null()
                ? c[field]
                : nlohmann::json(line->times.value(field, 0.0) + c[field].get<double>());
    }
    for (const Line &line : lines)
      std::printf("  %" PRId64 " x %s: %" PRId64 " bytes, %s%s%s\n", line.count, line.what.c_str(),
                  line.bytes, timesOf(line.times).c_str(), line.byForm ? ", exposed by form" : "",
                  line.readInPlace ? ", read in place" : "");
    if (report.contains("prediction"))
      printPrediction(report["prediction"]);
  }

  /// What was predicted beside what was measured, for the run, each call and each collective.
  static void printPrediction(const nlohmann::json &prediction) {
    const std::string on =
        "predicted on '" + prediction["machine"].get<std::string>() + "'" +
        (prediction.contains("machine_measured_at")
             ? ", measured " + prediction["machine_measured_at"].get<std::string>()
             : "");
    if (prediction.contains("warning"))
      std::fprintf(stderr, "warning: %s\n", prediction["warning"].get<std::string>().c_str());
    if (prediction.contains("missing")) {
      std::printf("%s: nothing: %s\n", on.c_str(),
                  prediction["missing"].get<std::string>().c_str());
      return;
    }
    auto percent = [](const nlohmann::json &error) {
      char text[32] = "";
      if (error.is_number())
        std::snprintf(text, sizeof text, " (%+.1f %%)", error.get<double>() * 100);
      return std::string(text);
    };
    auto line = [&](const std::string &what, const nlohmann::json &figures) {
      auto ms = [&](const char *field) { return figures[field].get<double>() * 1e3; };
      std::printf("  %s: predicted %.3f ms, measured %.3f ms%s, least %.3f ms%s\n", what.c_str(),
                  ms("predicted_s"), ms("measured_s"), percent(figures["error"]).c_str(),
                  ms("least_measured_s"), percent(figures["error_of_least"]).c_str());
    };
    std::printf("%s:\n", on.c_str());
    line("run", prediction["run"]);
    for (const char *name : {"calls", "operations", "collectives"}) {
      for (const auto &entry : prediction[name])
        line(entry["identity"].get<std::string>(), entry);
      auto errors = [&](const std::string &field) {
        char text[96];
        std::snprintf(text, sizeof text, "median error %.1f %%, largest %.1f %%",
                      prediction["median_" + field + "_of_" + name].get<double>() * 100,
                      prediction["largest_" + field + "_of_" + name].get<double>() * 100);
        return std::string(text);
      };
      if (prediction.contains(std::string("median_error_of_") + name))
        std::printf("  %s: %s; of the least times: %s\n", name, errors("error").c_str(),
                    errors("error_of_least").c_str());
    }
  }

  static std::string timesOf(const nlohmann::json &times) {
    auto ms = [&](const char *field) {
      if (times[field].is_null())
        return std::string("unknown");
      char text[32];
      std::snprintf(text, sizeof text, "%.3f ms", times[field].get<double>() * 1e3);
      return std::string(text);
    };
    return ms("exposed_comm_s") + " exposed, " + ms("hidden_comm_s") + " hidden, " +
           ms("peer_wait_s") + " waiting for peers";
  }

  Status writeReport() {
    if (options.report.empty())
      return {};
    auto report = nlohmann::ordered_json::parse(this->report);
    report["weights"] = weights ? weights->describe() : "none";
    report["load_weights_s"] = loadSeconds;
    report["warmup_runs"] = options.warmup;
    report["processor_s"] = processorSeconds;
    auto list = nlohmann::ordered_json::array();
    for (const Check &c : checks)
      list.push_back({{"result", c.result->name},
                      {"against", c.against},
                      {"relative_l2", c.measured.relativeL2},
                      {"allowed_relative_l2", c.allowed},
                      {"max_abs", c.measured.maxAbs},
                      {"passed", c.passed}});
    report["checks"] = list;
    std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    return writeFile(options.report, {{text.data(), text.size()}});
  }

  std::vector<std::string> resultNames() const {
    std::vector<std::string> names;
    for (const auto *values : {&entry->results, &entry->states})
      for (const EntryValue &value : *values)
        names.push_back(value.name);
    return names;
  }

  static std::string list(const std::vector<EntryValue> &values) {
    std::string text;
    for (const EntryValue &value : values)
      text += (text.empty() ? "" : ", ") + describeValue(value);
    return text.empty() ? "none" : text;
  }

  const RunOptions &options;
  const RunHooks &hooks;
  std::shared_ptr<const Bundle> bundle;
  const Entry *entry = nullptr;
  Tensors inputs, states; ///< states: those that were given
  Tensors results;        ///< with the states after the last run
  std::unique_ptr<WeightSource> weights;
  std::vector<Check> checks;
  OutputFiles output;
  std::unique_ptr<Model> model;
  Execution *execution = nullptr;
  std::string report; ///< of all ranks
  double loadSeconds = 0, processorSeconds = 0;
};

} // namespace

int runMain(int argc, const char *const *argv, const RunHooks &hooks) {
  if (argc == 2 && std::strcmp(argv[1], kStartRanks) == 0)
    return runRankStarter();
  RunOptions options;
  if (std::optional<int> exitStatus = parseCommandLine(argc, argv, hooks, options))
    return *exitStatus;
  if (std::optional<int> exitStatus = runOnHosts(argc, argv, options, hooks))
    return *exitStatus;
  Status status;
  try {
    status = RunTool(options, hooks).run();
  } catch (const std::exception &e) {
    status = Status::error(e.what());
  }
  std::fflush(stdout);
  if (status.ok())
    return 0;
  std::fprintf(stderr, "%s: error: %s\n", hooks.program.c_str(), status.message().c_str());
  return static_cast<int>(status.code());
}

} // namespace braid::runtime
