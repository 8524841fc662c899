//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Explain.h"
#include "ProgramOutline.h"
#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Model.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace braid::runtime {

namespace {

using OrderedJson = nlohmann::ordered_json;

/// "512 B", "48.0 KiB", "1.5 GiB"
std::string sizeText(uint64_t bytes) {
  if (bytes < 1024)
    return std::to_string(bytes) + " B";
  auto size = static_cast<double>(bytes);
  const char *unit = "";
  for (const char *larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (size < 1024)
      break;
    size /= 1024;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", size, unit);
  return text;
}

std::string counted(int64_t count, const std::string &what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string join(const std::vector<std::string> &parts, const char *between = ", ") {
  std::string all;
  for (const std::string &part : parts)
    all += (all.empty() ? "" : between) + part;
  return all;
}

/// Bytes of a rank's shard of a value, which are the same for all ranks.
template <typename Value> int64_t localBytes(const Mesh &mesh, const Value &value) {
  Result<Box> box = localBox(mesh, 0, value.shardedShape(), value.sharding);
  int64_t bytes = box.ok() ? byteSize(value.dtype) : 0;
  if (box.ok())
    for (int64_t size : box->sizes)
      bytes *= size;
  return bytes;
}
/// Those that a rank has or, without one, that the rank has that has most.
template <typename Value>
int64_t localBytes(const Mesh &mesh, const std::vector<Value> &values,
                   std::optional<int64_t> rank) {
  if (!rank && std::any_of(values.begin(), values.end(),
                           [](const Value &value) { return !value.on.isAll(); })) {
    int64_t most = 0;
    for (int64_t r = 0; r < std::min(mesh.numRanks(), RankRoles::kMaxRanks); ++r)
      most = std::max(most, localBytes(mesh, values, r));
    return most;
  }
  int64_t bytes = 0;
  for (const Value &value : values)
    if (!rank || value.on.contains(mesh, *rank))
      bytes += localBytes(mesh, value);
  return bytes;
}

const OutlineProcedure *procedureOf(const ProgramOutline &outline, const Entry &entry) {
  auto found = std::find_if(outline.procedures.begin(), outline.procedures.end(),
                            [&](const auto &p) { return p.entry == entry.name; });
  return found == outline.procedures.end() ? nullptr : &*found;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

class TextWriter {
public:
  TextWriter(const Bundle &bundle, const ExplainOptions &options)
      : manifest(bundle.manifest()), options(options) {}

  std::string write(const ProgramOutline &outline) {
    queues = outline.queues;
    if (options.procedure.empty())
      writeHead(outline);
    for (const OutlineProcedure &procedure : outline.procedures)
      writeProcedure(procedure);
    return std::move(out);
  }

private:
  void writeHead(const ProgramOutline &outline) {
    const int64_t ranks = manifest.mesh.numRanks();
    out += "made by " + manifest.producer + "\n";
    out += "mesh " + meshString(manifest.mesh) + ": " + counted(ranks, "rank") +
           (ranks == 1           ? ""
            : sameOnAll(outline) ? ", all of which run this program on their own parts"
                                 : ", which run what follows except where a line says 'on'") +
           "\n";
    for (const KernelLibrary &library : manifest.kernels)
      out += "kernels for " + library.target + " " + library.isa + "\n";
    for (const Entry &entry : manifest.entries) {
      out += "\nentry " + entry.name + "\n";
      for (const EntryValue &value : entry.operands)
        out += "  takes " + valueText(value) + "\n";
      for (const EntryValue &value : entry.results)
        out += "  gives " + valueText(value) + "\n";
      for (const EntryValue &value : entry.states)
        out += "  keeps " + valueText(value) + "\n";
      out += "  memory of a rank: " +
             sizeText(
                 static_cast<uint64_t>(localBytes(manifest.mesh, entry.parameters, options.rank))) +
             " in " + counted(static_cast<int64_t>(entry.parameters.size()), "parameter");
      if (!entry.states.empty())
        out +=
            ", " +
            sizeText(static_cast<uint64_t>(localBytes(manifest.mesh, entry.states, options.rank))) +
            " in " + counted(static_cast<int64_t>(entry.states.size()), "state");
      if (const OutlineProcedure *procedure = procedureOf(outline, entry))
        out += ", " + sizeText(procedure->localBytes) + " of local buffers, " +
               sizeText(procedure->symmetricBytes) +
               " of symmetric ones, which collectives read and write";
      out += "\n";
      if (const OutlineProcedure *procedure = procedureOf(outline, entry))
        for (size_t i = 0; i < procedure->symmetricArguments.size(); ++i)
          out += (i == 0 ? "  in symmetric memory, since collectives use them in place:\n    "
                         : "    ") +
                 procedure->symmetricArguments[i] + "\n";
    }
    const std::string count = queues.size() == 2 ? "two" : std::to_string(queues.size());
    if (queues.size() == 1)
      out += "\nA rank has one queue, which runs from top to bottom.\n";
    else
      out += "\nA rank has " + count +
             " queues that run at the same time, each from top to bottom. Nothing orders one "
             "queue\nagainst " +
             (queues.size() == 2 ? "the other" : "another") + " but the lines that wait.\n";
  }

  static bool sameOnAll(const ProgramOutline &outline) {
    for (const OutlineProcedure &procedure : outline.procedures)
      for (const auto &commands : procedure.queues)
        if (std::any_of(commands.begin(), commands.end(),
                        [](const OutlineCommand &command) { return !command.on.empty(); }))
          return false;
    return true;
  }

  std::string valueText(const EntryValue &value) const {
    std::string text = "'" + value.name + "' " + name(value.dtype) + shapeString(value.globalShape);
    if (!value.paddedShape.empty())
      text += " padded to " + shapeString(value.paddedShape);
    if (value.defaultValue)
      text += ", " + std::to_string(*value.defaultValue) + " when left out";
    if (!value.on.isAll())
      text += ", on " + rankSetString(value.on);
    Result<Box> box =
        localBox(manifest.mesh, options.rank.value_or(0), value.shardedShape(), value.sharding);
    if (!box.ok() || box->sizes == value.shardedShape())
      return text;
    if (!options.rank)
      return text + ", a rank has " + shapeString(box->sizes) + " of it";
    return text + ", rank " + std::to_string(*options.rank) + " has " + shapeString(box->sizes) +
           " from " + shapeString(box->offsets);
  }

  void writeProcedure(const OutlineProcedure &procedure) {
    out += "\n@" + procedure.name + ": ";
    if (!procedure.entry.empty())
      out += "entry " + procedure.entry;
    else
      out += "runs " +
             (procedure.executions == 1 ? "once" : std::to_string(procedure.executions) + " times");
    out += "; buffers " + sizeText(procedure.localBytes) + " local, " +
           sizeText(procedure.symmetricBytes) + " symmetric (its callees' included)\n";
    for (Queue queue = 0; queue < queues.size(); ++queue) {
      const auto &commands = procedure.queues[queue];
      out += "  " + queues[queue].name + " queue" + (commands.empty() ? ": nothing" : "") + "\n";
      for (const OutlineCommand &command : commands)
        writeCommand(command);
    }
  }

  void writeCommand(const OutlineCommand &command) {
    char start[64];
    std::snprintf(start, sizeof start, "  %5zu  %-14s ", command.index, command.kind.c_str());
    std::string line = start;
    if (!command.callee.empty())
      line +=
          "@" + command.callee +
          (command.name.empty() || command.name == command.callee ? "" : " '" + command.name + "'");
    else if (!command.name.empty())
      line += "'" + command.name + "'";
    std::vector<std::string> details;
    if (!command.on.empty())
      details.push_back("on " + command.on);
    for (const auto &[what, value] : command.details)
      details.push_back(what + " " + value);
    if (command.group)
      details.push_back(groupText(*command.group));
    if (command.bytesSent)
      details.push_back("sends " + sizeText(static_cast<uint64_t>(*command.bytesSent)));
    if (!details.empty())
      line += " " + join(details);
    out += line + "\n";

    constexpr const char *kIndent = "                         ";
    for (bool written : {false, true}) {
      std::vector<std::string> operands;
      for (const OutlineOperand &operand : command.operands)
        if (operand.written == written)
          operands.push_back(operandText(operand));
      if (!operands.empty())
        out += std::string(kIndent) +
               (command.callee.empty() ? (written ? "writes " : "reads ") : "with ") +
               join(operands) + "\n";
    }
    for (const OutlinePlace &place : command.waitsFor)
      out += std::string(kIndent) + "waits for " + placeText(place) + "\n";
    if (command.kind == "wait" && command.waitsFor.empty())
      out += std::string(kIndent) + "waits for an event that the caller passes\n";
    for (const OutlinePlace &place : command.awaitedBy)
      out += std::string(kIndent) + "awaited by " + placeText(place) + "\n";
  }

  static std::string operandText(const OutlineOperand &operand) {
    return (operand.role.empty() ? "" : operand.role + ": ") + operand.memory + " " +
           name(operand.dtype) + shapeString(operand.shape) + " " +
           sizeText(static_cast<uint64_t>(operand.bytes()));
  }

  std::string groupText(const OutlineGroup &group) const {
    std::vector<std::string> groups;
    for (const std::vector<int64_t> &ranks : group.groups) {
      std::vector<std::string> names;
      for (int64_t rank : ranks)
        names.push_back(std::to_string(rank));
      groups.push_back("{" + join(names) + "}");
    }
    std::string text = "over " + group.axes + " among " + counted(group.size, "rank");
    return groups.empty() ? text : text + " " + join(groups, " ");
  }

  /// "communication command 3, all_reduce 'attention.output'"
  static std::string placeText(const OutlinePlace &place) {
    std::string where = place.queue + " command " + std::to_string(place.index);
    if (!place.within.empty())
      where = "the call at compute command " + std::to_string(place.index) + ", in @" +
              join(place.within, " and @") + " on the " + place.queue + " queue";
    return where + ", " + place.kind + (place.name.empty() ? "" : " '" + place.name + "'");
  }

  const Manifest &manifest;
  const ExplainOptions &options;
  std::vector<QueueInfo> queues;
  std::string out;
};

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

template <typename Value> OrderedJson toJson(const Mesh &mesh, const Value &value) {
  OrderedJson json{
      {"name", value.name}, {"dtype", name(value.dtype)}, {"shape", value.globalShape}};
  Result<Box> box = localBox(mesh, 0, value.shardedShape(), value.sharding);
  json["shape_per_rank"] = box.ok() ? box->sizes : value.globalShape;
  json["bytes_per_rank"] = localBytes(mesh, value);
  if (!value.on.isAll())
    json["on"] = rankSetString(value.on);
  return json;
}

OrderedJson toJson(const std::vector<OutlinePlace> &places) {
  OrderedJson json = OrderedJson::array();
  for (const OutlinePlace &place : places) {
    OrderedJson one{
        {"queue", place.queue}, {"index", place.index}, {"kind", place.kind}, {"name", place.name}};
    if (!place.within.empty())
      one["within"] = place.within;
    json.push_back(std::move(one));
  }
  return json;
}

OrderedJson toJson(const OutlineCommand &command) {
  OrderedJson json{{"index", command.index}, {"kind", command.kind}, {"name", command.name}};
  if (!command.on.empty())
    json["on"] = command.on;
  if (!command.callee.empty())
    json["callee"] = command.callee;
  for (const auto &[what, value] : command.details)
    json["details"][what] = value;
  if (command.group)
    json["group"] = {{"axes", command.group->axes},
                     {"ranks_in_group", command.group->size},
                     {"ranks", command.group->groups}};
  if (command.bytesSent)
    json["bytes_sent_per_rank"] = *command.bytesSent;
  for (const OutlineOperand &operand : command.operands) {
    OrderedJson one{{"memory", operand.memory},
                    {"dtype", name(operand.dtype)},
                    {"shape", operand.shape},
                    {"bytes", operand.bytes()}};
    if (!operand.role.empty())
      one["role"] = operand.role;
    json[!command.callee.empty() ? "arguments"
         : operand.written       ? "writes"
                                 : "reads"]
        .push_back(std::move(one));
  }
  if (!command.waitsFor.empty())
    json["waits_for"] = toJson(command.waitsFor);
  if (!command.awaitedBy.empty())
    json["awaited_by"] = toJson(command.awaitedBy);
  return json;
}

OrderedJson toJson(const OutlineProcedure &procedure, const std::vector<QueueInfo> &queues) {
  OrderedJson json{{"name", procedure.name},
                   {"entry", procedure.entry},
                   {"executions", procedure.executions},
                   {"local_bytes", procedure.localBytes},
                   {"symmetric_bytes", procedure.symmetricBytes},
                   {"symmetric_arguments", procedure.symmetricArguments}};
  for (Queue queue = 0; queue < queues.size(); ++queue) {
    OrderedJson &commands = json["queues"][queues[queue].name] = OrderedJson::array();
    for (const OutlineCommand &command : procedure.queues[queue])
      commands.push_back(toJson(command));
  }
  return json;
}

} // namespace

Result<std::string> explain(const Bundle &bundle, const ExplainOptions &options) {
  ASSIGN_OR_RETURN(ProgramOutline outline, outlineProgram(bundle, options.rank, options.procedure));
  return TextWriter(bundle, options).write(outline);
}

Result<std::string> explainAsJson(const Bundle &bundle, const ExplainOptions &options) {
  ASSIGN_OR_RETURN(ProgramOutline outline, outlineProgram(bundle, options.rank, options.procedure));
  const Manifest &manifest = bundle.manifest();
  OrderedJson json{{"producer", manifest.producer}, {"ranks", manifest.mesh.numRanks()}};
  json["mesh"] = OrderedJson::array();
  for (const Mesh::Axis &axis : manifest.mesh.axes)
    json["mesh"].push_back({{"axis", axis.name}, {"size", axis.size}});
  json["kernels"] = OrderedJson::array();
  for (const KernelLibrary &library : manifest.kernels)
    json["kernels"].push_back(
        {{"target", library.target}, {"triple", library.triple}, {"isa", library.isa}});
  json["entries"] = OrderedJson::array();
  for (const Entry &entry : manifest.entries) {
    OrderedJson one{{"name", entry.name}};
    auto add = [&](const char *field, const auto &values) {
      one[field] = OrderedJson::array();
      for (const auto &value : values)
        one[field].push_back(toJson(manifest.mesh, value));
    };
    add("parameters", entry.parameters);
    add("states", entry.states);
    add("operands", entry.operands);
    add("results", entry.results);
    json["entries"].push_back(std::move(one));
  }
  json["procedures"] = OrderedJson::array();
  for (const OutlineProcedure &procedure : outline.procedures)
    json["procedures"].push_back(toJson(procedure, outline.queues));
  // Names come from the model and may not be UTF-8.
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

} // namespace braid::runtime
