//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "FactorStrategy.h"

#include "AxisPieces.h"
#include "braid/Cost/CommunicationCost.h"

#include <numeric>

using namespace mlir;
using namespace braid::comm;
using braid::runtime::CollectiveKind;

namespace braid {

/// Up to this many conflicting proposals are tried in all orders; of more, each is tried first.
constexpr size_t kMaxPermuted = 4;

/// Precedence of proposals. Bytes decide among stated ones, and among derived ones.
enum : int { kFirst, kClosed, kStated, kDerived };
static int rankOf(int order) { return order == kClosed ? kStated : order; }

SaturatingCount bytesToReshard(MeshOp mesh, RankedTensorType type, const DimAxes &from,
                               ArrayRef<PartialAttr> partials, const DimAxes &to) {
  // Splits axes into pieces common to both forms.
  DimAxes had = from, wanted = to, reduced(1);
  for (PartialAttr partial : partials)
    reduced[0].push_back(partial.getAxis());
  refine(mesh, {&had, &wanted, &reduced});
  AxisList leaving, arriving;
  SaturatingCount local = elementBytes(type);
  for (auto [d, size] : llvm::enumerate(type.getShape())) {
    local *= size / shards(mesh, from[d]);
    size_t common = 0;
    while (common < std::min(had[d].size(), wanted[d].size()) &&
           had[d][common] == wanted[d][common])
      ++common;
    leaving.append(had[d].begin() + static_cast<std::ptrdiff_t>(common), had[d].end());
    arriving.append(wanted[d].begin() + static_cast<std::ptrdiff_t>(common), wanted[d].end());
  }
  AxisList moved, gathered, scattered, combined;
  for (AxisAttr axis : leaving)
    (llvm::is_contained(arriving, axis) ? moved : gathered).push_back(axis);
  for (AxisAttr axis : reduced[0])
    (llvm::is_contained(arriving, axis) ? scattered : combined).push_back(axis);
  // Data that is sliced off first is not sent.
  for (AxisAttr axis : arriving)
    if (!llvm::is_contained(moved, axis) && !llvm::is_contained(scattered, axis))
      local = local / axisSize(mesh, axis);
  auto sent = [&](CollectiveKind kind, const AxisList &axes) {
    return collectiveCost(kind, local, shards(mesh, axes)).bytes;
  };
  SaturatingCount bytes = sent(CollectiveKind::reduceScatter, scattered);
  local = local / shards(mesh, scattered);
  bytes += sent(CollectiveKind::allReduce, combined);
  bytes += sent(CollectiveKind::allToAll, moved);
  bytes += sent(CollectiveKind::allGather, gathered);
  return bytes;
}

FactorStrategy::FactorStrategy(MeshOp mesh, const ShardingRule &rule,
                               ArrayRef<TensorState> operands, ArrayRef<TensorState> results,
                               ArrayRef<PartialAttr> partials)
    : mesh(mesh), rule(rule), tensors(operands.begin(), operands.end()),
      numOperands(operands.size()), partials(partials) {
  llvm::append_range(tensors, results);
  collect();
  findAgreed();
}

const TensorFactors &FactorStrategy::factorsOf(size_t tensor) const {
  return isResult(tensor) ? rule.results[tensor - numOperands] : rule.operands[tensor];
}

void FactorStrategy::collect() {
  // A closed dimension of a result accepts no other axes, so neither does the operation.
  SmallVector<bool> decided(rule.factors.size(), false);
  auto closes = [&](size_t t, int64_t factor) {
    for (auto [d, factors] : llvm::enumerate(factorsOf(t)))
      if (tensors[t].closed[d] && llvm::is_contained(factors, factor))
        return true;
    return false;
  };
  for (size_t t = numOperands; t < tensors.size(); ++t)
    if (tensors[t].type)
      for (size_t f = 0; f < decided.size(); ++f)
        decided[f] = decided[f] || closes(t, static_cast<int64_t>(f));

  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    if (!tensor.type || !tensor.proposes)
      continue;
    FactorAxes axes = project(mesh, rule, factorsOf(t), tensor.dims);
    for (auto [f, list] : llvm::enumerate(axes)) {
      auto factor = static_cast<int64_t>(f);
      bool stated = !partials.empty() && rule.factors[f].kind == FactorKind::Reduction;
      if (stated) {
        auto *end = llvm::find_if(list, [&](AxisAttr axis) {
          return llvm::none_of(partials, [&](PartialAttr p) { return p.getAxis() == axis; });
        });
        list.erase(end, list.end());
      }
      bool closed = isResult(t) && closes(t, factor);
      if (list.empty())
        continue;
      int order = stated ? kFirst : closed ? kClosed : tensor.stated ? kStated : kDerived;
      proposals.push_back({factor, list, t, order, {}});
    }
  }
  preferSums();
  llvm::erase_if(proposals, [&](const Proposal &p) {
    return decided[p.factor] && !(isResult(p.tensor) && closes(p.tensor, p.factor));
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
      std::optional<AxisList> rest = axesBeyond(mesh, proposal.axes, other.axes);
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
  auto share = [](const Proposal &a, AxisAttr axis) {
    return llvm::any_of(a.axes, [&](AxisAttr other) { return overlap(other, axis); });
  };
  for (Proposal &term : proposals) {
    if (isResult(term.tensor) || !tensors[term.tensor].stated ||
        rule.factors[term.factor].kind != FactorKind::Reduction)
      continue;
    for (const Proposal &result : proposals) {
      if (!isResult(result.tensor) || !tensors[result.tensor].stated)
        continue;
      for (AxisAttr axis : term.axes)
        if (share(result, axis) && llvm::none_of(proposals, [&](const Proposal &other) {
              return !isResult(other.tensor) && other.factor == result.factor &&
                     tensors[other.tensor].stated && share(other, axis);
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
        if (!axesBeyond(mesh, proposal.axes, other.axes) &&
            !axesBeyond(mesh, other.axes, proposal.axes))
          proposal.agreed = commonPrefix(mesh, proposal.agreed, other.axes);
        continue;
      }
      auto *end = llvm::find_if(proposal.agreed, [&](AxisAttr axis) {
        return llvm::any_of(other.axes, [&](AxisAttr o) { return overlap(o, axis); });
      });
      proposal.agreed.erase(end, proposal.agreed.end());
    }
  }
}

bool FactorStrategy::insert(int64_t factor, ArrayRef<AxisAttr> wanted, FactorAxes &axes) const {
  std::optional<AxisList> rest = axesBeyond(mesh, axes[factor], wanted);
  if (!rest)
    return axesBeyond(mesh, wanted, axes[factor]).has_value();
  for (AxisAttr axis : *rest) {
    for (const AxisList &list : axes)
      if (llvm::any_of(list, [&](AxisAttr other) { return overlap(other, axis); }))
        return false;
    axes[factor].push_back(axis);
    axes[factor] = joinPieces(mesh, axes[factor]);
  }
  return true;
}

FactorAxes FactorStrategy::agreed() const {
  FactorAxes axes(rule.factors.size());
  for (const Proposal &proposal : proposals)
    insert(proposal.factor, proposal.agreed, axes);
  dropInexpressible(mesh, rule, axes);
  return axes;
}

FactorAxes FactorStrategy::satisfy(ArrayRef<const Proposal *> order) const {
  FactorAxes axes(rule.factors.size());
  for (const Proposal &proposal : proposals)
    if (proposal.agreed == proposal.axes)
      insert(proposal.factor, proposal.axes, axes);
  for (const Proposal *proposal : order)
    insert(proposal->factor, proposal->axes, axes);
  dropInexpressible(mesh, rule, axes);
  return axes;
}

bool FactorStrategy::isSatisfied(const Proposal &proposal, const FactorAxes &axes) const {
  return axesBeyond(mesh, proposal.axes, axes[proposal.factor]).has_value();
}

SaturatingCount FactorStrategy::bytes(const FactorAxes &axes) const {
  SmallVector<PartialAttr> reduced;
  for (auto [factor, list] : llvm::zip_equal(rule.factors, axes))
    if (factor.kind == FactorKind::Reduction)
      for (AxisAttr axis : list)
        reduced.push_back(PartialAttr::get(mesh->getContext(), axis, factor.reduce));
  SaturatingCount bytes = 0;
  llvm::SmallDenseMap<int, SmallVector<DimAxes, 1>> counted;
  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    if (!tensor.type)
      continue;
    DimAxes form = dimsOf(mesh, factorsOf(t), axes);
    if (!isResult(t)) {
      SmallVector<DimAxes, 1> &seen = counted[tensor.value];
      if (tensor.isFree || (tensor.value >= 0 && llvm::is_contained(seen, form)))
        continue;
      seen.push_back(form);
      bytes += bytesToReshard(mesh, tensor.type, tensor.dims, tensor.partials, form);
      continue;
    }
    // Users accept the axes of an open dimension.
    DimAxes wanted = tensor.dims;
    for (auto [d, dim] : llvm::enumerate(wanted)) {
      std::optional<AxisList> more =
          tensor.closed[d] ? std::nullopt : axesBeyond(mesh, dim, form[d]);
      bool isFree =
          more && llvm::none_of(*more, [&](AxisAttr axis) {
            return llvm::any_of(wanted, [&](const AxisList &other) {
              return llvm::any_of(other, [&](AxisAttr used) { return overlap(used, axis); });
            });
          });
      if (isFree)
        dim = form[d];
    }
    bytes += bytesToReshard(mesh, tensor.type, form, reduced, wanted);
  }
  return bytes;
}

std::optional<FactorConflict> FactorStrategy::explain(const Proposal &lost,
                                                      const FactorAxes &axes) const {
  AxisList given = commonPrefix(mesh, lost.axes, axes[lost.factor]);
  AxisAttr axis = axesBeyond(mesh, given, lost.axes)->front();
  int64_t winnerFactor = lost.factor;
  for (auto [f, list] : llvm::enumerate(axes))
    if (llvm::any_of(list, [&](AxisAttr other) { return overlap(other, axis); }))
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
