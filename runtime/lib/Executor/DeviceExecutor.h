//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interface of a device other than the CPU: memory for all ranks, and running their resolved
// programs on it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_EXECUTOR_DEVICEEXECUTOR_H
#define BRAID_EXECUTOR_DEVICEEXECUTOR_H

#include "Executor.h"

namespace braid::runtime {

struct DeviceSetup {
  std::shared_ptr<const Bundle> bundle;
  const program::ProgramT *program = nullptr;
  std::vector<uint32_t> roots; ///< the entries' procedures
  const WorldOptions *options = nullptr;
  uint64_t localBytes = 0, symmetricBytes = 0;
  struct Value {
    size_t bytes;
    std::optional<uint64_t> symmetricOffset; ///< in the symmetric arena; else it lies elsewhere
  };
  /// A rank's values, in the order of Model::State::values.
  std::vector<std::vector<Value>> values;
};

class DeviceExecutor {
public:
  virtual ~DeviceExecutor() = default;

  /// The memory and groups of ranks. Nothing calls its `run`: `run` below includes collectives.
  virtual Transport &transport() = 0;
  virtual std::byte *local(int64_t rank) = 0;
  virtual std::byte *value(int64_t rank, size_t index) = 0;
  virtual int64_t memoryBytes() const = 0;

  /// Called once for each entry, when the ranks have their programs of it; their addresses do not
  /// change afterwards.
  virtual Status prepare(Workers &workers, size_t entry) = 0;
  /// Host memory to write weights to: one of two buffers in turn. Returns when the upload of what
  /// this buffer held before is complete.
  virtual Result<std::byte *> stage(size_t bytes) = 0;
  /// Uploads the buffer that was staged last to byte `offset` of a value.
  virtual Status uploadStaged(int64_t rank, size_t index, size_t offset, size_t bytes) = 0;
  virtual Status finishUploads() = 0;
  /// Both return when the data has been copied.
  virtual Status upload(int64_t rank, size_t index, const void *data, size_t bytes) = 0;
  virtual Status download(int64_t rank, size_t index, void *data, size_t bytes) = 0;
  /// Runs an entry on all ranks once and records times and spans as the CPU's executor does.
  virtual Status run(Workers &workers, size_t entry) = 0;

  virtual const std::string &architecture() const = 0; ///< of the kernels in use: "sm_90a"
  virtual std::vector<std::string> deviceNames() const = 0;
};

Result<std::unique_ptr<DeviceExecutor>> createCudaExecutor(const DeviceSetup &setup);

} // namespace braid::runtime
#endif // BRAID_EXECUTOR_DEVICEEXECUTOR_H
