//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/Budget.h"

#include "braid/Accuracy/AssignmentSearch.h"
#include "braid/Base/StatusMacros.h"

#include "llvm/ADT/MapVector.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace braid {

using runtime::Encoding;
using runtime::EncodingTable;
using runtime::Result;
using runtime::Status;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// One half of one collective, and what each candidate costs the result there.
struct Half {
  size_t entry; ///< of the table
  bool gather;
  std::vector<double> errors; ///< squared relative L2 by candidate
  std::vector<double> damage; ///< by candidate, predicted
};

/// Candidates whose errors have the same shape: large elements, and small ones beside them, are
/// treated alike. Floats keep 0 as a zero point does.
using Family = std::tuple<bool, int64_t, Encoding::Form>;
Family familyOf(const Encoding &encoding) {
  return {encoding.spikes, encoding.rotation,
          encoding.element == Encoding::Element::integer ? encoding.form
                                                         : Encoding::Form::zeroPoint};
}

std::optional<Encoding> &halfOf(EncodingTable::Entry &entry, bool gather) {
  return gather ? entry.gather : entry.reduce;
}

class Search {
public:
  Search(TableModel &model, Evaluation &evaluation, const BudgetOptions &options,
         llvm::function_ref<void(const std::string &)> progress)
      : model(model), evaluation(evaluation), options(options), bound(options.bound),
        candidates(options.candidates.empty() ? defaultCandidates() : options.candidates),
        progress(progress) {
    // A change of perplexity is noisy where it is small; the divergence is what it is expected to
    // be, and has no noise.
    probe = bound.metric == Metric::perplexity ? Metric::kl : bound.metric;
  }

  Result<BudgetChoice> run() {
    RETURN_IF_ERROR(evaluation.supports(bound.metric));
    EncodingTable table = model.table();
    for (size_t i = 0; i < table.entries.size(); ++i) {
      if (collective(i).hasReduce())
        halves.push_back({i, false, {}, {}});
      if (collective(i).hasGather())
        halves.push_back({i, true, {}, {}});
    }
    RETURN_IF_ERROR(findCosts());
    RETURN_IF_ERROR(checkMatmuls());
    RETURN_IF_ERROR(measureErrors());
    RETURN_IF_ERROR(measureDamage());
    return search();
  }

private:
  const EncodedCollective &collective(size_t entry) const { return model.collectives()[entry]; }

  void say(const std::string &what) const {
    if (progress)
      progress(what);
  }
  /// Says how many of the runs for something are done.
  std::function<void(size_t, size_t)> counted(const std::string &what) const {
    return [this, what](size_t done, size_t all) {
      say(what + ": run " + std::to_string(done) + " of " + std::to_string(all));
    };
  }

  /// What matmuls of 8-bit integers lose is a part of what is promised.
  Status checkMatmuls() {
    if (!evaluation.hasReference())
      return {};
    const std::string what = "matmuls of 8-bit integers without encodings";
    say(what);
    ASSIGN_OR_RETURN(const Measured own, measure(model.table(), /*isExact=*/true, what));
    if (own.damage + own.margin <= bound.allowedDamage())
      return {};
    return Status::error("no encodings meet ", bound.str(), ": ", what, " have a mean of ",
                         bound.text(own.value), " over ", own.evaluated.batches.size(), " batches");
  }

  /// The error of every half as every candidate, each with all others alike.
  Status measureErrors() {
    std::vector<EncodingTable> tables(candidates.size(), model.table());
    for (auto [candidate, table] : llvm::zip_equal(candidates, tables))
      for (EncodingTable::Entry &entry : table.entries)
        entry.reduce = entry.gather = candidate;
    ASSIGN_OR_RETURN(
        const std::vector<Evaluated> evaluated,
        evaluation.run(tables, options.probeBatches, /*withErrors=*/true, counted("errors")));
    for (auto [table, one] : llvm::zip_equal(tables, evaluated))
      for (Half &half : halves) {
        double error = kInfinity;
        for (const HalfError &own : one.errors)
          if (own.identity == table.entries[half.entry].identity && own.gather == half.gather)
            error = own.relativeL2() * own.relativeL2();
        half.errors.push_back(std::isfinite(error) ? error : kInfinity);
      }
    return {};
  }

  /// By family: each half encoded alone, as the candidate of about the fewest bits that still has a
  /// small error.
  Status measureDamage() {
    llvm::MapVector<Family, std::vector<size_t>, std::map<Family, unsigned>> families;
    for (auto [c, candidate] : llvm::enumerate(candidates))
      families[familyOf(candidate)].push_back(c);
    for (Half &half : halves)
      half.damage.assign(candidates.size(), kInfinity);
    struct Probe {
      Half *half;
      size_t candidate;
      const std::vector<size_t> *members;
    };
    std::vector<Probe> probes;
    // The first one is without encodings, where there may be other damage.
    std::vector<EncodingTable> tables{model.table()};
    for (const auto &[family, members] : families)
      for (Half &half : halves) {
        // 10% of the norm; nearest in proportion.
        size_t chosen = members.front();
        auto distance = [&](size_t c) { return std::abs(std::log(half.errors[c] / 0.01)); };
        for (size_t c : members)
          if (half.errors[c] > 0 && !(distance(c) >= distance(chosen)))
            chosen = c;
        probes.push_back({&half, chosen, &members});
        tables.push_back(model.table());
        halfOf(tables.back().entries[half.entry], half.gather) = candidates[chosen];
      }
    ASSIGN_OR_RETURN(const std::vector<Evaluated> evaluated,
                     evaluation.run(tables, options.probeBatches, /*withErrors=*/false,
                                    counted("collectives encoded alone")));
    auto damageOf = [&](const Evaluated &one) {
      return MetricBound::damage(probe, one.all.value(probe));
    };
    const double before = damageOf(evaluated.front());
    for (auto [probed, one] : llvm::zip_equal(probes, llvm::ArrayRef(evaluated).drop_front())) {
      const double damage = std::max(damageOf(one) - before, 0.0);
      std::vector<double> &errors = probed.half->errors;
      for (size_t c : *probed.members)
        probed.half->damage[c] = errors[c] == 0 || errors[probed.candidate] == 0
                                     ? 0
                                     : damage * errors[c] / errors[probed.candidate];
    }
    return {};
  }

  /// What collectives cost: with a machine the predicted nanoseconds, else the bytes that a rank
  /// sends. Without a machine everything is encoded.
  Status findCosts() {
    const size_t n = candidates.size();
    for (const EncodedCollective &one : model.collectives()) {
      AssignmentProblem::Collective own{kInfinity, {}, {}};
      if (CollectiveTimes *times = model.times()) {
        // Layers are alike, and a prediction takes a while.
        const auto &all = model.collectives();
        const auto alike =
            std::find_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(costs.size()),
                         [&](const auto &before) { return before.placed == one.placed; });
        if (static_cast<size_t>(alike - all.begin()) < costs.size()) {
          costs.push_back(costs[static_cast<size_t>(alike - all.begin())]);
          continue;
        }
        const std::string where = "'" + one.identity + "'";
        ASSIGN_OR_RETURN(const double plain, times->plain(one.placed).within(where));
        own.plain = plain * 1e9;
        for (size_t i = 0; i < n * n; ++i) {
          ASSIGN_OR_RETURN(
              const cost::EncodedTime time,
              times->encoded(one.placed, {candidates[i / n], candidates[i % n]}).within(where));
          own.encoded.push_back(cost::EncodedTimes::isWorthwhile(plain, time.seconds)
                                    ? time.seconds * 1e9
                                    : kInfinity);
        }
      } else {
        for (size_t i = 0; i < n * n; ++i)
          own.encoded.push_back(
              static_cast<double>(one.bytesSent(candidates[i / n], candidates[i % n])));
      }
      costs.push_back(std::move(own));
    }
    return {};
  }

  /// What a half has in an assignment; nothing where its collective is as it is.
  std::optional<size_t> candidateOf(const Half &half, const Assignment &assignment) const {
    const auto [first, second] = assignment.candidates[half.entry];
    if (first == kPlainCollective)
      return std::nullopt;
    return half.gather ? second : first;
  }

  EncodingTable tableOf(const Assignment &assignment) const {
    EncodingTable table = model.table();
    for (const Half &half : halves)
      if (const std::optional<size_t> c = candidateOf(half, assignment))
        halfOf(table.entries[half.entry], half.gather) = candidates[*c];
    return table;
  }

  /// What a whole assignment costs the result.
  struct Damage {
    double value = 0, damage = 0, margin = 0; ///< margin: a standard error of the damage's mean
  };
  Damage damageIn(const Evaluated &evaluated) const {
    Damage result;
    result.value = meanOf(evaluated);
    result.damage = bound.damage(result.value);
    double squares = 0;
    for (const RowErrors &batch : evaluated.batches) {
      const double difference = bound.damage(batch.value(bound.metric)) - result.damage;
      squares += difference * difference;
    }
    const auto n = static_cast<double>(evaluated.batches.size());
    result.margin = n > 1 ? std::sqrt(squares / (n - 1) / n) : 0;
    return result;
  }

  struct Measured : Damage {
    Evaluated evaluated;
  };
  /// Measures a whole assignment on all data, or, unless `isExact`, only until it clearly misses.
  Result<Measured> measure(const EncodingTable &table, bool isExact, const std::string &what) {
    constexpr size_t kFewestBatches = 8;
    constexpr double kStandardErrors = 3;
    const size_t batches = evaluation.numBatches();
    auto misses = [&](llvm::ArrayRef<Evaluated> all) {
      if (isExact || all[0].batches.size() < kFewestBatches || all[0].batches.size() == batches)
        return false;
      const Damage soFar = damageIn(all[0]);
      if (!(soFar.damage - kStandardErrors * soFar.margin > bound.allowedDamage()))
        return false;
      say(what + ": a clear miss after " + std::to_string(all[0].batches.size()) + " of " +
          std::to_string(batches) + " batches");
      return true;
    };
    ASSIGN_OR_RETURN(
        std::vector<Evaluated> evaluated,
        evaluation.run(table, batches, /*withErrors=*/false, /*progress=*/nullptr, misses));
    return Measured{damageIn(evaluated[0]), std::move(evaluated[0])};
  }
  /// The mean over batches; of perplexities, that of all tokens.
  double meanOf(const Evaluated &evaluated) const {
    if (bound.metric == Metric::perplexity)
      return evaluated.all.perplexityIncrease();
    double sum = 0;
    for (const RowErrors &batch : evaluated.batches)
      sum += batch.value(bound.metric);
    return sum / static_cast<double>(evaluated.batches.size());
  }

  Result<BudgetChoice> search() {
    AssignmentProblem problem;
    for (const Encoding &candidate : candidates)
      problem.candidates.push_back(candidate.str());
    problem.collectives = costs;
    for (const Half &half : halves)
      problem.collectives[half.entry].damage.push_back(half.damage);
    problem.allowed = bound.allowedDamage();
    problem.measurements = options.measurements;
    std::map<std::vector<std::pair<size_t, size_t>>, Measured> measured;
    Assignment precise;
    AssignmentSearch search(std::move(problem),
                            [&](const Assignment &one, const std::string &what) -> Result<double> {
                              say(what);
                              // If nothing holds, a message says how close the most precise one
                              // came.
                              const bool isExact = one.candidates == precise.candidates;
                              ASSIGN_OR_RETURN(Measured own, measure(tableOf(one), isExact, what));
                              const double damage = own.damage + own.margin;
                              measured[one.candidates] = std::move(own);
                              return damage;
                            });
    precise = search.mostPrecise();
    ASSIGN_OR_RETURN(const std::optional<Assignment> kept, search.run());
    if (kept)
      return choice(*kept, measured.at(kept->candidates));
    const Measured &own = measured.at(precise.candidates);
    return Status::error("no encodings meet ", bound.str(), ": the most precise assignment of ",
                         candidates.size(), " candidates, with ", summary(tableOf(precise)),
                         ", has a mean of ", bound.text(own.value), " over ",
                         own.evaluated.batches.size(), " batches",
                         llvm::any_of(candidates, [](const Encoding &e) { return e.isCast(); })
                             ? ""
                             : "; a candidate bf16 would be more precise");
  }

  /// "'int8:128' in 30 halves, 'int6:128' in 2"
  std::string summary(const EncodingTable &table) const {
    llvm::MapVector<std::string, int, std::map<std::string, unsigned>> counts;
    for (const EncodingTable::Entry &entry : table.entries)
      for (const std::optional<Encoding> &half : {entry.reduce, entry.gather})
        if (half)
          ++counts[half->str()];
    std::string text;
    for (const auto &[name, count] : counts)
      text += (text.empty() ? "'" : ", '") + name + "' in " + std::to_string(count) +
              (text.empty() ? " halves" : "");
    return text;
  }

  BudgetChoice choice(const Assignment &assignment, const Measured &measured) const {
    BudgetChoice result;
    result.table = tableOf(assignment);
    result.bytes = bytesSent(model.collectives(), result.table);
    result.plainBytes = bytesSent(model.collectives(), model.table());
    std::vector<double> values;
    double worst = 0;
    for (const RowErrors &batch : measured.evaluated.batches) {
      values.push_back(batch.value(bound.metric));
      worst = std::max(worst, batch.relativeL2());
    }
    runtime::ErrorBudget &record = result.record;
    record.metric = name(bound.metric);
    record.bound = bound.bound;
    record.measured = measured.value;
    record.percentile95 = quantile(values, bound.metric == Metric::cosine ? 0.05 : 0.95);
    record.batches = static_cast<int64_t>(values.size());
    for (const EncodingTable::Entry &entry : result.table.entries) {
      const std::optional<Encoding> &first = entry.reduce ? entry.reduce : entry.gather;
      const std::optional<Encoding> &second = entry.gather ? entry.gather : entry.reduce;
      record.encodings += (record.encodings.empty() ? "" : ",") + entry.identity + "=" +
                          (first ? runtime::EncodingPair{*first, *second}.str() : "none");
    }
    // The distance of vectors of one length with this cosine; other metrics say nothing of a
    // distance, so it is what was measured, with room for other data. The bound is that of a mean,
    // and a check compares a single batch.
    const double byBound = bound.metric == Metric::cosine       ? std::sqrt(2 * (1 - bound.bound))
                           : bound.metric == Metric::relativeL2 ? bound.bound
                                                                : 2 * worst;
    const bool isAsItWas =
        !evaluation.hasReference() &&
        llvm::all_of(halves, [&](const Half &half) { return !candidateOf(half, assignment); });
    if (!isAsItWas)
      result.checkTolerance = std::max(byBound, 1.5 * worst);
    for (auto [h, half] : llvm::enumerate(halves)) {
      const EncodingTable::Entry &entry = result.table.entries[half.entry];
      const bool isSecond = h > 0 && halves[h - 1].entry == half.entry;
      const EncodedCollective &one = collective(half.entry);
      const AssignmentProblem::Collective &own = costs[half.entry];
      const std::optional<size_t> c = candidateOf(half, assignment);
      if (!c) {
        const double best = *llvm::min_element(own.encoded);
        if (!isSecond)
          result.remarks.emplace_back(
              one.identity, "not encoded under " + bound.str() + ": " + timeText(own.plain * 1e-9) +
                                " as it is" +
                                (std::isfinite(best) ? ", what encodings gain is not worth the loss"
                                                     : ", no candidate is predicted to be faster"));
        continue;
      }
      char text[160];
      std::snprintf(text, sizeof text,
                    "%s: relative L2 %.2g, expected to cost %.2g%% of the budget",
                    half.gather ? "gather" : "reduce", std::sqrt(half.errors[*c]),
                    100 * half.damage[*c] / bound.allowedDamage());
      if (isSecond) {
        result.remarks.back().second += std::string("; ") + text;
        continue;
      }
      const auto [first, second] = assignment.candidates[half.entry];
      std::string cost;
      if (model.times())
        cost = timeText(1e-9 * own.encoded[first * candidates.size() + second]) + " in place of " +
               timeText(own.plain * 1e-9) + ", ";
      result.remarks.emplace_back(
          entry.identity, entry.str() + " under " + bound.str() + ", " + cost +
                              std::to_string(one.bytesSent(entry.reduce, entry.gather)) + " of " +
                              std::to_string(one.bytesSent(std::nullopt, std::nullopt)) +
                              " bytes; " + text);
    }
    if (model.times()) {
      double plain = 0;
      for (const AssignmentProblem::Collective &own : costs)
        plain += own.plain;
      result.seconds = assignment.cost * 1e-9;
      result.plainSeconds = plain * 1e-9;
    }
    return result;
  }

  TableModel &model;
  Evaluation &evaluation;
  const BudgetOptions &options;
  const MetricBound &bound;
  std::vector<Encoding> candidates;
  Metric probe;
  llvm::function_ref<void(const std::string &)> progress;
  std::vector<Half> halves;
  std::vector<AssignmentProblem::Collective> costs; ///< without damages
};

} // namespace

std::vector<Encoding> defaultCandidates() {
  std::vector<Encoding> candidates;
  auto add = [&](int64_t bits, bool spikes, int64_t rotation) {
    Encoding encoding;
    encoding.form = Encoding::Form::zeroPoint;
    encoding.bits = bits;
    encoding.spikes = spikes;
    encoding.rotation = rotation;
    candidates.push_back(encoding);
  };
  for (int64_t bits : {8, 7, 6, 5, 4})
    add(bits, false, 0);
  for (int64_t bits : {6, 5, 4, 3})
    add(bits, true, 0);
  for (int64_t bits : {6, 5, 4})
    add(bits, false, 64);
  return candidates;
}

Result<BudgetChoice> chooseEncodings(TableModel &model, Evaluation &evaluation,
                                     const BudgetOptions &options,
                                     llvm::function_ref<void(const std::string &)> progress) {
  return Search(model, evaluation, options, progress).run();
}

} // namespace braid
