//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Modules and launches: host libraries that replace code for a GPU (NullLaunch.h), and the kernels
// of library.cuh, which every such library is assumed to contain.
//
//===----------------------------------------------------------------------===//
#include "NullDevice.h"
#include "NullLaunch.h"
#include "braid/Runtime/CudaKernels.h"

#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace braid::null {

struct Kernel {
  std::string name;
  runtime::CudaKernel table; ///< of a generated kernel
  BraidNullKernel run = nullptr;
  const LibraryKernel *library = nullptr;
  std::vector<size_t> parameterBytes;
  int device = 0;
  unsigned maxSharedBytes = 48 * 1024;         ///< unless the launch asks for more
  mutable std::map<size_t, uint64_t> launches; ///< the last launch, by lane
};

namespace {

struct Code {
  void *handle = nullptr;
  int file = -1, device = 0;
  runtime::CudaLaunchTable table;
  std::map<std::string, Kernel> kernels;
};

// Never destroyed, like the World.
std::set<Code *> &loaded() {
  static std::set<Code *> &instance = *new std::set<Code *>;
  return instance;
}
std::set<const Kernel *> &known() {
  static std::set<const Kernel *> &instance = *new std::set<const Kernel *>;
  return instance;
}

/// The size of an ELF file, computed from the end of its section headers.
size_t sizeOf(const void *image) {
  const auto *bytes = static_cast<const unsigned char *>(image);
  uint64_t offset;
  uint16_t entrySize, entries;
  std::memcpy(&offset, bytes + 0x28, sizeof offset);
  std::memcpy(&entrySize, bytes + 0x3A, sizeof entrySize);
  std::memcpy(&entries, bytes + 0x3C, sizeof entries);
  return offset + size_t(entrySize) * entries;
}

std::string load(const void *image, Code &code) {
  if (std::memcmp(image, "\177ELF", 4) != 0)
    return "the null device runs libraries of the host, this is none";
  constexpr uint16_t kMachineCuda = 190;
  uint16_t machine;
  std::memcpy(&machine, static_cast<const char *>(image) + 18, sizeof machine);
  if (machine == kMachineCuda)
    return "the null device runs libraries of the host, this is code for a GPU";
  code.file = memfd_create("kernels", MFD_CLOEXEC);
  const size_t size = sizeOf(image);
  if (code.file < 0 || write(code.file, image, size) != static_cast<ssize_t>(size))
    return "cannot store the code";
  code.handle = dlopen(("/proc/self/fd/" + std::to_string(code.file)).c_str(), RTLD_NOW);
  if (!code.handle)
    return dlerror();
  const auto *text = static_cast<const char *>(dlsym(code.handle, "braid_launch_table"));
  if (!text)
    return "the code has no 'braid_launch_table'";
  runtime::Result<runtime::CudaLaunchTable> table = runtime::CudaLaunchTable::fromJson(text);
  if (!table.ok())
    return "'braid_launch_table': " + table.status().message();
  code.table = std::move(*table);
  return {};
}

/// Collects the accesses of a launch of a generated kernel. Returns what is wrong with it, or
/// empty.
std::string accessesOf(const Kernel &kernel, unsigned grid, unsigned block, unsigned sharedBytes,
                       void **parameters, std::vector<Access> &accesses) {
  const runtime::CudaKernel &table = kernel.table;
  unsigned rows;
  std::memcpy(&rows, parameters[kernel.parameterBytes.size() - 1], sizeof rows);
  if (block != table.threads || sharedBytes != table.sharedBytes || grid != table.blocks(rows))
    return "'" + kernel.name + "' over " + std::to_string(rows) + " rows expects " +
           std::to_string(table.blocks(rows)) + " blocks of " + std::to_string(table.threads) +
           " threads with " + std::to_string(table.sharedBytes) + " bytes, got " +
           std::to_string(grid) + " of " + std::to_string(block) + " with " +
           std::to_string(sharedBytes);
  size_t at = 0;
  for (size_t i = 0; i < table.operands.size(); ++i) {
    const runtime::CudaOperand &operand = table.operands[i];
    const bool writes = i + static_cast<size_t>(table.outputs) >= table.operands.size();
    if (!operand.codec.empty()) {
      library::Codec codec;
      std::memcpy(&codec, parameters[at++], sizeof codec);
      if (std::string problem = payloadAccesses(kernel.name + "', operand '" + operand.name, codec,
                                                !writes, accesses);
          !problem.empty())
        return problem;
      continue;
    }
    const auto alignment = static_cast<uint64_t>(operand.alignment);
    const int64_t size = runtime::byteSize(operand.dtype);
    uint64_t data;
    std::memcpy(&data, parameters[at++], sizeof data);
    std::vector<int64_t> shape = operand.shape, strides(shape.size(), size);
    if (operand.isRow())
      shape[0] = rows;
    bool aligned = data % alignment == 0;
    for (size_t d = 0; d < operand.numStrides(); ++d) {
      std::memcpy(&strides[d], parameters[at++], sizeof strides[d]);
      strides[d] *= size;
      aligned &= shape[d] == 1 || static_cast<uint64_t>(strides[d]) % alignment == 0;
    }
    if (!aligned)
      return "'" + kernel.name + "' expects operand '" + operand.name + "' aligned to " +
             std::to_string(alignment) + " bytes";
    addRows(accesses, writes, reinterpret_cast<const void *>(data), shape, strides, size);
  }
  return {};
}

/// A copy of parameter values, since the caller's need not outlive the launch.
struct Values {
  std::vector<std::vector<uint64_t>> words;
  std::vector<void *> addresses;
};

std::shared_ptr<Values> copyValues(const Kernel &kernel, void **parameters) {
  auto values = std::make_shared<Values>();
  for (size_t i = 0; i < kernel.parameterBytes.size(); ++i) {
    values->words.emplace_back((kernel.parameterBytes[i] + 7) / 8);
    std::memcpy(values->words.back().data(), parameters[i], kernel.parameterBytes[i]);
  }
  for (auto &words : values->words)
    values->addresses.push_back(words.data());
  return values;
}

} // namespace

} // namespace braid::null

using namespace braid::null;

extern "C" {

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  Guard guard(world().mutex);
  auto code = std::make_unique<Code>();
  if (std::string problem = load(image, *code); !problem.empty())
    return result(problem);
  code->device = world().current;
  *module = reinterpret_cast<CUmodule>(code.get());
  loaded().insert(code.release());
  world().modules = loaded().size();
  return kSuccess;
}

CUresult cuModuleUnload(CUmodule module) {
  Guard guard(world().mutex);
  auto *code = reinterpret_cast<Code *>(module);
  if (!loaded().count(code))
    return result("code is unloaded that is not loaded");
  for (const auto &entry : code->kernels)
    for (auto [lane, time] : entry.second.launches)
      if (world().host.clock.at(lane) < time)
        return result("code is unloaded while '" + entry.first + "' may still run");
  for (const auto &entry : code->kernels)
    known().erase(&entry.second);
  loaded().erase(code);
  world().modules = loaded().size();
  dlclose(code->handle);
  close(code->file);
  delete code;
  return kSuccess;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  Guard guard(world().mutex);
  auto *code = reinterpret_cast<Code *>(module);
  Kernel &kernel = code->kernels[name];
  kernel.name = name;
  kernel.device = code->device;
  kernel.run = reinterpret_cast<BraidNullKernel>(dlsym(code->handle, name));
  for (const auto &entry : code->table.kernels)
    if (entry.function == name) {
      kernel.table = entry;
      kernel.parameterBytes = entry.parameterBytes();
    }
  kernel.library = findLibraryKernel(name);
  if (kernel.library)
    kernel.parameterBytes = {kernel.library->bytes};
  if (!kernel.run && !kernel.library) {
    code->kernels.erase(name);
    return kInvalidValue;
  }
  known().insert(&kernel);
  *function = reinterpret_cast<CUfunction>(&kernel);
  return kSuccess;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  Guard guard(world().mutex);
  auto *kernel = reinterpret_cast<Kernel *>(function);
  if (!known().count(kernel) || attribute != kMaxDynamicSharedBytes || value < 0)
    return kInvalidValue;
  kernel->maxSharedBytes = static_cast<unsigned>(value);
  return kSuccess;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  Guard guard(world().mutex);
  const auto *kernel = reinterpret_cast<const Kernel *>(function);
  if (!known().count(kernel) || index >= kernel->parameterBytes.size())
    return kInvalidValue;
  *offset = index * 8;
  *size = kernel->parameterBytes[index];
  return kSuccess;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gridX, unsigned gridY, unsigned gridZ,
                        unsigned blockX, unsigned blockY, unsigned blockZ, unsigned sharedBytes,
                        CUstream stream, void **parameters, void **) {
  Guard guard(world().mutex);
  const auto *kernel = reinterpret_cast<const Kernel *>(function);
  if (!known().count(kernel))
    return result("a function is launched that is not loaded");
  if (gridX == 0 || gridY != 1 || gridZ != 1 || blockX == 0 || blockY != 1 || blockZ != 1)
    return result("'" + kernel->name + "' is launched with blocks or threads that are not a row");
  if (sharedBytes > kernel->maxSharedBytes)
    return result("'" + kernel->name + "' is launched with " + std::to_string(sharedBytes) +
                  " bytes of dynamic shared memory, it may have " +
                  std::to_string(kernel->maxSharedBytes));
  std::vector<Access> accesses;
  std::string problem = kernel->library
                            ? kernel->library->accesses(parameters[0], gridX, blockX, accesses)
                            : accessesOf(*kernel, gridX, blockX, sharedBytes, parameters, accesses);
  if (!problem.empty())
    return result(problem);
  std::shared_ptr<Values> values = copyValues(*kernel, parameters);
  auto run = [=] {
    const BraidNullLaunch launch{gridX, blockX, sharedBytes, values->addresses.data()};
    if (kernel->run)
      kernel->run(&launch);
    else
      kernel->library->run(values->addresses[0]);
  };
  Action action = checked("'" + kernel->name + "'", std::move(accesses), run);
  return result(submit(reinterpret_cast<Stream *>(stream), [=](const std::vector<Lane *> &lanes) {
    Lane &lane = *lanes.front();
    if (kernel->device != lane.device)
      return "'" + kernel->name + "' was loaded on device " + std::to_string(kernel->device) +
             ", " + lane.name + " is of device " + std::to_string(lane.device);
    if (world().stallAt == kernel->name) {
      lane.stuck = true;
      return std::string();
    }
    std::string problem = action(lanes);
    kernel->launches[lane.number] = lane.clock.at(lane.number);
    return problem;
  }));
}

} // extern "C"
