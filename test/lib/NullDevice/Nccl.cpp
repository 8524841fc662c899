//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// NCCL's collectives. The calls of a communicator's ranks between the same group start and end are
// matched, compared and then executed together.
//
//===----------------------------------------------------------------------===//
#include "NullDevice.h"
#include "braid/Base/Float16.h"

#include <algorithm>
#include <cstring>

namespace {

struct Call {
  std::string name;
  const void *in = nullptr;
  void *out = nullptr;
  size_t count = 0;
  int type = 0, op = 0, root = 0;
  braid::null::Stream *stream = nullptr;
};

struct Clique {
  int ranks = 0;
  std::vector<int> devices;
  std::vector<std::vector<Call>> calls; ///< by rank, of the open group
};

} // namespace

namespace braid::runtime::cuda {
struct ncclComm {
  std::shared_ptr<Clique> clique;
  int rank;
};
} // namespace braid::runtime::cuda

using namespace braid::null;
namespace runtime = braid::runtime;

namespace {

int depth = 0;
std::set<std::shared_ptr<Clique>> touched;

ncclResult_t fail(const std::string &message) {
  return braid::null::result(message) == kSuccess ? 0 : kLibraryError;
}

int64_t sizeOf(int type) {
  return type == kNcclInt8                               ? 1
         : type == kNcclFloat16 || type == kNcclBfloat16 ? 2
         : type == kNcclInt32 || type == kNcclFloat32    ? 4
                                                         : 8;
}

double load(const void *data, int type, size_t i) {
  switch (type) {
  case kNcclInt8:
    return static_cast<const int8_t *>(data)[i];
  case kNcclInt32:
    return static_cast<const int32_t *>(data)[i];
  case kNcclInt64:
    return static_cast<double>(static_cast<const int64_t *>(data)[i]);
  case kNcclFloat16:
    return runtime::f16ToFloat(static_cast<const uint16_t *>(data)[i]);
  case kNcclBfloat16:
    return runtime::bf16ToFloat(static_cast<const uint16_t *>(data)[i]);
  case kNcclFloat32:
    return static_cast<const float *>(data)[i];
  default:
    return static_cast<const double *>(data)[i];
  }
}
void store(void *data, int type, size_t i, double value) {
  switch (type) {
  case kNcclInt8:
    static_cast<int8_t *>(data)[i] = static_cast<int8_t>(value);
    return;
  case kNcclInt32:
    static_cast<int32_t *>(data)[i] = static_cast<int32_t>(value);
    return;
  case kNcclInt64:
    static_cast<int64_t *>(data)[i] = static_cast<int64_t>(value);
    return;
  case kNcclFloat16:
    static_cast<uint16_t *>(data)[i] = runtime::floatToF16(static_cast<float>(value));
    return;
  case kNcclBfloat16:
    static_cast<uint16_t *>(data)[i] = runtime::floatToBf16(static_cast<float>(value));
    return;
  case kNcclFloat32:
    static_cast<float *>(data)[i] = static_cast<float>(value);
    return;
  default:
    static_cast<double *>(data)[i] = value;
  }
}
double combine(int op, double a, double b) {
  return op == kNcclSum ? a + b : op == kNcclMax ? std::max(a, b) : std::min(a, b);
}

/// One collective with the calls of all ranks.
struct Together {
  std::vector<Call> calls; ///< by rank
  size_t ranks() const { return calls.size(); }
  bool is(const char *name) const { return calls[0].name == name; }
  size_t rootRank() const { return static_cast<size_t>(calls[0].root); }

  void accesses(size_t r, std::vector<Access> &out) const {
    const Call &c = calls[r];
    const auto bytes = c.count * static_cast<size_t>(sizeOf(c.type));
    const size_t inBytes = is("ncclReduceScatter") ? bytes * ranks() : bytes;
    const size_t outBytes = is("ncclAllGather") ? bytes * ranks() : bytes;
    if (!is("ncclBroadcast") || r == rootRank())
      out.push_back({reinterpret_cast<uint64_t>(c.in), inBytes, false});
    if (!is("ncclReduce") || r == rootRank())
      out.push_back({reinterpret_cast<uint64_t>(c.out), outBytes, true});
  }
  /// Reads all inputs before writing outputs, since they may be the same memory.
  void run() const {
    const Call &first = calls[0];
    const size_t count = first.count, size = static_cast<size_t>(sizeOf(first.type));
    std::vector<std::vector<char>> inputs;
    for (size_t r = 0; r < ranks(); ++r) {
      const size_t n = is("ncclReduceScatter") ? count * ranks() : count;
      const char *in = static_cast<const char *>(calls[r].in);
      inputs.emplace_back(in, in + (is("ncclBroadcast") && r != rootRank() ? 0 : n * size));
    }
    for (size_t r = 0; r < ranks(); ++r) {
      void *out = calls[r].out;
      if (is("ncclAllGather")) {
        for (size_t from = 0; from < ranks(); ++from)
          std::memcpy(static_cast<char *>(out) + from * count * size, inputs[from].data(),
                      count * size);
      } else if (is("ncclBroadcast")) {
        std::memcpy(out, inputs[rootRank()].data(), count * size);
      } else if (!is("ncclReduce") || r == rootRank()) {
        const size_t begin = is("ncclReduceScatter") ? r * count : 0;
        for (size_t i = 0; i < count; ++i) {
          double sum = load(inputs[0].data(), first.type, begin + i);
          for (size_t from = 1; from < ranks(); ++from)
            sum = combine(first.op, sum, load(inputs[from].data(), first.type, begin + i));
          store(out, first.type, i, sum);
        }
      }
    }
  }
};

std::string collective(Together together) {
  std::vector<Stream *> streams;
  for (const Call &call : together.calls) {
    const Call &first = together.calls[0];
    if (call.name != first.name || call.count != first.count || call.type != first.type ||
        call.op != first.op || call.root != first.root)
      return "ranks of a communicator give different collectives: " + first.name + " of " +
             std::to_string(first.count) + " and " + call.name + " of " +
             std::to_string(call.count);
    streams.push_back(call.stream);
  }
  return submit(streams, [together = std::move(together)](const std::vector<Lane *> &lanes) {
    Clock all;
    for (Lane *lane : lanes)
      all.join(lane->clock);
    for (size_t r = 0; r < lanes.size(); ++r) {
      lanes[r]->clock.join(all);
      lanes[r]->step();
    }
    for (size_t r = 0; r < lanes.size(); ++r) {
      std::vector<Access> accesses;
      together.accesses(r, accesses);
      const auto label =
          std::make_shared<const std::string>(together.calls[r].name + " on " + lanes[r]->name);
      for (const Access &access : accesses)
        if (std::string error = world().memory.access(access, *lanes[r], label); !error.empty())
          return error;
    }
    together.run();
    // No rank completes before all ranks have provided their inputs.
    all = {};
    for (Lane *lane : lanes)
      all.join(lane->clock);
    for (Lane *lane : lanes)
      lane->clock.join(all);
    return std::string();
  });
}

/// Transfers a value from one rank to another rank or to itself.
std::string transfer(const Call &send, const Call &receive) {
  const size_t bytes = send.count * static_cast<size_t>(sizeOf(send.type));
  if (receive.count != send.count || receive.type != send.type)
    return "a send of " + std::to_string(send.count) + " does not match a receive of " +
           std::to_string(receive.count);
  std::vector<Stream *> streams{send.stream};
  if (receive.stream != send.stream)
    streams.push_back(receive.stream);
  return submit(streams, [=](const std::vector<Lane *> &lanes) {
    Lane &from = *lanes.front(), &to = *lanes.back();
    from.step();
    auto label = [](const char *call, const Lane &lane) {
      return std::make_shared<const std::string>(call + (" on " + lane.name));
    };
    std::string error = world().memory.access({reinterpret_cast<uint64_t>(send.in), bytes, false},
                                              from, label("ncclSend", from));
    to.clock.join(from.clock);
    to.step();
    if (error.empty())
      error = world().memory.access({reinterpret_cast<uint64_t>(receive.out), bytes, true}, to,
                                    label("ncclRecv", to));
    if (error.empty())
      std::memcpy(receive.out, send.in, bytes);
    return error;
  });
}

/// Executes all calls that the ranks of a communicator enqueued in a group.
std::string finish(Clique &clique) {
  std::vector<std::vector<Call>> calls(static_cast<size_t>(clique.ranks));
  std::swap(calls, clique.calls);
  std::map<std::pair<int, int>, std::deque<Call>> sends, receives;
  std::vector<std::vector<Call>> collectives(calls.size());
  for (size_t r = 0; r < calls.size(); ++r)
    for (const Call &call : calls[r]) {
      const int own = static_cast<int>(r);
      if (call.name == "ncclSend")
        sends[{own, call.root}].push_back(call);
      else if (call.name == "ncclRecv")
        receives[{call.root, own}].push_back(call);
      else
        collectives[r].push_back(call);
    }
  for (size_t r = 1; r < collectives.size(); ++r)
    if (collectives[r].size() != collectives[0].size())
      return "ranks of a communicator give " + std::to_string(collectives[0].size()) + " and " +
             std::to_string(collectives[r].size()) + " collectives";
  for (size_t i = 0; i < collectives[0].size(); ++i) {
    Together together;
    for (auto &of : collectives)
      together.calls.push_back(of[i]);
    if (std::string error = collective(std::move(together)); !error.empty())
      return error;
  }
  for (auto &[pair, list] : sends) {
    auto &taken = receives[pair];
    for (const Call &send : list) {
      if (taken.empty())
        return "a send of rank " + std::to_string(pair.first) + " to rank " +
               std::to_string(pair.second) + " is not received";
      if (std::string error = transfer(send, taken.front()); !error.empty())
        return error;
      taken.pop_front();
    }
  }
  for (const auto &[pair, list] : receives)
    if (!list.empty())
      return "a receive of rank " + std::to_string(pair.second) + " from rank " +
             std::to_string(pair.first) + " has no send";
  return {};
}

ncclResult_t give(ncclComm_t comm, Call call) {
  Guard guard(world().mutex);
  if (depth == 0)
    return fail(call.name + " is given outside of a group by the only thread of all ranks");
  if (!world().streams.count(call.stream) ||
      call.stream->device != comm->clique->devices[static_cast<size_t>(comm->rank)])
    return fail(call.name + " is given a stream that is not of its communicator's device");
  comm->clique->calls[static_cast<size_t>(comm->rank)].push_back(std::move(call));
  touched.insert(comm->clique);
  return 0;
}

Stream *from(CUstream stream) { return reinterpret_cast<Stream *>(stream); }

} // namespace

extern "C" {

const char *ncclGetErrorString(ncclResult_t) {
  Guard guard(world().mutex);
  return world().lastError.c_str();
}
const char *ncclGetLastError(ncclComm_t) { return ""; }
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int ranks, const int *devices) {
  Guard guard(world().mutex);
  auto clique = std::make_shared<Clique>();
  clique->ranks = ranks;
  clique->devices.assign(devices, devices + ranks);
  clique->calls.resize(static_cast<size_t>(ranks));
  if (std::set<int>(devices, devices + ranks).size() != static_cast<size_t>(ranks))
    return fail("two ranks of a communicator are on one device");
  world().communicators += static_cast<size_t>(ranks);
  for (int r = 0; r < ranks; ++r)
    comms[r] = new runtime::cuda::ncclComm{clique, r};
  return 0;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  Guard guard(world().mutex);
  --world().communicators;
  delete comm;
  return 0;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) { return ncclCommDestroy(comm); }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *error) {
  *error = 0;
  return 0;
}
ncclResult_t ncclGroupStart() {
  Guard guard(world().mutex);
  ++depth;
  return 0;
}
ncclResult_t ncclGroupEnd() {
  Guard guard(world().mutex);
  if (depth == 0)
    return fail("a group ends that has not begun");
  if (--depth > 0)
    return 0;
  auto cliques = std::move(touched);
  touched.clear();
  std::string first;
  for (const auto &clique : cliques)
    if (std::string error = finish(*clique); first.empty())
      first = error;
  return fail(first);
}
ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, int type, int op,
                           ncclComm_t comm, CUstream stream) {
  return give(comm, {"ncclAllReduce", in, out, count, type, op, 0, from(stream)});
}
ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, int type, int op,
                               ncclComm_t comm, CUstream stream) {
  return give(comm, {"ncclReduceScatter", in, out, count, type, op, 0, from(stream)});
}
ncclResult_t ncclAllGather(const void *in, void *out, size_t count, int type, ncclComm_t comm,
                           CUstream stream) {
  return give(comm, {"ncclAllGather", in, out, count, type, 0, 0, from(stream)});
}
ncclResult_t ncclReduce(const void *in, void *out, size_t count, int type, int op, int root,
                        ncclComm_t comm, CUstream stream) {
  return give(comm, {"ncclReduce", in, out, count, type, op, root, from(stream)});
}
ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, int type, int root,
                           ncclComm_t comm, CUstream stream) {
  return give(comm, {"ncclBroadcast", in, out, count, type, 0, root, from(stream)});
}
ncclResult_t ncclSend(const void *in, size_t count, int type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return give(comm, {"ncclSend", in, nullptr, count, type, 0, peer, from(stream)});
}
ncclResult_t ncclRecv(void *out, size_t count, int type, int peer, ncclComm_t comm,
                      CUstream stream) {
  return give(comm, {"ncclRecv", nullptr, out, count, type, 0, peer, from(stream)});
}

} // extern "C"
