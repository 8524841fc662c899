//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commands of an executor, and library kernels, as work of a crew.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_CALIBRATE_LIBRARYWORK_H
#define BRAID_CALIBRATE_LIBRARYWORK_H

#include "Crew.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Kernels/Operations.h"

#include <cstring>

namespace braid::runtime {

constexpr size_t kFloat = sizeof(float);

inline Repetitions repetitions(bool quick) {
  return quick ? Repetitions{0, 1} : Repetitions{0.005, 2};
}

/// Writes numbers that no kernel computes slowly with.
inline void fill(float *data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    data[i] = 0.25F + static_cast<float>(i % 61) / 64;
}

/// Runs a command as an executor's queue of one thread does.
class CommandWork : public Work {
public:
  void run() override {
    ExecutionContext context{control, control.queue(0, kComputeQueue), team, vectorKernels(),
                             scratch};
    perform(context);
  }

protected:
  virtual void perform(ExecutionContext &context) = 0;
  struct Nothing : NamedCommand {
    std::optional<Queue> awaitedQueue() const override { return std::nullopt; }
    std::vector<RankQueue> missing() const override { return {}; }
  };
  const Nothing source;

private:
  RunControl control{1, {{QueueKind::compute, "compute"}}, 0, {}};
  Team team{1};
  std::vector<std::vector<std::byte>> scratch{1};
};

/// A library kernel with one or several sets of arguments, which it takes in turn.
class LibraryWork : public CommandWork {
public:
  Status start(const std::vector<LibraryArguments> &sets) {
    for (const LibraryArguments &arguments : sets) {
      ASSIGN_OR_RETURN(LibraryCommand command,
                       resolveLibrary(arguments, {1, vectorKernels().queryBlock, nullptr}));
      commands.push_back(std::move(command));
    }
    return {};
  }
  void prepare() override { current = (current + 1) % commands.size(); }

private:
  void perform(ExecutionContext &context) override { commands[current]->run(source, context); }
  std::vector<LibraryCommand> commands;
  size_t current = 0;
};

inline std::vector<int64_t> rowMajor(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d];
  return strides;
}

/// Arguments of a library kernel; operands lie one after the other.
class Arguments {
public:
  Arguments(const char *kernel, std::byte *memory) : at(memory) {
    arguments.kernel = findLibraryKernel(kernel);
    arguments.operands.resize(arguments.kernel->operands.size());
    arguments.data.resize(arguments.operands.size());
  }
  void add(const char *name, const std::vector<int64_t> &shape) {
    const size_t i = arguments.place(name);
    arguments.operands[i] = OperandType{DType::f32, shape, rowMajor(shape)};
    arguments.data[i] = at;
    size_t count = 1;
    for (int64_t size : shape)
      count *= static_cast<size_t>(size);
    fill(reinterpret_cast<float *>(at), count);
    at += (count * kFloat + 63) / 64 * 64;
  }
  /// An operand of i8.
  void addBytes(const char *name, const std::vector<int64_t> &shape) {
    const size_t i = arguments.place(name);
    arguments.operands[i] = OperandType{DType::i8, shape, rowMajor(shape)};
    arguments.data[i] = at;
    const auto count = static_cast<size_t>(shape[0] * shape[1]);
    for (size_t j = 0; j < count; ++j)
      at[j] = static_cast<std::byte>(j % 61);
    at += (count + 63) / 64 * 64;
  }
  /// An operand of i64, all one.
  void addOnes(const char *name, const std::vector<int64_t> &shape) {
    const size_t i = arguments.place(name);
    arguments.operands[i] = OperandType{DType::i64, shape, rowMajor(shape)};
    arguments.data[i] = at;
    const int64_t count = shape[0] * shape[1];
    std::fill_n(reinterpret_cast<int64_t *>(at), count, 1);
    at += (static_cast<size_t>(count) * sizeof(int64_t) + 63) / 64 * 64;
  }
  /// An operand of one i64.
  void addInteger(const char *name, int64_t value) {
    const size_t i = arguments.place(name);
    arguments.operands[i] = OperandType{DType::i64, {1}, {1}};
    arguments.data[i] = at;
    std::memcpy(at, &value, sizeof value);
    at += 64;
  }
  LibraryArguments arguments;
  /// Behind the operands.
  std::byte *end() const { return at; }

private:
  std::byte *at;
};

template <typename T, typename... Start>
Result<std::unique_ptr<Work>> started(std::unique_ptr<T> work, const Start &...start) {
  RETURN_IF_ERROR(work->start(start...));
  return std::unique_ptr<Work>(std::move(work));
}

} // namespace braid::runtime
#endif // BRAID_CALIBRATE_LIBRARYWORK_H
