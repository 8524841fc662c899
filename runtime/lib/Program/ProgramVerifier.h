//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parts of verifyProgram (braid/Program/Program.h). Everything here runs after the FlatBuffers
// verifier: tables and strings can be followed, but no number and no enumerator in them can be
// trusted.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H
#define BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H

#include "braid/Base/LibraryKernels.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

using Commands = flatbuffers::Vector<flatbuffers::Offset<program::Command>>;
const Commands &commands(const program::Procedure &procedure, Queue queue);

/// "procedure 'main', compute command 3 ('encoder.linear')"
std::string describe(const program::Procedure &procedure, Queue queue, size_t index);

/// A view whose numbers are in order: rank as allowed, shape and strides of equal length, sizes
/// positive, strides not negative, aligned to its type, its end within 64 bits and, unless it is an
/// argument's, within the frame.
struct CheckedView : OperandType {
  program::Space space;
  uint32_t argument;
  uint64_t begin, end; ///< bytes, from the frame's or the argument's begin

  /// Whether no two indices mean the same element. May say no for exotic strides that do not
  /// overlap.
  bool isInjective() const;
};
/// Whether the numbers stand where a processor may read them: the FlatBuffers verifier looks at the
/// vector's length only.
template <typename T> bool isAligned(const flatbuffers::Vector<T> &numbers) {
  return numbers.size() == 0 || reinterpret_cast<uintptr_t>(numbers.Data()) % alignof(T) == 0;
}

/// The procedure's buffers lie in its frame.
Status checkBuffers(const program::Procedure &procedure);
/// Of a view that names a buffer also that it lies in it; checkBuffers comes first.
Result<CheckedView> checkView(const program::View &view, const program::Procedure &procedure);

/// What a procedure does with one of its arguments, its callees included.
struct ArgumentUse {
  DType dtype = DType::f32;
  uint64_t bytes = 0; ///< how far it reaches
  bool written = false;
  bool symmetric = false; ///< a collective reads or writes it
};
/// By argument number. Not an array: the number of arguments is only a claim until a caller passes
/// that many.
using ArgumentUses = std::map<uint32_t, ArgumentUse>;

/// Checks one command against everything but the other commands; `uses` collects what it does with
/// arguments.
class CommandVerifier {
public:
  CommandVerifier(const program::Program &program, const Mesh &mesh,
                  const std::vector<ArgumentUses> &callees)
      : program(program), mesh(mesh), callees(callees) {}
  Status verify(const program::Command &command, const program::Procedure &procedure, Queue queue,
                ArgumentUses &uses) const;

private:
  const program::Program &program;
  const Mesh &mesh;
  const std::vector<ArgumentUses> &callees; ///< by procedure; those of callees are complete
};

/// Callee indices in range, the same calls in both queues, no recursion and no call deeper than the
/// limit. Gives the procedures in an order in which callees precede their callers.
Result<std::vector<uint32_t>> verifyCalls(const program::Program &program);

/// Number of commands that a procedure comes to in both queues with all calls expanded; saturates.
std::vector<uint64_t> expandedCommands(const program::Program &program,
                                       const std::vector<uint32_t> &calleesFirst);

/// Expands the calls below `root`: each event set exactly once, each wait for an event of the right
/// kind, and both queues come to their end.
Status verifyEvents(const program::Program &program, uint32_t root, uint64_t numCommands);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H
