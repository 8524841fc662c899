//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Calibrate.h"

#include "Parts.h"
#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Version.h"
#include "runtime/lib/Kernels/CpuFeatures.h"
#include "runtime/lib/Kernels/VectorKernels.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace braid::runtime {

using Clock = std::chrono::steady_clock;

namespace {

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string shortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

/// Seconds of processor time of everything on the machine, except idling, by /proc/stat.
double busySeconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softirq = 0, steal = 0;
  file >> cpu >> user >> nice >> system >> idle >> wait >> irq >> softirq >> steal;
  return (user + nice + system + irq + softirq + steal) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Of this process and the ranks that it has waited for.
double ownSeconds() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // The fields behind the name, which may have blanks: children's user and system time are the
  // 14th and 15th.
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int i = 0; i < 13; ++i)
    fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) * 1e-9 +
         (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// How many cores others use.
class Foreign {
public:
  Foreign() : begin(Clock::now()), busy(busySeconds()), own(ownSeconds()) {}
  double cores() const {
    const double seconds = secondsSince(begin);
    return seconds <= 0 ? 0
                        : std::max(0.0, (busySeconds() - busy - (ownSeconds() - own)) / seconds);
  }

private:
  Clock::time_point begin;
  double busy, own;
};

std::string utcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// "32K" of /sys
int64_t parseSize(const std::string &text) {
  int64_t value = 0;
  char unit = 0;
  std::istringstream stream(text);
  stream >> value >> unit;
  return unit == 'K' ? value << 10 : unit == 'M' ? value << 20 : value;
}

/// The number of CPUs in "0-3,8".
int64_t countList(const std::string &text) {
  int64_t count = 0;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    int64_t first = 0, last = 0;
    char dash = 0;
    std::istringstream range(part);
    if (range >> first)
      count += range >> dash >> last ? last - first + 1 : 1;
  }
  return count;
}

std::vector<cost::CpuCache> caches() {
  std::vector<cost::CpuCache> result;
  const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int i = 0; i < 16; ++i) {
    auto line = [&](const char *name) {
      std::ifstream file(folder + std::to_string(i) + "/" + name);
      std::string text;
      std::getline(file, text);
      return text;
    };
    const std::string type = line("type");
    if (type.empty())
      break;
    cost::CpuCache cache{parseSize(line("level")), parseSize(line("size")),
                         countList(line("shared_cpu_list"))};
    if (type != "Instruction" && cache.level > 0 && cache.bytes > 0 && cache.sharedByCores > 0)
      result.push_back(cache);
  }
  return result;
}

/// Operands were used so many bytes ago: a core's share of the largest cache, where they are no
/// longer in the core's own caches and partly in none, but not more than the activations of a layer
/// or two. The cache that a virtual machine tells of may be that of a whole processor, which others
/// have a part in.
size_t memoryPool(const cost::Processor &processor) {
  constexpr int64_t kLayers = int64_t(16) << 20;
  int64_t share = int64_t(1) << 20;
  for (const cost::CpuCache &cache : processor.caches)
    share = std::max(share, cache.bytes / cache.sharedByCores);
  return static_cast<size_t>(std::min(share, kLayers));
}

} // namespace

cost::Processor hostProcessor() {
  return {hostCpuModel(), std::max<int64_t>(1, static_cast<int64_t>(allowedCores().size())),
          vectorKernels().isa, caches()};
}

cost::Measurement measurementNow(bool isQuick) {
  cost::Measurement measurement;
  measurement.at = utcNow();
  measurement.version = version();
  const dnnl_version_t *library = dnnl_version();
  measurement.library = "oneDNN " + std::to_string(library->major) + "." +
                        std::to_string(library->minor) + "." + std::to_string(library->patch);
  measurement.repetitions = isQuick ? 1 : Repetitions().most;
  return measurement;
}

/// The most seconds that all transports together wait for cores to be as near as usual, and spend
/// on loads that they repeat.
static constexpr double kMostForCores = 8, kMostForCoresIfQuick = 0.5;

Result<Calibration> calibrate(const CalibrateOptions &options) {
  const double usable = usableCores();
  const Foreign before;
  std::this_thread::sleep_for(std::chrono::milliseconds(options.quick ? 50 : 500));
  if (const double taken = before.cores(); taken > options.maxForeignCores)
    return Status::error(shortNumber(taken), " of ", shortNumber(usable),
                         " cores are taken by other programs, and times would be theirs too: "
                         "expects at most ",
                         shortNumber(options.maxForeignCores), " (--max-load)");
  const Clock::time_point begin = Clock::now();
  const Foreign meanwhile;
  Calibration result;
  cost::Machine &machine = result.machine;
  machine.name = options.name;
  machine.processor = hostProcessor();
  const int64_t cores =
      std::max<int64_t>(1, std::min(machine.processor->cores, static_cast<int64_t>(usable)));

  std::vector<std::pair<std::string, std::function<Status()>>> parts;
  // Transports are measured before and after the rest, as their processes are forked while the
  // crew's threads do not exist.
  std::vector<int64_t> groups;
  for (int64_t ranks = 2; ranks <= std::max<int64_t>(4, cores); ranks *= 2)
    groups.push_back(ranks);
  parts.emplace_back("launches, calls and events", [&]() -> Status {
    ASSIGN_OR_RETURN(machine.overheads, measureOverheads(options.quick));
    return {};
  });
  const auto withOwnCores =
      std::count_if(groups.begin(), groups.end(), [&](int64_t ranks) { return ranks <= cores; });
  const double secondsOfEach = (options.quick ? kMostForCoresIfQuick : kMostForCores) /
                               std::max(1.0, static_cast<double>(withOwnCores) *
                                                 static_cast<double>(options.transports.size()));
  std::vector<std::unique_ptr<TransportMeasurement>> transports;
  for (const std::string &transport : options.transports)
    for (int64_t ranks : groups) {
      transports.push_back(
          std::make_unique<TransportMeasurement>(transport, ranks, options.quick, secondsOfEach));
      parts.emplace_back(transport + " of " + std::to_string(ranks) + " ranks",
                         [one = transports.back().get()] { return one->measureHalf(); });
    }
  std::vector<int64_t> busy{1};
  if (cores > 1)
    busy.push_back(cores);
  std::unique_ptr<Crew> crew;
  double spread = 0;
  for (int64_t members : busy) {
    const std::string on =
        members == 1 ? ", one core busy" : ", " + std::to_string(members) + " cores busy";
    parts.emplace_back("memory" + on, [&, members]() -> Status {
      std::optional<double> coreToCore; // as ranks on these cores had it
      for (size_t i = 0; i < transports.size(); ++i)
        if (groups[i % groups.size()] == members && !coreToCore)
          coreToCore = transports[i]->coreToCoreSeconds();
      ASSIGN_OR_RETURN(crew, Crew::create(members, kernelMemoryBytes(options.quick), coreToCore));
      machine.compute.emplace_back();
      machine.compute.back().busyCores = members;
      return measureMemory(*crew, options.quick, memoryPool(*machine.processor),
                           machine.compute.back());
    });
    parts.emplace_back("row kernels" + on, [&] {
      return measureRows(*crew, options.quick, memoryPool(*machine.processor),
                         options.rowKernels.get(), machine.compute.back());
    });
    parts.emplace_back("attention" + on, [&] {
      return measureAttention(*crew, options.quick, memoryPool(*machine.processor),
                              machine.compute.back());
    });
    parts.emplace_back("codecs" + on, [&] {
      return measureCodecs(*crew, options.quick, memoryPool(*machine.processor),
                           machine.compute.back());
    });
    parts.emplace_back("matmul" + on, [&]() -> Status {
      RETURN_IF_ERROR(measureMatmuls(*crew, options.quick, machine.compute.back()));
      RETURN_IF_ERROR(measureInt8Matmuls(*crew, options.quick, machine.compute.back()));
      spread = std::max(spread, crew->spread());
      crew.reset(); // the processes of transports are forked next
      return Status();
    });
  }
  std::vector<double> changes; // of collectives of ranks with a core each, endOverBegin
  double elsewhere = 0;        // part of the loads of a transport
  size_t next = 0;
  for (const std::string &transport : options.transports)
    for (int64_t ranks : groups)
      parts.emplace_back(transport + " of " + std::to_string(ranks) + " ranks",
                         [&, transport, ranks, one = transports[next++].get()]() -> Status {
                           RETURN_IF_ERROR(one->measureHalf());
                           if (ranks <= cores)
                             one->addEndOverBegin(changes);
                           elsewhere = std::max(elsewhere, one->partElsewhere());
                           ASSIGN_OR_RETURN(cost::Transport measured,
                                            one->result(result.allReduceErrors.emplace_back()));
                           machine.transports.push_back(std::move(measured));
                           for (const char *kind : {"matmul", "memory"}) {
                             one->awaitCores();
                             ASSIGN_OR_RETURN(
                                 cost::Interference beside,
                                 measureInterference(transport, ranks, kind, options.quick));
                             machine.interference.push_back(std::move(beside));
                           }
                           return {};
                         });
  for (size_t i = 0; i < parts.size(); ++i) {
    if (options.progress)
      options.progress(parts[i].first, i + 1, parts.size());
    const Clock::time_point partBegin = Clock::now();
    RETURN_IF_ERROR(parts[i].second().within("calibration of " + parts[i].first));
    auto &seconds = result.seconds;
    auto known = std::find_if(seconds.begin(), seconds.end(),
                              [&](const auto &one) { return one.first == parts[i].first; });
    if (known == seconds.end())
      known = seconds.insert(known, {parts[i].first, 0.0});
    known->second += secondsSince(partBegin);
  }

  cost::Measurement &measurement = machine.measurement.emplace(measurementNow(options.quick));
  measurement.seconds = secondsSince(begin);
  measurement.foreignCores = meanwhile.cores();
  measurement.medianOverLeast = 1 + spread;
  if (!changes.empty())
    measurement.endOverBegin = median(changes);
  measurement.missing["links"] = "`braid calibrate --links` measures them";
  measurement.missing["nccl"] = "GPUs are not measured";
  if (!options.rowKernels)
    measurement.missing["row_operations"] = "needs the compiler";
  if (options.quick)
    result.warnings.emplace_back("each figure was measured once and on few sizes (--quick)");
  if (spread > 0.1 && !options.quick)
    result.warnings.push_back("the median of what a figure took was " + shortNumber(1 + spread) +
                              " times the least one: the host is not quiet, and takes longer at "
                              "times than the file says");
  constexpr double kSteady = 1.07;
  if (const double ratio = measurement.endOverBegin.value_or(1);
      ratio > kSteady || ratio < 1 / kSteady)
    result.warnings.push_back("collectives took " + shortNumber(ratio) +
                              " times as long at the end as at the begin: the host changes its "
                              "speed, and times of another moment may differ as much");
  constexpr double kFew = 0.1;
  if (elsewhere > kFew && !options.quick)
    result.warnings.push_back("in " + std::to_string(std::lround(elsewhere * 100)) +
                              " % of the measurements cores were nearer to or farther from each "
                              "other than in the rest, as the host moves them: collectives are "
                              "faster or slower then than the file says");
  if (measurement.foreignCores > options.maxForeignCores)
    result.warnings.push_back("other programs used " + shortNumber(measurement.foreignCores) +
                              " cores meanwhile: figures may be too slow");
  return result;
}

} // namespace braid::runtime
