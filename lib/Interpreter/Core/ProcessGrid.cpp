//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Core/ProcessGrid.h"
#include "braid/Base/MessagesInFlight.h"
#include "braid/Base/StatusMacros.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace braid::interp {

/// One rendezvous of the ranks of a group, or of a sender and its receiver. Guarded by the grid's
/// mutex until it is complete; after that `contributions` is read-only.
struct Rendezvous {
  Collective collective; ///< as the first rank to arrive stated it
  std::vector<std::string> types;
  int64_t firstRank = 0, sequence = 0;
  std::vector<int64_t> members; ///< by group position; of point to point: source and target
  std::vector<std::optional<std::vector<Tensor>>> contributions;
  size_t arrived = 0;
  std::vector<char> taken;
  /// Of a send: the message that must be received before there is room for this one, or null.
  std::shared_ptr<Rendezvous> room;

  // Results that are equal on all ranks are computed once, by the first rank that waits.
  std::mutex sharedMutex;
  std::optional<Result<std::vector<Tensor>>> shared;

  Rendezvous(Collective stated, std::vector<std::string> types, int64_t rank, int64_t sequence,
             std::vector<int64_t> members)
      : collective(std::move(stated)), types(std::move(types)), firstRank(rank), sequence(sequence),
        members(std::move(members)), contributions(this->members.size()),
        taken(this->members.size()) {}

  void arrive(size_t position, std::vector<Tensor> values) {
    contributions[position] = std::move(values);
    ++arrived;
  }
  bool complete() const { return arrived == members.size(); }
  /// Whether the rank at `position` need not wait: a sender waits for room only.
  bool readyFor(int64_t position) const {
    return complete() ||
           (collective.isPointToPoint() && position == kSource && (!room || room->complete()));
  }
  /// As `rank` stated it: a send for the source, a recv for the target.
  std::string describe(int64_t rank) const {
    Collective stated = collective;
    if (collective.isPointToPoint() && members[kSource] != members[kTarget])
      stated.kind = members[kSource] == rank ? CollectiveKind::send : CollectiveKind::recv;
    std::string text = stated.describe();
    if (!collective.name.empty())
      text += " ('" + collective.name + "')";
    return text;
  }
  /// The ranks that the one at `position` waits for.
  std::vector<int64_t> missing(int64_t position) const {
    if (collective.isPointToPoint())
      return {members[static_cast<size_t>(position == kSource ? kTarget : kSource)]};
    std::vector<int64_t> result;
    for (size_t i = 0; i < members.size(); ++i)
      if (!contributions[i])
        result.push_back(members[i]);
    std::sort(result.begin(), result.end());
    return result;
  }

  static constexpr int64_t kSource = 0, kTarget = 1; ///< positions of a send and its receive
};

namespace {
struct RankState {
  bool ended = false;
  const Rendezvous *waitingFor = nullptr;
  int64_t waitingAt = 0; ///< its position there
  uint64_t ticks = 0;
  /// Collectives started so far, by the sorted ranks of the group; sends and receives by
  /// pointToPointKey.
  std::map<std::vector<int64_t>, int64_t> started;
  std::vector<std::shared_ptr<Rendezvous>> inFlight;
};

std::string rankList(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

std::vector<std::string> typesOf(const std::vector<Tensor> &tensors) {
  std::vector<std::string> types;
  for (const Tensor &tensor : tensors)
    types.push_back(tensor.typeString());
  return types;
}

std::string withTypes(const Collective &collective, const std::vector<std::string> &types) {
  std::string text = collective.describe() + " of (";
  for (size_t i = 0; i < types.size(); ++i)
    text += (i ? ", " : "") + types[i];
  text += ")";
  if (!collective.name.empty())
    text += " at '" + collective.name + "'";
  return text;
}

/// The key of a send and its receive. It differs from a group's, whose ranks are not negative.
std::vector<int64_t> pointToPointKey(int64_t tag, int64_t source, int64_t target) {
  return {-1 - tag, source, target};
}

Status stopped() {
  return Status::error("stopped because another rank failed", runtime::Code::rankFailed);
}
} // namespace

struct ProcessGrid::State {
  runtime::Mesh mesh;
  GridOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<RankState> ranks;
  std::map<std::pair<std::vector<int64_t>, int64_t>, std::shared_ptr<Rendezvous>> rendezvousTable;
  std::optional<Status> firstError;

  uint64_t totalTicks() const {
    uint64_t total = 0;
    for (const RankState &rank : ranks)
      total += rank.ticks;
    return total;
  }

  /// Every rank has ended or waits for one that cannot arrive, so that nothing can change.
  bool deadlocked() const {
    return std::all_of(ranks.begin(), ranks.end(), [](const RankState &rank) {
      return rank.ended || (rank.waitingFor && !rank.waitingFor->readyFor(rank.waitingAt));
    });
  }

  Status deadlockError() const {
    std::string text = "ranks wait for each other:";
    for (size_t r = 0; r < ranks.size(); ++r) {
      text += (r ? "; rank " : " rank ") + std::to_string(r);
      if (ranks[r].ended)
        text += " has ended";
      else
        text += " waits in " + ranks[r].waitingFor->describe(static_cast<int64_t>(r)) + " for " +
                rankList(ranks[r].waitingFor->missing(ranks[r].waitingAt));
    }
    return Status::error(text, runtime::Code::rankFailed);
  }

  using RendezvousKey = std::pair<std::vector<int64_t>, int64_t>;

  /// The collective of a rendezvous at which the rank has arrived.
  PendingCollective launch(RankState &own, const std::shared_ptr<Rendezvous> &rendezvous,
                           size_t position) {
    ++own.ticks;
    own.inFlight.push_back(rendezvous);
    PendingCollective pending;
    pending.rendezvous = rendezvous;
    pending.position = static_cast<int64_t>(position);
    return pending;
  }

  /// Adds a rank's values to a rendezvous of the table.
  PendingCollective join(RankState &own, const RendezvousKey &key, size_t position,
                         std::vector<Tensor> values) {
    std::shared_ptr<Rendezvous> rendezvous = rendezvousTable.at(key);
    rendezvous->arrive(position, std::move(values));
    if (rendezvous->complete()) {
      // Waiting ranks hold it; the table is for ranks that have not arrived yet.
      rendezvousTable.erase(key);
      changed.notify_all();
    }
    return launch(own, rendezvous, position);
  }

  /// The first value that was sent and never received.
  Status unreceived() const {
    for (const auto &[key, rendezvous] : rendezvousTable)
      if (rendezvous->collective.kind == CollectiveKind::send)
        return Status::error(
            "rank " + std::to_string(rendezvous->members[Rendezvous::kSource]) + " sends in " +
                rendezvous->describe(rendezvous->members[Rendezvous::kSource]) + " what rank " +
                std::to_string(rendezvous->members[Rendezvous::kTarget]) + " never receives",
            runtime::Code::rankFailed);
    return {};
  }

  void end(int64_t rank, Status status) {
    std::lock_guard<std::mutex> lock(mutex);
    RankState &own = ranks[static_cast<size_t>(rank)];
    own.ended = true;
    ++own.ticks;
    if (status.ok() && !own.inFlight.empty() && !firstError)
      status = Status::error("ended without waiting for " + own.inFlight.front()->describe(rank),
                             runtime::Code::rankFailed);
    if (!status.ok() && !firstError)
      firstError =
          Status::error("rank " + std::to_string(rank) + ": " + status.message(), status.code());
    // Without a waiting rank, all ranks have ended.
    bool someoneWaits =
        std::any_of(ranks.begin(), ranks.end(), [](const RankState &r) { return !r.ended; });
    if (!firstError && someoneWaits && deadlocked())
      firstError = deadlockError();
    changed.notify_all();
  }
};

Process::Process(ProcessGrid &grid, int64_t rank) : grid(grid), ownRank(rank) {}

const runtime::Mesh &Process::mesh() const { return grid.state->mesh; }

Status Process::progress() {
  ProcessGrid::State &state = *grid.state;
  std::lock_guard<std::mutex> lock(state.mutex);
  ++state.ranks[static_cast<size_t>(ownRank)].ticks;
  return state.firstError ? stopped() : Status();
}

Result<PendingCollective> Process::start(const Collective &collective, std::vector<Tensor> inputs) {
  ASSIGN_OR_RETURN(std::vector<int64_t> members, mesh().group(ownRank, collective.axes));
  auto position = static_cast<size_t>(*mesh().groupPosition(ownRank, collective.axes));
  if (collective.isPointToPoint())
    return startTransfer(collective, std::move(inputs), members, static_cast<int64_t>(position));
  std::vector<int64_t> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string> types = typesOf(inputs);

  ProcessGrid::State &state = *grid.state;
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.firstError)
    return stopped();
  RankState &own = state.ranks[static_cast<size_t>(ownRank)];
  int64_t sequence = own.started[sorted]++;
  std::shared_ptr<Rendezvous> &rendezvous = state.rendezvousTable[{sorted, sequence}];
  if (!rendezvous)
    rendezvous = std::make_shared<Rendezvous>(collective, types, ownRank, sequence, members);
  else if (rendezvous->collective.describe() != collective.describe() || rendezvous->types != types)
    return Status::error("ranks disagree about collective number " + std::to_string(sequence) +
                             " of " + rankList(sorted) + ": rank " + std::to_string(ownRank) +
                             " brings " + withTypes(collective, types) + ", rank " +
                             std::to_string(rendezvous->firstRank) + " brought " +
                             withTypes(rendezvous->collective, rendezvous->types),
                         runtime::Code::rankFailed);
  return state.join(own, {sorted, sequence}, position, std::move(inputs));
}

Result<PendingCollective> Process::startTransfer(const Collective &transfer,
                                                 std::vector<Tensor> inputs,
                                                 const std::vector<int64_t> &members,
                                                 int64_t position) {
  bool sends = transfer.kind == CollectiveKind::send;
  auto at = sends ? Rendezvous::kSource : Rendezvous::kTarget;
  std::optional<std::pair<int64_t, int64_t>> ends; // ranks
  for (auto [source, target] : transfer.pairs) {
    for (int64_t end : {source, target})
      if (end < 0 || end >= static_cast<int64_t>(members.size()))
        return Status::error("expects a position in a group of " + std::to_string(members.size()) +
                             " ranks, got " + std::to_string(end));
    if (source == target)
      return Status::error("expects no position to send to itself, got " + std::to_string(source));
    if ((sends ? source : target) == position)
      ends = {members[static_cast<size_t>(source)], members[static_cast<size_t>(target)]};
  }
  std::vector<std::string> types = typesOf(inputs);
  if (!sends)
    for (const ValueType &type : transfer.received)
      types.push_back(Tensor::zeros(type.dtype, type.shape).typeString());

  ProcessGrid::State &state = *grid.state;
  std::lock_guard<std::mutex> lock(state.mutex);
  if (state.firstError)
    return stopped();
  RankState &own = state.ranks[static_cast<size_t>(ownRank)];
  if (!ends) {
    // No pair names this rank, so that its results are available already.
    std::vector<Tensor> nothing;
    for (const ValueType &type : transfer.received)
      nothing.push_back(Tensor::zeros(type.dtype, type.shape));
    auto alone = std::make_shared<Rendezvous>(transfer, types, ownRank, 0,
                                              std::vector<int64_t>{ownRank, ownRank});
    alone->arrive(Rendezvous::kSource, std::move(nothing));
    alone->arrive(Rendezvous::kTarget, {});
    return state.launch(own, alone, static_cast<size_t>(at));
  }
  auto [source, target] = *ends;
  std::vector<int64_t> key = pointToPointKey(transfer.tag, source, target);
  int64_t sequence = own.started[key]++;
  std::shared_ptr<Rendezvous> &rendezvous = state.rendezvousTable[{key, sequence}];
  if (!rendezvous) {
    rendezvous = std::make_shared<Rendezvous>(transfer, types, ownRank, sequence,
                                              std::vector<int64_t>{source, target});
  } else if (rendezvous->types != types) {
    bool sentFirst = rendezvous->collective.kind == CollectiveKind::send;
    std::string here = withTypes(transfer, types),
                there = withTypes(rendezvous->collective, rendezvous->types);
    return Status::error("ranks disagree about value number " + std::to_string(sequence) +
                             " from rank " + std::to_string(source) + " to rank " +
                             std::to_string(target) + ": rank " + std::to_string(source) +
                             " sends with " + (sentFirst ? there : here) + ", rank " +
                             std::to_string(target) + " expects with " + (sentFirst ? here : there),
                         runtime::Code::rankFailed);
  }
  if (sends)
    if (auto before = state.rendezvousTable.find({key, sequence - runtime::kMessagesInFlight});
        before != state.rendezvousTable.end())
      rendezvous->room = before->second; // not received yet
  return state.join(own, {key, sequence}, static_cast<size_t>(at), std::move(inputs));
}

namespace {
Result<std::vector<Tensor>> resultsAt(const Rendezvous &rendezvous, int64_t position) {
  if (rendezvous.collective.isPointToPoint())
    return position == Rendezvous::kTarget ? *rendezvous.contributions[Rendezvous::kSource]
                                           : std::vector<Tensor>();
  std::vector<std::vector<Tensor>> contributions;
  for (const auto &contribution : rendezvous.contributions)
    contributions.push_back(*contribution);
  Result<std::vector<Tensor>> results = applyAll(rendezvous.collective, contributions, position);
  if (!results.ok())
    return Status::error(rendezvous.describe(rendezvous.members[static_cast<size_t>(position)]) +
                         " " + results.status().message());
  return results;
}
} // namespace

Result<std::vector<Tensor>> Process::wait(const PendingCollective &pending) {
  if (!pending.valid())
    return Status::error("waits for a collective that was never started");
  Rendezvous &rendezvous = *pending.rendezvous;
  ProcessGrid::State &state = *grid.state;
  {
    std::unique_lock<std::mutex> lock(state.mutex);
    if (rendezvous.taken[static_cast<size_t>(pending.position)])
      return Status::error("waits twice for " + rendezvous.describe(ownRank));
    RankState &own = state.ranks[static_cast<size_t>(ownRank)];
    if (!rendezvous.readyFor(pending.position)) {
      own.waitingFor = &rendezvous;
      own.waitingAt = pending.position;
    }
    if (own.waitingFor && !state.firstError && state.deadlocked()) {
      Status error = state.deadlockError();
      own.waitingFor = nullptr;
      return error;
    }
    uint64_t ticks = state.totalTicks();
    auto deadline = std::chrono::steady_clock::now() + state.options.timeLimit;
    Status outcome;
    while (!rendezvous.readyFor(pending.position)) {
      if (state.firstError) {
        outcome = stopped();
        break;
      }
      if (state.changed.wait_until(lock, deadline) != std::cv_status::timeout ||
          rendezvous.readyFor(pending.position) || state.firstError)
        continue;
      if (uint64_t now = state.totalTicks(); now != ticks) {
        ticks = now;
        deadline = std::chrono::steady_clock::now() + state.options.timeLimit;
        continue;
      }
      std::vector<int64_t> missing = rendezvous.missing(pending.position);
      outcome = Status::error(rendezvous.describe(ownRank) + " waited " +
                                  std::to_string(state.options.timeLimit.count()) +
                                  " ms without progress of any rank: " + rankList(missing) +
                                  (missing.size() == 1 ? " has" : " have") + " not arrived",
                              runtime::Code::rankFailed);
      break;
    }
    own.waitingFor = nullptr;
    RETURN_IF_ERROR(outcome);
    ++own.ticks;
    rendezvous.taken[static_cast<size_t>(pending.position)] = 1;
    if (pending.position == Rendezvous::kSource)
      rendezvous.room.reset(); // or messages would keep all earlier ones
    own.inFlight.erase(std::find(own.inFlight.begin(), own.inFlight.end(), pending.rendezvous));
  }
  if (!rendezvous.collective.isUniform())
    return resultsAt(rendezvous, pending.position);
  std::lock_guard<std::mutex> lock(rendezvous.sharedMutex);
  if (!rendezvous.shared)
    rendezvous.shared = resultsAt(rendezvous, pending.position);
  return *rendezvous.shared;
}

Result<std::vector<Tensor>> Process::run(const Collective &collective, std::vector<Tensor> inputs) {
  ASSIGN_OR_RETURN(PendingCollective pending, start(collective, std::move(inputs)));
  return wait(pending);
}

Result<Tensor> Process::part(const Tensor &tensor, int64_t dim,
                             const std::vector<runtime::AxisRef> &axes, int64_t shift) const {
  ASSIGN_OR_RETURN(int64_t count, mesh().numShards(axes));
  const int64_t position = *mesh().groupPosition(ownRank, axes);
  return sliceShard(tensor, dim, runtime::shiftedPosition(position, shift, count), count);
}

Result<Tensor> Process::assemble(const std::vector<Tensor> &parts,
                                 const std::vector<int64_t> &shifts, int64_t dim,
                                 const std::vector<runtime::AxisRef> &axes) const {
  const auto count = static_cast<int64_t>(parts.size());
  ASSIGN_OR_RETURN(int64_t position, mesh().groupPosition(ownRank, axes));
  std::vector<Tensor> inOrder = parts;
  for (size_t i = 0; i < parts.size(); ++i)
    inOrder[static_cast<size_t>(runtime::shiftedPosition(position, shifts[i], count))] = parts[i];
  return concatenate(inOrder, dim);
}

ProcessGrid::ProcessGrid(runtime::Mesh mesh, GridOptions options)
    : state(std::make_unique<State>()) {
  state->mesh = std::move(mesh);
  state->options = options;
}

ProcessGrid::~ProcessGrid() = default;

Status ProcessGrid::run(const std::function<Status(Process &)> &body) {
  RETURN_IF_ERROR(state->mesh.verify());
  int64_t count = state->mesh.numRanks();
  state->ranks.assign(static_cast<size_t>(count), RankState());
  state->rendezvousTable.clear();
  state->firstError.reset();

  auto runRank = [&](int64_t rank) {
    Process process(*this, rank);
    Status status;
    try {
      status = body(process);
    } catch (const std::exception &error) {
      // For instance out of memory: the other ranks must not wait for this one.
      status = Status::error(error.what(), runtime::Code::rankFailed);
    }
    state->end(rank, status);
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < count; ++rank) {
    try {
      threads.emplace_back(runRank, rank);
    } catch (const std::exception &error) {
      for (int64_t rest = rank; rest < count; ++rest)
        state->end(rest, Status::error(std::string("cannot start a thread: ") + error.what(),
                                       runtime::Code::rankFailed));
      break;
    }
  }
  for (std::thread &thread : threads)
    thread.join();
  return state->firstError ? *state->firstError : state->unreceived();
}

} // namespace braid::interp
