//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which candidate each half of each collective takes, so that all together cost the least and the
// damage that is measured stays within what is allowed. Nothing here knows of models.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_ACCURACY_ASSIGNMENTSEARCH_H
#define BRAID_ACCURACY_ASSIGNMENTSEARCH_H

#include "braid/Base/Status.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace braid {

/// In place of a candidate: a collective as it is.
inline constexpr size_t kPlainCollective = std::numeric_limits<size_t>::max();

struct AssignmentProblem {
  /// What a collective costs, in any unit that adds up: bytes, nanoseconds. Infinite: cannot be.
  struct Collective {
    double plain; ///< as it is
    /// By candidates of both halves, the second one changing first. One with a single half has that
    /// one's candidate twice.
    std::vector<double> encoded;
    /// By half, one or two of them, and candidate: the damage that is predicted of it alone.
    std::vector<std::vector<double>> damage;
  };
  std::vector<std::string> candidates; ///< their names
  std::vector<Collective> collectives;
  double allowed = 0;       ///< damage of all together
  size_t measurements = 10; ///< of assignments that predictions lead to, at most
};

struct Assignment {
  /// By collective, those of its halves, twice the same of a single one; kPlainCollective twice
  /// where it is not encoded.
  std::vector<std::pair<size_t, size_t>> candidates;
  double cost = 0, damage = 0; ///< predicted, the sum over collectives
};

class AssignmentSearch {
public:
  /// The damage of a whole assignment, with the margin that it is to have. The text says what is
  /// measured.
  using Measure =
      std::function<runtime::Result<double>(const Assignment &, const std::string &what)>;

  AssignmentSearch(AssignmentProblem problem, Measure measure)
      : problem(std::move(problem)), measure(std::move(measure)) {}

  /// The cheapest assignment found whose measured damage is within what is allowed, or none.
  /// 1. The knapsack of predicted damages, for a sum that is tightened or widened until its
  ///    measured damage is just allowed.
  /// 2. One candidate for all, where that costs less: predictions mislead where damages of single
  ///    halves do not add up, as those of rare outliers.
  /// 3. A mixture of the best of these with a cheaper one that missed.
  runtime::Result<std::optional<Assignment>> run();

  /// The one with the least predicted damage.
  Assignment mostPrecise() const { return assign(kInfinity); }

private:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Measured {
    Assignment assignment;
    double damage;
  };

  Assignment assign(double price) const;
  Assignment cheapest(double damage) const;
  std::vector<Assignment> uniformAssignments(double below) const;
  Assignment of(std::vector<std::pair<size_t, size_t>> candidates) const;
  double costOf(size_t collective, std::pair<size_t, size_t> candidates) const;
  double damageOf(size_t collective, std::pair<size_t, size_t> candidates) const;

  runtime::Status tighten();
  runtime::Status tryUniform();
  runtime::Status mix();
  /// Measures one, and keeps it if it holds and costs no more than what was kept.
  runtime::Result<double> tryOne(Assignment assignment, const std::string &what);

  AssignmentProblem problem;
  Measure measure;
  std::optional<Measured> kept;
  std::vector<Measured> missed;
};

} // namespace braid
#endif // BRAID_ACCURACY_ASSIGNMENTSEARCH_H
