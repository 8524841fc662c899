//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The time of a collective as it is, and of what braid-expand-encoded makes of it with an encoding:
// codecs (braid/Base/Encoding.h), and exchanges of their payloads.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_ENCODEDTIME_H
#define BRAID_COST_ENCODEDTIME_H

#include "braid/Cost/EncodedChunks.h"
#include "braid/Cost/OperationTime.h"
#include "braid/Cost/ScheduleChoice.h"

#include <tuple>

namespace braid::cost {

/// A collective of a group of ranks.
struct EncodableCollective {
  struct Value {
    runtime::DType type = runtime::DType::f32;
    std::vector<int64_t> shape; ///< of a rank's input

    bool operator==(const Value &other) const { return type == other.type && shape == other.shape; }
  };
  runtime::CollectiveKind kind = runtime::CollectiveKind::allReduce;
  std::vector<Value> values; ///< of an all_to_all_v without the counts
  /// The dimension that is divided, joined, or, of an all_to_all, divided; and the one joined then.
  int64_t dim = 0, concatDim = 0;
  int64_t ranks = 1;
  int64_t root = 0;                               ///< as in ScheduleRequest
  std::vector<std::pair<int64_t, int64_t>> pairs; ///< as in ScheduleRequest
  runtime::Topology topology;
  int64_t groupsOfHost = 1; ///< that share the links of a host at the same time

  bool operator==(const EncodableCollective &other) const {
    const auto tied = [](const EncodableCollective &c) {
      return std::tie(c.kind, c.values, c.dim, c.concatDim, c.ranks, c.root, c.pairs, c.topology,
                      c.groupsOfHost);
    };
    return tied(*this) == tied(other);
  }
};

/// What a rank does in place of a collective: its codecs, and the exchanges, whose schedules are
/// not chosen yet.
struct EncodedSteps {
  std::vector<runtime::LibraryCall> codecs;
  std::vector<runtime::ScheduleRequest> exchanges;
  int64_t chunks = 1;
  int64_t payloadBytes = 0; ///< that a rank gives to exchanges
};
Result<EncodedSteps> encodedSteps(const EncodableCollective &collective,
                                  const runtime::EncodingPair &encodings,
                                  const EncodedChunks &chunks = {});

struct EncodedTime {
  double seconds = 0;
  double codecSeconds = 0, exchangeSeconds = 0; ///< one after the other
  int64_t chunks = 1, payloadBytes = 0;
};

/// The time that codecs and exchanges take together in chunks: those of the first chunk's codecs
/// and of one chunk's exchanges go by alone, the rest at the same time, in which each of them takes
/// as many times as long as it is slowed down by the other. Never longer than one after the other.
double overlapped(double codecSeconds, double exchangeSeconds, int64_t chunks,
                  double codecSlowdown = 1, double exchangeSlowdown = 1);

/// Times of collectives on a machine, with the schedules that a run on it chooses
/// (ScheduleChooser), events between queues included, computation beside them not.
class EncodedTimes {
public:
  /// Ranks have `threads` threads, and a host runs `ranksOfHost` of them.
  EncodedTimes(std::shared_ptr<const Machine> machine, std::string transport, int64_t ranksOfHost,
               int64_t threads = 1);

  /// As it is.
  Result<double> plain(const EncodableCollective &collective) const;
  Result<EncodedTime> encoded(const EncodableCollective &collective,
                              const runtime::EncodingPair &encodings,
                              const EncodedChunks &chunks = {}) const;

  /// Whether to encode: the prediction is less by more than predictions are off.
  static bool isWorthwhile(double plainSeconds, double encodedSeconds) {
    return encodedSeconds <= (1 - kWorthwhile) * plainSeconds;
  }

private:
  /// Whether the payloads of such an exchange are decoded in the memory of their senders.
  bool readsInPlace(runtime::CollectiveKind kind) const;
  /// `bytesOfAll`: that a rank sends in all exchanges of the collective.
  Result<double> ofExchange(runtime::ScheduleRequest request, double bytesOfAll,
                            int64_t groupsOfHost) const;

  const std::shared_ptr<const Machine> machine;
  const std::string transport;
  const OperationTimes operations;
  double eventSeconds = 0, codecSlowdown = 1, exchangeSlowdown = 1;
  /// The machine with the part of a host's links that each of some groups has, and its schedules.
  struct Shared {
    std::shared_ptr<const Machine> machine;
    std::unique_ptr<ScheduleChooser> chooser;
  };
  mutable std::map<int64_t, Shared> shares; ///< by the number of groups
};

} // namespace braid::cost
#endif // BRAID_COST_ENCODEDTIME_H
