//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands as what a stream is given for them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_STREAMCOMMAND_H
#define BRAID_CUDA_STREAMCOMMAND_H

#include "Blas.h"
#include "Kernels.h"
#include "braid/Base/StatusMacros.h"
#include "braid/library_arguments.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Kernels/Operations.h"

namespace braid::runtime::cuda {

/// What a command does on a stream. Everything it needs was made in advance.
class StreamCommand {
public:
  virtual ~StreamCommand() = default;
  virtual Status enqueue(CUstream stream) const = 0;
};
using StreamCommandPtr = std::unique_ptr<const StreamCommand>;

/// Everything that one rank's work is made with. Queues are numbered as in Queue.
struct RankDevice {
  DevicePtr device;
  Kernels *kernels = nullptr;
  const CudaLaunchTable *table = nullptr;
  const program::ProgramT *program = nullptr;
  std::shared_ptr<const Blas> blas; ///< as the next two, where there is a matmul
  std::shared_ptr<cublasLtContext> blasHandle;
  Memory workspaces[2];             ///< of each queue, as the two may run matmuls at once
  library::Fault *faults = nullptr; ///< likewise, in memory of the device
  bool hasFaults[2] = {};           ///< likewise: whether a command may write one
  std::vector<Memory> constants;    ///< tables that commands bring along
};

/// A launch of a kernel of library.cuh.
template <typename Arguments> class LibraryStreamCommand : public StreamCommand {
public:
  LibraryStreamCommand(const Driver &api, CUfunction function, int64_t blocks,
                       const Arguments &arguments)
      : api(api), function(function), blocks(static_cast<unsigned>(blocks)), arguments(arguments) {}
  Status enqueue(CUstream stream) const override {
    void *parameters[] = {const_cast<Arguments *>(&arguments)};
    return api.check(api.cuLaunchKernel(function, blocks, 1, 1, library::kThreads, 1, 1, 0, stream,
                                        parameters, nullptr),
                     "cuLaunchKernel");
  }

private:
  const Driver &api;
  CUfunction function;
  unsigned blocks;
  Arguments arguments;
};

/// Null, without an error, where there is nothing to do. `threads` in all; they come in blocks.
template <typename Arguments>
Result<StreamCommandPtr> libraryStreamCommand(RankDevice &rank, const std::string &name,
                                              int64_t threads, const Arguments &arguments) {
  if (threads == 0)
    return StreamCommandPtr();
  const int64_t blocks = (threads + library::kThreads - 1) / library::kThreads;
  if (blocks > INT32_MAX)
    return Status::error("expects at most " + std::to_string(INT32_MAX) + " blocks of '" + name +
                         "', got " + std::to_string(blocks));
  ASSIGN_OR_RETURN(CUfunction function, rank.kernels->library(name, sizeof(Arguments)));
  return StreamCommandPtr(
      new LibraryStreamCommand<Arguments>(rank.device->api(), function, blocks, arguments));
}

Result<StreamCommandPtr> makeLaunch(const DeviceLaunchCommand &command, RankDevice &rank);
/// Where a launch of a library kernel stands, and what making it takes.
struct LibraryPlace {
  uint64_t number; ///< what a fault names the command with, above 0
  int queue;
  const std::string &libraryPath;
  CUstream stream;
};
Result<StreamCommandPtr> makeLibrary(const LibraryArguments &arguments, const LibraryPlace &place,
                                     RankDevice &rank);
Result<StreamCommandPtr> makeMatmul(const LibraryArguments &a, const LibraryPlace &place,
                                    RankDevice &rank);
Result<StreamCommandPtr> makeCopy(const CopyCommand &command, RankDevice &rank);
/// Rows of `blocks` blocks of `value`, an all_to_all_v's, as many of each as `counts` says.
Result<StreamCommandPtr> makeCopyCounted(const CollectiveValue &value, const std::byte *source,
                                         std::byte *dest, int64_t blocks, const std::byte *counts,
                                         DType countType, RankDevice &rank);
/// What `counts` has of no room is told as of command `number`, on the communication queue.
Result<StreamCommandPtr> makeCheckCounts(const Collective &c, const std::byte *counts,
                                         int64_t count, uint64_t number, RankDevice &rank);
/// Zeros.
StreamCommandPtr makeFill(std::byte *data, int64_t bytes, RankDevice &rank);
/// `sources` are read in this order.
Result<StreamCommandPtr> makeReduce(const std::vector<const std::byte *> &sources, std::byte *out,
                                    int64_t count, ReduceKind kind, DType dtype, RankDevice &rank);

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_STREAMCOMMAND_H
