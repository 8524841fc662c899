//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A stand-in for the CUDA driver, cuBLASLt and NCCL on the CPU. Stream commands run immediately,
// which is one of the orders that streams and events allow. Vector clocks check that every other
// allowed order gives the same result: two accesses to the same bytes, one of them a write, must be
// ordered by streams, events or host waits.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_NULLDEVICE_H
#define BRAID_TEST_NULLDEVICE_H

#include "../../../runtime/lib/Cuda/Blas.h"
#include "../../../runtime/lib/Cuda/Nccl.h"
#include "braid/library_arguments.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace braid::null {

using namespace runtime::cuda;

/// The progress of each lane (a stream, or the host, which is lane 0).
class Clock {
public:
  uint64_t at(size_t lane) const { return lane < times.size() ? times[lane] : 0; }
  void set(size_t lane, uint64_t time) {
    if (lane >= times.size())
      times.resize(lane + 1);
    times[lane] = time;
  }
  void join(const Clock &other) {
    for (size_t i = 0; i < other.times.size(); ++i)
      if (other.times[i] > at(i))
        set(i, other.times[i]);
  }

private:
  std::vector<uint64_t> times;
};

/// A lane and its vector clock.
struct Lane {
  size_t number = 0;
  int device = 0;
  Clock clock;
  std::string name;
  bool stuck = false; ///< nothing on this lane completes any more
  void step() { clock.set(number, clock.at(number) + 1); }
};

struct Access {
  uint64_t begin = 0, bytes = 0;
  bool writes = false;
};

/// Adds strided rows of bytes. Adds nothing if an extent is 0.
void addRows(std::vector<Access> &accesses, bool writes, const void *data,
             const std::vector<int64_t> &shape, const std::vector<int64_t> &stridesBytes,
             int64_t elementBytes);

/// What a command is called in messages. Each segment that it uses names it.
using Label = std::shared_ptr<const std::string>;

/// Device memory and the host memory that devices use, with the last writers and readers of each
/// segment.
class Memory {
public:
  static constexpr int kHost = -1;
  /// Allocates memory of a device, or of the host (kHost). Any device may use host memory; writes
  /// by the host are not tracked.
  uint64_t allocate(size_t bytes, int device);
  /// Returns what is wrong, or empty.
  std::string release(uint64_t address, bool ofHost, const Lane &host);
  std::string access(const Access &access, const Lane &lane, const Label &what);
  bool contains(uint64_t address) const { return find(address) != nullptr; }
  bool onDevice(uint64_t address) const {
    const Block *block = find(address);
    return block && block->device != kHost;
  }
  size_t size() const { return blocks.size(); }

private:
  struct Mark {
    size_t lane = 0;
    uint64_t time = 0;
    Label what;
  };
  struct Segment {
    uint64_t end = 0;
    bool written = false;
    Mark write;
    std::vector<Mark> reads;
  };
  struct Block {
    uint64_t bytes = 0;
    size_t number = 0;
    int device = 0;
    std::map<uint64_t, Segment> segments; ///< by start address
  };
  const Block *find(uint64_t address) const;
  static void split(Block &block, uint64_t at);

  std::map<uint64_t, Block> blocks;
  size_t count = 0;
};

struct Graph;
struct Stream {
  Lane lane;
  int device = 0;
  Graph *capture = nullptr;
  size_t captureLane = 0;
};
/// The vector clock of a recorded event.
struct Snapshot {
  Clock clock;
  bool never = false; ///< the work before it never completes
  int64_t ns = 0;
};
struct Event {
  bool timed = false;
  int device = 0;
  std::shared_ptr<Snapshot> recorded; ///< null: never recorded
  Graph *capture = nullptr;           ///< the capture that recorded it
  Clock captureClock;
};

/// An action that involves several lanes.
using Action = std::function<std::string(const std::vector<Lane *> &)>;

/// A captured graph. Its lanes begin after the launching stream's work and end before the stream
/// continues.
struct Graph {
  std::deque<Lane> lanes; ///< the first is the origin stream's
  std::vector<Stream *> streams;
  std::vector<Clock> order; ///< the clock of each lane, by node
  bool capturing = true;
  struct Node {
    std::vector<size_t> lanes;
    Action action;
  };
  std::vector<Node> nodes;
};

/// Host memory that a device reads, with its content when the read was enqueued.
struct HostRead {
  uint64_t address = 0;
  std::vector<char> bytes;
  size_t lane = 0;
  uint64_t time = 0;
  std::string what;
};

struct World {
  std::recursive_mutex mutex;
  std::string lastError;
  Memory memory;
  Lane host;
  size_t lanes = 1;
  int devices = 8, current = -1;
  std::string stallAt; ///< name of a function that never ends
  std::set<Stream *> streams;
  std::set<Event *> events;
  std::set<Graph *> graphs, executables;
  std::vector<HostRead> hostReads;
  std::set<cublasLtHandle_t> handles;
  size_t contexts = 0, communicators = 0, modules = 0;

  Lane newLane(const std::string &name, int device) {
    Lane lane;
    lane.number = lanes++;
    lane.device = device;
    lane.name = name;
    return lane;
  }
  /// Records that the host has waited for `clock`. Returns an error if the host wrote memory that
  /// was still being read, or empty.
  std::string wait(const Clock &clock);
};
World &world();
using Guard = std::lock_guard<std::recursive_mutex>;

/// Keeps the message for cuGetErrorString and similar functions. An empty message is success.
CUresult result(const std::string &message);
constexpr int kLibraryError = 1000; ///< of the stand-ins for cuBLASLt and NCCL

/// Runs or captures an action on one stream of the current device, or on streams of any device.
std::string submit(Stream *stream, Action action);
std::string submit(const std::vector<Stream *> &streams, Action action);
/// An action that checks the accesses and then calls `run`.
Action checked(std::string what, std::vector<Access> accesses, std::function<void()> run);

/// A kernel of library.cuh: the size of its argument, its accesses and its computation.
/// findLibraryKernel returns null for other names.
struct LibraryKernel {
  size_t bytes;
  std::function<std::string(const void *arguments, unsigned grid, unsigned block,
                            std::vector<Access> &)>
      accesses;
  std::function<void(const void *arguments)> run;
};
const LibraryKernel *findLibraryKernel(const std::string &name);
/// The same for a kernel of int8.cuh, which is part of library.cuh.
const LibraryKernel *findInt8Kernel(const std::string &name);
/// The same for a kernel of codec.cuh.
const LibraryKernel *findCodecKernel(const std::string &name);
/// Adds the accesses of `name` to a payload, and to the record of its faults. Returns what is wrong
/// with it, or empty.
std::string payloadAccesses(const std::string &name, const library::Codec &codec, bool decodes,
                            std::vector<Access> &accesses);

} // namespace braid::null
#endif // BRAID_TEST_NULLDEVICE_H
