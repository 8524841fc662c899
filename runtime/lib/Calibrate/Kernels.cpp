//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Measures kernels and memory. The weights of a product come from memory, as in a model, whose
// layers take turns in the caches; its left side has just been written, and its result lies where
// one lay some operations before.
//
//===----------------------------------------------------------------------===//
#include "LibraryWork.h"
#include "Parts.h"
#include "Statistics.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Cost/OperationTime.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/KernelLibrary.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <utility>

namespace braid::runtime {

namespace {

constexpr size_t kMiB = size_t(1) << 20;

struct Sizes {
  /// m, and n and k, of products. From some hundred rows on, multiples of 256 are up to a tenth
  /// faster than most numbers of tokens.
  std::vector<int64_t> rows, columns;
  std::vector<int64_t> queryRows, keys, headDims;
  std::vector<int64_t> memoryBytes;
  /// That weights are taken from in turn to measure what caches have of them.
  std::vector<size_t> weightMegabytes;
  size_t weightBytes;     ///< that weights are taken from in turn, as from memory
  size_t activationBytes; ///< the same of results, and the most of a left side
};

const Sizes &sizes(bool quick) {
  static const Sizes whole{{1, 4, 8, 16, 32, 64, 150, 300, 1000},
                           {64, 256, 512, 1024, 2048, 4096},
                           {1, 16, 128, 512},
                           {64, 256, 1024},
                           {32, 64, 128},
                           {1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28},
                           {1, 4, 16, 32, 64, 96, 160},
                           160 * kMiB,
                           16 * kMiB};
  static const Sizes few{{1, 64}, {64, 256}, {1, 64}, {64}, {32}, {1 << 14, 1 << 20},
                         {1},     kMiB,      kMiB};
  return quick ? few : whole;
}

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

/// The operands of a core's products. All products take weights and results in turn: each that
/// began at the same place would find in the caches what the one before used. The left side is what
/// a model's core has just written.
class MatmulMemory {
public:
  MatmulMemory(std::byte *memory, const Sizes &s)
      : weights{reinterpret_cast<float *>(memory), s.weightBytes / kFloat},
        out{weights.begin + weights.size, s.activationBytes / kFloat}, lhs(out.begin + out.size) {}

  /// Memory that is taken in turn.
  struct Pool {
    float *begin;
    size_t size, next = 0;
    float *take(int64_t count) {
      if (next + static_cast<size_t>(count) > size)
        next = 0;
      return begin + std::exchange(next, next + static_cast<size_t>(count));
    }
  };
  Pool weights, out;
  float *lhs;
};

class MatmulWork : public Work {
public:
  MatmulWork(int64_t m, int64_t n, int64_t k, MatmulMemory &memory)
      : shape{m, n, k, k, k, n, false, false, true, false}, memory(memory) {}

  /// Takes weights from the first bytes of the memory only.
  Status start(size_t weightBytes) {
    memory.weights = {memory.weights.begin, weightBytes / kFloat};
    RETURN_IF_ERROR(start());
    constexpr int kPasses = 2; // until caches have what they keep
    const size_t weight = static_cast<size_t>(shape.n * shape.k) * kFloat;
    for (size_t i = 0; i < kPasses * (weightBytes / weight); ++i) {
      prepare();
      run();
    }
    return {};
  }
  Status start() {
    ASSIGN_OR_RETURN(matmul, cache.get(shape));
    return {};
  }
  void prepare() override {
    call = matmul->bind(memory.lhs, memory.weights.take(shape.n * shape.k), nullptr,
                        memory.out.take(shape.m * shape.n));
  }
  void run() override { call->run(); }

private:
  MatmulShape shape;
  MatmulMemory &memory;
  MatmulCache cache;
  std::shared_ptr<const Matmul> matmul;
  std::unique_ptr<MatmulCall> call;
};

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

/// A kernel on rows of [rows, columns] each, at one or several places, which it takes in turn.
class RowWorkRun : public CommandWork {
public:
  Status start(KernelFunction function, std::byte *memory, size_t numOperands, int64_t rows,
               int64_t columns, size_t places) {
    const std::vector<int64_t> shape{rows, columns}, strides{columns, 1};
    for (size_t place = 0; place < places; ++place) {
      std::vector<Tensor> operands;
      for (size_t i = 0; i < numOperands; ++i) {
        operands.push_back({memory, DType::f32, shape, strides});
        fill(reinterpret_cast<float *>(memory), static_cast<size_t>(rows * columns));
        memory += (static_cast<size_t>(rows * columns) * kFloat + 63) / 64 * 64;
      }
      ASSIGN_OR_RETURN(
          LaunchCommand command,
          resolveLaunch(function, operands, std::vector<bool>(numOperands, true), rows, 1));
      commands.push_back(std::move(command));
    }
    return {};
  }
  void prepare() override { current = (current + 1) % commands.size(); }

private:
  void perform(ExecutionContext &context) override { execute(commands[current], source, context); }
  std::vector<LaunchCommand> commands;
  size_t current = 0;
};

} // namespace

size_t kernelMemoryBytes(bool quick) {
  const Sizes &s = sizes(quick);
  return std::max(s.weightBytes + 2 * s.activationBytes,
                  static_cast<size_t>(s.memoryBytes.back())) +
         kMiB;
}

Status measureMatmuls(Crew &crew, bool quick, cost::ComputeRates &rates) {
  const Sizes &s = sizes(quick);
  const size_t floats = kernelMemoryBytes(quick) / kFloat;
  std::map<std::byte *, MatmulMemory> memories; // of each member
  std::mutex mutex;
  Crew::Make touch = [&](std::byte *memory) -> Result<std::unique_ptr<Work>> {
    fill(reinterpret_cast<float *>(memory), floats);
    std::lock_guard lock(mutex);
    MatmulMemory &own = memories.try_emplace(memory, memory, s).first->second;
    return started(std::make_unique<MatmulWork>(1, 64, 64, own));
  };
  RETURN_IF_ERROR(crew.measure(touch, {0, 1}).status());
  for (int64_t m : s.rows)
    for (int64_t n : s.columns)
      for (int64_t k : s.columns)
        rates.matmul.push_back({m, n, k, 0});
  // In random order, and some times each: a host is slower for seconds, as virtual machines are,
  // and neither one product nor those of similar sizes should have such seconds alone. What takes
  // long is a mean over much of that time as it is.
  std::vector<size_t> order(rates.matmul.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::mt19937 random(1);
  const int passes = quick ? 1 : 3;
  Repetitions each = repetitions(quick);
  each.seconds /= 4;
  each.least = 1;
  constexpr double kLong = 0.01;
  std::vector<std::vector<double>> times(rates.matmul.size());
  auto measure = [&](size_t i) -> Status {
    cost::MatmulPoint &point = rates.matmul[i];
    ASSIGN_OR_RETURN(const Timing timing,
                     crew.measure(
                         [&](std::byte *memory) {
                           return started(std::make_unique<MatmulWork>(point.m, point.n, point.k,
                                                                       memories.at(memory)));
                         },
                         each));
    std::vector<double> &own = times[i];
    own.push_back(timing.seconds);
    point.flopsPerSecond =
        2 * static_cast<double>(point.m * point.n * point.k) / meanOfFasterHalf(own);
    return {};
  };
  for (int pass = 0; pass < passes; ++pass) {
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i : order)
      if (times[i].empty() || times[i].front() < kLong)
        RETURN_IF_ERROR(measure(i));
  }
  // Long ones have few repetitions, which something else may have disturbed: those that are slower
  // than products of similar sizes are measured again. Many are, at little cost, as they are small.
  constexpr int kTimes = 2;
  constexpr double kSlower = 0.9;
  const std::array<size_t, 3> lengths{s.rows.size(), s.columns.size(), s.columns.size()};
  auto rate = [&](size_t i) { return rates.matmul[i].flopsPerSecond; };
  for (int time = 0; time < kTimes && !quick; ++time)
    for (size_t i : order)
      if (rates.matmul[i].flopsPerSecond < kSlower * meanOfNeighbours(lengths, i, rate))
        RETURN_IF_ERROR(measure(i));
  for (const std::vector<double> &own : times)
    crew.addToSpread(own);
  // How long the right side takes from elsewhere than memory depends little on its columns, and
  // from 16 rows on little on the rows.
  for (int64_t m : {1, 16})
    for (size_t megabytes : s.weightMegabytes) {
      constexpr int64_t kSize = 512;
      const size_t bytes = megabytes * kMiB, weight = kSize * kSize * kFloat;
      const int passes = quick ? 1 : 3;
      ASSIGN_OR_RETURN(
          const Timing timing,
          crew.measure(
              [&](std::byte *memory) {
                return started(std::make_unique<MatmulWork>(m, kSize, kSize, memories.at(memory)),
                               bytes);
              },
              {0, std::max(passes * static_cast<int>(bytes / weight), quick ? 1 : 40)}));
      rates.weightReads.push_back(
          {m, static_cast<int64_t>(bytes), static_cast<double>(weight) / timing.seconds});
    }
  return {};
}

Status measureInt8Matmuls(Crew &crew, bool quick, cost::ComputeRates &rates) {
  // Rates grow steadily in each size, so that few of them tell.
  const std::vector<int64_t> rows = quick ? std::vector<int64_t>{1, 16}
                                          : std::vector<int64_t>{1, 16, 64, 256},
                             columns = quick ? std::vector<int64_t>{64}
                                             : std::vector<int64_t>{128, 512, 2048};
  // Weights that are taken in turn come from memory, the first ones too: each product begins where
  // the one before has not been.
  const size_t pool = sizes(quick).weightBytes;
  constexpr size_t kMostSets = 4096, kFurther = 37 * kMiB;
  struct Touch : Work {
    Touch(std::byte *memory, size_t bytes) { std::memset(memory, 1, bytes); }
    void run() override {}
  };
  Crew::Make touch = [&](std::byte *memory) -> Result<std::unique_ptr<Work>> {
    return std::unique_ptr<Work>(std::make_unique<Touch>(memory, pool));
  };
  RETURN_IF_ERROR(crew.measure(touch, {0, 1}).status());
  size_t begin = 0;
  for (int64_t m : rows)
    for (int64_t n : columns)
      for (int64_t k : columns) {
        ASSIGN_OR_RETURN(const Timing timing,
                         crew.measure(
                             [&](std::byte *memory) {
                               Arguments a("matmul", memory + pool);
                               a.addBytes("lhs", {m, k});
                               a.addBytes("rhs", {n, k});
                               a.add("lhs_scale", {m});
                               a.add("rhs_scale", {n});
                               a.add("out", {m, n});
                               a.arguments.integers = {0, 1, 0};
                               const auto bytes = static_cast<size_t>(n * k);
                               const size_t places = pool / bytes;
                               std::vector<LibraryArguments> sets;
                               for (size_t i = 0; i < std::min(places, kMostSets); ++i) {
                                 a.arguments.data[a.arguments.place("rhs")] =
                                     memory + (begin / bytes + i) % places * bytes;
                                 sets.push_back(a.arguments);
                               }
                               return started(std::make_unique<LibraryWork>(), sets);
                             },
                             repetitions(quick)));
        begin += kFurther;
        rates.int8Matmul.push_back({m, n, k, 2 * static_cast<double>(m * n * k) / timing.seconds});
      }
  return {};
}

Status measureAttention(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates) {
  const Sizes &s = sizes(quick);
  const size_t pool = std::min(poolBytes, kernelMemoryBytes(quick));
  // Several heads, so that one follows the other as in a layer, at places that are taken in turn,
  // as products and collectives came between what wrote the operands and this.
  constexpr int64_t kHeads = 4;
  constexpr size_t kMostSets = 32;
  for (int64_t rows : s.queryRows)
    for (int64_t keys : s.keys)
      for (int64_t dim : s.headDims)
        for (bool causal : {false, true}) {
          double flops = 0;
          ASSIGN_OR_RETURN(
              const Timing timing,
              crew.measure(
                  [&](std::byte *memory) {
                    // No more positions than keys; then several query heads share a key head.
                    const int64_t positions = std::min(rows, keys);
                    std::vector<LibraryArguments> sets;
                    const std::byte *begin = memory;
                    // As many as the pool holds, but no more than are measured.
                    for (size_t own = 0;
                         sets.empty() || (sets.size() < kMostSets &&
                                          static_cast<size_t>(memory - begin) + own <= pool);) {
                      Arguments a("attention", memory);
                      a.add("query", {1, positions, kHeads * (rows / positions), dim});
                      a.add("key", {1, keys, kHeads, dim});
                      a.add("value", {1, keys, kHeads, dim});
                      a.add("out", {1, positions, kHeads * (rows / positions), dim});
                      a.addOnes("mask", {1, keys});
                      // The rows are the last ones of as many positions as there are keys.
                      if (causal && positions < keys)
                        a.addInteger("position_offset", keys - positions);
                      a.arguments.integers = {causal};
                      a.arguments.numbers = {0.125};
                      own = static_cast<size_t>(a.end() - memory);
                      memory = a.end();
                      sets.push_back(std::move(a.arguments));
                    }
                    const LibraryArguments &first = sets.front();
                    flops = first.kernel->flops(first) *
                            (causal ? cost::causalPart(positions, keys, positions < keys) : 1);
                    return started(std::make_unique<LibraryWork>(), sets);
                  },
                  repetitions(quick)));
          rates.attention.push_back({rows, keys, dim, causal, flops / timing.seconds});
        }
  return {};
}

/// The copy rate at a number of bytes, of those that were measured.
static double trafficSeconds(const cost::ComputeRates &rates, double bytes) {
  for (const cost::MemoryPoint &point : rates.memory)
    if (bytes <= static_cast<double>(point.bytes))
      return bytes / point.copyBytesPerSecond;
  return bytes / rates.memory.back().copyBytesPerSecond;
}

Status measureRows(Crew &crew, bool quick, size_t poolBytes, const Bundle *bundle,
                   cost::ComputeRates &rates) {
  const int64_t rows = quick ? 4 : 64;
  // Rotary embedding of heads of 64.
  ASSIGN_OR_RETURN(const Timing rotary, crew.measure(
                                            [&](std::byte *memory) {
                                              Arguments a("rotary", memory);
                                              a.add("input", {1, rows, 8, 64});
                                              a.add("cos", {rows, 32});
                                              a.add("sin", {rows, 32});
                                              a.add("out", {1, rows, 8, 64});
                                              return started(std::make_unique<LibraryWork>(),
                                                             std::vector{a.arguments});
                                            },
                                            repetitions(quick)));
  rates.rowOperations.push_back({"rotary", static_cast<double>(rows * 8 * 64) / rotary.seconds});
  ASSIGN_OR_RETURN(const Timing table, crew.measure(
                                           [&](std::byte *memory) {
                                             Arguments a("rotary_table", memory);
                                             a.add("cos", {rows, 32});
                                             a.add("sin", {rows, 32});
                                             a.arguments.numbers.assign(33, 0.5);
                                             return started(std::make_unique<LibraryWork>(),
                                                            std::vector{a.arguments});
                                           },
                                           repetitions(quick)));
  rates.rowOperations.push_back({"rotary_table", static_cast<double>(rows * 32) / table.seconds});
  if (!bundle)
    return {};

  ASSIGN_OR_RETURN(std::shared_ptr<const KernelLibraryHandle> library,
                   KernelLibraryHandle::load(*bundle));
  std::unique_ptr<program::ProgramT> program = program::UnPackProgram(bundle->program().data());
  std::map<std::string, double> secondsOf; // of one element, by operation
  // The kernels come in an order in which each has one operation that those before it have not.
  for (const auto &kernel : program->kernels) {
    ASSIGN_OR_RETURN(KernelFunction function, library->find(kernel->symbol));
    // Kernels take and give [rows, columns]; the first operation's count tells the columns.
    int64_t columns = 0;
    for (const auto &command : program->procedures[0]->streams[kComputeQueue]->commands)
      if (const program::LaunchT *launch = command->op.AsLaunch();
          launch && program->kernels[launch->kernel] == kernel)
        columns = launch->operands[0]->shape.back();
    const auto elements = static_cast<double>(rows * columns);
    ASSIGN_OR_RETURN(const Timing timing,
                     crew.measure(
                         [&](std::byte *memory) {
                           return started(std::make_unique<RowWorkRun>(), function, memory,
                                          size_t(kernel->num_operands), rows, columns, size_t(1));
                         },
                         repetitions(quick)));
    double seconds = timing.seconds;
    std::string own;
    double ownCount = 0;
    for (const auto &work : kernel->row_work) {
      const double count = static_cast<double>(work->count) * static_cast<double>(rows);
      if (auto known = secondsOf.find(work->operation); known != secondsOf.end())
        seconds -= count * known->second;
      else if (own.empty())
        own = work->operation, ownCount = count;
      else
        return Status::error("row kernel '", kernel->symbol, "' has two operations to measure, '",
                             own, "' and '", work->operation, "'");
    }
    if (own.empty())
      return Status::error("row kernel '", kernel->symbol, "' has no operation to measure");
    // Where memory alone takes as long, arithmetic is not seen: it is at least this fast.
    const double traffic =
        trafficSeconds(rates, elements * kFloat * static_cast<double>(kernel->num_operands));
    secondsOf[own] = std::max(seconds, 0.05 * std::min(traffic, timing.seconds)) / ownCount;
    rates.rowOperations.push_back({own, 1 / secondsOf[own]});

    // A kernel that combines rows, as norms do, on operands from afar: how much of its arithmetic
    // and its traffic goes on at the same time.
    if (own != "reduce")
      continue;
    constexpr size_t kMostPlaces = 32;
    const auto rowBytes = static_cast<size_t>(columns * kernel->num_operands) * kFloat;
    const size_t bytes = quick ? size_t(1) << 14 : 4 * kMiB;
    const auto many = static_cast<int64_t>(std::max<size_t>(1, bytes / rowBytes));
    const size_t pool = std::min(poolBytes, kernelMemoryBytes(quick)),
                 places = std::clamp<size_t>(pool / bytes, 1, kMostPlaces);
    ASSIGN_OR_RETURN(const Timing afar,
                     crew.measure(
                         [&](std::byte *memory) {
                           return started(std::make_unique<RowWorkRun>(), function, memory,
                                          size_t(kernel->num_operands), many, columns, places);
                         },
                         repetitions(quick)));
    double arithmetic = 0;
    for (const auto &work : kernel->row_work)
      arithmetic +=
          static_cast<double>(work->count) * static_cast<double>(many) * secondsOf[work->operation];
    const double memory = trafficSeconds(rates, static_cast<double>(many) * double(rowBytes));
    const double beside = arithmetic + memory - afar.seconds;
    rates.rowOverlapEfficiency = std::clamp(beside / std::min(arithmetic, memory), 0.01, 1.0);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {

/// Takes the bytes in turn from a pool, so that they are as far away as what a model used some
/// operations ago.
class PoolWork : public CommandWork {
public:
  PoolWork(std::byte *pool, size_t bytes, size_t poolBytes)
      : bytes(bytes), pool(pool), places(std::max<size_t>(1, poolBytes / bytes)) {
    std::memset(pool, 1, places * bytes);
  }
  void prepare() override {
    memory = pool + next * bytes;
    next = (next + 1) % places;
  }

protected:
  const size_t bytes;
  std::byte *memory = nullptr;

private:
  std::byte *pool;
  size_t places, next = 0;
};

class Read : public PoolWork {
public:
  using PoolWork::PoolWork;

private:
  void perform(ExecutionContext &) override {
    const auto *data = reinterpret_cast<const uint64_t *>(memory);
    uint64_t sums[8] = {};
    for (size_t i = 0; i + 8 <= bytes / sizeof(uint64_t); i += 8)
      for (size_t j = 0; j < 8; ++j)
        sums[j] += data[i + j];
    for (uint64_t sum : sums)
      total = total + sum;
  }
  volatile uint64_t total = 0;
};

class Write : public PoolWork {
public:
  using PoolWork::PoolWork;

private:
  void perform(ExecutionContext &) override { std::memset(memory, value++, bytes); }
  int value = 0;
};

/// As the executor copies.
class Copy : public PoolWork {
public:
  using PoolWork::PoolWork;
  void prepare() override {
    PoolWork::prepare();
    const auto half = static_cast<int64_t>(bytes / 2 / kFloat);
    const Tensor from{memory, DType::f32, {half}, {1}},
        to{memory + bytes / 2, DType::f32, {half}, {1}};
    if (Result<CopyCommand> resolved = resolveCopy(from, to); resolved.ok())
      command = *resolved;
  }

private:
  void perform(ExecutionContext &context) override { execute(command, source, context); }
  CopyCommand command{};
};

template <typename T> Crew::Make makeOn(size_t bytes, size_t poolBytes) {
  return [bytes, poolBytes](std::byte *memory) -> Result<std::unique_ptr<Work>> {
    return std::unique_ptr<Work>(std::make_unique<T>(memory, bytes, poolBytes));
  };
}

} // namespace

Status measureMemory(Crew &crew, bool quick, size_t poolBytes, cost::ComputeRates &rates) {
  for (int64_t bytes : sizes(quick).memoryBytes) {
    const auto size = static_cast<size_t>(bytes);
    const size_t pool = std::min(poolBytes, kernelMemoryBytes(quick));
    ASSIGN_OR_RETURN(const Timing read, crew.measure(makeOn<Read>(size, pool), repetitions(quick)));
    ASSIGN_OR_RETURN(const Timing write,
                     crew.measure(makeOn<Write>(size, pool), repetitions(quick)));
    ASSIGN_OR_RETURN(const Timing copy, crew.measure(makeOn<Copy>(size, pool), repetitions(quick)));
    auto rate = [&](const Timing &timing) { return static_cast<double>(bytes) / timing.seconds; };
    rates.memory.push_back({bytes, rate(read), rate(write), rate(copy)});
  }
  return {};
}

} // namespace braid::runtime
