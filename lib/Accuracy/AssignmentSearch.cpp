//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/AssignmentSearch.h"

#include "braid/Base/StatusMacros.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace braid {

using runtime::Result;
using runtime::Status;

double AssignmentSearch::costOf(size_t collective, std::pair<size_t, size_t> candidates) const {
  const AssignmentProblem::Collective &own = problem.collectives[collective];
  return candidates.first == kPlainCollective
             ? own.plain
             : own.encoded[candidates.first * problem.candidates.size() + candidates.second];
}

double AssignmentSearch::damageOf(size_t collective, std::pair<size_t, size_t> candidates) const {
  const AssignmentProblem::Collective &own = problem.collectives[collective];
  if (candidates.first == kPlainCollective)
    return 0;
  return own.damage[0][candidates.first] +
         (own.damage.size() > 1 ? own.damage[1][candidates.second] : 0);
}

Assignment AssignmentSearch::of(std::vector<std::pair<size_t, size_t>> candidates) const {
  Assignment all;
  all.candidates = std::move(candidates);
  for (auto [i, one] : llvm::enumerate(all.candidates)) {
    all.cost += costOf(i, one);
    all.damage += damageOf(i, one);
  }
  return all;
}

/// The assignment of the least cost + price * damage.
Assignment AssignmentSearch::assign(double price) const {
  std::vector<std::pair<size_t, size_t>> chosen;
  for (auto [c, own] : llvm::enumerate(problem.collectives)) {
    std::pair<size_t, size_t> best{kPlainCollective, kPlainCollective};
    double least = kInfinity;
    bool isAllowed = own.plain < kInfinity;
    if (isAllowed)
      least = std::isfinite(price) ? own.plain : 0;
    for (size_t i = 0; i < problem.candidates.size(); ++i)
      for (size_t j = own.damage.size() > 1 ? 0 : i;
           j < (own.damage.size() > 1 ? problem.candidates.size() : i + 1); ++j) {
        const double cost = costOf(c, {i, j}), damage = damageOf(c, {i, j});
        const double value = std::isfinite(price)  ? cost + price * damage
                             : std::isfinite(cost) ? damage
                                                   : kInfinity;
        // Something is taken where nothing is allowed, too.
        if (value < least || (!isAllowed && i == 0 && j == 0)) {
          least = value;
          best = {i, j};
        }
      }
    chosen.push_back(best);
  }
  return of(std::move(chosen));
}

/// The cheapest assignment whose predicted damage is at most so much, or the most precise one.
Assignment AssignmentSearch::cheapest(double damage) const {
  Assignment best = mostPrecise();
  double low = -30, high = 60; // logarithms of prices
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    Assignment one = assign(std::exp(middle));
    if (one.damage <= damage) {
      high = middle;
      if (one.cost <= best.cost || best.damage > damage)
        best = std::move(one);
    } else {
      low = middle;
    }
  }
  return best;
}

/// One candidate for all halves, for less than this cost, the cheapest first.
std::vector<Assignment> AssignmentSearch::uniformAssignments(double below) const {
  std::vector<Assignment> all;
  for (size_t c = 0; c < problem.candidates.size(); ++c)
    if (Assignment one = of(std::vector(problem.collectives.size(), std::pair(c, c)));
        one.cost < below)
      all.push_back(std::move(one));
  llvm::sort(all, [](const auto &a, const auto &b) {
    return std::tuple(a.cost, a.candidates.front()) < std::tuple(b.cost, b.candidates.front());
  });
  return all;
}

Result<double> AssignmentSearch::tryOne(Assignment assignment, const std::string &what) {
  ASSIGN_OR_RETURN(const double damage, measure(assignment, what));
  if (!(damage <= problem.allowed)) // nor what is no number
    missed.push_back({std::move(assignment), damage});
  else if (!kept || assignment.cost <= kept->assignment.cost)
    kept = {std::move(assignment), damage};
  return damage;
}

Status AssignmentSearch::tighten() {
  const double allowed = problem.allowed;
  double aim = allowed, feasible = 0, infeasible = kInfinity;
  std::vector<std::pair<size_t, size_t>> last;
  for (size_t i = 0; i < problem.measurements; ++i) {
    Assignment one = cheapest(aim);
    if (one.candidates == last)
      break;
    last = one.candidates;
    ASSIGN_OR_RETURN(
        const double damage,
        tryOne(std::move(one), "measurement " + std::to_string(i + 1) + " of a whole assignment"));
    const bool holds = damage <= allowed;
    (holds ? feasible : infeasible) = aim;
    // Damage grows about as what is aimed at does.
    if (std::isfinite(infeasible) && feasible > 0) {
      if (infeasible / feasible < 1.1)
        break;
      aim = std::sqrt(infeasible * feasible);
      continue;
    }
    const double ratio = allowed / std::max(damage, allowed / 64);
    aim *= holds ? std::clamp(ratio, 1.2, 8.0) : std::clamp(0.95 * ratio, 1.0 / 64, 0.8);
  }
  return {};
}

Status AssignmentSearch::tryUniform() {
  for (Assignment &one : uniformAssignments(kept ? kept->assignment.cost : kInfinity)) {
    const std::string what =
        "measurement of " + problem.candidates[one.candidates.front().first] + " for all";
    ASSIGN_OR_RETURN(const double damage, tryOne(std::move(one), what));
    if (damage <= problem.allowed)
      break;
  }
  return {};
}

/// Takes over what a cheaper assignment that missed has for as many collectives as the bound
/// allows: those first that are predicted to lose the least for what they save. How many is found
/// by interpolation, as the damage grows about in proportion.
Status AssignmentSearch::mix() {
  constexpr int kMeasurements = 5;
  constexpr double kWorthwhile = 0.01; // of the cost
  const Assignment base = kept->assignment;
  double holds = kept->damage, least = (1 - kWorthwhile) * base.cost;
  const Measured *other = nullptr;
  for (const Measured &one : missed) {
    const double share = (problem.allowed - holds) / (one.damage - holds);
    const double cost = base.cost + share * (one.assignment.cost - base.cost);
    if (share > 0 && cost < least) {
      least = cost;
      other = &one;
    }
  }
  if (!other)
    return {};
  const std::vector<std::pair<size_t, size_t>> cheaper = other->assignment.candidates;
  struct Change {
    size_t collective;
    double saved, added;
  };
  std::vector<Change> changes;
  for (auto [c, one] : llvm::enumerate(cheaper))
    if (const double saved = costOf(c, base.candidates[c]) - costOf(c, one),
        added = damageOf(c, one) - damageOf(c, base.candidates[c]);
        saved > 0 && std::isfinite(added))
      changes.push_back({c, saved, added});
  llvm::sort(changes, [](const Change &a, const Change &b) {
    return std::tuple(a.added / a.saved, a.collective) <
           std::tuple(b.added / b.saved, b.collective);
  });
  double misses = other->damage;
  size_t first = 0, last = changes.size(); // so many hold, and so many miss
  for (int i = 0; i < kMeasurements && last - first > 1; ++i) {
    const double share = (problem.allowed - holds) / (misses - holds);
    const auto between = static_cast<double>(last - first);
    const size_t count = first + static_cast<size_t>(std::clamp(share * between, 1.0, between - 1));
    std::vector<std::pair<size_t, size_t>> mixed = base.candidates;
    for (const Change &change : llvm::ArrayRef(changes).take_front(count))
      mixed[change.collective] = cheaper[change.collective];
    ASSIGN_OR_RETURN(const double damage,
                     tryOne(of(std::move(mixed)), "measurement of " + std::to_string(count) +
                                                      " collectives with cheaper encodings"));
    const bool isAllowed = damage <= problem.allowed;
    (isAllowed ? first : last) = count;
    (isAllowed ? holds : misses) = damage;
  }
  return {};
}

Result<std::optional<Assignment>> AssignmentSearch::run() {
  RETURN_IF_ERROR(tighten());
  RETURN_IF_ERROR(tryUniform());
  if (!kept) {
    ASSIGN_OR_RETURN(const double damage,
                     tryOne(mostPrecise(), "measurement of the most precise assignment"));
    if (!(damage <= problem.allowed))
      return std::optional<Assignment>();
  }
  RETURN_IF_ERROR(mix());
  return std::optional<Assignment>(kept->assignment);
}

} // namespace braid
