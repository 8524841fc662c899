//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where machine files are: those that Braid brings are part of the library.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/Machine.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Files.h"

namespace braid::cost {

using runtime::inQuotes;

namespace {

struct Known {
  const char *file, *text;
};
constexpr Known kKnown[] = {
#include "Machines.inc"
};

/// "h100" of "h100.json"
std::string nameOf(const Known &known) {
  const std::string file = known.file;
  return file.substr(0, file.find('.'));
}

} // namespace

std::vector<std::string> knownMachines() {
  std::vector<std::string> names;
  for (const Known &known : kKnown)
    names.push_back(nameOf(known));
  return names;
}

std::string defaultMachinePath() {
  const std::string folder = runtime::cacheDirectory();
  return folder.empty() ? "" : folder + "/machine.json";
}

Result<Machine> openMachine(const std::string &nameOrPath) {
  for (const Known &known : kKnown)
    if (nameOrPath == nameOf(known))
      return machineFromJson(known.text).within("machine " + inQuotes(nameOrPath));
  if (nameOrPath.find('/') == std::string::npos && nameOrPath.find('.') == std::string::npos) {
    std::string names;
    for (const std::string &name : knownMachines())
      names += name + ", ";
    return Status::error("no machine ", inQuotes(nameOrPath), ": expects ", names,
                         "or the path of a machine file, as `braid calibrate -o` writes it");
  }
  constexpr uint64_t kMaxBytes = uint64_t(16) << 20;
  ASSIGN_OR_RETURN(runtime::Bytes bytes, runtime::readFile(nameOrPath, kMaxBytes));
  return machineFromJson({reinterpret_cast<const char *>(bytes.data()), bytes.size()})
      .within("machine file " + inQuotes(nameOrPath));
}

} // namespace braid::cost
