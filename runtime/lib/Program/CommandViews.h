//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the checks of single commands share (ProgramCommands.cpp, ProgramCollectives.cpp): a
// command's views, and what is expected of them. Messages begin with the view's role in the
// command.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H
#define BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H

#include "ProgramVerifier.h"

namespace braid::runtime {

/// The views of one command, with the first error that any of them has; checks of shapes come after
/// `ok`.
class Views {
public:
  Views(const program::Procedure &procedure, ArgumentUses &uses)
      : procedure(procedure), uses(uses) {}

  /// A view after an error is an empty one; nothing is concluded from it.
  CheckedView take(const program::View &view, const std::string &role, Access access,
                   bool collective = false);
  bool ok() const { return status.ok(); }

  Status status;

private:
  void use(const CheckedView &view, const std::string &role, Access access, bool collective);

  const program::Procedure &procedure;
  ArgumentUses &uses;
};

/// Number of ranks in a group over these axes.
Result<int64_t> groupSize(const flatbuffers::Vector<flatbuffers::Offset<program::AxisRef>> &axes,
                          const Mesh &mesh);
/// The event is one of the procedure's.
Status verifyEvent(uint32_t event, const program::Procedure &procedure);
Status verifyCollective(const program::CollectiveStart &op, const program::Procedure &procedure,
                        Queue queue, const Mesh &mesh, Views &views);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H
