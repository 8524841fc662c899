//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parts of verifyProgram (braid/Program/Program.h). Everything here runs after the FlatBuffers
// verifier: tables and strings are valid, but their numbers and enumerators are not checked yet.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H
#define BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H

#include "braid/Base/LibraryKernels.h"
#include "braid/Base/RankSet.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime {

using Commands = flatbuffers::Vector<flatbuffers::Offset<program::Command>>;
inline size_t numQueues(const program::Program &program) { return program.queues()->size(); }
inline const Commands &commands(const program::Procedure &procedure, Queue queue) {
  return *procedure.streams()->Get(static_cast<unsigned>(queue))->commands();
}

inline std::string nameOf(const program::Program &program, Queue queue) {
  return program.queues()->Get(static_cast<unsigned>(queue))->name()->str();
}

/// Whether the collective is a send or a recv.
inline bool isMessage(const program::CollectiveStart &op) {
  return op.kind() == program::CollectiveKind::send || op.kind() == program::CollectiveKind::recv;
}

/// The ranks that run a command where its procedure runs.
RankSet ranksOf(const program::Command &command);
/// The sets of ranks that commands of the program, which are verified, and values of the manifest
/// name.
std::vector<RankSet> rankSetsOf(const program::Program &program, const Manifest &manifest);

/// "procedure 'main', compute command 3 ('encoder.linear')"
std::string describe(const program::Program &program, const program::Procedure &procedure,
                     Queue queue, size_t index);

/// A checked view: rank within the limit, shape and strides of equal length, sizes positive,
/// strides not negative, aligned to its type, its end within 64 bits and, except for arguments,
/// within the frame.
struct CheckedView : OperandType {
  program::Space space;
  uint32_t argument;
  /// Bytes from the beginning of the frame or argument. With a position, those of all ranks.
  uint64_t begin, end;
  uint64_t bytes = 0; ///< from the first to the last one of one rank

  /// Whether no two indices address the same element. May be false for unusual strides without
  /// overlap.
  bool isInjective() const;
};
/// Whether the elements are aligned: the FlatBuffers verifier checks only the vector's length.
template <typename T> bool isAligned(const flatbuffers::Vector<T> &numbers) {
  return numbers.size() == 0 || reinterpret_cast<uintptr_t>(numbers.Data()) % alignof(T) == 0;
}

/// Checks that the symmetric arguments that a procedure lists are arguments, in ascending order.
Status checkSymmetricArguments(const program::Procedure &procedure);
/// Whether an argument lies in the symmetric arena; after the check above.
bool isSymmetricArgument(const program::Procedure &procedure, uint32_t argument);
/// Checks that the procedure's buffers lie in its frame.
Status checkBuffers(const program::Procedure &procedure);
/// Also checks that a view lies in the buffer that it names; call checkBuffers first.
Result<CheckedView> checkView(const program::View &view, const program::Procedure &procedure,
                              const Mesh &mesh);

/// How a procedure and its callees use one of its arguments.
struct ArgumentUse {
  DType dtype = DType::f32;
  uint64_t bytes = 0; ///< the size that is used
  bool written = false;
};
/// By argument number. A map, since a hostile program may claim any number of arguments.
using ArgumentUses = std::map<uint32_t, ArgumentUse>;

/// Checks the codecs of a kernel's operands.
Status verifyCodecs(const program::Kernel &kernel);
/// The codec of an operand of a verified kernel, or null; and whether a view is a payload of the
/// rows of a launch, for a codec whose group has `parts` ranks.
const program::OperandCodec *codecOf(const program::Kernel &kernel, uint32_t operand);
Status verifyPayload(const program::OperandCodec &codec, int64_t rows, const OperandType &view,
                     std::optional<OperandType> own, int64_t parts);

/// Checks one command on its own; `uses` collects its uses of arguments.
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
  const std::vector<ArgumentUses> &callees; ///< by procedure; complete for callees
};

/// Checks that callees exist, that all queues have the same calls, and that calls are not
/// recursive or too deep. Returns the procedures, callees before callers.
Result<std::vector<uint32_t>> verifyCalls(const program::Program &program);

/// The number of commands of each procedure in all queues with all calls expanded; saturates.
std::vector<uint64_t> expandedCommands(const program::Program &program,
                                       const std::vector<uint32_t> &calleesFirst);

/// Checks, with the calls below `root` expanded, that each event is set exactly once, that each
/// wait names an event of the right kind, and that on the ranks of every role all queues reach
/// their end.
Status verifyEvents(const program::Program &program, uint32_t root, uint64_t numCommands,
                    const Mesh &mesh, const RankRoles &roles);

} // namespace braid::runtime
#endif // BRAID_RUNTIME_LIB_PROGRAM_PROGRAMVERIFIER_H
