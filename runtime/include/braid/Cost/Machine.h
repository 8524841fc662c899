//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a machine is able to do, as a machine file states it: measured by `braid calibrate`, or
// published by a vendor. docs/costs.md defines every figure. All numbers are in seconds, bytes,
// floating-point operations (FLOPs), and bytes or FLOPs per second, which their names say.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_COST_MACHINE_H
#define BRAID_COST_MACHINE_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace braid::cost {

using runtime::Result;
using runtime::Status;

struct CpuCache {
  int64_t level = 0, bytes = 0, sharedByCores = 0;
};

struct Processor {
  std::string model;            ///< as the system names it
  int64_t cores = 0;            ///< that the process may use
  std::string isa;              ///< of the runtime's own kernels: "avx512"
  std::vector<CpuCache> caches; ///< of data
};

/// A product [m, k] x [k, n] whose right side comes from memory, and the left one from a cache.
struct MatmulPoint {
  int64_t m = 0, n = 0, k = 0;
  double flopsPerSecond = 0;
};

/// Attention of `rows` query rows (positions times query heads of a key/value head) with `keys`
/// keys. The FLOPs are those of all keys, also where a causal mask skips some.
struct AttentionPoint {
  int64_t rows = 0, keys = 0, headDim = 0;
  bool causal = false;
  double flopsPerSecond = 0;
};

/// An operation of row kernels by its class (braid/Cost/KernelWork.h): how many elements a second.
struct OperationRate {
  std::string operation;
  double elementsPerSecond = 0;
};

/// Traffic of a kernel whose operands have this many bytes together.
struct MemoryPoint {
  int64_t bytes = 0;
  double readBytesPerSecond = 0, writeBytesPerSecond = 0;
  double copyBytesPerSecond = 0; ///< read and written together
};

/// Products whose right sides, of f32, are taken in turn from so many bytes.
struct WeightReadPoint {
  int64_t rows = 0; ///< of the left side
  int64_t bytes = 0;
  double bytesPerSecond = 0; ///< of right sides
};

/// The library kernels encode, decode and decode_sum of an encoding, for a tensor of f32. Elements
/// are those of the tensor.
struct CodecPoint {
  std::string encoding; ///< "int8:128"
  int64_t elements = 0;
  double encodeElementsPerSecond = 0, decodeElementsPerSecond = 0;
  /// Of each payload that decode_sum adds behind the first one.
  double addElementsPerSecond = 0;
};

/// What each core does while `busyCores` of them compute.
struct ComputeRates {
  int64_t busyCores = 0;
  /// One element type, f32. Every combination of the sizes that occur.
  std::vector<MatmulPoint> matmul;
  std::vector<AttentionPoint> attention;
  std::vector<OperationRate> rowOperations;
  std::vector<MemoryPoint> memory; ///< by ascending bytes
  /// Of a kernel on rows: the part of the shorter one of its arithmetic and its traffic that goes
  /// on beside the longer one; null: all of it.
  std::optional<double> rowOverlapEfficiency;
  /// Every combination of encodings and sizes.
  std::vector<CodecPoint> codecs;
  /// Of 8-bit integers with scales of rows and columns. Every combination of its sizes.
  std::vector<MatmulPoint> int8Matmul;
  /// Every combination of rows and bytes, the most bytes from memory; empty: right sides are taken
  /// to come from there.
  std::vector<WeightReadPoint> weightReads;
};

/// What the executor spends besides computing and moving bytes.
struct Overheads {
  double commandSeconds = 0; ///< a launch of a kernel that does nothing
  double callSeconds = 0;    ///< a call of a procedure
  double eventSeconds = 0;   ///< from one queue of a rank to another
};

/// What a rank takes for as many bytes, in a collective whose input and output have so many
/// together, while all ranks of the transport do the same.
struct TransferPoint {
  int64_t bytes = 0;
  double copySeconds = 0;    ///< of its own memory, to its own
  double receiveSeconds = 0; ///< from a peer
  double reduceSeconds = 0;  ///< of a peer's and its own to its own
  double sharedSeconds = 0;  ///< longer, if a peer reads the same bytes of its memory
};

/// A collective by itself, with the schedule that the transport runs where no machine is known.
struct CollectivePoint {
  std::string kind;   ///< "all_reduce"
  int64_t bytes = 0;  ///< of a rank's input and output together
  double seconds = 0; ///< mean over ranks
};

/// How much longer a collective takes whose ranks have used other memory since they last used the
/// memory that they write.
struct ColdPoint {
  int64_t betweenBytes = 0; ///< of the other memory, by one rank
  int64_t bytes = 0;        ///< that a rank writes
  double seconds = 0;
};

/// How ranks of one host reach each other. The three parts add up: steps, messages, bytes.
struct Transport {
  std::string name; ///< "threads", "shm"
  int64_t ranks = 0;
  double startSeconds = 0;   ///< of a collective that moves next to nothing, but for its messages
  double messageSeconds = 0; ///< from a rank to one that waits for it
  /// In which a cache line comes from one rank's core to the next one's, when these figures
  /// were measured. Unknown where ranks share cores.
  std::optional<double> coreToCoreSeconds;
  std::vector<TransferPoint> transfers; ///< by ascending bytes
  /// By kind, and ascending bytes; kinds that are not here take what their steps take.
  std::vector<CollectivePoint> collectives;
  std::vector<ColdPoint> cold; ///< every combination, by ascending betweenBytes, then bytes
};

/// Computation and communication of a rank at the same time, over the time of each alone.
struct Interference {
  std::string transport;
  int64_t ranks = 0;
  std::string kind; ///< of computation: "matmul", or "memory" for what memory bounds
  double computeSlowdown = 1, communicationSlowdown = 1;
};

/// A message between hosts, by its size.
struct MessagePoint {
  int64_t bytes = 0;
  double seconds = 0; ///< from the begin of its send to the end of its receive
};

/// A kind of connection between hosts or devices.
struct Link {
  std::string name; ///< "InfiniBand NDR"
  double latencySeconds = 0;
  double bytesPerSecond = 0; ///< in one direction
  /// Measured links have these too. In each direction while messages go both ways; of all peers of
  /// a host together; and what a processor moves that does nothing else.
  std::optional<double> bothWaysBytesPerSecond, hostBytesPerSecond, processorBytesPerSecond;
  std::vector<MessagePoint> messages; ///< one after the other, by ascending bytes
  /// A message of each of two hosts to the other one, at the same time and behind each other, as
  /// most collectives send; a processor sends and receives then. By ascending bytes of a message,
  /// each while the link passes them at once.
  std::vector<MessagePoint> exchanges;
  /// Of a host that copies memory while messages go both ways, over the time of each alone.
  std::optional<double> computeSlowdown, communicationSlowdown;
  /// As in Transport: how much longer an exchange of so many bytes takes between hosts that have
  /// used other memory since the last one.
  std::vector<ColdPoint> cold;
};

/// The highest rate of a GPU for one element type.
struct PeakRate {
  std::string dtype; ///< "bf16"
  std::string unit;  ///< "matrix" or "vector"
  double flopsPerSecond = 0;
};

struct NvLink {
  int64_t generation = 0, links = 0;
  double linkBytesPerSecond = 0; ///< of one link in one direction
  double latencySeconds = 0;
  double efficiency = 1;  ///< the part of the bandwidth that large messages reach
  int64_t domainGpus = 0; ///< that reach each other through switches
  bool multicast = false; ///< switches add and copy
};

struct Pcie {
  int64_t generation = 0, lanes = 0;
  double bytesPerSecond = 0; ///< in one direction
};

struct NetworkCard {
  Link link;
  double efficiency = 1; ///< the part of the bandwidth that large messages reach
  int64_t gpus = 1;      ///< that share one
};

struct Gpu {
  std::string model;
  int64_t multiprocessors = 0;
  std::vector<PeakRate> peaks;
  /// The part of the peak that large products reach.
  double matmulEfficiency = 1;
  int64_t memoryBytes = 0;
  double memoryBytesPerSecond = 0;
  double launchSeconds = 0;
  std::optional<NvLink> nvlink;
  std::optional<Pcie> pcie;
  std::optional<NetworkCard> network;
};

/// When and how a file was measured.
struct Measurement {
  std::string at;             ///< UTC: "2026-11-23T11:30:00Z"
  double seconds = 0;         ///< that it took
  std::string version;        ///< of Braid
  std::string library;        ///< that computes products: "oneDNN 2.6.3"
  int64_t repetitions = 0;    ///< at most, of each figure
  double foreignCores = 0;    ///< the cores' time that others used meanwhile, over its duration
  double medianOverLeast = 1; ///< of the times of a figure on processors: how quiet it was
  /// How many times as long collectives took at the end as at the begin, in the median.
  std::optional<double> endOverBegin;
  /// What could not be measured, and why.
  std::map<std::string, std::string> missing;
  /// How many calibrations these figures are medians of; null: one.
  std::optional<int64_t> calibrations;
};

struct Machine {
  /// Version 1 has no `collectives` and no `cold`; up to version 2 links have
  /// `exchange_seconds`, of 8 bytes, in place of `exchanges`.
  static constexpr int64_t kFormatVersion = 3;
  int64_t formatVersion = kFormatVersion;
  std::string name;
  std::optional<Measurement> measurement; ///< else it is published
  /// Of a published machine: title and address by a short name, and the short name for each number
  /// ("gpu.memory_bytes"), or for all numbers of an object ("gpu.nvlink").
  std::map<std::string, std::string> sources, sourceOf;
  std::optional<Processor> processor;
  std::vector<ComputeRates> compute; ///< by ascending busyCores
  std::optional<Overheads> overheads;
  std::vector<Transport> transports;
  std::vector<Interference> interference;
  std::vector<Link> links;
  std::optional<Gpu> gpu;

  /// Of this name for this number of ranks; null if none was measured.
  const Transport *findTransport(const std::string &transport, int64_t ranks) const;
};

/// Reads a machine file strictly. Messages name the place in the document and what was expected:
/// unknown fields, units other than those above, numbers that no machine has.
Result<Machine> machineFromJson(const std::string &text);
std::string machineToJson(const Machine &machine);

/// A machine and the path of its file, for messages.
struct MachineFile {
  std::string path;
  Machine machine;
};

/// The median of each figure over several calibrations of a machine (at least two, and not the same
/// one twice), as one moment of a virtual machine or of a host with other work is not like another.
/// The name is the first one's. Of the measurement, `seconds` is the sum, `foreignCores` the most,
/// and `at` the last one. Refuses files that have not measured the same: other sizes,
/// transports or links, another processor, another version of Braid or of its library.
Result<Machine> medianOf(const std::vector<MachineFile> &files);

/// The file of this path, or the machine of this name among those that Braid brings ("h100").
Result<Machine> openMachine(const std::string &nameOrPath);
/// The names of the machines that Braid brings.
std::vector<std::string> knownMachines();
/// Where `braid calibrate` writes by default, in the user's cache folder; empty if there is none.
std::string defaultMachinePath();

/// In what `machine` differs from the host that asks, for warnings: "'m' was measured on 'A' with 8
/// cores, this is 'B' with 2". Empty: in nothing, or the file has no processor.
std::string differenceFrom(const Machine &machine, const Processor &host);

} // namespace braid::cost
#endif // BRAID_COST_MACHINE_H
