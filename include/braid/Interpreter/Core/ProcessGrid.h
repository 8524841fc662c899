//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One thread per rank of a mesh, and the rendezvous between ranks. A collective is identified by
// its group and by how many collectives the rank has started on that group before, as in MPI and
// NCCL; a send and its receive by the two ranks, their tag and how many went before. Every failure
// ends the run with one error: ranks that disagree about a collective, ranks that wait for each
// other, a rank that stalls, a value that is never received.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_INTERPRETER_CORE_PROCESSGRID_H
#define BRAID_INTERPRETER_CORE_PROCESSGRID_H

#include "braid/Interpreter/Core/Collectives.h"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace braid::interp {

struct Rendezvous;
class ProcessGrid;

/// A collective that one rank has started and not waited for.
class PendingCollective {
public:
  PendingCollective() = default;
  bool valid() const { return rendezvous != nullptr; }

private:
  friend class Process;
  friend class ProcessGrid;
  std::shared_ptr<Rendezvous> rendezvous;
  int64_t position = 0; ///< of the rank in the rendezvous
};

/// One rank's view of the grid. Used by that rank's thread only.
class Process {
public:
  int64_t rank() const { return ownRank; }
  const runtime::Mesh &mesh() const;

  /// Contributes this rank's values and returns immediately.
  Result<PendingCollective> start(const Collective &collective, std::vector<Tensor> inputs);
  /// Blocks until every rank of the group has contributed its values. A receive blocks until its
  /// value is sent; a send does not block. A collective is waited for exactly once.
  Result<std::vector<Tensor>> wait(const PendingCollective &pending);
  Result<std::vector<Tensor>> run(const Collective &collective, std::vector<Tensor> inputs);
  /// Of n equal parts of a value along a dimension, the one at this rank's position in the group
  /// plus `shift`, modulo n.
  Result<Tensor> part(const Tensor &tensor, int64_t dim, const std::vector<runtime::AxisRef> &axes,
                      int64_t shift = 0) const;
  /// The value of which parts[i] is the part of shifts[i].
  Result<Tensor> assemble(const std::vector<Tensor> &parts, const std::vector<int64_t> &shifts,
                          int64_t dim, const std::vector<runtime::AxisRef> &axes) const;

  /// Records that this rank makes progress. An error once another rank has failed.
  Status progress();

private:
  friend class ProcessGrid;
  Process(ProcessGrid &grid, int64_t rank);
  /// A send or a receive of the rank at `position` of a group.
  Result<PendingCollective> startTransfer(const Collective &transfer, std::vector<Tensor> inputs,
                                          const std::vector<int64_t> &members, int64_t position);
  ProcessGrid &grid;
  int64_t ownRank;
};

struct GridOptions {
  /// A wait fails after this long during which no rank made progress.
  std::chrono::milliseconds timeLimit{60000};
};

class ProcessGrid {
public:
  explicit ProcessGrid(runtime::Mesh mesh, GridOptions options = {});
  ~ProcessGrid();
  ProcessGrid(const ProcessGrid &) = delete;
  ProcessGrid &operator=(const ProcessGrid &) = delete;

  /// Runs `body` on every rank and returns when all have ended, with the error of the rank that
  /// failed first.
  Status run(const std::function<Status(Process &)> &body);

private:
  friend class Process;
  struct State;
  std::unique_ptr<State> state;
};

} // namespace braid::interp
#endif // BRAID_INTERPRETER_CORE_PROCESSGRID_H
