//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/EncodedTime.h"

#include "Interpolation.h"
#include "braid/Base/Algorithm.h"
#include "braid/Base/RowPieces.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/LinkBurst.h"

#include <algorithm>

namespace braid::cost {

using runtime::CollectiveKind;
using runtime::DType;
using runtime::Encoding;
using runtime::EncodingPair;
using runtime::LibraryCall;
using runtime::OperandType;
using runtime::PayloadLayout;
using runtime::ScheduleRequest;
using runtime::ScheduleValue;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

int64_t product(const std::vector<int64_t> &sizes, size_t count) {
  int64_t result = 1;
  for (size_t i = 0; i < count; ++i)
    result *= sizes[i];
  return result;
}

/// A tensor as the codecs see it.
struct Matrix {
  int64_t rows, columns;
  static Matrix of(const std::vector<int64_t> &shape) {
    return {product(shape, shape.size() - 1), shape.back()};
  }
};

OperandType operand(DType type, int64_t rows, int64_t columns) {
  return {type, {rows, columns}, {columns, 1}};
}

ScheduleRequest exchangeOf(const EncodableCollective &c, CollectiveKind kind) {
  ScheduleRequest request;
  request.kind = kind;
  request.ranks = c.ranks;
  request.root = c.root;
  request.pairs = c.pairs;
  request.topology = c.topology;
  return request;
}

class Steps {
public:
  Steps(const EncodableCollective &c, const EncodingPair &encodings, const EncodedChunks &chunking)
      : c(c), encodings(encodings), chunking(chunking) {}

  Result<EncodedSteps> make() {
    if (c.kind == CollectiveKind::allReduce)
      RETURN_IF_ERROR(allReduce());
    else
      RETURN_IF_ERROR(oneHalf());
    return std::move(steps);
  }

private:
  Status allReduce() {
    const int64_t n = c.ranks;
    std::vector<Matrix> values;
    int64_t bytes = 0, mostRows = 1;
    for (const auto &value : c.values) {
      Matrix m = Matrix::of(value.shape);
      const int64_t pieces = runtime::rowPieces(encodings, m.rows, m.columns, n);
      m = {m.rows * pieces, m.columns / pieces};
      ASSIGN_OR_RETURN(const PayloadLayout reduce,
                       PayloadLayout::of(encodings.reduce, value.type, m.rows, m.columns, n));
      ASSIGN_OR_RETURN(const PayloadLayout gather,
                       PayloadLayout::of(encodings.gather, value.type, m.rows, m.columns, n));
      bytes += std::min(reduce.bytes, gather.bytes);
      mostRows = std::max(mostRows, (m.rows + n - 1) / n);
      values.push_back(m);
    }
    steps.chunks = chunking.count(bytes, n, mostRows);
    for (int64_t chunk = 0; chunk < steps.chunks; ++chunk) {
      ScheduleRequest toAll = exchangeOf(c, CollectiveKind::allToAll),
                      gather = exchangeOf(c, CollectiveKind::allGather);
      for (size_t i = 0; i < values.size(); ++i) {
        const int64_t rows = values[i].rows, columns = values[i].columns;
        // As many rows for every rank to add.
        const int64_t size = rowsOfChunk(rows, n, chunk, steps.chunks).size;
        const int64_t added = (size + n - 1) / n;
        if (size == 0)
          continue;
        const DType type = c.values[i].type;
        ASSIGN_OR_RETURN(const int64_t sent,
                         encode(encodings.reduce, type, size, columns, n, /*toOthers=*/true));
        toAll.values.push_back({sent / n, 1, false});
        RETURN_IF_ERROR(decode(encodings.reduce, type, DType::f32, added, columns, 1, n));
        ASSIGN_OR_RETURN(const int64_t sum,
                         encode(encodings.gather, DType::f32, added, columns, 1));
        gather.values.push_back({sum, 1, false});
        RETURN_IF_ERROR(decode(encodings.gather, DType::f32, type, size, columns, n, 0));
      }
      steps.exchanges.push_back(std::move(toAll));
      steps.exchanges.push_back(std::move(gather));
    }
    return {};
  }

  /// A value of which payloads are sent once.
  struct Value {
    DType type;
    Matrix matrix;
    int64_t parts;      ///< of the payload
    int64_t units;      ///< that it can be cut between
    bool unitsAreParts; ///< or are rows of every part
    /// Of a chunk of several, the codecs that encode it and that decode it: one, or one for the
    /// piece of each rank.
    int64_t encodes = 1, decodes = 1;
  };

  Value valueOf(const EncodableCollective::Value &input) const {
    const std::vector<int64_t> &shape = input.shape;
    const size_t last = shape.size() - 1;
    Value value{input.type, Matrix::of(shape), 1, 1, false};
    // Parts are the dimensions before `dim`, and pieces of that. Its rows are cut if it is the
    // last.
    auto cut = [&](int64_t dim, int64_t pieces) {
      value.parts = product(shape, static_cast<size_t>(dim)) * pieces;
      if (static_cast<size_t>(dim) == last)
        value.matrix = {value.matrix.rows * pieces, value.matrix.columns / pieces};
    };
    switch (c.kind) {
    case CollectiveKind::reduceScatter:
    case CollectiveKind::allGather: {
      const auto dim = static_cast<size_t>(c.dim);
      const int64_t pieces = c.kind == CollectiveKind::reduceScatter ? c.ranks : 1;
      cut(c.dim, pieces);
      value.unitsAreParts = dim == last;
      value.units = dim < last ? shape[dim] / pieces : last > 0 ? shape[0] : 1;
      if (dim < last && product(shape, dim) == 1)
        (pieces > 1 ? value.encodes : value.decodes) = c.ranks;
      break;
    }
    case CollectiveKind::allToAll: {
      const int64_t inner = std::max(c.dim, c.concatDim);
      cut(inner, inner == c.dim ? c.ranks : 1);
      std::vector<int64_t> ofPart(shape.begin(), shape.end() - 1);
      if (c.dim < static_cast<int64_t>(last))
        ofPart[static_cast<size_t>(c.dim)] /= c.ranks;
      const int64_t dim = longestDim(ofPart);
      value.unitsAreParts = dim < inner;
      value.units = dim < 0 ? 1 : ofPart[static_cast<size_t>(dim)];
      if (dim == c.dim && product(shape, static_cast<size_t>(dim)) == 1)
        value.encodes = c.ranks;
      if (dim == c.concatDim && product(ofPart, static_cast<size_t>(dim)) == 1)
        value.decodes = c.ranks;
      break;
    }
    case CollectiveKind::allToAllV:
      // Each row of a block travels by itself, and how many do is not known.
      value.parts = shape[0] * shape[1];
      if (shape.size() == 2)
        value.matrix = {value.parts, 1};
      break;
    default:
      value.units = value.matrix.rows;
    }
    return value;
  }

  /// A collective with one half, in chunks.
  Status oneHalf() {
    const int64_t n = c.ranks;
    const bool scatters = c.kind == CollectiveKind::reduceScatter,
               gathers = c.kind == CollectiveKind::allGather,
               counts = c.kind == CollectiveKind::allToAllV;
    const Encoding &encoding = scatters ? encodings.reduce : encodings.gather;
    // A rank gets one of so many pieces of a payload.
    const int64_t pieces = scatters || counts || c.kind == CollectiveKind::allToAll ? n : 1;
    std::vector<Value> values;
    int64_t bytes = 0, most = 1;
    for (const EncodableCollective::Value &input : c.values) {
      const Value &value = values.emplace_back(valueOf(input));
      ASSIGN_OR_RETURN(const PayloadLayout layout,
                       PayloadLayout::of(encoding, value.type, value.matrix.rows,
                                         value.matrix.columns, value.parts));
      bytes += layout.bytes;
      most = std::max(most, value.units);
    }
    steps.chunks = chunking.count(bytes, pieces, most);
    for (int64_t chunk = 0; chunk < steps.chunks; ++chunk) {
      ScheduleRequest request = exchangeOf(c, scatters ? CollectiveKind::allToAll : c.kind);
      for (const Value &value : values) {
        const int64_t own = rowsOfChunk(value.units, 1, chunk, steps.chunks).size;
        if (own == 0)
          continue;
        const int64_t rows = value.matrix.rows / value.units * own;
        const int64_t parts = value.unitsAreParts ? value.parts / value.units * own : value.parts;
        const int64_t columns = value.matrix.columns;
        const int64_t encodes = steps.chunks > 1 ? value.encodes : 1,
                      decodes = steps.chunks > 1 ? value.decodes : 1;
        int64_t sent = 0;
        for (int64_t piece = 0; piece < encodes; ++piece) {
          ASSIGN_OR_RETURN(const int64_t own,
                           encode(encoding, value.type, rows / encodes, columns, parts / encodes,
                                  /*toOthers=*/scatters));
          sent += own;
        }
        request.values.push_back({sent / pieces, 1, false});
        // What comes from other ranks is added, is that of all, or is as much as was sent.
        const int64_t all = gathers ? n : 1, senders = scatters ? n : 1;
        for (int64_t piece = 0; piece < decodes; ++piece)
          RETURN_IF_ERROR(decode(encoding, value.type, value.type, rows * all / senders / decodes,
                                 columns, parts * all / senders / decodes, scatters ? n : 0));
      }
      if (counts)
        request.values.push_back({8, 8, false});
      steps.exchanges.push_back(std::move(request));
    }
    return {};
  }

  /// The bytes of the payload. With `toOthers`, what a rank would send to itself is not encoded.
  Result<int64_t> encode(const Encoding &encoding, DType type, int64_t rows, int64_t columns,
                         int64_t parts, bool toOthers = false) {
    ASSIGN_OR_RETURN(const PayloadLayout layout,
                     PayloadLayout::of(encoding, type, rows, columns, parts));
    LibraryCall call;
    call.kernel = runtime::findLibraryKernel("encode");
    call.integers = {encoding.code(), 0};
    call.parts = toOthers ? c.ranks : 1;
    call.operands = {operand(type, rows, columns), operand(DType::i8, parts, layout.partBytes)};
    steps.codecs.push_back(std::move(call));
    steps.payloadBytes += layout.bytes;
    return layout.bytes;
  }
  /// `type` is what was encoded; the parts are those of one sender. `senders` of 0: no sum.
  Status decode(const Encoding &encoding, DType type, DType to, int64_t rows, int64_t columns,
                int64_t parts, int64_t senders) {
    ASSIGN_OR_RETURN(const PayloadLayout layout,
                     PayloadLayout::of(encoding, type, rows, columns, parts));
    LibraryCall call;
    call.kernel = runtime::findLibraryKernel(senders == 0 ? "decode" : "decode_sum");
    call.integers = {encoding.code(), static_cast<int64_t>(type), senders};
    call.operands = {operand(DType::i8, parts * std::max<int64_t>(senders, 1), layout.partBytes),
                     operand(to, rows, columns)};
    if (senders != 0) { // of which one is this rank, whose rows are as they were
      call.operands.insert(call.operands.begin() + runtime::kOwnRows, operand(type, rows, columns));
      call.parts = senders;
    }
    steps.codecs.push_back(std::move(call));
    return {};
  }

  const EncodableCollective &c;
  const EncodingPair &encodings;
  const EncodedChunks &chunking;
  EncodedSteps steps;
};

} // namespace

Result<EncodedSteps> encodedSteps(const EncodableCollective &collective,
                                  const EncodingPair &encodings, const EncodedChunks &chunks) {
  return Steps(collective, encodings, chunks).make();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

double overlapped(double codecSeconds, double exchangeSeconds, int64_t chunks, double codecSlowdown,
                  double exchangeSlowdown) {
  const double part = 1 / static_cast<double>(chunks);
  // The rest, each alone.
  const double codecs = (1 - part) * codecSeconds, exchanges = (1 - part) * exchangeSeconds;
  const double both = std::min(codecs * codecSlowdown, exchanges * exchangeSlowdown);
  const double together =
      both + std::max(codecs - both / codecSlowdown, exchanges - both / exchangeSlowdown);
  return part * (codecSeconds + exchangeSeconds) + std::min(together, codecs + exchanges);
}

/// With the part of a host's links that each of some groups has.
static std::shared_ptr<const Machine> shareOf(const std::shared_ptr<const Machine> &machine,
                                              int64_t groups) {
  if (groups == 1)
    return machine;
  auto shared = std::make_shared<Machine>(*machine);
  const auto parts = static_cast<double>(groups);
  auto share = [&](Link &link) {
    const double host = link.hostBytesPerSecond.value_or(link.bytesPerSecond) / parts;
    const double both =
        link.bothWaysBytesPerSecond.value_or(link.bytesPerSecond) / link.bytesPerSecond;
    link.bytesPerSecond = std::min(link.bytesPerSecond, host);
    link.hostBytesPerSecond = host;
    link.bothWaysBytesPerSecond = both * link.bytesPerSecond;
  };
  for (Link &link : shared->links)
    share(link);
  if (shared->gpu && shared->gpu->network)
    share(shared->gpu->network->link);
  return shared;
}

/// The bytes that a rank sends in an exchange.
static double bytesSentIn(const ScheduleRequest &request) {
  int64_t input = 0;
  for (const ScheduleValue &value : request.values)
    input += value.partBytes * request.inputParts();
  return static_cast<double>(
      runtime::bytesSent(runtime::Algorithm::direct, request.kind, input, request.ranks));
}

/// A link may pass the bytes of a short collective faster than many: a shaped one does so with a
/// burst. The more of them there are, the less an encoding saves, so the faster rate counts: that
/// of all bytes that the collective sends, in whatever chunks.
static void passBurst(double bytes, Link &link) {
  const double gain = burstGain(link, bytes);
  if (gain == 0)
    return;
  const double busy = bytes / link.bytesPerSecond;
  const double factor = busy > gain ? busy / (busy - gain) : 1;
  link.bytesPerSecond *= factor;
  for (std::optional<double> *other : {&link.bothWaysBytesPerSecond, &link.hostBytesPerSecond})
    if (*other)
      **other *= factor;
}

static bool hasSeveralHosts(const EncodableCollective &c) {
  for (int64_t rank = 1; rank < c.ranks; ++rank)
    if (!c.topology.sameHost(0, rank))
      return true;
  return false;
}

EncodedTimes::EncodedTimes(std::shared_ptr<const Machine> itsMachine, std::string itsTransport,
                           int64_t ranksOfHost, int64_t threads)
    : machine(std::move(itsMachine)), transport(std::move(itsTransport)),
      operations(*machine,
                 {std::max<int64_t>(1, std::min(ranksOfHost * threads,
                                                machine->processor ? machine->processor->cores
                                                                   : ranksOfHost * threads)),
                  threads}) {
  if (machine->overheads)
    eventSeconds = machine->overheads->eventSeconds;
  for (const Interference &beside : machine->interference)
    if (beside.transport == (transport == "ucx" ? "shm" : transport) &&
        beside.ranks == ranksOfHost && beside.kind == "memory") {
      codecSlowdown = beside.computeSlowdown;
      exchangeSlowdown = beside.communicationSlowdown;
    }
}

bool EncodedTimes::readsInPlace(CollectiveKind kind) const {
  return (transport == "threads" || transport == "shm") &&
         (kind == CollectiveKind::allToAll || kind == CollectiveKind::allGather);
}

Result<double> EncodedTimes::ofExchange(ScheduleRequest request, double bytesOfAll,
                                        int64_t groupsOfHost) const {
  Shared &shared = shares[groupsOfHost];
  if (!shared.machine) {
    shared.machine = shareOf(machine, groupsOfHost);
    shared.chooser = std::make_unique<ScheduleChooser>(transport, shared.machine);
  }
  shared.chooser->choose(request);
  ASSIGN_OR_RETURN(Network network,
                   networkOf(*shared.machine, transport == "ucx" ? "shm" : transport, request.ranks,
                             request.topology));
  passBurst(bytesOfAll, network.between);
  ASSIGN_OR_RETURN(const CollectiveTime time, timeOf(request, network));
  // From the queue that computes to the one that communicates, and back.
  return time.seconds + 2 * eventSeconds;
}

Result<double> EncodedTimes::plain(const EncodableCollective &c) const {
  ScheduleRequest request = exchangeOf(c, c.kind);
  for (const auto &[type, shape] : c.values) {
    const int64_t element = runtime::byteSize(type);
    const int64_t bytes = product(shape, shape.size()) * element;
    request.values.push_back({bytes / request.inputParts(), element, false});
  }
  if (c.kind == CollectiveKind::allToAllV)
    request.values.push_back({8, 8, false});
  const double bytes = bytesSentIn(request);
  return ofExchange(std::move(request), bytes, c.groupsOfHost);
}

Result<EncodedTime> EncodedTimes::encoded(const EncodableCollective &c,
                                          const EncodingPair &encodings,
                                          const EncodedChunks &chunks) const {
  ASSIGN_OR_RETURN(const EncodedSteps steps, encodedSteps(c, encodings, chunks));
  EncodedTime time;
  time.chunks = steps.chunks;
  time.payloadBytes = steps.payloadBytes;
  // Chunks fit caches, but all that comes between two uses of one does not. The largest tensors are
  // what an all_gather gives, and what other collectives take.
  double elements = 0, codecBytes = 0;
  for (const EncodableCollective::Value &value : c.values)
    elements += static_cast<double>(product(value.shape, value.shape.size()));
  if (c.kind == CollectiveKind::allGather)
    elements *= static_cast<double>(c.ranks);
  for (const LibraryCall &call : steps.codecs)
    codecBytes += bytesOf(call);
  for (const LibraryCall &call : steps.codecs) {
    ASSIGN_OR_RETURN(const double seconds, operations.ofCodec(call, elements, codecBytes));
    time.codecSeconds += seconds;
  }
  double bytes = 0;
  for (const ScheduleRequest &request : steps.exchanges)
    bytes += bytesSentIn(request);
  std::vector<std::pair<ScheduleRequest, double>> known; // chunks are equal but for one row
  for (ScheduleRequest request : steps.exchanges) {
    if (readsInPlace(request.kind))
      request = readInPlace(std::move(request));
    auto found = std::find_if(known.begin(), known.end(),
                              [&](const auto &one) { return one.first == request; });
    if (found == known.end()) {
      ASSIGN_OR_RETURN(const double seconds, ofExchange(request, bytes, c.groupsOfHost));
      found = known.emplace(known.end(), request, seconds);
    }
    time.exchangeSeconds += found->second;
  }
  double codecs = codecSlowdown, exchanges = exchangeSlowdown;
  if (hasSeveralHosts(c) && !machine->gpu && !machine->links.empty()) {
    const Link &link = machine->links.front();
    codecs = std::max(codecs, link.computeSlowdown.value_or(1));
    exchanges = std::max(exchanges, link.communicationSlowdown.value_or(1));
  }
  time.seconds =
      overlapped(time.codecSeconds, time.exchangeSeconds, time.chunks, codecs, exchanges);
  return time;
}

} // namespace braid::cost
