//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What ranks of an interpreted program have sent each other and not received yet.
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

/// One rank's part in a send or a receive.
struct ProgramTransfer {
  bool sends = false;
  /// Channel, source and target rank; none for a rank that no pair names.
  std::optional<std::array<int64_t, 3>> at;
};
Result<ProgramTransfer> transferOf(const Collective &collective, const runtime::Mesh &mesh,
                                   int64_t rank);

class ProgramMessages {
public:
  /// Nothing keeps it waiting: all sends are, and receives of what has been sent.
  bool ready(const ProgramTransfer &transfer) const;
  void send(const ProgramTransfer &transfer, std::vector<Tensor> values);
  /// The values sent first, or zeros where nobody sends. Error when they are not of the types
  /// expected.
  Result<std::vector<Tensor>> receive(const ProgramTransfer &transfer,
                                      const std::vector<ValueType> &expected);
  /// The first values that were sent and never received.
  Status unreceived() const;

private:
  std::map<std::array<int64_t, 3>, std::deque<std::vector<Tensor>>> sent;
};

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_PROGRAMMESSAGES_H
