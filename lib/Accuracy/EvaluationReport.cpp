//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Accuracy/EvaluationReport.h"

#include "braid/Accuracy/Chart.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace braid {

namespace {

/// In the order in which keys first occur.
template <typename Key, typename Value>
using Ordered = llvm::MapVector<Key, Value, std::map<Key, unsigned>>;

std::string number(double value, const char *format) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Lines of cells, each column as wide as its widest cell; the first is left-aligned.
std::string tableText(const std::vector<std::vector<std::string>> &lines) {
  std::vector<size_t> widths;
  for (const auto &line : lines)
    for (auto [i, cell] : llvm::enumerate(line)) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], cell.size());
    }
  std::string text;
  for (const auto &line : lines) {
    for (auto [i, cell] : llvm::enumerate(line)) {
      const std::string space(widths[i] - cell.size(), ' ');
      text += i == 0 ? cell + space : "  " + space + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

/// "mlp.down" of "@main/@layer#3/mlp.down", and the calls before it.
std::pair<std::string, std::string> split(llvm::StringRef identity) {
  llvm::StringRef rest = identity;
  while (rest.starts_with("@") && rest.contains('/'))
    rest = rest.split('/').second;
  return {identity.drop_back(rest.size()).rtrim('/').str(), rest.str()};
}

llvm::json::Value jsonNumber(double value) {
  return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
}

double meanDifference(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(a[i] - b[i]);
  return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

/// The places of collectives' layers along an axis: the calls, numbered as they first occur.
class Layers {
public:
  explicit Layers(const std::vector<EncodedCollective> &collectives) {
    for (const EncodedCollective &one : collectives)
      places.insert({split(one.identity).first, places.size()});
  }
  double of(llvm::StringRef identity) const {
    auto found = places.find(split(identity).first);
    return found == places.end() ? 0 : static_cast<double>(found->second);
  }

private:
  Ordered<std::string, size_t> places;
};

/// A name that fits into a table or chart: "list 2" stands for a long one, the second row's.
std::string shortName(const std::vector<EvaluatedRow> &rows, size_t row) {
  constexpr size_t kMost = 40;
  const std::string &name = rows[row].name;
  return name.size() <= kMost ? name : "list " + std::to_string(row + 1);
}

/// The encoding of both halves without its group, and the group; 0 if it has none.
std::pair<std::string, int64_t> withoutGroup(const EvaluatedRow &row) {
  if (row.table.entries.empty() || row.name.find('=') != std::string::npos)
    return {"", 0};
  const auto &first = row.table.entries.front();
  if (!first.reduce || !first.gather || *first.reduce != *first.gather)
    return {"", 0};
  std::string name = first.reduce->str();
  const std::string group = ":" + std::to_string(first.reduce->group);
  const size_t at = name.find(group);
  if (at == std::string::npos)
    return {"", 0};
  return {name.erase(at, group.size()), first.reduce->group};
}

} // namespace

double rankCorrelation(const std::vector<double> &a, const std::vector<double> &b) {
  auto ranksOf = [](const std::vector<double> &values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](size_t i, size_t j) { return values[i] < values[j]; });
    std::vector<double> ranks(values.size());
    for (size_t i = 0; i < order.size();) {
      size_t end = i;
      while (end < order.size() && values[order[end]] == values[order[i]])
        ++end;
      for (size_t j = i; j < end; ++j)
        ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
      i = end;
    }
    return ranks;
  };
  const std::vector<double> x = ranksOf(a), y = ranksOf(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xx = 0, yy = 0, xy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
    xy += (x[i] - mean) * (y[i] - mean);
  }
  return xx == 0 || yy == 0 ? 0 : xy / std::sqrt(xx * yy);
}

std::string EvaluationReport::text() const {
  const bool isLogits = form == ResultForm::logits, isSentences = form == ResultForm::sentences;
  const char *what = isLogits ? "tokens" : isSentences ? "sentences" : "rows";
  std::string text =
      llvm::formatv("{0} on {1}, {2}: {3} {4} in {5} batches{6}\n", model, mesh, data, rows, what,
                    batches,
                    leftOver == 0 ? "" : ", " + std::to_string(leftOver) + " sequences left over")
          .str();
  text += llvm::formatv("without encodings a rank sends {0} bytes a run{1}\n", plainBytes,
                        hasLabels ? ", perplexity " + number(plainPerplexity, "%.4f") : "")
              .str();
  for (auto [i, row] : llvm::enumerate(encodings))
    if (const std::string name = shortName(encodings, i); name != row.name)
      text += name + ": " + row.name + "\n";
  text += "\n";
  std::vector<std::vector<std::string>> lines(1);
  std::vector<std::string> &head = lines[0];
  head = {"encodings",
          "bytes",
          "of f32",
          std::string("bytes a ") + (isLogits ? "token" : isSentences ? "sentence" : "row"),
          "cosine",
          "lowest",
          "95%",
          "relative L2"};
  if (isLogits)
    head.emplace_back("KL");
  if (hasLabels)
    head.insert(head.end(), {"perplexity", "change"});
  if (isSentences)
    head.insert(head.end(), {scores.empty() ? "rank correlation" : "Spearman", "|similarity|"});
  for (auto [i, row] : llvm::enumerate(encodings)) {
    const RowErrors &all = row.evaluated.all;
    std::vector<double> cosines;
    for (const RowErrors &batch : row.evaluated.batches)
      cosines.push_back(batch.cosine());
    std::vector<std::string> line = {
        shortName(encodings, i),
        std::to_string(bytes(row)),
        number(static_cast<double>(bytes(row)) / static_cast<double>(plainBytes), "%.4f"),
        number(static_cast<double>(bytes(row)) / static_cast<double>(rowsPerRun()), "%.1f"),
        number(all.cosine(), "%.6f"),
        number(all.lowestCosine, "%.6f"),
        number(quantile(cosines, 0.05), "%.6f"),
        number(all.relativeL2(), "%.3e")};
    if (isLogits)
      line.push_back(number(all.kl(), "%.3e"));
    if (hasLabels)
      line.insert(line.end(), {number(all.perplexity(), "%.4f"),
                               number(all.perplexityIncrease() * 100, "%+.2f%%")});
    if (isSentences)
      line.insert(line.end(),
                  {number(rankCorrelation(row.evaluated.similarities,
                                          scores.empty() ? plainSimilarities : scores),
                          "%.4f"),
                   number(meanDifference(row.evaluated.similarities, plainSimilarities), "%.2e")});
    lines.push_back(std::move(line));
  }
  text += tableText(lines);

  // Relative L2 by role and half, the mean and the largest over the calls.
  lines = {{"\nerror of collectives", "half", "mean", "largest", "in"}};
  for (auto [i, row] : llvm::enumerate(encodings)) {
    if (llvm::none_of(row.table.entries,
                      [](const auto &entry) { return entry.reduce || entry.gather; }))
      continue;
    struct Sum {
      double sum = 0, most = -1;
      int64_t count = 0;
      std::string where;
    };
    Ordered<std::pair<std::string, bool>, Sum> sums;
    for (const HalfError &error : row.evaluated.errors) {
      Sum &sum = sums[{split(error.identity).second, error.gather}];
      const double value = error.relativeL2();
      sum.sum += value;
      ++sum.count;
      if (value > sum.most) {
        sum.most = value;
        sum.where = split(error.identity).first;
      }
    }
    for (const auto &[key, sum] : sums)
      lines.push_back({shortName(encodings, i) + ": " + key.first, key.second ? "gather" : "reduce",
                       number(sum.sum / static_cast<double>(sum.count), "%.3e"),
                       number(sum.most, "%.3e"), sum.where});
  }
  if (lines.size() > 1)
    text += tableText(lines);

  if (!sensitivity.empty()) {
    text += llvm::formatv("\nencoded alone, on {0} batches\n", sensitivityBatches).str();
    lines = {{"collective", "half", "encoding", "cosine", "relative L2"}};
    if (isLogits)
      lines[0].emplace_back("KL");
    for (const SensitivityRow &row : sensitivity) {
      lines.push_back({row.identity, row.gather ? "gather" : "reduce", row.encoding,
                       number(row.errors.cosine(), "%.6f"),
                       number(row.errors.relativeL2(), "%.3e")});
      if (isLogits)
        lines.back().push_back(number(row.errors.kl(), "%.3e"));
    }
    text += tableText(lines);
  }
  return text;
}

static llvm::json::Object errorsJson(const RowErrors &errors, bool isLogits, bool hasLabels) {
  llvm::json::Object object{{"cosine_mean", jsonNumber(errors.cosine())},
                            {"cosine_lowest", jsonNumber(errors.lowestCosine)},
                            {"relative_l2", jsonNumber(errors.relativeL2())}};
  if (isLogits)
    object["kl"] = jsonNumber(errors.kl());
  if (hasLabels) {
    object["perplexity"] = jsonNumber(errors.perplexity());
    object["perplexity_increase"] = jsonNumber(errors.perplexityIncrease());
  }
  return object;
}

llvm::json::Value EvaluationReport::json() const {
  const bool isLogits = form == ResultForm::logits, isSentences = form == ResultForm::sentences;
  llvm::json::Array list;
  for (const EvaluatedRow &row : encodings) {
    llvm::json::Object one = errorsJson(row.evaluated.all, isLogits, hasLabels);
    one["encodings"] = row.name;
    one["bytes_sent_per_rank"] = bytes(row);
    one["bytes_of_f32"] = static_cast<double>(bytes(row)) / static_cast<double>(plainBytes);
    llvm::json::Array batchList, collectiveList;
    for (const RowErrors &batch : row.evaluated.batches)
      batchList.push_back(errorsJson(batch, isLogits, hasLabels));
    one["batches"] = std::move(batchList);
    for (const HalfError &error : row.evaluated.errors)
      collectiveList.push_back(llvm::json::Object{{"identity", error.identity},
                                                  {"half", error.gather ? "gather" : "reduce"},
                                                  {"relative_l2", jsonNumber(error.relativeL2())}});
    one["collectives"] = std::move(collectiveList);
    if (isSentences) {
      one["rank_correlation"] =
          rankCorrelation(row.evaluated.similarities, scores.empty() ? plainSimilarities : scores);
      one["similarity_difference"] = meanDifference(row.evaluated.similarities, plainSimilarities);
    }
    list.push_back(std::move(one));
  }
  llvm::json::Array alone;
  for (const SensitivityRow &row : sensitivity) {
    llvm::json::Object one = errorsJson(row.errors, isLogits, hasLabels);
    one["identity"] = row.identity;
    one["half"] = row.gather ? "gather" : "reduce";
    one["encoding"] = row.encoding;
    alone.push_back(std::move(one));
  }
  llvm::json::Object report{{"model", model},
                            {"mesh", mesh},
                            {"data", data},
                            {"batches", batches},
                            {"sequences", sequences},
                            {"rows", rows},
                            {"bytes_sent_per_rank", plainBytes},
                            {"encodings", std::move(list)},
                            {"sensitivity_batches", sensitivityBatches},
                            {"sensitivity", std::move(alone)}};
  if (hasLabels)
    report["perplexity"] = plainPerplexity;
  return report;
}

std::vector<std::pair<std::string, std::string>> EvaluationReport::charts() const {
  std::vector<std::pair<std::string, std::string>> charts;
  auto damageOf = [&](const RowErrors &errors) {
    return hasLabels ? errors.perplexityIncrease() * 100 : 1 - errors.cosine();
  };
  const char *damage = hasLabels ? "increase of perplexity (%)" : "1 - mean cosine";

  Chart cost;
  cost.title = model + " on " + mesh + ": what encodings send and lose";
  cost.x = "bytes sent, of f32";
  cost.y = damage;
  cost.lines = false;
  for (auto [i, row] : llvm::enumerate(encodings)) {
    Chart::Series &series = cost.series.emplace_back();
    series.name = shortName(encodings, i);
    series.points = {{static_cast<double>(bytes(row)) / static_cast<double>(plainBytes),
                      damageOf(row.evaluated.all)}};
  }
  charts.emplace_back("encodings.svg", cost.svg());

  // The error of each layer's collectives, by role and half.
  const Layers layers(collectives);
  for (auto [number, row] : llvm::enumerate(encodings)) {
    Chart chart;
    chart.title =
        model + " on " + mesh + ": error of each collective as " + shortName(encodings, number);
    chart.x = "layer, in order of calls";
    chart.y = "relative L2 error";
    Ordered<std::pair<std::string, bool>, Chart::Series> series;
    for (const HalfError &error : row.evaluated.errors) {
      const std::string role = split(error.identity).second;
      Chart::Series &one = series[{role, error.gather}];
      one.name = role + (error.gather ? ", gather" : ", reduce");
      one.points.emplace_back(layers.of(error.identity), error.relativeL2());
    }
    for (auto &[key, one] : series)
      chart.series.push_back(std::move(one));
    charts.emplace_back("collectives-" + std::to_string(number) + ".svg", chart.svg());
  }

  if (!sensitivity.empty()) {
    Chart chart;
    chart.title = model + " on " + mesh + ": one half of one collective encoded alone";
    chart.x = "layer, in order of calls";
    chart.y = form == ResultForm::logits ? "KL of logits (nats)" : "1 - mean cosine";
    Ordered<std::string, Chart::Series> series;
    for (const SensitivityRow &row : sensitivity) {
      std::string name = split(row.identity).second + (row.gather ? ", gather" : ", reduce");
      Chart::Series &one = series[name + " " + row.encoding];
      one.name = name;
      one.points.emplace_back(layers.of(row.identity), form == ResultForm::logits
                                                           ? row.errors.kl()
                                                           : 1 - row.errors.cosine());
    }
    for (auto &[key, one] : series)
      chart.series.push_back(std::move(one));
    charts.emplace_back("sensitivity.svg", chart.svg());
  }

  Ordered<std::string, Chart::Series> groups;
  for (const EvaluatedRow &row : encodings)
    if (auto [name, group] = withoutGroup(row); group != 0) {
      Chart::Series &one = groups[name];
      one.name = name;
      one.points.emplace_back(static_cast<double>(group), damageOf(row.evaluated.all));
    }
  Chart byGroup;
  byGroup.title = model + " on " + mesh + ": by group size";
  byGroup.x = "elements of a group";
  byGroup.y = damage;
  byGroup.logX = true;
  for (auto &[name, one] : groups)
    if (one.points.size() > 1) {
      std::sort(one.points.begin(), one.points.end());
      byGroup.series.push_back(one);
    }
  if (!byGroup.series.empty())
    charts.emplace_back("groups.svg", byGroup.svg());
  return charts;
}

} // namespace braid
