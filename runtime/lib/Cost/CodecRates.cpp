//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CodecRates.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

namespace braid::cost {

using runtime::Encoding;
using runtime::inQuotes;
using runtime::LibraryCall;

CodecRates::CodecRates(const std::vector<CodecPoint> &points) {
  std::map<std::string, std::vector<std::pair<std::array<int64_t, 1>, double>>> tables[3];
  for (const CodecPoint &point : points) {
    tables[encode][point.encoding].push_back({{point.elements}, point.encodeElementsPerSecond});
    tables[decode][point.encoding].push_back({{point.elements}, point.decodeElementsPerSecond});
    tables[add][point.encoding].push_back({{point.elements}, point.addElementsPerSecond});
    mostElements = std::max(mostElements, static_cast<double>(point.elements));
  }
  for (const auto &[name, rates] : tables[encode])
    if (const Result<Encoding> encoding = Encoding::parse(name); encoding.ok())
      measured.push_back({*encoding,
                          {RateGrid<1>(rates), RateGrid<1>(tables[decode][name]),
                           RateGrid<1>(tables[add][name])}});
}

bool CodecRates::isCodec(const LibraryCall &call) {
  return std::strcmp(call.kernel->name, "encode") == 0 ||
         std::strcmp(call.kernel->name, "decode") == 0 ||
         std::strcmp(call.kernel->name, "decode_sum") == 0;
}

double CodecRates::elementsOf(const LibraryCall &call) {
  double elements = 1;
  for (int64_t size : call[runtime::codecRows(call)].shape)
    elements *= static_cast<double>(size);
  return elements;
}

Result<double> CodecRates::seconds(const LibraryCall &call) const {
  return seconds(call, elementsOf(call));
}

Result<double> CodecRates::secondsInCache(const LibraryCall &call) const {
  return seconds(call, 1); // less than was measured: the rate of the least
}

Result<double> CodecRates::seconds(const LibraryCall &call, double atElements) const {
  ASSIGN_OR_RETURN(const Encoding encoding,
                   Encoding::fromCode(static_cast<uint32_t>(call.integers[0])));
  const double elements = elementsOf(call);
  if (std::strcmp(call.kernel->name, "encode") == 0) {
    ASSIGN_OR_RETURN(const double each, secondsOf(encoding, encode, atElements));
    return elements * each * runtime::encodedShare(call);
  }
  ASSIGN_OR_RETURN(const double each, secondsOf(encoding, decode, atElements));
  if (std::strcmp(call.kernel->name, "decode") == 0)
    return elements * each;
  ASSIGN_OR_RETURN(const double more, secondsOf(encoding, add, atElements));
  return elements * (each + static_cast<double>(call.integers[2] - 1) * more);
}

const CodecRates::Measured *CodecRates::find(const Encoding &encoding) const {
  for (const Measured &one : measured)
    if (one.encoding == encoding)
      return &one;
  return nullptr;
}

/// By how much the sizes of groups differ, as the logarithm of a factor.
static double groupRatio(const Encoding &a, const Encoding &b) {
  return a.isCast() ? 0
                    : std::abs(std::log(static_cast<double>(a.group)) -
                               std::log(static_cast<double>(b.group)));
}

const CodecRates::Measured *CodecRates::similar(const Encoding &encoding) const {
  const Measured *best = nullptr;
  // The two scales of nvfp4 take more than groups tell.
  auto isScaledTwice = [](const Encoding &e) { return e.scale == Encoding::Scale::nvfp4; };
  auto distance = [&](const Encoding &other) {
    return std::tuple(isScaledTwice(other) != isScaledTwice(encoding),
                      other.scale != encoding.scale, other.form != encoding.form,
                      groupRatio(other, encoding));
  };
  for (const Measured &one : measured) {
    const Encoding &e = one.encoding;
    if (e.element == encoding.element && e.bits == encoding.bits && e.rotation == 0 && !e.spikes &&
        (!best || distance(e) < distance(best->encoding)))
      best = &one;
  }
  return best;
}

template <typename Has, typename Undo>
std::optional<double> CodecRates::difference(Work work, double atElements, const Has &has,
                                             const Undo &undo) const {
  for (const Measured &with : measured) {
    if (!has(with.encoding))
      continue;
    Encoding plain = with.encoding;
    undo(plain);
    if (const Measured *without = find(plain))
      return secondsOf(with, work, atElements) - secondsOf(*without, work, atElements);
  }
  return std::nullopt;
}

std::optional<double> CodecRates::secondsOfGroup(Work work, double atElements) const {
  std::optional<double> seconds;
  double most = 0; // groups of an element by which two encodings differ
  for (const Measured &small : measured)
    for (const Measured &large : measured) {
      Encoding other = small.encoding;
      other.group = large.encoding.group;
      if (other.isCast() || other != large.encoding)
        continue;
      const double groups =
          1 / static_cast<double>(small.encoding.group) - 1 / static_cast<double>(other.group);
      if (groups <= most)
        continue;
      most = groups;
      seconds = (secondsOf(small, work, atElements) - secondsOf(large, work, atElements)) / groups;
    }
  return seconds;
}

Result<double> CodecRates::secondsOf(const Encoding &encoding, Work work, double atElements) const {
  if (measured.empty())
    return Status::error("the machine file has no rates of codecs");
  if (const Measured *exact = find(encoding))
    return secondsOf(*exact, work, atElements);
  const Measured *base = similar(encoding);
  auto lacks = [&](const std::string &what) {
    return Status::error("the machine file does not tell what ", inQuotes(encoding.str()),
                         " takes: it has no rates of ", what);
  };
  if (!base)
    return lacks("such codes");
  double seconds = secondsOf(*base, work, atElements);
  // Differences that were measured may be less than noise.
  if (encoding.group != base->encoding.group) {
    const std::optional<double> ofGroup = secondsOfGroup(work, atElements);
    if (!ofGroup)
      return lacks("an encoding in groups of two sizes");
    const double groups =
        1 / static_cast<double>(encoding.group) - 1 / static_cast<double>(base->encoding.group);
    // Of larger groups, what remains is no less than the half.
    seconds = std::max(seconds + std::max(*ofGroup, 0.0) * groups, seconds / 2);
  }
  if (encoding.rotation != 0) {
    const std::optional<double> more = difference(
        work, atElements, [](const Encoding &e) { return e.rotation != 0; },
        [](Encoding &e) { e.rotation = 0; });
    if (!more)
      return lacks("an encoding with and without a rotation");
    seconds += std::max(*more, 0.0);
  }
  if (encoding.spikes) {
    const std::optional<double> more = difference(
        work, atElements, [](const Encoding &e) { return e.spikes; },
        [](Encoding &e) { e.spikes = false; });
    if (!more)
      return lacks("an encoding with and without spikes");
    seconds += std::max(*more, 0.0);
  }
  return seconds;
}

} // namespace braid::cost
