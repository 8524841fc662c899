//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the checks of single commands (ProgramCommands.cpp, ProgramCollectives.cpp). Messages
// begin with the view's role in the command.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H
#define BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H

#include "ProgramVerifier.h"

namespace braid::runtime {

/// Checks the views of one command and keeps the first error. Ask `ok` before checking shapes.
class Views {
public:
  Views(const program::Procedure &procedure, const Mesh &mesh, ArgumentUses &uses)
      : procedure(procedure), mesh(mesh), uses(uses) {}

  /// Returns an empty view after an error. `symmetric`: the view must lie in the symmetric arena.
  CheckedView take(const program::View &view, const std::string &role, Access access,
                   bool symmetric = false);
  bool ok() const { return status.ok(); }

  Status status;

private:
  void use(const CheckedView &view, const std::string &role, Access access);

  const program::Procedure &procedure;
  const Mesh &mesh;
  ArgumentUses &uses;
};

/// Number of ranks in a group over these axes.
Result<int64_t> groupSize(const flatbuffers::Vector<flatbuffers::Offset<program::AxisRef>> &axes,
                          const Mesh &mesh);
/// Checks that the procedure has the event, perhaps as an argument.
Status verifyEvent(uint32_t event, const program::Procedure &procedure);
/// Checks that the event is one of the procedure's own, so that it may set it.
Status verifySetEvent(uint32_t event, const program::Procedure &procedure);
Status verifyCollective(const program::CollectiveStart &op, const program::Procedure &procedure,
                        const Mesh &mesh, Views &views);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_COMMANDVIEWS_H
