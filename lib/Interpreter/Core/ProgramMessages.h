//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Messages between the ranks of an interpreted program that are sent and not received yet.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_CORE_PROGRAMMESSAGES_H
#define BRAID_LIB_INTERPRETER_CORE_PROGRAMMESSAGES_H

#include "braid/Interpreter/Core/Collectives.h"

#include <array>
#include <deque>
#include <map>
#include <optional>

namespace braid::interp {

/// One rank's side of a send or a receive.
struct ProgramTransfer {
  bool sends = false;
  /// Tag, source and target rank; none for a rank that no pair names.
  std::optional<std::array<int64_t, 3>> at;
};
Result<ProgramTransfer> transferOf(const Collective &collective, const runtime::Mesh &mesh,
                                   int64_t rank);

class ProgramMessages {
public:
  /// Whether the transfer need not wait: a send with room for its message, and a receive whose
  /// message is sent.
  bool ready(const ProgramTransfer &transfer) const;
  void send(const ProgramTransfer &transfer, std::vector<Tensor> values);
  /// The oldest message, or zeros for a rank that no pair names. Error when its types are not the
  /// expected ones.
  Result<std::vector<Tensor>> receive(const ProgramTransfer &transfer,
                                      const std::vector<ValueType> &expected);
  /// An error for the first message that was never received.
  Status unreceived() const;

private:
  std::map<std::array<int64_t, 3>, std::deque<std::vector<Tensor>>> sent;
};

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_PROGRAMMESSAGES_H
