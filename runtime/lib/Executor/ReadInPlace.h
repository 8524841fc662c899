//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Encoded collectives between ranks of one host, or on one GPU. The payloads that an all_to_all or
// all_gather brings are read by the commands that decode them, one or one for each piece. Where
// ranks see each other's memory these read them from the peers' operands, and nothing is copied.
// Then a rank must not write to its operand before its peers have read it, which the end of the
// collective does not say any more: they tell each other when they have (PeerReads).
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_READINPLACE_H
#define BRAID_EXECUTOR_READINPLACE_H

#include "Commands.h"

#include <functional>

namespace braid::runtime {

/// The operands of the commands of a rank, as the program has them.
class OperandUses {
public:
  /// `mayRead`: reading in place is asked for.
  OperandUses(const program::ProgramT &program, bool mayRead);

  /// Whether it is, payloads are decoded, and all ranks run the same commands on the same places.
  /// Otherwise there is nothing to add.
  bool mayReadInPlace() const { return decodes && isAlike; }

  struct Operand {
    const std::string *call; ///< Command::path, of a call of its own
    int32_t buffer;          ///< of the called procedure; -1: of an argument, or not known
    int32_t references;      ///< views of that buffer in the procedure
    Tensor tensor;
    bool isWritten, isPayload; ///< a payload that is decoded
  };
  /// Adds the next command of a queue.
  void add(Queue queue, const program::ProcedureT &procedure, const std::string *call,
           const program::OperationUnion &op,
           const std::function<Tensor(const program::ViewT &)> &tensor);
  /// Of a collective, inputs come first.
  const std::vector<Operand> &of(Queue queue, size_t command) const {
    return queues[queue][command];
  }

private:
  template <typename Visit> void forEachView(const program::OperationUnion &op, Visit visit) const;
  int32_t referencesTo(const program::ProcedureT &procedure, int32_t buffer);

  const program::ProgramT &program;
  bool decodes = false, isAlike = true;
  std::vector<std::vector<std::vector<Operand>>> queues;
  std::map<const program::ProcedureT *, std::map<int32_t, int32_t>> references; ///< by buffer
};

/// Finds the collectives whose messages can be read in place: sets Collective::readInPlace,
/// `reads`, `awaitsReads` and `payloads`. The commands of `payloads` are to be resolved again.
/// Whatever it decides by is the same on all ranks, if all run the same commands: ranks wait for
/// each other here.
void findReadsInPlace(RankProgram &program, const OperandUses &uses, Transport &transport,
                      const SymmetricHeap &symmetric);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_READINPLACE_H
