//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What streams are given for commands.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CUDA_STREAMCOMMAND_H
#define BRAID_CUDA_STREAMCOMMAND_H

#include "Blas.h"
#include "Kernels.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/CudaCodec.h"
#include "braid/library_arguments.h"
#include "runtime/lib/Collective/CollectiveParts.h"
#include "runtime/lib/Executor/Commands.h"
#include "runtime/lib/Kernels/Operations.h"

#include <functional>

namespace braid::runtime::cuda {

/// What a command gives to a stream. Everything it needs was made in advance. Empty where there is
/// nothing to do.
using StreamCommand = std::function<Status(CUstream)>;

/// Appends a command, unless it is empty.
inline Status append(std::vector<StreamCommand> &commands, Result<StreamCommand> made) {
  if (made.ok() && *made)
    commands.push_back(std::move(*made));
  return made.status();
}

/// Everything that a rank's commands are made with.
struct RankDevice {
  DevicePtr device;
  Kernels *kernels = nullptr;
  const CudaLaunchTable *table = nullptr;
  const program::ProgramT *program = nullptr;
  std::shared_ptr<const Blas> blas; ///< null without a matmul, as the next two
  std::shared_ptr<cublasLtContext> blasHandle;
  std::vector<Memory> workspaces;   ///< by queue, as several may run matmuls at once
  std::vector<Memory> sums;         ///< of matmuls of i8, by queue
  library::Fault *faults = nullptr; ///< by queue, in memory of the device
  std::vector<bool> hasFaults;      ///< by queue: whether a command may write its fault
  std::vector<Memory> constants;    ///< tables that commands use
};

/// A launch of a kernel of library.cuh with `threads` threads in all, which come in blocks. Empty
/// for no threads.
template <typename Arguments>
Result<StreamCommand> libraryStreamCommand(RankDevice &rank, const std::string &name,
                                           int64_t threads, const Arguments &arguments) {
  if (threads == 0)
    return StreamCommand();
  const int64_t blocks = (threads + library::kThreads - 1) / library::kThreads;
  if (blocks > INT32_MAX)
    return Status::error("expects at most " + std::to_string(INT32_MAX) + " blocks of '" + name +
                         "', got " + std::to_string(blocks));
  ASSIGN_OR_RETURN(CUfunction function, rank.kernels->library(name, sizeof(Arguments)));
  return StreamCommand([&api = rank.device->api(), function, count = static_cast<unsigned>(blocks),
                        arguments](CUstream stream) {
    void *parameters[] = {const_cast<Arguments *>(&arguments)};
    return api.check(api.cuLaunchKernel(function, count, 1, 1, library::kThreads, 1, 1, 0, stream,
                                        parameters, nullptr),
                     "cuLaunchKernel");
  });
}

/// The position of a launch, and what making it takes.
struct LaunchPlace {
  uint64_t number; ///< that a fault identifies the command by, above 0 and below 2^32
  Queue queue;
  const std::string &libraryPath;
  CUstream stream;
};
Result<StreamCommand> makeLaunch(const DeviceLaunchCommand &command, const LaunchPlace &place,
                                 RankDevice &rank);
Result<StreamCommand> makeLibrary(const LibraryArguments &arguments, const LaunchPlace &place,
                                  RankDevice &rank);
Result<StreamCommand> makeMatmul(const LibraryArguments &a, const LaunchPlace &place,
                                 RankDevice &rank);
/// A launch of encode, decode or decode_sum, without the place of its fault.
struct CodecLaunch {
  CudaCodec kernel;
  library::Codec arguments{};
  int64_t threads = 0;
};
Result<CodecLaunch> codecLaunch(const LibraryArguments &a);
/// Where the parts of a payload lie that is read in place, for its launch.
Status placeParts(const LibraryArguments &a, const LaunchPlace &place, RankDevice &rank,
                  library::Codec &arguments);
Result<StreamCommand> makeCodec(const LibraryArguments &a, const LaunchPlace &place,
                                RankDevice &rank);
/// The parameters of a launch of a generated kernel, without the place of its faults.
struct LaunchParameters {
  struct Codec {
    size_t operand;
    bool decodes;
    library::Codec arguments;
  };
  std::vector<uint64_t> words; ///< addresses and strides
  std::vector<Codec> codecs;   ///< of operands that are payloads
  unsigned rows = 0;
  std::vector<int> order; ///< of each parameter but the last: a codec, or -1 for the next word

  /// Addresses of the parameters, which are valid while nothing is added.
  std::vector<void *> addresses();
};
Result<LaunchParameters> launchParameters(const CudaKernel &kernel,
                                          const DeviceLaunchCommand &command);
/// What a fault of a payload says where a kernel may have several: the number of the command in its
/// low 32 bits, and the operand above.
constexpr uint64_t payloadFault(uint64_t number, size_t operand) {
  return number | uint64_t(operand) << 32;
}
constexpr uint64_t commandOfFault(uint64_t fault) { return fault & UINT32_MAX; }
constexpr size_t operandOfFault(uint64_t fault) { return static_cast<size_t>(fault >> 32); }
/// What is wrong with the payload of a call that has a fault.
Status payloadError(const LibraryArguments &call, const library::Fault &fault);
/// The same of a launch of a generated kernel, which names the operand.
Status payloadError(const DeviceLaunchCommand &command, const library::Fault &fault);
Result<StreamCommand> makeCopy(const CopyCommand &command, RankDevice &rank);
/// Copies the bytes [range.begin, range.end) of the logical order.
Result<StreamCommand> makeCopy(const StridedRuns &runs, const std::byte *source, std::byte *dest,
                               ByteRange range, RankDevice &rank);
/// Copies rows of a part of an all_to_all_v's value, of each block as many as `counts` says, and
/// writes zeros to the others.
Result<StreamCommand> makeCopyCounted(const StridedRuns &runs, const CountedBlocks &part,
                                      const std::byte *source, std::byte *dest,
                                      const library::Integers &counts, RankDevice &rank);
/// A count out of range is a fault of command `number` of the collective's queue.
Result<StreamCommand> makeCheckCounts(const Collective &c, const std::byte *counts, uint64_t number,
                                      RankDevice &rank);
/// The counts of an all_to_all_v from a certain block on.
library::Integers countsFrom(const StridedView &view, DType dtype, const std::byte *data,
                             int64_t block);
/// Writes zeros to the output of a value.
StreamCommand makeFill(const CollectiveValue &value, std::byte *output, RankDevice &rank);
/// Reduces bytes [range.begin, range.end) of the part of a value from `sources`, in this order.
Result<StreamCommand> makeReduce(const CollectiveValue &value,
                                 const std::vector<const std::byte *> &sources, std::byte *output,
                                 ByteRange range, ReduceKind kind, RankDevice &rank);

} // namespace braid::runtime::cuda
#endif // BRAID_CUDA_STREAMCOMMAND_H
