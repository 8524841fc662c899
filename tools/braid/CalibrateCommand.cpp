//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Session.h"

#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/Calibrate.h"
#include "braid/Runtime/Files.h"
#include "runtime/lib/Base/Median.h"
#include "runtime/lib/Launcher/Launcher.h"
#include "runtime/lib/Tool/RunHosts.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace braid::tool {

/// Kernels on rows that each have one class of operation (braid/Cost/KernelWork.h) which those
/// before have not.
static std::string rowKernels() {
  const std::string map = "affine_map<(r, c) -> (r, c)>", type = "tensor<?x512xf32>",
                    whole = "tensor<64x512xf32>";
  auto kernel = [&](llvm::StringRef name, llvm::StringRef before, llvm::StringRef inputs,
                    llvm::StringRef maps, llvm::StringRef types, llvm::StringRef arguments,
                    llvm::StringRef body) {
    return ("rt.kernel @" + name + "(%x: " + type + ") -> " + type +
            " {\n  %c0 = arith.constant 0 : index\n  %n = tensor.dim %x, %c0 : " + type +
            "\n  %e = tensor.empty(%n) : " + type + "\n" + before +
            "  %r = linalg.generic {indexing_maps = [" + map + ", " + maps + map +
            "], iterator_types = [\"parallel\", \"parallel\"]} ins(%x" + inputs + " : " + type +
            types + ") outs(%e : " + type + ") {\n  ^bb0(%a: f32, " + arguments + "%o: f32):\n" +
            body + "  } -> " + type + "\n  rt.yield %r : " + type + "\n}\n")
        .str();
  };
  auto map1 = [&](llvm::StringRef name, llvm::StringRef body) {
    return kernel(name, "", "", "", "", "", body);
  };
  std::string chain;
  for (int i = 0; i < 8; ++i)
    chain += "    %m" + std::to_string(i) + " = arith.mulf " +
             (i == 0 ? "%a" : "%s" + std::to_string(i - 1)) + ", %a : f32\n    %s" +
             std::to_string(i) + " = arith.addf %m" + std::to_string(i) + ", %a : f32\n";
  std::string text =
      "comm.mesh @mesh <r = 1>\n" + map1("simple", chain + "    linalg.yield %s7 : f32\n");
  std::vector<std::string> names{"simple", "divide", "reduce"};
  text += map1("divide", "    %one = arith.constant 1.0 : f32\n    %q = arith.divf %one, %a : f32\n"
                         "    linalg.yield %q : f32\n");
  text += kernel(
      "reduce",
      "  %zero = arith.constant 0.0 : f32\n  %f = tensor.empty(%n) : tensor<?xf32>\n  %i = "
      "linalg.fill ins(%zero : f32) outs(%f : tensor<?xf32>) -> tensor<?xf32>\n  %sum = "
      "linalg.generic {indexing_maps = [" +
          map +
          ", affine_map<(r, c) -> (r)>], iterator_types = [\"parallel\", \"reduction\"]} ins(%x "
          ": " +
          type +
          ") outs(%i : tensor<?xf32>) {\n  ^bb0(%a: f32, %o: f32):\n    %t = arith.addf %o, %a : "
          "f32\n    linalg.yield %t : f32\n  } -> tensor<?xf32>\n",
      ", %sum", "affine_map<(r, c) -> (r)>, ", ", tensor<?xf32>", "%b: f32, ",
      "    %t = arith.addf %a, %b : f32\n    linalg.yield %t : f32\n");
  for (const char *function : {"exp", "exp2", "erf", "tanh", "log", "log1p", "sin", "cos"}) {
    text += map1(function, std::string("    %f = math.") + function +
                               " %a : f32\n    linalg.yield %f : f32\n");
    names.emplace_back(function);
  }
  text += "func.func @main(%v0: " + whole + " {nn.name = \"x\"}) -> (" + whole +
          " {nn.name = \"y\"}) attributes {nn.entry} {\n";
  for (size_t i = 0; i < names.size(); ++i)
    text += "  %v" + std::to_string(i + 1) + " = rt.launch @" + names[i] + " rows 64 ins(%v" +
            std::to_string(i) + " : " + whole + ") -> " + whole + "\n";
  return text + "  return %v" + std::to_string(names.size()) + " : " + whole + "\n}\n";
}

static std::string summary(const runtime::Calibration &calibration, const std::string &path) {
  const cost::Machine &machine = calibration.machine;
  std::string text;
  llvm::raw_string_ostream out(text);
  out << machine.processor->model << ", " << machine.processor->cores
      << (machine.processor->cores == 1 ? " core" : " cores") << ", " << machine.processor->isa
      << "\n";
  for (const cost::ComputeRates &rates : machine.compute) {
    double best = 0;
    for (const cost::MatmulPoint &point : rates.matmul)
      best = std::max(best, point.flopsPerSecond);
    double attention = 0;
    for (const cost::AttentionPoint &point : rates.attention)
      attention = std::max(attention, point.flopsPerSecond);
    const cost::MemoryPoint &memory = rates.memory.back();
    out << "  each of " << rates.busyCores
        << (rates.busyCores == 1 ? " busy core:  " : " busy cores: ")
        << llvm::format("matmul up to %.1f GFLOP/s, attention up to %.1f GFLOP/s, memory %.1f GB/s "
                        "read, %.1f written, %.1f copied\n",
                        best * 1e-9, attention * 1e-9, memory.readBytesPerSecond * 1e-9,
                        memory.writeBytesPerSecond * 1e-9, memory.copyBytesPerSecond * 1e-9);
    for (const cost::CodecPoint &point : rates.codecs)
      if (point.encoding == "int8:128" && point.elements == rates.codecs.back().elements)
        out << llvm::format("    int8:128 encoded %.1f GB/s of f32, decoded %.1f, added %.1f\n",
                            point.encodeElementsPerSecond * 4e-9,
                            point.decodeElementsPerSecond * 4e-9,
                            point.addElementsPerSecond * 4e-9);
  }
  if (machine.overheads)
    out << llvm::format("  a launch %.3f us, a call %.3f us, an event to another queue %.3f us\n",
                        machine.overheads->commandSeconds * 1e6,
                        machine.overheads->callSeconds * 1e6,
                        machine.overheads->eventSeconds * 1e6);
  for (size_t i = 0; i < machine.transports.size(); ++i) {
    const cost::Transport &transport = machine.transports[i];
    const cost::Interference &matmul = machine.interference[2 * i],
                             &memory = machine.interference[2 * i + 1];
    const cost::TransferPoint &last = transport.transfers.back();
    out << "  " << transport.name << " of " << transport.ranks << " ranks: "
        << llvm::format("start %.2f us, message %.2f us, ", transport.startSeconds * 1e6,
                        transport.messageSeconds * 1e6);
    if (transport.coreToCoreSeconds)
      out << llvm::format("%.0f ns from core to core, ", *transport.coreToCoreSeconds * 1e9);
    // Measured once, a figure may be nothing beside those before it.
    auto rate = [&](double seconds) -> std::string {
      if (seconds <= 0)
        return "too fast to tell";
      std::string text;
      llvm::raw_string_ostream(text)
          << llvm::format("%.1f GB/s", static_cast<double>(last.bytes) / seconds * 1e-9);
      return text;
    };
    out << rate(last.receiveSeconds) << " received, " << rate(last.reduceSeconds)
        << llvm::format(" reduced; beside communication, products take %.2f and copies %.2f times "
                        "as long\n",
                        matmul.computeSlowdown, memory.computeSlowdown);
    out << "    all_reduces of 896 bytes and more, predicted:";
    for (double error : calibration.allReduceErrors[i])
      out << llvm::format(" %+.0f %%", error * 100);
    out << "\n";
  }
  for (const auto &[what, why] : machine.measurement->missing)
    out << "  not measured: " << what << ": " << why << "\n";
  out << "seconds:";
  for (const auto &[part, seconds] : calibration.seconds)
    out << llvm::format(" %.1f ", seconds) << part
        << (part == calibration.seconds.back().first ? "" : ";");
  out << llvm::format("\n%.1f s in all, while other programs used %.2f cores\n",
                      machine.measurement->seconds, machine.measurement->foreignCores);
  out << "wrote " << path << "\n";
  return text;
}

/// Starts this command on the hosts.
static int startOnHosts(const CalibrateArgs &args, const std::string &path) {
  runtime::Result<std::vector<runtime::HostRanks>> hosts = runtime::parseHosts(args.hosts);
  if (!hosts.ok())
    return fail("--hosts: " + hosts.status().message());
  runtime::Result<std::string> program = runtime::programPath();
  if (!program.ok())
    return fail(program.status().message());
  runtime::LaunchRequest request;
  request.hosts = std::move(*hosts);
  request.agent = runtime::splitWords(args.agent.empty() ? runtime::kDefaultAgent : args.agent);
  request.starter = {*program, "run", runtime::kStartRanks};
  request.command = {*program, "calibrate", "--links", "-o", path};
  if (!args.name.empty())
    request.command.insert(request.command.end(), {"--name", args.name});
  if (args.quick)
    request.command.emplace_back("--quick");
  llvm::SmallString<256> directory;
  if (llvm::sys::fs::current_path(directory))
    return fail("--hosts: cannot find the current directory");
  request.directory = directory.str().str();
  request.environment = runtime::forwardedVariables(runtime::processEnvironment());
  const runtime::LaunchOutcome outcome = runtime::launchRanks(request);
  if (!outcome.message.empty())
    llvm::errs() << "braid: error: " << outcome.message << "\n";
  return outcome.exitStatus;
}

static runtime::Status writeMachine(const std::string &path, const cost::Machine &machine) {
  const std::string text = cost::machineToJson(machine);
  if (runtime::Result<cost::Machine> back = cost::machineFromJson(text); !back.ok())
    return runtime::Status::error("what was measured makes no machine file: ",
                                  back.status().message());
  return runtime::writeFile(path, {{text.data(), text.size()}});
}

/// Of points that each machine has as many of: how many times as long they took in one calibration
/// as in another.
template <typename PointsOf>
static void printSpread(const std::vector<cost::MachineFile> &files, PointsOf pointsOf,
                        llvm::StringRef what) {
  std::vector<double> ratios;
  for (size_t i = 0; i < pointsOf(files[0].machine).size(); ++i) {
    double least = pointsOf(files[0].machine)[i].seconds, most = least;
    for (const cost::MachineFile &file : files) {
      const double seconds = pointsOf(file.machine)[i].seconds;
      least = std::min(least, seconds);
      most = std::max(most, seconds);
    }
    ratios.push_back(most / std::max(least, 1e-12));
  }
  if (!ratios.empty())
    llvm::outs() << "  " << what
                 << llvm::format(" took up to %.2f times as long in one calibration as in another, "
                                 "%.2f in the median\n",
                                 *std::max_element(ratios.begin(), ratios.end()),
                                 runtime::median(ratios));
}

/// Of each transport and link.
static void printSpread(const std::vector<cost::MachineFile> &files) {
  const cost::Machine &first = files[0].machine;
  for (size_t t = 0; t < first.transports.size(); ++t)
    printSpread(
        files, [&](const cost::Machine &m) -> auto & { return m.transports[t].collectives; },
        first.transports[t].name + " of " + std::to_string(first.transports[t].ranks) +
            " ranks: collectives");
  for (size_t l = 0; l < first.links.size(); ++l)
    printSpread(
        files, [&](const cost::Machine &m) -> auto & { return m.links[l].exchanges; },
        first.links[l].name + ": exchanges");
}

static int takeMedian(const CalibrateArgs &args, const std::string &path) {
  std::vector<cost::MachineFile> files;
  for (const std::string &file : args.medianOf) {
    runtime::Result<cost::Machine> machine = cost::openMachine(file);
    if (!machine.ok())
      return fail(machine.status().message());
    files.push_back({file, std::move(*machine)});
  }
  runtime::Result<cost::Machine> machine = cost::medianOf(files);
  if (!machine.ok())
    return fail("--median-of: " + machine.status().message());
  machine->name = args.name.empty() ? llvm::sys::path::stem(path).str() : args.name;
  if (runtime::Status status = writeMachine(path, *machine); !status.ok())
    return fail(status.message());
  llvm::outs() << "medians of " << *machine->measurement->calibrations << " calibrations\n";
  printSpread(files);
  llvm::outs() << "wrote " << path << "\n";
  return kDone;
}

/// Adds a link to the machine file, which need not exist yet.
static runtime::Status addLink(const std::string &path, const std::string &name, bool isQuick,
                               const cost::Link &link) {
  cost::Machine machine;
  if (llvm::sys::fs::exists(path)) {
    runtime::Result<cost::Machine> known = cost::openMachine(path);
    if (!known.ok())
      return known.status();
    machine = std::move(*known);
    if (!machine.measurement)
      return runtime::Status::error("'", path, "' is a published machine, links are measured");
  } else {
    machine.name = name.empty() ? llvm::sys::path::stem(path).str() : name;
    machine.processor = runtime::hostProcessor();
    machine.measurement = runtime::measurementNow(isQuick);
  }
  std::vector<cost::Link> &links = machine.links;
  links.erase(std::remove_if(links.begin(), links.end(),
                             [&](const cost::Link &other) { return other.name == link.name; }),
              links.end());
  links.insert(links.begin(), link);
  return writeMachine(path, machine);
}

static int measureLinks(const CalibrateArgs &args, const std::string &path) {
  if (!args.hosts.empty())
    return startOnHosts(args, path);
  runtime::Result<std::optional<runtime::LaunchInfo>> launch =
      runtime::launchInfo(runtime::processEnvironment());
  if (!launch.ok())
    return fail(launch.status().message());
  if (!*launch)
    return fail("--links expects --hosts, or a launcher that starts a process on each host");
  runtime::LinkCalibration options;
  options.quick = args.quick;
  runtime::Result<std::optional<cost::Link>> measured = runtime::measureLinks(**launch, options);
  if (!measured.ok())
    return fail("links: " + measured.status().message());
  if (!*measured)
    return kDone;
  const cost::Link &link = **measured;
  if (runtime::Status status = addLink(path, args.name, args.quick, link); !status.ok())
    return fail(status.message());
  llvm::outs()
      << link.name
      << llvm::format(
             ": latency %.1f us (%.1f both ways at once), %.2f MB/s, %.2f MB/s both ways at once",
             link.latencySeconds * 1e6, link.exchanges.front().seconds * 1e6,
             link.bytesPerSecond * 1e-6, *link.bothWaysBytesPerSecond * 1e-6);
  if (link.hostBytesPerSecond)
    llvm::outs() << llvm::format(", %.2f MB/s to all peers of a host",
                                 *link.hostBytesPerSecond * 1e-6);
  if (link.processorBytesPerSecond)
    llvm::outs() << llvm::format(", %.0f MB/s by a processor",
                                 *link.processorBytesPerSecond * 1e-6);
  llvm::outs() << "\nwrote " << path << "\n";
  return kDone;
}

int runCalibrate(const CalibrateArgs &args) {
  std::string path = args.output.empty() ? cost::defaultMachinePath() : args.output;
  if (path.empty())
    return fail("calibrate expects -o FILE where no folder for caches is known");
  if (args.output.empty())
    if (std::error_code error =
            llvm::sys::fs::create_directories(llvm::sys::path::parent_path(path)))
      return fail("cannot create '" + llvm::sys::path::parent_path(path) + "': " + error.message());
  if (runtime::Status status = runtime::checkWritable(path); !status.ok())
    return fail(status.message());
  if (!args.medianOf.empty())
    return takeMedian(args, path);
  if (args.links)
    return measureLinks(args, path);
  for (const std::string &transport : args.transports)
    if (transport != "threads" && transport != "shm")
      return fail("--transports expects threads or shm, got '" + transport +
                  "': links between hosts are measured with --links");

  Progress progress;
  progress.step("compiling kernels on rows");
  CompilerSession session;
  // Ranks are forked from this process, which must have no threads at that point.
  session.context().disableMultithreading();
  if (!session.load({}))
    return kInvalid;
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(rowKernels(), &session.context(), "row kernels");
  if (!module)
    return fail("cannot read the kernels on rows");
  CompileOptions compile;
  compile.isas = {"host"};
  compile.stripModule = true;
  FailureOr<runtime::Bundle> bundle = compileToBundle(*module, compile);
  if (failed(bundle))
    return fail("cannot compile the kernels on rows");

  runtime::CalibrateOptions options;
  options.name = args.name.empty() ? llvm::sys::path::stem(path).str() : args.name;
  if (!args.transports.empty())
    options.transports = args.transports;
  options.quick = args.quick;
  options.maxForeignCores = args.maxLoad;
  options.rowKernels = std::make_shared<const runtime::Bundle>(std::move(*bundle));
  options.progress = [&](const std::string &what, size_t part, size_t parts) {
    progress.step("measuring [" + llvm::Twine(part) + "/" + llvm::Twine(parts) + "] " + what);
  };
  runtime::Result<runtime::Calibration> calibration = runtime::calibrate(options);
  if (!calibration.ok())
    return fail(calibration.status().message());
  progress.step("");
  if (runtime::Status status = writeMachine(path, calibration->machine); !status.ok())
    return fail(status.message());
  for (const std::string &warning : calibration->warnings)
    llvm::errs() << "braid: warning: " << warning << "\n";
  llvm::outs() << summary(*calibration, path);
  return kDone;
}

} // namespace braid::tool
