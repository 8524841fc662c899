//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/EncodingTable.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <fnmatch.h>

namespace braid::runtime {

namespace {

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// "@main/@layer#3/mlp.down/reduce_scatter" as "main", "layer#3" and "mlp.down/reduce_scatter".
std::vector<std::string> partsOf(std::string path) {
  std::vector<std::string> parts;
  while (!path.empty() && path[0] == '@' && path.find('/') != std::string::npos) {
    const size_t slash = path.find('/');
    parts.push_back(path.substr(1, slash - 1));
    path = path.substr(slash + 1);
  }
  parts.push_back(std::move(path));
  return parts;
}

bool matches(const std::vector<std::string> &pattern, const std::vector<std::string> &path) {
  auto match = [](const std::string &glob, const std::string &text) {
    return fnmatch(glob.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
  };
  // A role, wherever it is.
  if (pattern.size() == 1)
    return match(pattern[0], path.back());
  return std::equal(pattern.begin(), pattern.end(), path.begin(), path.end(), match);
}

Result<std::optional<Encoding>> parseHalf(const std::string &text) {
  if (text == "none")
    return std::optional<Encoding>();
  ASSIGN_OR_RETURN(Encoding encoding, Encoding::parse(text));
  return std::optional<Encoding>(encoding);
}

} // namespace

std::string EncodingTable::Entry::str() const {
  auto name = [](const std::optional<Encoding> &half) { return half ? half->str() : "none"; };
  const std::string first = name(reduce), second = name(gather);
  return first == second ? first : first + "/" + second;
}

HostTensor EncodingTable::Entry::codes() const {
  HostTensor value = HostTensor::zeros(DType::i32, {2});
  if (reduce)
    value.as<int32_t>()[0] = static_cast<int32_t>(reduce->code());
  if (gather)
    value.as<int32_t>()[1] = static_cast<int32_t>(gather->code());
  return value;
}

Status EncodingTable::set(const std::string &list) {
  for (const std::string &item : split(list, ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size())
      return Status::error("expects a list of PATTERN=ENCODING, such as '*=int8:128', got ",
                           inQuotes(item));
    const std::string pattern = item.substr(0, equals);
    const std::vector<std::string> halves = split(item.substr(equals + 1), '/');
    if (halves.size() > 2)
      return Status::error("expects at most two encodings of ", inQuotes(pattern), ", got ",
                           inQuotes(item.substr(equals + 1)));
    ASSIGN_OR_RETURN(const std::optional<Encoding> reduce, parseHalf(halves.front()));
    ASSIGN_OR_RETURN(const std::optional<Encoding> gather, parseHalf(halves.back()));
    bool found = false;
    for (Entry &entry : entries)
      if (matches(partsOf(pattern), partsOf(entry.identity))) {
        entry.reduce = reduce;
        entry.gather = gather;
        found = true;
      }
    if (!found)
      return Status::error("the table of encodings has no collective ", inQuotes(pattern),
                           entries.empty()
                               ? ": the program was not compiled with --quantize table"
                               : ", it has " + inQuotes(entries.front().identity) +
                                     (entries.size() > 1
                                          ? " and " + std::to_string(entries.size() - 1) + " more"
                                          : ""));
  }
  return {};
}

} // namespace braid::runtime
