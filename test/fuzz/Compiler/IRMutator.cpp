//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "IRMutator.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

namespace braid::fuzz {

namespace {

using Lines = std::vector<std::string>;

/// Every pass and pipeline, with the options that matter. A pass that needs another comes after it.
constexpr const char *kPipelines[] = {
    "canonicalize",
    "cse",
    "braid-apply-strategy{mesh=tp=2 strategy=tp}",
    "braid-apply-strategy{mesh=tp=2 strategy=tp-sp}",
    "braid-apply-strategy{mesh=dp=2,tp=2 strategy=dp,vocab}",
    "braid-convert-tensor-parts",
    "braid-pad-for-strategy{mesh=tp=4 strategy=tp}",
    "braid-pad-for-strategy{mesh=dp=3,tp=3 strategy=tp-sp,dp}",
    "braid-propagate-shardings",
    "braid-propagate-shardings,braid-partition",
    "braid-partition",
    "braid-propagate-shardings,braid-store-parameters{strategy=fsdp},braid-partition",
    "braid-split-all-reduce",
    "braid-join-all-reduce",
    "braid-sink-all-gathers",
    "braid-hoist-all-gathers",
    "braid-fuse-reduce-scatter",
    "braid-unfuse-reduce-scatter",
    "braid-merge-collectives",
    "braid-unmerge-collectives",
    "braid-remove-dead-collectives",
    "braid-identify-collectives",
    "braid-specialize{calls=@main/@*}",
    ("braid-split-all-reduce,braid-sink-all-gathers,braid-merge-collectives,"
     "braid-identify-collectives"),
    "braid-start-collectives",
    "braid-verify-level{level=comm}",
    "braid-verify-level{level=rt}",
    "func.func(braid-decompose-nn)",
    "braid-form-kernels",
    "braid-form-kernels{fuse=false}",
    "braid-form-kernels,braid-start-collectives",
    "braid-form-kernels,braid-start-collectives,braid-lower-to-rt",
    "braid-lower-to-rt",
    "braid-lower-to-rt,braid-assign-buffers",
    "braid-assign-buffers",
    "braid-assign-buffers{in-place=false}",
    "braid-verify-buffers",
    "braid-cpu-lower-kernels",
    "braid-cpu-lower-kernels{vector-width=4 accumulators=1}",
    "braid-cpu-approximate-math",
    "braid-cpu-kernel-abi",
    "braid-cpu-pipeline",
    "braid-pipeline{mesh=tp=2 strategy=tp stop-after=rt}",
    "braid-pipeline{mesh=dp=2 stop-after=scheduled}",
    "braid-pipeline{mesh=dp=2 strategy=dp,fsdp stop-after=rt}",
    "braid-pipeline{mesh=tp=3 strategy=tp-sp stop-after=kernels}",
};

Lines linesOf(const std::string &text) {
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}
std::string join(const Lines &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + '\n';
  return text;
}

struct Word {
  size_t begin, end;
};
std::vector<Word> wordsOf(const std::string &line) {
  auto inside = [&](size_t i) {
    return std::isalnum(static_cast<unsigned char>(line[i])) || std::strchr("_.%@#!^$", line[i]);
  };
  std::vector<Word> words;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ')
      continue;
    size_t end = i;
    while (end < line.size() && line[end] != '\0' && inside(end))
      ++end;
    words.push_back({i, std::max(end, i + 1)});
    i = words.back().end - 1;
  }
  return words;
}

/// The class of a word: value, symbol, attribute, type, number or other. Words of one class are
/// interchangeable.
char kindOf(const std::string &line, const Word &word) {
  const char first = line[word.begin];
  if (std::isdigit(static_cast<unsigned char>(first)))
    return '0';
  return std::isalpha(static_cast<unsigned char>(first)) ? 'a' : first;
}

void changeNumber(std::string &line, Random &random) {
  std::vector<Word> numbers;
  for (size_t i = 0; i < line.size(); ++i) {
    size_t end = i;
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])))
      ++end;
    if (end > i)
      numbers.push_back({i, end});
    i = std::max(i, end);
  }
  if (numbers.empty())
    return;
  static const char *const values[] = {
      "0", "1",  "2",  "3",  "4",  "5",  "6",  "7",   "8",          "9",
      "?", "12", "16", "24", "32", "64", "-1", "256", "4294967296", "9223372036854775807"};
  const Word number = random.of(numbers);
  line.replace(number.begin, number.end - number.begin, random.of(values));
}

void changeWord(Lines &lines, std::string &line, Random &random) {
  std::vector<Word> words = wordsOf(line);
  if (words.empty())
    return;
  const Word word = random.of(words);
  const size_t size = word.end - word.begin;
  if (random.oneIn(6)) {
    line.erase(word.begin, size);
    return;
  }
  for (int attempt = 0; attempt < 8; ++attempt) {
    const std::string source = random.of(lines);
    std::vector<Word> others = wordsOf(source);
    others.erase(std::remove_if(others.begin(), others.end(),
                                [&](const Word &other) {
                                  return kindOf(source, other) != kindOf(line, word);
                                }),
                 others.end());
    if (others.empty())
      continue;
    const Word other = random.of(others);
    line.replace(word.begin, size, source.substr(other.begin, other.end - other.begin));
    return;
  }
}

/// Replaces one name or number everywhere in the text, so that definitions and uses still agree.
void changeEverywhere(Lines &lines, Random &random) {
  const std::string &source = random.of(lines), &target = random.of(lines);
  std::vector<Word> from = wordsOf(source), to = wordsOf(target);
  if (from.empty() || to.empty())
    return;
  const Word a = random.of(from), b = random.of(to);
  if (kindOf(source, a) != kindOf(target, b))
    return;
  const std::string before = source.substr(a.begin, a.end - a.begin),
                    after = target.substr(b.begin, b.end - b.begin);
  for (std::string &line : lines) {
    std::vector<Word> words = wordsOf(line);
    for (size_t i = words.size(); i-- > 0;)
      if (line.compare(words[i].begin, words[i].end - words[i].begin, before) == 0)
        line.replace(words[i].begin, words[i].end - words[i].begin, after);
  }
}

/// Replaces one extent in every shape of the text.
void changeExtent(Lines &lines, Random &random) {
  const std::string extents[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "?"};
  const std::string from = random.of(extents) + "x", to = random.of(extents) + "x";
  for (std::string &line : lines)
    for (size_t at = line.find(from); at != std::string::npos; at = line.find(from, at + 1))
      if (at > 0 && (line[at - 1] == '<' || line[at - 1] == 'x'))
        line.replace(at, from.size(), to);
}

void change(Lines &lines, Random &random) {
  const auto at = [&](size_t i) { return lines.begin() + static_cast<std::ptrdiff_t>(i); };
  const size_t i = random.below(lines.size());
  switch (random.below(12)) {
  case 0:
    lines.erase(at(i));
    return;
  case 1:
    lines.insert(at(i), std::string(random.of(lines)));
    return;
  case 2:
    std::swap(lines[i], random.of(lines));
    return;
  case 3: {
    std::string moved = lines[i];
    lines.erase(at(i));
    lines.insert(at(random.below(lines.size() + 1)), moved);
    return;
  }
  case 4:
    return changeEverywhere(lines, random);
  case 5:
    return changeExtent(lines, random);
  case 6:
    lines[i] = mutateText(lines[i], lines[i].size() + 16);
    return;
  case 7:
  case 8:
  case 9:
    return changeNumber(lines[i], random);
  default:
    return changeWord(lines, lines[i], random);
  }
}

/// Removes and returns the pipeline of an input's first line; the module's lines remain.
std::string takePipeline(Lines &lines, Random &random) {
  const std::string prefix = kPipelinePrefix;
  std::string pipeline = prefix + random.of(kPipelines);
  if (!lines.empty() && lines[0].compare(0, prefix.size(), prefix) == 0) {
    if (!random.oneIn(6))
      pipeline = lines[0];
    lines.erase(lines.begin());
    if (random.oneIn(30))
      changeNumber(pipeline, random);
  }
  return pipeline;
}

} // namespace

std::string mutateIR(const std::string &text, Random &random) {
  Lines lines = linesOf(text);
  std::string pipeline = takePipeline(lines, random);
  for (size_t changes = random.below(4); changes-- > 0 && !lines.empty();)
    change(lines, random);
  return pipeline + '\n' + join(lines);
}

std::string crossIR(const std::string &first, const std::string &second, Random &random) {
  Lines lines = linesOf(first), others = linesOf(second);
  std::string pipeline = takePipeline(lines, random);
  if (!others.empty()) {
    const size_t begin = random.below(others.size());
    const size_t count = std::min(others.size() - begin, 1 + random.below(6));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(random.below(lines.size() + 1)),
                 others.begin() + static_cast<std::ptrdiff_t>(begin),
                 others.begin() + static_cast<std::ptrdiff_t>(begin + count));
  }
  return pipeline + '\n' + join(lines);
}

} // namespace braid::fuzz
