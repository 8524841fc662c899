//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FactorStrategy.h"

#include "braid/Cost/CommunicationCost.h"

#include <numeric>
#include <set>

using namespace mlir;
using namespace braid::comm;
using braid::runtime::CollectiveKind;

namespace braid {

/// Up to this many conflicting proposals are tried in all orders; of more, each is tried first.
constexpr size_t kMaxPermuted = 4;

/// Precedence of proposals. Bytes decide among stated ones, and among derived ones.
enum : int { kFirst, kClosed, kStated, kDerived };
static int rankOf(int order) { return order == kClosed ? kStated : order; }

SaturatingCount bytesToReshard(RankedTensorType type, const Layout &from, const SubAxes &partials,
                               const Layout &to) {
  // Sub-axes are split so that those common to both layouts are equal.
  SubAxes all = partials;
  for (const Layout *layout : {&from, &to})
    for (const SubAxes &dim : *layout)
      llvm::append_range(all, dim);
  auto split = [&](const SubAxes &axes) {
    SubAxes result;
    for (const SubAxis &axis : axes)
      llvm::append_range(result, splitWhere(axis, all));
    return result;
  };
  SubAxes leaving, arriving;
  SaturatingCount local = elementBytes(type);
  for (auto [size, had, wanted] : llvm::zip_equal(type.getShape(), from, to)) {
    local *= size / shards(had);
    SubAxes before = split(had), after = split(wanted);
    auto [left, right] = std::mismatch(before.begin(), before.end(), after.begin(), after.end());
    leaving.insert(leaving.end(), left, before.end());
    arriving.insert(arriving.end(), right, after.end());
  }
  SubAxes moved, gathered, scattered, combined;
  for (const SubAxis &axis : leaving)
    (llvm::is_contained(arriving, axis) ? moved : gathered).push_back(axis);
  for (const SubAxis &axis : split(partials))
    (llvm::is_contained(arriving, axis) ? scattered : combined).push_back(axis);
  // Data that is sliced off first is not sent.
  for (const SubAxis &axis : arriving)
    if (!llvm::is_contained(moved, axis) && !llvm::is_contained(scattered, axis))
      local = local / axis.size();
  auto sent = [&](CollectiveKind kind, const SubAxes &axes) {
    return collectiveCost(kind, local, shards(axes)).bytes;
  };
  SaturatingCount bytes = sent(CollectiveKind::reduceScatter, scattered);
  local = local / shards(scattered);
  bytes += sent(CollectiveKind::allReduce, combined);
  bytes += sent(CollectiveKind::allToAll, moved);
  bytes += sent(CollectiveKind::allGather, gathered);
  return bytes;
}

FactorStrategy::FactorStrategy(const ShardingRule &rule, ArrayRef<TensorState> operands,
                               ArrayRef<TensorState> results, SubAxes partials)
    : rule(rule), tensors(operands.begin(), operands.end()), numOperands(operands.size()),
      partials(std::move(partials)) {
  llvm::append_range(tensors, results);
  collect();
  findAgreed();
}

const TensorFactors &FactorStrategy::factorsOf(size_t tensor) const {
  return isResult(tensor) ? rule.results[tensor - numOperands] : rule.operands[tensor];
}

void FactorStrategy::collect() {
  // A closed dimension of a result accepts no other axes, so neither does the operation.
  auto closes = [&](size_t t, int64_t factor) {
    return isResult(t) && tensors[t].type &&
           llvm::any_of(llvm::zip_equal(tensors[t].closed, factorsOf(t)), [&](const auto &dim) {
             return std::get<0>(dim) && llvm::is_contained(std::get<1>(dim), factor);
           });
  };
  auto isDecided = [&](int64_t factor) {
    return llvm::any_of(llvm::seq(tensors.size()), [&](size_t t) { return closes(t, factor); });
  };

  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    if (!tensor.type || !tensor.proposes)
      continue;
    FactorAxes axes = project(rule, factorsOf(t), tensor.dims);
    for (auto [f, list] : llvm::enumerate(axes)) {
      auto factor = static_cast<int64_t>(f);
      bool stated = !partials.empty() && rule.factors[f].kind == FactorKind::Reduction;
      if (stated) {
        auto end = llvm::find_if_not(
            list, [&](const SubAxis &axis) { return llvm::is_contained(partials, axis); });
        list.erase(end, list.end());
      }
      if (list.empty())
        continue;
      int order = stated              ? kFirst
                  : closes(t, factor) ? kClosed
                  : tensor.stated     ? kStated
                                      : kDerived;
      proposals.push_back({factor, list, t, order, {}});
    }
  }
  preferSums();
  llvm::erase_if(proposals, [&](const Proposal &p) {
    return isDecided(p.factor) && !closes(p.tensor, p.factor);
  });
  llvm::sort(proposals, [](const Proposal &a, const Proposal &b) {
    return std::tuple(a.order, a.tensor, a.factor) < std::tuple(b.order, b.tensor, b.factor);
  });
  // A proposal that another one includes is dropped.
  std::vector<Proposal> distinct;
  for (auto [i, proposal] : llvm::enumerate(proposals)) {
    bool subsumed = false;
    for (auto [j, other] : llvm::enumerate(proposals)) {
      if (i == j || other.factor != proposal.factor)
        continue;
      std::optional<SubAxes> rest = axesBeyond(proposal.axes, other.axes);
      subsumed |=
          rest && rankOf(other.order) <= rankOf(proposal.order) && (!rest->empty() || j < i);
    }
    if (!subsumed)
      distinct.push_back(proposal);
  }
  proposals = std::move(distinct);
}

/// The stated sharding of a reduction's result holds after the reduction. Where an operand is
/// stated to be sharded like the result, bytes decide.
void FactorStrategy::preferSums() {
  for (Proposal &term : proposals) {
    if (isResult(term.tensor) || !tensors[term.tensor].stated ||
        rule.factors[term.factor].kind != FactorKind::Reduction)
      continue;
    for (const Proposal &result : proposals) {
      if (!isResult(result.tensor) || !tensors[result.tensor].stated)
        continue;
      for (const SubAxis &axis : term.axes)
        if (!isFree(result.axes, axis) && llvm::none_of(proposals, [&](const Proposal &other) {
              return !isResult(other.tensor) && other.factor == result.factor &&
                     tensors[other.tensor].stated && !isFree(other.axes, axis);
            }))
          term.order = kFirst;
    }
  }
}

void FactorStrategy::findAgreed() {
  for (Proposal &proposal : proposals) {
    proposal.agreed = proposal.axes;
    for (const Proposal &other : proposals) {
      if (&other == &proposal)
        continue;
      if (other.factor == proposal.factor) {
        if (!isMajorOf(proposal.axes, other.axes) && !isMajorOf(other.axes, proposal.axes))
          proposal.agreed = commonPrefix(proposal.agreed, other.axes);
        continue;
      }
      auto end = llvm::find_if_not(proposal.agreed,
                                   [&](const SubAxis &axis) { return isFree(other.axes, axis); });
      proposal.agreed.erase(end, proposal.agreed.end());
    }
  }
}

bool FactorStrategy::insert(int64_t factor, const SubAxes &wanted, FactorAxes &axes) {
  std::optional<SubAxes> rest = axesBeyond(axes[factor], wanted);
  if (!rest)
    return isMajorOf(wanted, axes[factor]);
  for (const SubAxis &axis : *rest) {
    if (!isFree(axes, axis))
      return false;
    appendMerged(axes[factor], axis);
  }
  return true;
}

FactorAxes FactorStrategy::agreed() const {
  FactorAxes axes(rule.factors.size());
  for (const Proposal &proposal : proposals)
    insert(proposal.factor, proposal.agreed, axes);
  dropInexpressible(rule, axes);
  return axes;
}

FactorAxes FactorStrategy::satisfy(ArrayRef<const Proposal *> order) const {
  FactorAxes axes(rule.factors.size());
  for (const Proposal &proposal : proposals)
    if (proposal.agreed == proposal.axes)
      insert(proposal.factor, proposal.axes, axes);
  for (const Proposal *proposal : order)
    insert(proposal->factor, proposal->axes, axes);
  dropInexpressible(rule, axes);
  return axes;
}

bool FactorStrategy::isSatisfied(const Proposal &proposal, const FactorAxes &axes) const {
  return isMajorOf(proposal.axes, axes[proposal.factor]);
}

SaturatingCount FactorStrategy::bytes(const FactorAxes &axes) const {
  SubAxes reduced;
  for (auto [factor, list] : llvm::zip_equal(rule.factors, axes))
    if (factor.kind == FactorKind::Reduction)
      llvm::append_range(reduced, list);
  SaturatingCount bytes = 0;
  std::set<std::pair<int, Layout>> counted;
  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    if (!tensor.type)
      continue;
    Layout form = dimsOf(factorsOf(t), axes);
    if (!isResult(t)) {
      // A value that is several operands is resharded once.
      if (!tensor.isFree && (tensor.value < 0 || counted.insert({tensor.value, form}).second))
        bytes += bytesToReshard(tensor.type, tensor.dims, tensor.partials, form);
      continue;
    }
    // Users accept the axes of an open dimension.
    Layout wanted = tensor.dims;
    for (auto [d, dim] : llvm::enumerate(wanted)) {
      std::optional<SubAxes> more = tensor.closed[d] ? std::nullopt : axesBeyond(dim, form[d]);
      if (more && llvm::all_of(*more, [&](const SubAxis &axis) { return isFree(wanted, axis); }))
        dim = form[d];
    }
    bytes += bytesToReshard(tensor.type, form, reduced, wanted);
  }
  return bytes;
}

std::optional<FactorConflict> FactorStrategy::explain(const Proposal &lost,
                                                      const FactorAxes &axes) const {
  SubAxes given = commonPrefix(lost.axes, axes[lost.factor]);
  SubAxis axis = withoutPrefix(lost.axes, given).front();
  int64_t winnerFactor = lost.factor;
  for (auto [f, list] : llvm::enumerate(axes))
    if (!isFree(list, axis))
      winnerFactor = static_cast<int64_t>(f);
  if (isResult(lost.tensor) && rule.factors[winnerFactor].kind == FactorKind::Reduction)
    return std::nullopt;
  size_t winner = lost.tensor;
  for (const Proposal &proposal : proposals)
    if (&proposal != &lost && proposal.factor == winnerFactor && isSatisfied(proposal, axes))
      winner = proposal.tensor;
  return FactorConflict{lost.factor, axis, lost.tensor, winner, winnerFactor, 0, std::nullopt};
}

FactorDecision FactorStrategy::settled() const {
  SmallVector<const Proposal *> conflicting;
  for (const Proposal &proposal : proposals)
    if (proposal.agreed != proposal.axes)
      conflicting.push_back(&proposal);
  if (conflicting.empty())
    return {agreed(), {}};
  FactorDecision best;
  std::optional<SaturatingCount> least;
  SmallVector<std::optional<SaturatingCount>> satisfying(conflicting.size());
  auto consider = [&](ArrayRef<const Proposal *> order) {
    if (!llvm::is_sorted(order, [](const Proposal *a, const Proposal *b) {
          return rankOf(a->order) < rankOf(b->order);
        }))
      return;
    FactorAxes axes = satisfy(order);
    SaturatingCount cost = bytes(axes);
    for (auto [proposal, cheapest] : llvm::zip_equal(conflicting, satisfying))
      if (isSatisfied(*proposal, axes) && (!cheapest || cost < *cheapest))
        cheapest = cost;
    if (least && !(cost < *least))
      return;
    least = cost;
    best.axes = std::move(axes);
  };
  SmallVector<size_t> order(conflicting.size());
  std::iota(order.begin(), order.end(), 0);
  auto pick = [&] { return llvm::map_to_vector(order, [&](size_t i) { return conflicting[i]; }); };
  if (conflicting.size() <= kMaxPermuted) {
    do
      consider(pick());
    while (std::next_permutation(order.begin(), order.end()));
  } else {
    for (size_t first = 0; first < conflicting.size(); ++first) {
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first),
                  order.begin() + static_cast<std::ptrdiff_t>(first) + 1);
      consider(pick());
      std::iota(order.begin(), order.end(), 0);
    }
  }
  for (auto [proposal, cheapest] : llvm::zip_equal(conflicting, satisfying)) {
    if (isSatisfied(*proposal, best.axes))
      continue;
    std::optional<FactorConflict> conflict = explain(*proposal, best.axes);
    if (!conflict)
      continue;
    conflict->bytes = *least;
    conflict->others = cheapest;
    best.conflicts.push_back(*conflict);
  }
  return best;
}

} // namespace braid
