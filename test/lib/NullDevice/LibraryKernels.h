//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a kernel of library.cuh is described to the null device.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_NULLDEVICE_LIBRARYKERNELS_H
#define BRAID_TEST_NULLDEVICE_LIBRARYKERNELS_H

#include "NullDevice.h"
#include "braid/Program/Manifest.h"
#include "braid/library_arguments.h"

#include <cstring>

namespace braid::null {

/// `threads`: the number of threads that have work.
template <typename Arguments>
LibraryKernel make(const std::string &name,
                   std::string (*accesses)(const Arguments &, std::vector<Access> &),
                   void (*run)(const Arguments &), int64_t (*threads)(const Arguments &)) {
  auto copy = [](const void *raw) {
    Arguments arguments;
    std::memcpy(&arguments, raw, sizeof arguments);
    return arguments;
  };
  return {sizeof(Arguments),
          [=](const void *raw, unsigned grid, unsigned block, std::vector<Access> &out) {
            const Arguments arguments = copy(raw);
            const int64_t needed = (threads(arguments) + library::kThreads - 1) / library::kThreads;
            if (grid != needed || block != library::kThreads)
              return "'" + name + "' expects " + std::to_string(needed) + " blocks of " +
                     std::to_string(library::kThreads) + " threads, got " + std::to_string(grid) +
                     " of " + std::to_string(block);
            return accesses(arguments, out);
          },
          [=](const void *raw) { run(copy(raw)); }};
}

/// For kernels whose accesses follow from the descriptor: the last `outputs` operands, of which
/// those that are left out have no data, are written.
template <int operands, int outputs>
std::string callAccesses(const library::Call &a, std::vector<Access> &accesses) {
  for (int i = 0; i < operands; ++i) {
    const library::Operand &operand = a.operands[i];
    if (!operand.data)
      continue;
    const int64_t size = runtime::byteSize(static_cast<runtime::DType>(operand.dtype));
    std::vector<int64_t> shape(operand.sizes, operand.sizes + operand.rank),
        strides(operand.strides, operand.strides + operand.rank);
    for (int64_t &stride : strides)
      stride *= size;
    addRows(accesses, i >= operands - outputs, operand.data, shape, strides, size);
  }
  return {};
}
inline int64_t callThreads(const library::Call &a) { return a.rows * 32; }

} // namespace braid::null
#endif // BRAID_TEST_NULLDEVICE_LIBRARYKERNELS_H
