//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Machine files as JSON. The unit at the end of a field's name decides which numbers are plausible.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/Machine.h"
#include "MachineTables.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "runtime/lib/Data/Json.h"

#include <set>

namespace braid::cost {

using runtime::FieldReader;
using runtime::FieldWriter;
using runtime::inQuotes;
using runtime::Json;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

template <typename Io> static void fields(Io &io, CpuCache &v) {
  io.field("level", v.level);
  io.field("bytes", v.bytes);
  io.field("shared_by_cores", v.sharedByCores);
}

template <typename Io> static void fields(Io &io, Processor &v) {
  io.field("model", v.model);
  io.field("cores", v.cores);
  io.field("isa", v.isa);
  io.field("caches", v.caches);
}

template <typename Io> static void fields(Io &io, MatmulPoint &v) {
  io.field("m", v.m);
  io.field("n", v.n);
  io.field("k", v.k);
  io.field("flops_per_second", v.flopsPerSecond);
}

template <typename Io> static void fields(Io &io, AttentionPoint &v) {
  io.field("rows", v.rows);
  io.field("keys", v.keys);
  io.field("head_dim", v.headDim);
  io.field("causal", v.causal);
  io.field("flops_per_second", v.flopsPerSecond);
}

template <typename Io> static void fields(Io &io, OperationRate &v) {
  io.field("operation", v.operation);
  io.field("elements_per_second", v.elementsPerSecond);
}

template <typename Io> static void fields(Io &io, MemoryPoint &v) {
  io.field("bytes", v.bytes);
  io.field("read_bytes_per_second", v.readBytesPerSecond);
  io.field("write_bytes_per_second", v.writeBytesPerSecond);
  io.field("copy_bytes_per_second", v.copyBytesPerSecond);
}

template <typename Io> static void fields(Io &io, WeightReadPoint &v) {
  io.field("rows", v.rows);
  io.field("bytes", v.bytes);
  io.field("bytes_per_second", v.bytesPerSecond);
}

template <typename Io> static void fields(Io &io, CodecPoint &v) {
  io.field("encoding", v.encoding);
  io.field("elements", v.elements);
  io.field("encode_elements_per_second", v.encodeElementsPerSecond);
  io.field("decode_elements_per_second", v.decodeElementsPerSecond);
  io.field("add_elements_per_second", v.addElementsPerSecond);
}

template <typename Io> static void fields(Io &io, ComputeRates &v) {
  io.field("busy_cores", v.busyCores);
  io.field("matmul", v.matmul);
  io.field("attention", v.attention);
  io.field("row_operations", v.rowOperations);
  io.field("memory", v.memory);
  io.optional("row_overlap_efficiency", v.rowOverlapEfficiency);
  io.optional("codecs", v.codecs);
  io.optional("int8_matmul", v.int8Matmul);
  io.optional("weight_reads", v.weightReads);
}

template <typename Io> static void fields(Io &io, Overheads &v) {
  io.field("command_seconds", v.commandSeconds);
  io.field("call_seconds", v.callSeconds);
  io.field("event_seconds", v.eventSeconds);
}

template <typename Io> static void fields(Io &io, TransferPoint &v) {
  io.field("bytes", v.bytes);
  io.field("copy_seconds", v.copySeconds);
  io.field("receive_seconds", v.receiveSeconds);
  io.field("reduce_seconds", v.reduceSeconds);
  io.field("shared_seconds", v.sharedSeconds);
}

template <typename Io> static void fields(Io &io, CollectivePoint &v) {
  io.field("kind", v.kind);
  io.field("bytes", v.bytes);
  io.field("seconds", v.seconds);
}

template <typename Io> static void fields(Io &io, ColdPoint &v) {
  io.field("between_bytes", v.betweenBytes);
  io.field("bytes", v.bytes);
  io.field("seconds", v.seconds);
}

template <typename Io> static void fields(Io &io, Transport &v) {
  io.field("name", v.name);
  io.field("ranks", v.ranks);
  io.field("start_seconds", v.startSeconds);
  io.field("message_seconds", v.messageSeconds);
  io.optional("core_to_core_seconds", v.coreToCoreSeconds);
  io.field("transfers", v.transfers);
  io.optional("collectives", v.collectives);
  io.optional("cold", v.cold);
}

template <typename Io> static void fields(Io &io, Interference &v) {
  io.field("transport", v.transport);
  io.field("ranks", v.ranks);
  io.field("kind", v.kind);
  io.field("compute_slowdown", v.computeSlowdown);
  io.field("communication_slowdown", v.communicationSlowdown);
}

template <typename Io> static void fields(Io &io, MessagePoint &v) {
  io.field("bytes", v.bytes);
  io.field("seconds", v.seconds);
}

template <typename Io> static void fields(Io &io, Link &v) {
  io.field("name", v.name);
  io.field("latency_seconds", v.latencySeconds);
  io.field("bytes_per_second", v.bytesPerSecond);
  io.optional("both_ways_bytes_per_second", v.bothWaysBytesPerSecond);
  io.optional("host_bytes_per_second", v.hostBytesPerSecond);
  io.optional("processor_bytes_per_second", v.processorBytesPerSecond);
  io.optional("messages", v.messages);
  io.optional("exchanges", v.exchanges);
  io.optional("compute_slowdown", v.computeSlowdown);
  io.optional("communication_slowdown", v.communicationSlowdown);
  io.optional("cold", v.cold);
}

template <typename Io> static void fields(Io &io, PeakRate &v) {
  io.field("dtype", v.dtype);
  io.field("unit", v.unit);
  io.field("flops_per_second", v.flopsPerSecond);
}

template <typename Io> static void fields(Io &io, NvLink &v) {
  io.field("generation", v.generation);
  io.field("links", v.links);
  io.field("link_bytes_per_second", v.linkBytesPerSecond);
  io.field("latency_seconds", v.latencySeconds);
  io.field("efficiency", v.efficiency);
  io.field("domain_gpus", v.domainGpus);
  io.field("multicast", v.multicast);
}

template <typename Io> static void fields(Io &io, Pcie &v) {
  io.field("generation", v.generation);
  io.field("lanes", v.lanes);
  io.field("bytes_per_second", v.bytesPerSecond);
}

template <typename Io> static void fields(Io &io, NetworkCard &v) {
  io.field("link", v.link);
  io.field("efficiency", v.efficiency);
  io.field("gpus", v.gpus);
}

template <typename Io> static void fields(Io &io, Gpu &v) {
  io.field("model", v.model);
  io.field("multiprocessors", v.multiprocessors);
  io.field("peaks", v.peaks);
  io.field("matmul_efficiency", v.matmulEfficiency);
  io.field("memory_bytes", v.memoryBytes);
  io.field("memory_bytes_per_second", v.memoryBytesPerSecond);
  io.field("launch_seconds", v.launchSeconds);
  io.optional("nvlink", v.nvlink);
  io.optional("pcie", v.pcie);
  io.optional("network", v.network);
}

template <typename Io> static void fields(Io &io, Measurement &v) {
  io.field("at", v.at);
  io.field("seconds", v.seconds);
  io.field("version", v.version);
  io.field("library", v.library);
  io.field("repetitions", v.repetitions);
  io.field("foreign_cores", v.foreignCores);
  io.field("median_over_least", v.medianOverLeast);
  io.optional("end_over_begin", v.endOverBegin);
  io.optional("missing", v.missing);
  io.optional("calibrations", v.calibrations);
}

template <typename Io> static void fields(Io &io, Machine &v) {
  io.field("format_version", v.formatVersion);
  io.field("name", v.name);
  io.optional("measurement", v.measurement);
  io.optional("sources", v.sources);
  io.optional("source_of", v.sourceOf);
  io.optional("processor", v.processor);
  io.optional("compute", v.compute);
  io.optional("overheads", v.overheads);
  io.optional("transports", v.transports);
  io.optional("interference", v.interference);
  io.optional("links", v.links);
  io.optional("gpu", v.gpu);
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

namespace {

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

/// The plausible numbers of a unit; the first whose suffix fits counts.
struct Unit {
  const char *suffix;
  double least, most;
  const char *what;
};
constexpr Unit kUnits[] = {
    {"flops_per_second", 1e5, 1e17, "FLOPs per second"},
    {"elements_per_second", 1e4, 1e14, "elements per second"},
    {"bytes_per_second", 1e5, 1e14, "bytes per second"},
    {"latency_seconds", 0, 10, "seconds"},
    {"message_seconds", 0, 10, "seconds"},
    {"launch_seconds", 0, 10, "seconds"},
    {"core_to_core_seconds", 1e-10, 0.01, "seconds"},
    {"command_seconds", 0, 0.01, "seconds"},
    {"call_seconds", 0, 0.01, "seconds"},
    {"event_seconds", 0, 0.01, "seconds"},
    {"seconds", 0, 1e5, "seconds"},
    {"bytes", 1, 1e15, "bytes"},
    {"_slowdown", 0.5, 1000, "times as long as alone"},
    {"efficiency", 0.01, 1, "of what can be reached"},
    {"foreign_cores", 0, 65536, "cores"},
    {"median_over_least", 1, 1e6, "times the least"},
    {"end_over_begin", 1e-3, 1e3, "times as long"},
};
/// Counts of things.
constexpr const char *kCounts[] = {
    "m",          "n",     "k",           "rows",       "elements",        "keys",
    "head_dim",   "ranks", "cores",       "level",      "lanes",           "links",
    "busy_cores", "gpus",  "domain_gpus", "generation", "multiprocessors", "shared_by_cores",
    "repetitions"};

/// Other units that such fields have elsewhere, and what to use in their place.
constexpr std::pair<const char *, const char *> kOtherUnits[] = {
    {"_gbps", "bytes_per_second"},
    {"_gb_per_second", "bytes_per_second"},
    {"_mbps", "bytes_per_second"},
    {"_mb_per_second", "bytes_per_second"},
    {"_gbit_per_second", "bytes_per_second"},
    {"_bits_per_second", "bytes_per_second"},
    {"_gib_per_second", "bytes_per_second"},
    {"_tflops", "flops_per_second"},
    {"_gflops", "flops_per_second"},
    {"_ns", "seconds"},
    {"_us", "seconds"},
    {"_ms", "seconds"},
    {"_s", "seconds"},
    {"_gb", "bytes"},
    {"_gib", "bytes"},
    {"_mb", "bytes"},
    {"_mib", "bytes"},
    {"_kb", "bytes"},
    {"_kib", "bytes"}};

Status checkName(const std::string &path, const std::string &name) {
  for (const auto &[suffix, instead] : kOtherUnits)
    if (endsWith(name, suffix))
      return Status::error("field ", inQuotes(path), " expects a unit of machine files, ",
                           inQuotes(instead), ", at the end of its name");
  return {};
}

Status checkNumber(const std::string &path, const std::string &name, double value) {
  for (const Unit &unit : kUnits)
    if (endsWith(name, unit.suffix))
      return value >= unit.least && value <= unit.most
                 ? Status()
                 : Status::error("field ", inQuotes(path), " expects ", shortNumber(unit.least),
                                 " to ", shortNumber(unit.most), " ", unit.what, ", got ",
                                 shortNumber(value));
  for (const char *count : kCounts)
    if (name == count)
      return value >= 1 && value <= 1e9
                 ? Status()
                 : Status::error("field ", inQuotes(path), " expects 1 to 1e9, got ",
                                 shortNumber(value));
  return {};
}

/// Checks all numbers below `json`, which `name` names, and collects their paths.
Status checkUnits(const Json &json, const std::string &path, const std::string &name,
                  std::vector<std::string> &numbers) {
  if (json.is_object()) {
    for (const auto &[field, value] : json.items()) {
      const std::string below = path.empty() ? field : path + "." + field;
      RETURN_IF_ERROR(checkName(below, field));
      RETURN_IF_ERROR(checkUnits(value, below, field, numbers));
    }
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i)
      RETURN_IF_ERROR(checkUnits(json[i], path + "[" + std::to_string(i) + "]", name, numbers));
  } else if (json.is_number()) {
    numbers.push_back(path);
    return checkNumber(path, name, json.get<double>());
  }
  return {};
}

/// Every number of a published machine has a source, its own or that of an object around it.
Status checkSources(const Machine &machine, const std::vector<std::string> &numbers) {
  for (const auto &[path, source] : machine.sourceOf)
    if (machine.sources.count(source) == 0)
      return Status::error("field ", inQuotes("source_of." + path),
                           " expects a name in 'sources', got ", inQuotes(source));
  std::set<std::string> used;
  for (const std::string &number : numbers) {
    if (number == "format_version")
      continue;
    std::string path = number;
    while (!path.empty() && machine.sourceOf.count(path) == 0) {
      const size_t end = path.find_last_of(".[");
      path.resize(end == std::string::npos ? 0 : end);
    }
    if (path.empty())
      return Status::error("field ", inQuotes(number), " has no source in 'source_of'");
    used.insert(path);
  }
  for (const auto &[path, source] : machine.sourceOf)
    if (used.count(path) == 0)
      return Status::error("field ", inQuotes("source_of." + path), " is of no number");
  return {};
}

/// Up to version 2 links have the seconds of an exchange of 8 bytes, and of no others.
void nameExchanges(Json &json) {
  auto links = json.find("links");
  if (links == json.end() || !links->is_array())
    return;
  for (Json &link : *links)
    if (link.is_object() && link.contains("exchange_seconds") && !link.contains("exchanges")) {
      link["exchanges"] = Json::array({{{"bytes", 8}, {"seconds", link["exchange_seconds"]}}});
      link.erase("exchange_seconds");
    }
}

} // namespace

Result<Machine> machineFromJson(const std::string &text) {
  ASSIGN_OR_RETURN(Json json, runtime::parseJson(text.data(), text.data() + text.size()));
  FieldReader version(json, "");
  Machine machine;
  version.field("format_version", machine.formatVersion);
  if (machine.formatVersion < 1 || machine.formatVersion > Machine::kFormatVersion)
    version.fail("expects format version 1 to " + std::to_string(Machine::kFormatVersion) +
                 ", got " + std::to_string(machine.formatVersion));
  if (machine.formatVersion < 3 && json.is_object())
    nameExchanges(json);
  std::vector<std::string> numbers;
  // Before the fields, so that a wrong unit is not only an unknown field.
  if (json.is_object())
    RETURN_IF_ERROR(checkUnits(json, "", "", numbers));
  fields(version, machine);
  RETURN_IF_ERROR(version.finish());
  RETURN_IF_ERROR(checkTables(machine));
  if (!machine.measurement)
    RETURN_IF_ERROR(checkSources(machine, numbers));
  else if (!machine.sourceOf.empty())
    return Status::error("field 'source_of' is for machines without 'measurement'");
  return machine;
}

std::string machineToJson(const Machine &machine) {
  Machine copy = machine;
  FieldWriter writer;
  fields(writer, copy);
  return writer.json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

const Transport *Machine::findTransport(const std::string &transport, int64_t ranks) const {
  for (const Transport &candidate : transports)
    if (candidate.name == transport && candidate.ranks == ranks)
      return &candidate;
  return nullptr;
}

std::string differenceFrom(const Machine &machine, const Processor &host) {
  if (!machine.processor)
    return "";
  const Processor &p = *machine.processor;
  auto describe = [](const Processor &processor) {
    return inQuotes(processor.model) + " with " + std::to_string(processor.cores) +
           (processor.cores == 1 ? " core" : " cores") + " and " + processor.isa;
  };
  if (p.model == host.model && p.cores == host.cores && p.isa == host.isa)
    return "";
  return inQuotes(machine.name) + " was measured on " + describe(p) + ", this is " + describe(host);
}

} // namespace braid::cost
