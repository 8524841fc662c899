//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Program/Manifest.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/Slices.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <limits>
#include <map>
#include <set>

namespace braid::runtime {

namespace {

/// --output DIR writes a file of this name, so it must be one component of a path.
bool isSafeName(const std::string &name) {
  return isSafeMember(name) && name.find('/') == std::string::npos;
}

std::string at(const std::string &field, size_t index) {
  return field + "[" + std::to_string(index) + "]";
}

Status verifySharded(const Mesh &mesh, const std::vector<int64_t> &shape, DType dtype,
                     const Sharding &sharding) {
  RETURN_IF_ERROR(verifyShape(shape, dtype));
  // All ranks have shards of one shape.
  return localBox(mesh, 0, shape, sharding).status();
}

/// Checks who has a value: the ranks that have it have all of its shards.
Status verifyOn(const Mesh &mesh, const RankSet &on, const Sharding &sharding) {
  RETURN_IF_ERROR(on.verify(mesh).within("'on'"));
  for (const auto &axes : sharding.dims)
    for (const AxisRef &axis : axes)
      if (on.along(axis.name))
        return Status::error("expects no sharding over axis ", inQuotes(axis.name),
                             ", along which only some ranks have it");
  return {};
}

Status verifyParameter(const Mesh &mesh, const Parameter &parameter) {
  if (parameter.name.empty())
    return Status::error("expects a name");
  Status status = verifySharded(mesh, parameter.globalShape, parameter.dtype, parameter.sharding);
  if (status.ok())
    status = verifySlices(parameter);
  if (status.ok())
    status = verifyOn(mesh, parameter.on, parameter.sharding);
  return status.within("parameter " + inQuotes(parameter.name));
}

/// The shape that callers see lies within the sharded shape.
Status verifyPadding(const EntryValue &value, bool isOperand) {
  if (value.paddedShape.empty())
    return {};
  if (isOperand)
    return Status::error("expects a padded shape of a state or a result only");
  bool larger = value.paddedShape.size() == value.globalShape.size();
  for (size_t d = 0; larger && d < value.globalShape.size(); ++d)
    larger = value.paddedShape[d] >= value.globalShape[d];
  if (!larger)
    return Status::error("expects a padded shape of at least ", shapeString(value.globalShape),
                         " in every dimension, got ", shapeString(value.paddedShape));
  return {};
}

/// Checks the default and the bound of an operand of integers.
Status verifyIntegers(const EntryValue &value, bool isOperand) {
  if (!value.defaultValue && !value.below)
    return {};
  if (!isOperand || !isInteger(value.dtype))
    return Status::error("expects a default and a bound of an operand of integers only");
  const int64_t least = value.dtype == DType::i64   ? std::numeric_limits<int64_t>::max()
                        : value.dtype == DType::i32 ? std::numeric_limits<int32_t>::max()
                                                    : std::numeric_limits<int8_t>::max();
  if (int64_t below = value.below.value_or(least); below < 1 || below > least)
    return Status::error("expects a bound of 1 to ", least, ", got ", below);
  const int64_t end = value.below.value_or(least), given = value.defaultValue.value_or(0);
  if (given < 0 || given >= end)
    return Status::error("expects a default in [0, ", end, "), got ", given);
  return {};
}

Status verifyValues(const Mesh &mesh, const std::vector<EntryValue> &values,
                    const std::string &field, bool isOperand, std::set<std::string> names = {}) {
  for (size_t i = 0; i < values.size(); ++i) {
    const EntryValue &value = values[i];
    if (!isSafeName(value.name))
      return Status::error(inQuotes(at(field, i)), " expects a name that can be a file's, got ",
                           inQuotes(value.name));
    if (!names.insert(value.name).second)
      return Status::error(inQuotes(field), " has ", inQuotes(value.name), " twice");
    Status status = verifyShape(value.globalShape, value.dtype);
    if (status.ok())
      status = verifyPadding(value, isOperand);
    if (status.ok())
      status = verifyIntegers(value, isOperand);
    if (status.ok())
      status = verifySharded(mesh, value.shardedShape(), value.dtype, value.sharding);
    if (status.ok())
      status = verifyOn(mesh, value.on, value.sharding);
    RETURN_IF_ERROR(status.within(inQuotes(at(field, i)) + ": " + inQuotes(value.name)));
  }
  return {};
}

Status verifyEntry(const Mesh &mesh, const Entry &entry, const std::string &field) {
  std::set<std::string> names;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    RETURN_IF_ERROR(
        verifyParameter(mesh, entry.parameters[i]).within(inQuotes(at(field + ".parameters", i))));
    if (!names.insert(entry.parameters[i].name).second)
      return Status::error(inQuotes(field + ".parameters"), " has ",
                           inQuotes(entry.parameters[i].name), " twice");
  }
  RETURN_IF_ERROR(verifyValues(mesh, entry.states, field + ".states", false));
  // A state is both, an operand and a result.
  std::set<std::string> states;
  for (const EntryValue &state : entry.states)
    states.insert(state.name);
  RETURN_IF_ERROR(verifyValues(mesh, entry.operands, field + ".operands", true, states));
  return verifyValues(mesh, entry.results, field + ".results", false, states);
}

/// A state has one type and sharding in all entries.
Status verifyStates(const std::vector<Entry> &entries) {
  std::map<std::string, std::pair<const Entry *, const EntryValue *>> known;
  auto text = [](const EntryValue &state) {
    std::string dims;
    for (const auto &axes : state.sharding.dims) {
      std::string dim;
      for (const AxisRef &axis : axes)
        dim += (dim.empty() ? "" : ", ") + axis.name +
               (axis.size == 0 ? ""
                               : ":(" + std::to_string(axis.pre) + ")" + std::to_string(axis.size));
      dims += (dims.empty() ? "{" : ", {") + dim + "}";
    }
    return std::string(name(state.dtype)) + " " + shapeString(state.globalShape) +
           (state.paddedShape.empty() ? "" : " padded " + shapeString(state.paddedShape)) +
           (dims.empty() ? "" : " sharded [" + dims + "]") +
           (state.on.isAll() ? "" : " on " + rankSetString(state.on));
  };
  for (const Entry &entry : entries)
    for (const EntryValue &state : entry.states) {
      auto [it, isNew] = known.try_emplace(state.name, &entry, &state);
      const auto &[other, first] = it->second;
      if (text(*first) != text(state))
        return Status::error("entry ", inQuotes(entry.name), " expects state ",
                             inQuotes(state.name), " to be ", text(*first), " as in entry ",
                             inQuotes(other->name), ", got ", text(state));
    }
  return {};
}

} // namespace

Status Manifest::verify() const {
  if (formatVersion != kFormatVersion)
    return Status::error("expects format version ", kFormatVersion, ", got ", formatVersion);
  RETURN_IF_ERROR(mesh.verify().within("'mesh'"));
  if (entries.empty())
    return Status::error("'entries' expects at least one entry");
  std::set<std::string> entryNames;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].name.empty())
      return Status::error(inQuotes(at("entries", i)), " expects a name");
    if (!entryNames.insert(entries[i].name).second)
      return Status::error("'entries' has ", inQuotes(entries[i].name), " twice");
    RETURN_IF_ERROR(verifyEntry(mesh, entries[i], at("entries", i)));
  }
  RETURN_IF_ERROR(verifyStates(entries));

  std::set<std::string> members = {"manifest.json"};
  auto claim = [&](const std::string &field, const std::string &member) {
    if (!isSafeMember(member))
      return Status::error(inQuotes(field), " expects a path inside of the archive, got ",
                           inQuotes(member));
    if (!members.insert(member).second)
      return Status::error(inQuotes(field), " names member ", inQuotes(member),
                           ", which has another use");
    return Status();
  };
  RETURN_IF_ERROR(claim("program", programMember));
  if (checkTolerance && !(*checkTolerance > 0))
    return Status::error("expects a check_tolerance above 0, got ", *checkTolerance);
  if (encodedFor) {
    int64_t ranks = 0;
    for (int64_t ofHost : encodedFor->ranksOfHosts)
      ranks = ofHost < 1 || ofHost > Mesh::kMaxRanks ? -1 : ranks < 0 ? ranks : ranks + ofHost;
    if (ranks != mesh.numRanks())
      return Status::error("expects the ranks of hosts in encoded_for to be the ", mesh.numRanks(),
                           " of the mesh");
  }
  if (!moduleMember.empty())
    RETURN_IF_ERROR(claim("module", moduleMember));
  std::set<std::string> targets;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const KernelLibrary &library = kernels[i];
    for (const auto &[what, text] :
         {std::pair("target", &library.target), std::pair("triple", &library.triple),
          std::pair("isa", &library.isa)})
      if (text->empty())
        return Status::error(inQuotes(at("kernels", i) + "." + what), " expects a name");
    RETURN_IF_ERROR(claim(at("kernels", i) + ".member", library.member));
    const bool isCuda = library.target == "cuda";
    for (const auto &[what, member] : {std::pair(".launches", &library.launchesMember),
                                       std::pair(".source", &library.sourceMember)}) {
      const std::string field = at("kernels", i) + what;
      if (member->empty() == isCuda)
        return Status::error(inQuotes(field),
                             isCuda ? " expects the name of a member"
                                    : " expects target cuda, got " + inQuotes(library.target));
      if (isCuda)
        RETURN_IF_ERROR(claim(field, *member));
    }
    if (!targets.insert(library.target + '\n' + library.triple + '\n' + library.isa).second)
      return Status::error("'kernels' has two libraries for ", library.target, " ", library.triple,
                           " ", library.isa);
  }
  std::set<std::string> transportNames;
  for (size_t i = 0; i < transports.size(); ++i)
    if (transports[i].empty() || !transportNames.insert(transports[i]).second)
      return Status::error(inQuotes(at("transports", i)),
                           transports[i].empty() ? " expects a name" : " occurs twice");
  return {};
}

} // namespace braid::runtime
