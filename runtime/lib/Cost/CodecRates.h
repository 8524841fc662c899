//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of encode, decode and decode_sum from those of the encodings that were measured.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_CODECRATES_H
#define BRAID_COST_CODECRATES_H

#include "Interpolation.h"
#include "braid/Base/LibraryKernels.h"
#include "braid/Cost/Machine.h"

#include <map>

namespace braid::cost {

/// An encoding that was not measured takes what the most similar one takes, of the same codes
/// without options, and besides what measured encodings tell of the difference:
///   groups     the seconds of a group, from two measured encodings that differ in groups alone
///   +spikes    the seconds of an element that it takes longer, from one with and one without
///   +hadamardR the same, whatever R is
/// Forms of integers and types of scales make no difference where they were not measured.
class CodecRates {
public:
  explicit CodecRates(const std::vector<CodecPoint> &points);

  static bool isCodec(const runtime::LibraryCall &call);
  /// On one core. Errors name the encoding that the machine file does not tell of.
  Result<double> seconds(const runtime::LibraryCall &call) const;
  /// Of the arithmetic: as if all operands were in the nearest cache.
  Result<double> secondsInCache(const runtime::LibraryCall &call) const;
  /// Whether a tensor has more elements than were measured.
  bool isBeyond(double elements) const { return elements > mostElements; }
  /// Of a call's tensor.
  static double elementsOf(const runtime::LibraryCall &call);

private:
  /// Seconds of an element by elements: to encode, to decode, to add one more payload.
  enum Work { encode, decode, add };
  struct Measured {
    runtime::Encoding encoding;
    RateGrid<1> rates[3];
  };

  /// Of a whole call, with the rates at a number of elements.
  Result<double> seconds(const runtime::LibraryCall &call, double atElements) const;
  /// Of one element.
  Result<double> secondsOf(const runtime::Encoding &encoding, Work work, double atElements) const;
  const Measured *find(const runtime::Encoding &encoding) const;
  const Measured *similar(const runtime::Encoding &encoding) const;
  static double secondsOf(const Measured &measured, Work work, double atElements) {
    return 1 / measured.rates[work].rate({atElements});
  }
  /// What an element takes longer with `changed` than with the same encoding after `undo`, from the
  /// first measured encodings that tell it.
  template <typename Has, typename Undo>
  std::optional<double> difference(Work work, double atElements, const Has &has,
                                   const Undo &undo) const;
  /// Of a group.
  std::optional<double> secondsOfGroup(Work work, double atElements) const;

  std::vector<Measured> measured;
  double mostElements = 0;
};

} // namespace braid::cost
#endif // BRAID_COST_CODECRATES_H
