//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What ranks of an interpreted program have sent each other and not received yet.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_INTERPRETER_CORE_PROGRAMMAIL_H
#define BRAID_LIB_INTERPRETER_CORE_PROGRAMMAIL_H

#include "braid/Interpreter/Core/Collectives.h"

#include <array>
#include <deque>
#include <map>
#include <optional>

namespace braid::interp {

/// One rank's part in a send or a receive.
struct ProgramHalf {
  bool sends = false;
  /// Channel, source and target rank; none for a rank that no pair names.
  std::optional<std::array<int64_t, 3>> at;
};
Result<ProgramHalf> halfOf(const Collective &collective, const runtime::Mesh &mesh, int64_t rank);

class ProgramMail {
public:
  /// Nothing keeps it waiting: all sends are, and receives of what has been sent.
  bool ready(const ProgramHalf &half) const;
  void send(const ProgramHalf &half, std::vector<Tensor> values);
  /// The values sent first, or zeros where nobody sends. Error when they are not of the types
  /// expected.
  Result<std::vector<Tensor>> receive(const ProgramHalf &half,
                                      const std::vector<ValueType> &expected);
  /// The first values that were sent and never received.
  Status unreceived() const;

private:
  std::map<std::array<int64_t, 3>, std::deque<std::vector<Tensor>>> sent;
};

} // namespace braid::interp
#endif // BRAID_LIB_INTERPRETER_CORE_PROGRAMMAIL_H
