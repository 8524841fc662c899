//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The encodings of a program that takes them when it is loaded: an operand of the entry for each
// collective holds the codes of its two halves. Its name is `encoding-of-` and the collective's
// identity, with `|` for `/`, as names are those of files.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_ENCODINGTABLE_H
#define BRAID_BASE_ENCODINGTABLE_H

#include "braid/Base/Encoding.h"
#include "braid/Base/HostTensor.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

class EncodingTable {
public:
  static constexpr const char *kPrefix = "encoding-of-";

  struct Entry {
    std::string identity; ///< "@main/@layer#3/mlp.down"
    std::optional<Encoding> reduce, gather;

    /// "int4:128/none"
    std::string str() const;
    /// The operand's name and its value.
    std::string operand() const { return operandOf(identity); }
    HostTensor codes() const;
  };
  std::vector<Entry> entries;

  static std::string operandOf(std::string identity) {
    std::replace(identity.begin(), identity.end(), '/', '|');
    return kPrefix + identity;
  }
  static std::string identityOf(const std::string &operand) {
    std::string identity = operand.substr(std::string(kPrefix).size());
    std::replace(identity.begin(), identity.end(), '|', '/');
    return identity;
  }

  /// The entries among an entry's operands, without encodings.
  template <typename Operands> static EncodingTable of(const Operands &operands) {
    EncodingTable table;
    for (const auto &operand : operands)
      if (operand.name.rfind(kPrefix, 0) == 0)
        table.entries.push_back({identityOf(operand.name), std::nullopt, std::nullopt});
    return table;
  }

  /// Sets the entries that a list of PATTERN=ENCODING names, of which the last that matches counts.
  /// A pattern is a role or a path from the entry on, with `*`, `?` and `[...]` in each part; an
  /// encoding is a name for both halves or two names with `/`, each of which may be `none`. A
  /// pattern that matches nothing is an error.
  Status set(const std::string &list);
};

} // namespace braid::runtime
#endif // BRAID_BASE_ENCODINGTABLE_H
