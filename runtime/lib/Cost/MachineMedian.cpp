//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One machine of several calibrations: the median of each figure. In the JSON of a machine file
// figures are the numbers with a fraction, and all else says what is measured, so that what a file
// gets in future is combined without a word here.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Cost/Machine.h"
#include "runtime/lib/Base/Median.h"
#include "runtime/lib/Data/Json.h"

#include <algorithm>

namespace braid::cost {

using runtime::inQuotes;
using runtime::Json;
using runtime::median;

namespace {

/// The same place in the documents of all files.
struct Place {
  const std::vector<MachineFile> &files;
  std::vector<const Json *> values; ///< of each file
  std::string path;                 ///< "transports[1].cold"

  Status differs(size_t file, const std::string &what) const {
    return Status::error(inQuotes(files[file].path), " does not measure what ",
                         inQuotes(files[0].path),
                         " does: ", path.empty() ? "" : "in " + inQuotes(path) + " ", what);
  }
};

std::string lengthOf(const Json &list) {
  return std::to_string(list.size()) + (list.size() == 1 ? " entry" : " entries");
}

Status putMedians(const Place &place, Json &result) {
  const Json &first = *place.values[0];
  if (first.is_number_float()) {
    std::vector<double> numbers;
    for (const Json *value : place.values)
      numbers.push_back(value->get<double>());
    result = median(std::move(numbers));
    return {};
  }
  if (!first.is_structured()) {
    for (size_t i = 1; i < place.values.size(); ++i)
      if (*place.values[i] != first)
        return place.differs(i, "expects " + first.dump() + ", got " + place.values[i]->dump());
    return {};
  }
  if (first.is_object()) {
    for (size_t i = 1; i < place.values.size(); ++i) {
      for (const auto &[name, value] : first.items())
        if (!place.values[i]->contains(name))
          return place.differs(i, "has no " + inQuotes(name));
      for (const auto &[name, value] : place.values[i]->items())
        if (!first.contains(name))
          return place.differs(i, "has " + inQuotes(name));
    }
    for (const auto &[name, value] : first.items()) {
      Place inner{place.files, {}, place.path.empty() ? name : place.path + "." + name};
      for (const Json *of : place.values)
        inner.values.push_back(&of->at(name));
      RETURN_IF_ERROR(putMedians(inner, result[name]));
    }
    return {};
  }
  for (size_t i = 1; i < place.values.size(); ++i)
    if (place.values[i]->size() != first.size())
      return place.differs(i, "expects " + lengthOf(first) + ", got " + lengthOf(*place.values[i]));
  for (size_t at = 0; at < first.size(); ++at) {
    Place inner{place.files, {}, place.path + "[" + std::to_string(at) + "]"};
    for (const Json *of : place.values)
      inner.values.push_back(&(*of)[at]);
    RETURN_IF_ERROR(putMedians(inner, result[at]));
  }
  return {};
}

/// But for the name.
bool isSame(const Machine &one, Machine other) {
  other.name = one.name;
  return machineToJson(one) == machineToJson(other);
}

} // namespace

Result<Machine> medianOf(const std::vector<MachineFile> &files) {
  if (files.size() < 2)
    return Status::error("a median expects the files of two calibrations or more, got ",
                         files.size());
  for (const MachineFile &file : files)
    if (!file.machine.measurement)
      return Status::error(inQuotes(file.path), " is a published machine: only calibrations have a "
                                                "median");
  // Otherwise one that is given twice would count twice. Files of one calibration of the host may
  // have links of several.
  for (const MachineFile &file : files)
    for (const MachineFile &other : files)
      if (&other != &file && isSame(file.machine, other.machine))
        return Status::error(inQuotes(file.path), " and ", inQuotes(other.path),
                             " are the same calibration, of ", file.machine.measurement->at);
  Measurement whole = *files[0].machine.measurement;
  whole.seconds = 0;
  whole.calibrations = 0;
  std::vector<Json> documents;
  for (const MachineFile &file : files) {
    const Measurement &one = *file.machine.measurement;
    whole.seconds += one.seconds;
    whole.at = std::max(whole.at, one.at);
    *whole.calibrations += one.calibrations.value_or(1);
    whole.foreignCores = std::max(whole.foreignCores, one.foreignCores);
    Machine copy = file.machine;
    copy.name = files[0].machine.name;
    copy.formatVersion = Machine::kFormatVersion;
    // What a measurement was is said of all of them, and what it missed must be the same.
    copy.measurement->at = whole.at;
    copy.measurement->calibrations.reset();
    const std::string text = machineToJson(copy);
    ASSIGN_OR_RETURN(Json json, runtime::parseJson(text.data(), text.data() + text.size()));
    json["measurement"].erase("at");
    documents.push_back(std::move(json));
  }
  Place all{files, {}, ""};
  for (const Json &document : documents)
    all.values.push_back(&document);
  Json result = documents[0];
  RETURN_IF_ERROR(putMedians(all, result));
  result["measurement"]["at"] = whole.at;
  ASSIGN_OR_RETURN(Machine machine, machineFromJson(result.dump()));
  whole.medianOverLeast = machine.measurement->medianOverLeast;
  whole.endOverBegin = machine.measurement->endOverBegin;
  machine.measurement = whole;
  return machine;
}

} // namespace braid::cost
