//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "KernelGroups.h"

#include "KernelBuilder.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid;

KernelGroups::KernelGroups(Block &block, const schedule::Communication &communication, bool fuse,
                           bool fuseCodecs, KernelTarget target)
    : fuse(fuse), fuseCodecs(fuse && fuseCodecs), target(target) {
  for (auto [i, op] : llvm::enumerate(block))
    position[&op] = 2 * static_cast<Point>(i);
  findFlights(block, communication);
  findDependents(block);
  do {
    groups.clear();
    groupOf.clear();
    missed.clear();
    // Backwards, so that the place of a user's kernel is known before its producers are assigned.
    for (Operation &op : llvm::reverse(block))
      if (isMember(&op))
        place(&op);
  } while (sinkEnds());
  auto isLoneCodec = [](ArrayRef<Operation *> members) {
    return members.size() == 1 && !isRowOperation(members.front());
  };
  for (ArrayRef<Operation *> members : groups)
    if (isLoneCodec(members))
      missCodec(members.front());
  llvm::erase_if(groups, isLoneCodec);
  for (SmallVector<Operation *> &members : groups) {
    std::reverse(members.begin(), members.end());
    numJoined += members.size() - 1;
  }
  for (const Miss &miss : missed)
    remark::missed(miss.op->getLoc(), remark::RemarkOpts::name("join").category("kernels"))
        << (miss.op->getName().getStringRef() + " is not joined with " +
            miss.user->getName().getStringRef() + ": " + miss.why)
               .str();
}

bool KernelGroups::isMember(Operation *op) const {
  return (isRowOperation(op) || (fuseCodecs && (isDecode(op) || isEncode(op)))) && !op->use_empty();
}

void KernelGroups::missCodec(Operation *codec) {
  if (llvm::any_of(missed,
                   [&](const Miss &miss) { return miss.op == codec || miss.user == codec; }))
    return;
  constexpr StringLiteral noRows = "that is no row operation",
                          elsewhere = "another operation needs its value before";
  if (isEncode(codec)) {
    if (Operation *producer = codec->getOperand(0).getDefiningOp())
      miss(codec, producer, (isMember(producer) ? elsewhere : noRows).str());
    return;
  }
  Operation *first = nullptr;
  for (Operation *user : codec->getUsers())
    if (!first || runsAt(user) < runsAt(first))
      first = user;
  miss(codec, first, noRows.str());
}

void KernelGroups::findFlights(Block &block, const schedule::Communication &communication) {
  for (auto wait : block.getOps<comm::WaitOp>())
    addStarted(wait);
  if (block.getOps<comm::CollectiveOpInterface>().empty())
    return;
  schedule::Commands commands = schedule::commandsOf(block, communication);
  Point last = -2;
  for (const schedule::Step &step : schedule::EagerPolicy().place(commands)) {
    Operation *op = commands[step.command].ops.front();
    if (step.kind == schedule::Step::Kind::run)
      last = position.lookup(op);
    else if (step.kind == schedule::Step::Kind::start)
      starts[op] = last + 1;
  }
  for (auto collective : block.getOps<comm::CollectiveOpInterface>())
    flights.push_back({collective, starts.lookup(collective), 0, /*sinks=*/true});
  for (Flight &flight : flights)
    if (flight.sinks && starts.contains(flight.op))
      flight.end = firstUse(flight.op);
}

void KernelGroups::addStarted(comm::WaitOp wait) {
  Operation *start = wait.getHandle().getDefiningOp();
  if (!start || start->getBlock() != wait->getBlock())
    return;
  Operation *next = wait->getNextNode();
  while (isa<comm::WaitOp, comm::StartOp>(next) && position.lookup(next) < firstUse(wait))
    next = next->getNextNode();
  bool late = position.lookup(next) == firstUse(wait);
  if (late)
    lateWaits.push_back(wait);
  flights.push_back({wait, position.lookup(start), position.lookup(wait), late});
}

static bool readsAny(Operation &op, const llvm::SmallPtrSetImpl<Operation *> &producers) {
  return op
      .walk([&](Operation *nested) {
        bool reads = llvm::any_of(nested->getOperands(), [&](Value operand) {
          return producers.contains(operand.getDefiningOp());
        });
        return reads ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

void KernelGroups::findDependents(Block &block) {
  for (Operation &op : block)
    for (Flight &flight : flights)
      if (flight.op == &op || readsAny(op, flight.dependents))
        flight.dependents.insert(&op);
}

KernelGroups::Point KernelGroups::runsAt(Operation *op) const {
  if (auto start = starts.find(op); start != starts.end())
    return start->second;
  auto it = groupOf.find(op);
  return position.lookup(it == groupOf.end() ? op : groups[it->second].front());
}

KernelGroups::Point KernelGroups::firstUse(Operation *op) const {
  Point first = position.lookup(op->getBlock()->getTerminator());
  for (Operation *user : op->getUsers())
    first = std::min(first, runsAt(op->getBlock()->findAncestorOpInBlock(*user)));
  return first;
}

void KernelGroups::place(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (!first || runsAt(user) < runsAt(first))
      first = user;
  if (fuse && groupOf.contains(first) && canJoin(op, first)) {
    size_t group = groupOf[first];
    groups[group].push_back(op);
    groupOf[op] = group;
    return;
  }
  groupOf[op] = groups.size();
  groups.push_back({op});
}

bool KernelGroups::canJoin(Operation *op, Operation *user) {
  if (domainOf(op).getShape() != domainOf(user).getShape())
    return miss(op, user, "of another shape");
  Point from = position.lookup(op), to = runsAt(user);
  for (const Flight &flight : flights)
    if (flight.begin < from && from < flight.end && flight.end <= to &&
        !flight.dependents.contains(op))
      return miss(op, user, "it hides a collective that the user waits for");
  if (std::string why = whyNotTogether(op, groups[groupOf.lookup(user)]); !why.empty())
    return miss(op, user, std::move(why));
  return true;
}

std::string KernelGroups::whyNotTogether(Operation *op, ArrayRef<Operation *> members) const {
  SmallVector<RowCodec> codecs;
  for (Operation *member : members)
    if (isDecode(member) || isEncode(member))
      codecs.push_back(rowCodecOf(member));
  if (isDecode(op) || isEncode(op))
    codecs.push_back(rowCodecOf(op));
  return whyNotFused(target, codecs);
}

bool KernelGroups::miss(Operation *op, Operation *user, std::string why) {
  missed.push_back({op, user, std::move(why)});
  return false;
}

bool KernelGroups::sinkEnds() {
  bool changed = false;
  for (Flight &flight : llvm::reverse(flights)) {
    // An end only moves down, so that the repetition terminates.
    if (Point first = firstUse(flight.op); flight.sinks && first > flight.end) {
      flight.end = first;
      changed = true;
    }
  }
  return changed;
}
