//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The search for assignments, with damages that are known.
//
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/AssignmentSearch.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using namespace braid;
using runtime::Result;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Candidates of 8, 4 and 2 bytes for each half, which is what they cost. Collectives are alike but
/// for their sensitivity.
AssignmentProblem problemOf(const std::vector<double> &sensitivities, double plain = kInfinity) {
  const std::vector<double> bytes{8, 4, 2}, damage{1, 4, 16};
  AssignmentProblem problem;
  problem.candidates = {"eight", "four", "two"};
  for (double sensitivity : sensitivities) {
    AssignmentProblem::Collective one{plain, {}, std::vector<std::vector<double>>(2)};
    for (double first : bytes)
      for (double second : bytes)
        one.encoded.push_back(first + second);
    for (std::vector<double> &half : one.damage)
      for (double d : damage)
        half.push_back(sensitivity * d);
    problem.collectives.push_back(std::move(one));
  }
  return problem;
}

struct Found {
  std::optional<Assignment> assignment;
  std::vector<std::string> measured;
};

/// `damageOf` says what an assignment really does.
template <typename DamageOf> Found search(const AssignmentProblem &problem, DamageOf damageOf) {
  Found found;
  AssignmentSearch search(problem,
                          [&](const Assignment &one, const std::string &what) -> Result<double> {
                            found.measured.push_back(what);
                            return damageOf(one);
                          });
  Result<std::optional<Assignment>> result = search.run();
  EXPECT_TRUE(result.ok());
  if (result.ok())
    found.assignment = *result;
  return found;
}

double predicted(const Assignment &one) { return one.damage; }

TEST(AssignmentSearch, SpendsDamageWhereItSavesMost) {
  AssignmentProblem problem = problemOf({1, 100});
  problem.allowed = 2 * 16 + 2 * 100;
  const Found found = search(problem, predicted);
  ASSERT_TRUE(found.assignment);
  EXPECT_EQ(found.assignment->candidates, (std::vector<std::pair<size_t, size_t>>{{2, 2}, {0, 0}}));
  EXPECT_EQ(found.assignment->cost, 4 + 16);
  EXPECT_EQ(found.assignment->damage, problem.allowed);
}

/// Damages that add up: nothing that is allowed is cheaper by more than what one collective can
/// save, and in the mean it is a fifth of that.
TEST(AssignmentSearch, IsNearlyTheCheapestOfAll) {
  std::mt19937 random(3);
  double gaps = 0;
  int numFound = 0;
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed 3, round " + std::to_string(round));
    std::vector<double> sensitivities;
    for (int i = 0; i < 4; ++i)
      sensitivities.push_back(std::exp(std::normal_distribution<>()(random)));
    AssignmentProblem problem = problemOf(sensitivities);
    problem.allowed = std::uniform_real_distribution<>(8, 100)(random);
    const Found found = search(problem, predicted);
    double cheapest = kInfinity;
    for (int code = 0; code < 6561; ++code) { // 3 candidates, 8 halves
      double cost = 0, damage = 0;
      for (int rest = code, half = 0; half < 8; ++half, rest /= 3) {
        const auto c = static_cast<size_t>(rest % 3);
        cost += problem.collectives[0].encoded[c * 3 + c] / 2;
        damage += problem.collectives[static_cast<size_t>(half / 2)].damage[0][c];
      }
      if (damage <= problem.allowed)
        cheapest = std::min(cheapest, cost);
    }
    ASSERT_EQ(found.assignment.has_value(), std::isfinite(cheapest));
    if (!found.assignment)
      continue;
    EXPECT_LE(found.assignment->damage, problem.allowed);
    EXPECT_GE(found.assignment->cost, cheapest);
    EXPECT_LE(found.assignment->cost, cheapest + 2 * (8 - 2));
    gaps += found.assignment->cost - cheapest;
    ++numFound;
  }
  EXPECT_GT(numFound, 100);
  EXPECT_LE(gaps / numFound, 2.4);
}

/// Twice the damage that was predicted: the sum that is aimed at is tightened.
TEST(AssignmentSearch, TightensUntilItHolds) {
  AssignmentProblem problem = problemOf(std::vector<double>(20, 1));
  problem.allowed = 400;
  const Found found = search(problem, [](const Assignment &one) { return 2 * one.damage; });
  ASSERT_TRUE(found.assignment);
  EXPECT_LE(2 * found.assignment->damage, problem.allowed);
  EXPECT_GE(2 * found.assignment->damage, 0.8 * problem.allowed);
}

/// Predictions that mislead: "four" for all does little together. A mixture with "two" is cheaper.
TEST(AssignmentSearch, MixesWhatMissesIntoWhatHolds) {
  AssignmentProblem problem = problemOf(std::vector<double>(40, 1));
  problem.allowed = 100;
  const Found found = search(problem, [](const Assignment &one) {
    double damage = 0;
    size_t others = 0;
    for (auto [first, second] : one.candidates) {
      damage += first == 2 ? 4 : 1;
      others += first == 0 || second == 0 || first != second ? 1 : 0;
    }
    return damage + 100.0 * static_cast<double>(others);
  });
  ASSERT_TRUE(found.assignment);
  // 40 + 3 n <= 100
  const auto count =
      std::count(found.assignment->candidates.begin(), found.assignment->candidates.end(),
                 std::pair<size_t, size_t>(2, 2));
  EXPECT_EQ(count, 20);
  EXPECT_EQ(found.assignment->cost, 20 * 4 + 20 * 8);
  EXPECT_NE(std::find(found.measured.begin(), found.measured.end(), "measurement of four for all"),
            found.measured.end());
  EXPECT_NE(std::find(found.measured.begin(), found.measured.end(),
                      "measurement of 20 collectives with cheaper encodings"),
            found.measured.end());
}

TEST(AssignmentSearch, FindsNothingWhereTheMostPreciseMisses) {
  AssignmentProblem problem = problemOf({1, 1});
  problem.allowed = 3.9;
  const Found found = search(problem, predicted);
  EXPECT_FALSE(found.assignment);
  ASSERT_FALSE(found.measured.empty());
}

/// What costs more encoded than as it is stays as it is.
TEST(AssignmentSearch, LeavesWhatIsCheaperPlain) {
  AssignmentProblem problem = problemOf({1, 1}, /*plain=*/7);
  problem.allowed = 1000;
  problem.collectives[1].plain = 1;
  const Found found = search(problem, predicted);
  ASSERT_TRUE(found.assignment);
  EXPECT_EQ(found.assignment->candidates[0], (std::pair<size_t, size_t>(2, 2)));
  EXPECT_EQ(found.assignment->candidates[1].first, kPlainCollective);
  EXPECT_EQ(found.assignment->cost, 5);
}

} // namespace
