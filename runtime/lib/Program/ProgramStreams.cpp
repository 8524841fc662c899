//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of commands together: the call tree, and the events that order the queues.
//
//===----------------------------------------------------------------------===//
#include "ExpandedQueue.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "braid/Program/Program.h"

#include <algorithm>
#include <cstring>

namespace braid::runtime {

RankSet ranksOf(const program::Command &command) {
  RankSet ranks;
  if (command.on())
    for (const program::Coordinates *named : *command.on())
      ranks.axes.push_back(
          {named->axis()->str(), {named->coordinates()->begin(), named->coordinates()->end()}});
  return ranks;
}

std::vector<RankSet> rankSetsOf(const program::Program &program, const Manifest &manifest) {
  std::vector<RankSet> sets;
  auto add = [&](RankSet ranks) {
    if (!ranks.isAll() && std::find(sets.begin(), sets.end(), ranks) == sets.end())
      sets.push_back(std::move(ranks));
  };
  for (const program::Procedure *procedure : *program.procedures())
    for (Queue queue = 0; queue < numQueues(program); ++queue)
      for (const program::Command *command : commands(*procedure, queue))
        add(ranksOf(*command));
  for (const Entry &entry : manifest.entries) {
    for (const Parameter &parameter : entry.parameters)
      add(parameter.on);
    for (const auto *values : {&entry.states, &entry.operands, &entry.results})
      for (const EntryValue &value : *values)
        add(value.on);
  }
  return sets;
}

std::string describe(const program::Program &program, const program::Procedure &procedure,
                     Queue queue, size_t index) {
  std::string text = "procedure " + inQuotes(procedure.name()->str()) + ", " +
                     nameOf(program, queue) + " command " + std::to_string(index);
  const Commands &all = commands(procedure, queue);
  if (index < all.size() && all.Get(static_cast<unsigned>(index))->name())
    text += " (" + inQuotes(all.Get(static_cast<unsigned>(index))->name()->str()) + ")";
  return text;
}

namespace {

struct CallSite {
  size_t index; ///< in its queue
  const program::Call *call;
  const program::Command *command;
};

std::vector<CallSite> callsOf(const program::Procedure &procedure, Queue queue) {
  std::vector<CallSite> calls;
  const Commands &all = commands(procedure, queue);
  for (unsigned i = 0; i < all.size(); ++i)
    if (const program::Call *call = all.Get(i)->op_as_Call())
      calls.push_back({i, call, all.Get(i)});
  return calls;
}

bool sameView(const program::View &a, const program::View &b) {
  // Compares bytes: the views, and their alignment, are not checked yet.
  auto equal = [](const flatbuffers::Vector<int64_t> &x, const flatbuffers::Vector<int64_t> &y) {
    return x.size() == y.size() && std::memcmp(x.Data(), y.Data(), x.size() * sizeof(int64_t)) == 0;
  };
  return a.space() == b.space() && a.index() == b.index() && a.offset_bytes() == b.offset_bytes() &&
         a.dtype() == b.dtype() && equal(*a.shape(), *b.shape()) &&
         equal(*a.strides(), *b.strides());
}

bool sameEventArguments(const program::Call &a, const program::Call &b) {
  const unsigned count = a.event_arguments() ? a.event_arguments()->size() : 0;
  if (count != (b.event_arguments() ? b.event_arguments()->size() : 0))
    return false;
  for (unsigned i = 0; i < count; ++i)
    if (a.event_arguments()->Get(i) != b.event_arguments()->Get(i))
      return false;
  return true;
}

bool samePosition(const program::Position *a, const program::Position *b) {
  if (!a || !b)
    return a == b;
  if (a->shift() != b->shift() || a->count() != b->count() ||
      a->stride_bytes() != b->stride_bytes() || a->axes()->size() != b->axes()->size())
    return false;
  for (unsigned i = 0; i < a->axes()->size(); ++i) {
    const program::AxisRef &x = *a->axes()->Get(i), &y = *b->axes()->Get(i);
    if (x.name()->str() != y.name()->str() || x.pre() != y.pre() || x.size() != y.size())
      return false;
  }
  return true;
}

bool sameCall(const program::Call &a, const program::Call &b) {
  if (a.procedure() != b.procedure() || a.local_base_bytes() != b.local_base_bytes() ||
      a.symmetric_base_bytes() != b.symmetric_base_bytes() || a.event_base() != b.event_base() ||
      a.arguments()->size() != b.arguments()->size() || !sameEventArguments(a, b))
    return false;
  for (unsigned i = 0; i < a.arguments()->size(); ++i)
    if (!sameView(*a.arguments()->Get(i), *b.arguments()->Get(i)) ||
        !samePosition(a.arguments()->Get(i)->position(), b.arguments()->Get(i)->position()))
      return false;
  return true;
}

/// Checks the calls of one procedure: the same in all queues, existing callees, disjoint events of
/// siblings.
Status verifyCallsOf(const program::Program &program, const program::Procedure &procedure) {
  uint32_t numProcedures = program.procedures()->size();
  std::vector<CallSite> compute = callsOf(procedure, kComputeQueue);
  for (Queue queue = 1; queue < numQueues(program); ++queue) {
    std::vector<CallSite> calls = callsOf(procedure, queue);
    size_t common = std::min(compute.size(), calls.size());
    for (size_t i = 0; i < common; ++i)
      if (!sameCall(*compute[i].call, *calls[i].call) ||
          !(ranksOf(*compute[i].command) == ranksOf(*calls[i].command)))
        return Status::error(describe(program, procedure, kComputeQueue, compute[i].index),
                             ": expects the same call as ",
                             describe(program, procedure, queue, calls[i].index));
    if (compute.size() > common)
      return Status::error(describe(program, procedure, kComputeQueue, compute[common].index),
                           ": expects the same call in the ", nameOf(program, queue), " queue");
    if (calls.size() > common)
      return Status::error(describe(program, procedure, queue, calls[common].index),
                           ": expects the same call in the ", nameOf(program, kComputeQueue),
                           " queue");
  }
  for (const CallSite &site : compute)
    if (site.call->procedure() >= numProcedures)
      return Status::error(describe(program, procedure, kComputeQueue, site.index),
                           ": expects a procedure below ", numProcedures, ", got ",
                           site.call->procedure());

  auto numEvents = [&](const CallSite &site) {
    return program.procedures()->Get(site.call->procedure())->num_events();
  };
  std::vector<CallSite> byEvents;
  for (const CallSite &site : compute)
    if (numEvents(site) != 0)
      byEvents.push_back(site);
  std::sort(byEvents.begin(), byEvents.end(), [](const CallSite &a, const CallSite &b) {
    return std::pair(a.call->event_base(), a.index) < std::pair(b.call->event_base(), b.index);
  });
  for (size_t i = 1; i < byEvents.size(); ++i)
    if (uint64_t(byEvents[i - 1].call->event_base()) + numEvents(byEvents[i - 1]) >
        byEvents[i].call->event_base())
      return Status::error(describe(program, procedure, kComputeQueue, byEvents[i].index),
                           ": shares events with command ", byEvents[i - 1].index);
  return {};
}

} // namespace

Result<std::vector<uint32_t>> verifyCalls(const program::Program &program) {
  const auto &procedures = *program.procedures();
  uint32_t count = procedures.size();
  std::vector<std::vector<uint32_t>> callers(count);
  std::vector<uint32_t> openCallees(count, 0), depth(count, 1);
  for (uint32_t p = 0; p < count; ++p) {
    const program::Procedure &procedure = *procedures.Get(p);
    RETURN_IF_ERROR(verifyCallsOf(program, procedure));
    for (const CallSite &site : callsOf(procedure, kComputeQueue)) {
      callers[site.call->procedure()].push_back(p);
      ++openCallees[p];
    }
  }
  // Callees first, without recursion: the depth of a hostile call tree is not bounded yet.
  std::vector<uint32_t> order;
  for (uint32_t p = 0; p < count; ++p)
    if (openCallees[p] == 0)
      order.push_back(p);
  for (size_t next = 0; next < order.size(); ++next) {
    uint32_t callee = order[next];
    for (uint32_t caller : callers[callee]) {
      depth[caller] = std::max(depth[caller], depth[callee] + 1);
      if (--openCallees[caller] == 0)
        order.push_back(caller);
    }
  }
  for (uint32_t p = 0; p < count; ++p) {
    std::string name = inQuotes(procedures.Get(p)->name()->str());
    if (openCallees[p] != 0)
      return Status::error("procedure ", name, " calls itself, or one that does");
    if (depth[p] > kMaxCallDepth)
      return Status::error("procedure ", name, ": expects calls at most ", kMaxCallDepth, " deep");
  }
  return order;
}

std::vector<uint64_t> expandedCommands(const program::Program &program,
                                       const std::vector<uint32_t> &calleesFirst) {
  std::vector<uint64_t> counts(program.procedures()->size(), 0);
  auto add = [](uint64_t &sum, uint64_t value) {
    sum = checkedAdd(sum, value).value_or(UINT64_MAX);
  };
  for (uint32_t p : calleesFirst) {
    const program::Procedure &procedure = *program.procedures()->Get(p);
    for (Queue queue = 0; queue < numQueues(program); ++queue)
      add(counts[p], commands(procedure, queue).size());
    for (const CallSite &site : callsOf(procedure, kComputeQueue))
      add(counts[p], counts[site.call->procedure()]);
  }
  return counts;
}

namespace {

/// Describes the command that sets an event on some ranks.
std::string setterOf(const program::Program &program, uint32_t root, uint64_t event) {
  for (Queue queue = 0; queue < numQueues(program); ++queue)
    for (ExpandedQueue at(program, root, queue); !at.done(); at.advance())
      if (auto [setter, local] = setBy(at.command());
          setter != Setter::none && at.event(local) == event)
        return at.describe();
  return "nothing";
}

/// Runs all queues of a rank, with every command done as soon as it is reached; a queue that blocks
/// here blocks in every run. Whether the ranks of a group reach their collectives, and messages
/// their ranks, is checked by verifyOrder.
Status verifyWaits(const program::Program &program, uint32_t root,
                   const std::vector<Setter> &setters, RankInMesh rank, bool allRanks) {
  std::vector<bool> isSet(setters.size(), false);
  std::vector<ExpandedQueue> cursors;
  for (Queue queue = 0; queue < numQueues(program); ++queue)
    cursors.emplace_back(program, root, queue, rank);
  const std::string onRank = allRanks ? "" : "on rank " + std::to_string(rank.rank) + ": ";
  for (bool progress = true; progress;) {
    progress = false;
    for (ExpandedQueue &at : cursors)
      for (; !at.done(); at.advance()) {
        auto [kind, local] = waitedBy(at.command());
        if (kind != Setter::none) {
          uint64_t event = at.event(local);
          if (setters[event] != kind)
            return Status::error(at.describe(), ": waits for event ", local,
                                 kind == Setter::collective
                                     ? " of a collective, which a record sets"
                                     : " of a record, which a collective sets");
          if (!isSet[event])
            break;
        }
        auto [setter, event] = setBy(at.command());
        if (setter != Setter::none)
          isSet[at.event(event)] = true;
        progress = true;
      }
  }
  std::vector<bool> isSetHere = isSet;
  for (const ExpandedQueue &cursor : cursors)
    for (ExpandedQueue at = cursor; !at.done(); at.advance())
      if (auto [setter, event] = setBy(at.command()); setter != Setter::none)
        isSetHere[at.event(event)] = true;
  std::string stuck;
  for (const ExpandedQueue &at : cursors) {
    if (at.done())
      continue;
    const uint32_t local = waitedBy(at.command()).second;
    const uint64_t event = at.event(local);
    if (!isSetHere[event])
      return Status::error(onRank, at.describe(), ": waits for event ", local, ", which ",
                           setterOf(program, root, event), " sets on other ranks only");
    stuck += (stuck.empty() ? "deadlock: " : "; ") + at.describe() + " waits for event " +
             std::to_string(local) + ", which is not set by then";
  }
  return stuck.empty() ? Status() : Status::error(onRank, stuck);
}

} // namespace

Status verifyEvents(const program::Program &program, uint32_t root, uint64_t numCommands,
                    const Mesh &mesh, const RankRoles &roles) {
  const program::Procedure &procedure = *program.procedures()->Get(root);
  uint64_t numEvents = procedure.num_events();
  std::string which = "procedure " + inQuotes(procedure.name()->str());
  // Checked before anything of that size is allocated.
  if (numEvents > numCommands)
    return Status::error(which, ": has ", numEvents, " events, but only ", numCommands,
                         " commands that could set them");

  std::vector<Setter> setters(numEvents, Setter::none);
  for (Queue queue = 0; queue < numQueues(program); ++queue)
    for (ExpandedQueue at(program, root, queue); !at.done(); at.advance()) {
      auto [kind, local] = setBy(at.command());
      if (kind == Setter::none)
        continue;
      Setter &setter = setters[at.event(local)];
      if (setter != Setter::none)
        return Status::error(at.describe(), ": sets event ", local, " for the second time");
      setter = kind;
    }
  for (uint64_t event = 0; event < numEvents; ++event)
    if (setters[event] == Setter::none)
      return Status::error(which, ": nothing sets event ", event);

  for (size_t role = 0; role < roles.count(); ++role)
    RETURN_IF_ERROR(
        verifyWaits(program, root, setters, {&mesh, roles.rank(role)}, roles.count() == 1));
  return {};
}

} // namespace braid::runtime
