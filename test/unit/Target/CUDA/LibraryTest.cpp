//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the kernels of library.cuh on the CPU and compares them with the interpreter's operations:
// on operands with gaps between rows and guards around them, and with threads in several random
// orders.
//
//===----------------------------------------------------------------------===//
#include "KernelCheck.h"

#include "braid/Interpreter/Core/Kernels.h"
#include "lib/Target/CUDA/Compilers.h"
#include "runtime/kernels/cuda/braid/library_arguments.h"
#include "test/lib/cuda-on-host/HostCompiler.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <random>

using namespace braid;
using namespace braid::test;
using interp::DType;
using interp::Shape;
using interp::Tensor;

namespace {
const char *kSource = "#include <braid/library.cuh>\n";
const std::vector<std::string> kNames{std::begin(kLibraryKernels), std::end(kLibraryKernels)};

struct Library : ::testing::Test {
  static void SetUpTestSuite() { kernels = HostKernels::compile(kSource, kNames).release(); }
  static void TearDownTestSuite() {
    delete kernels;
    kernels = nullptr;
  }
  void SetUp() override { ASSERT_TRUE(kernels); }

  /// Launches a kernel with the number of blocks that this number of threads fills.
  template <class Arguments>
  void launch(const std::string &kernel, int64_t threads, Arguments arguments) {
    for (uint64_t seed : {1, 2, 3})
      ASSERT_EQ(kernels->launch(kernel, (threads + library::kThreads - 1) / library::kThreads,
                                library::kThreads, {&arguments}, seed),
                "");
  }

  Tensor floats(const Shape &shape, DType type = DType::f32) {
    std::vector<double> values(interp::numElements(shape));
    for (double &value : values)
      value = interp::roundTo(type, std::uniform_real_distribution<double>(-2, 2)(random));
    return Tensor::ofFloats(type, shape, std::move(values));
  }
  Tensor integers(const Shape &shape, int64_t least, int64_t most, DType type = DType::i64) {
    std::vector<int64_t> values(interp::numElements(shape));
    for (int64_t &value : values)
      value = std::uniform_int_distribution<int64_t>(least, most)(random);
    return Tensor::ofInts(type, shape, std::move(values));
  }

  static HostKernels *kernels;
  std::mt19937_64 random{7};
};
HostKernels *Library::kernels = nullptr;

/// The storage types of kernels that compute; the other kernels move bytes.
constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};
std::string ofType(const char *kernel, DType type) {
  return std::string(kernel) + "_" + runtime::name(type);
}
/// Results may be computed in f32 and rounded once, which rounds a few to the other neighbor. Sums
/// in a 16-bit type and truncated results exceed this bound.
double allowed(DType type, double inF32) {
  return type == DType::f32 ? inF32 : type == DType::f16 ? 1e-4 : 1e-3;
}

/// One dimension of `buffer` as the integers that a kernel reads.
library::Integers integersOf(Buffer &buffer, DType type, size_t dim = 0) {
  return {buffer.address(), buffer.strides()[dim], static_cast<int>(type == DType::i64)};
}

void expectResult(const Buffer &got, const interp::Result<Tensor> &expected, double allowed) {
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_TRUE(got.guardsHold()) << "memory outside of the result was written";
  EXPECT_LE(interp::relativeL2(got.read(), expected->roundedToStorage()), allowed);
}
} // namespace

TEST_F(Library, NoOtherKernels) {
  for (const cuda::Header &header : cuda::kernelHeaders())
    if (llvm::StringRef(header.name).ends_with("library.cuh"))
      EXPECT_EQ(llvm::StringRef(header.text).count("__global__"), kNames.size());
}

TEST_F(Library, CompilesForEveryGPU) {
  // Sines of large angles in f64 need some bytes of stack.
  std::vector<std::string> names;
  llvm::copy_if(kNames, std::back_inserter(names), [](const std::string &name) {
    return name.find("rotary_table") == std::string::npos;
  });
  compileForGPUs(kSource, names, getCUDAArchitectures(), /*tightly=*/true);
}

TEST_F(Library, CopiesOfEveryUnitUnderLoops) {
  for (int unit : {1, 2, 4, 8, 16})
    for (int test = 0; test < 8; ++test) {
      const int rank = std::vector<int>{0, 1, 2, 5}[static_cast<size_t>(test) / 2];
      const bool range = test % 2 == 1;
      SCOPED_TRACE("units of " + std::to_string(unit) + ", loops " + std::to_string(rank) +
                   (range ? ", a range of them" : ""));
      library::Copy a{};
      a.unit = unit;
      a.runUnits = a.units = 3;
      a.rank = rank;
      // The source has the result's dimensions in reverse order, with a gap of one unit after each
      // run.
      int64_t source = 4 * unit, dest = 4 * unit;
      for (int d = 0; d < rank; ++d)
        a.counts[d] = static_cast<long long>(1 + random() % 4);
      for (int d = 0; d < rank; ++d) {
        a.sourceStrides[d] = source;
        source *= a.counts[d];
        a.units *= a.counts[d];
        a.destStrides[rank - 1 - d] = dest;
        dest *= a.counts[rank - 1 - d];
      }
      // Aligned to the unit, but not to more.
      struct alignas(32) Word {
        char bytes[32];
      };
      std::vector<Word> from(static_cast<size_t>(source) / 32 + 2), to(from.size());
      std::vector<char> expected(to.size() * 32, 0);
      char *in = reinterpret_cast<char *>(from.data()) + unit,
           *out = reinterpret_cast<char *>(to.data()) + unit;
      for (int64_t i = 0; i < source; ++i)
        in[i] = static_cast<char>(random());
      if (range) {
        a.first = static_cast<long long>(random() % static_cast<uint32_t>(a.units));
        a.units = 1 + static_cast<long long>(random() % static_cast<uint32_t>(a.units - a.first));
      }
      for (int64_t i = a.first; i < a.first + a.units; ++i) {
        int64_t rest = i / a.runUnits, at = i % a.runUnits * unit, there = at;
        for (int d = rank; d-- > 0; rest /= a.counts[d]) {
          at += rest % a.counts[d] * a.sourceStrides[d];
          there += rest % a.counts[d] * a.destStrides[d];
        }
        std::memcpy(&expected[static_cast<size_t>(unit + there)], in + at,
                    static_cast<size_t>(unit));
      }
      a.source = in;
      a.dest = out;
      launch("braid_copy", a.units, a);
      EXPECT_EQ(std::memcmp(to.data(), expected.data(), expected.size()), 0);
    }
}

TEST_F(Library, GathersOfEveryTypeAndWidth) {
  // The second of three shards of a table of 9 rows, whose last row is padding.
  for (DType type : {DType::f32, DType::f16, DType::bf16, DType::i8})
    for (DType idType : {DType::i32, DType::i64})
      for (int64_t columns : {1, 3, 70, 2056}) {
        SCOPED_TRACE(std::string(runtime::name(type)) + " by " + runtime::name(idType) + ", " +
                     std::to_string(columns) + " columns");
        Tensor part = interp::isFloat(type) ? floats({3, columns}, type)
                                            : integers({3, columns}, -128, 127, type),
               ids = integers({7}, 0, 7, idType);
        const int64_t size = runtime::byteSize(type);
        for (int64_t padding : {0, 5}) {
          Buffer source(part, padding), index(ids, 0), out(type, {7, columns}, padding);
          library::Fault fault{};
          library::Gather a{};
          a.source = source.address();
          a.ids = index.address();
          a.out = out.address();
          a.count = 7;
          a.rows = 3;
          a.firstRow = 3;
          a.limit = 8;
          a.rowBytes = columns * size;
          a.sourceStrideBytes = source.strides()[0] * size;
          a.outStrideBytes = out.strides()[0] * size;
          a.wideIds = static_cast<int>(idType == DType::i64);
          // As in the executor.
          uint64_t bits = 16 | reinterpret_cast<uint64_t>(a.source) |
                          reinterpret_cast<uint64_t>(a.out) | static_cast<uint64_t>(a.rowBytes) |
                          static_cast<uint64_t>(a.sourceStrideBytes | a.outStrideBytes);
          a.unit = static_cast<int>(bits & (~bits + 1));
          a.fault = &fault;
          a.command = 12;
          launch("braid_gather", a.count * library::kThreads, a);
          EXPECT_EQ(fault.command, 0u);
          EXPECT_TRUE(out.guardsHold());
          Tensor got = out.read();
          for (int64_t i = 0; i < a.count; ++i)
            for (int64_t c = 0; c < columns; ++c) {
              const int64_t row = ids.ints()[i] - 3;
              const bool own = row >= 0 && row < 3;
              if (interp::isFloat(type))
                ASSERT_EQ(got.floats()[i * columns + c],
                          own ? part.floats()[row * columns + c] : 0.0);
              else
                ASSERT_EQ(got.ints()[i * columns + c], own ? part.ints()[row * columns + c] : 0);
            }
        }
      }
}

TEST_F(Library, GatherTellsOfIdsOutsideOfTheTable) {
  Tensor part = floats({4, 8});
  for (int64_t wrong : {int64_t(-1), int64_t(6), int64_t(7), std::numeric_limits<int64_t>::max(),
                        std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(wrong);
    // The second shard of a table of 8 rows, 2 of them padding: 6 and 7 are rows, but not valid
    // ids.
    Tensor ids = Tensor::ofInts(DType::i64, {3}, {5, wrong, 0});
    Buffer source(part, 0), index(ids, 0), out(DType::f32, {3, 8}, 0);
    library::Fault fault{};
    library::Gather a{source.address(), index.address(), out.address(), 3, 4, 4, 6, 32, 32, 32,
                      /*wideIds=*/1,    /*unit=*/16,     &fault,        9};
    launch("braid_gather", a.count * library::kThreads, a);
    EXPECT_EQ(fault.command, 9u);
    EXPECT_EQ(fault.value, wrong);
    EXPECT_EQ(fault.position, 1);
    // The kernel does not write the padding.
    Tensor got = out.read();
    for (int64_t c = 0; c < 8; ++c) {
      EXPECT_EQ(got.floats()[c], part.floats()[8 + c]);
      EXPECT_EQ(got.floats()[8 + c], 0);
    }
  }
}

TEST_F(Library, CopiesOfCountedRows) {
  // Counts out of range are clamped to the nearest valid number of rows.
  const std::vector<int64_t> counts = {2, 0, 5, 1, -3, 9}, rows = {2, 0, 5, 1, 0, 5};
  for (int unit : {1, 2, 4, 8, 16})
    for (int64_t rowUnits : {1, 3})
      for (DType countType : {DType::i32, DType::i64})
        for (bool inPlace : {false, true}) {
          SCOPED_TRACE("units of " + std::to_string(unit) + ", " + std::to_string(rowUnits) +
                       " a row, counts of " + runtime::name(countType) +
                       (inPlace ? ", in place" : ""));
          Buffer given(Tensor::ofInts(countType, {6}, counts), 0);
          library::CopyCounted a{};
          a.counts = integersOf(given, countType);
          a.rows = 5;
          a.rowUnits = rowUnits;
          a.copy.unit = unit;
          a.copy.units = a.copy.runUnits = 6 * 5 * rowUnits;
          // Aligned to the unit, but not to more. One unit before and one after must stay
          // unchanged.
          const int64_t row = unit * rowUnits, bytes = 6 * 5 * row;
          struct alignas(32) Word {
            char bytes[32];
          };
          std::vector<Word> from(static_cast<size_t>(bytes) / 32 + 2), to(from.size());
          char *in = reinterpret_cast<char *>(from.data()) + unit,
               *out = inPlace ? in : reinterpret_cast<char *>(to.data()) + unit;
          for (int64_t i = 0; i < bytes; ++i)
            in[i] = static_cast<char>(1 + random() % 255);
          in[-1] = in[bytes] = out[-1] = out[bytes] = 77;
          std::string expected(in, static_cast<size_t>(bytes));
          for (int64_t b = 0; b < 6; ++b)
            for (int64_t i = rows[static_cast<size_t>(b)] * row; i < 5 * row; ++i)
              expected[static_cast<size_t>(b * 5 * row + i)] = 0;
          a.copy.source = in;
          a.copy.dest = out;
          launch("braid_copy_counted", 6 * 5 * rowUnits, a);
          EXPECT_EQ(std::string(out, static_cast<size_t>(bytes)), expected);
          EXPECT_EQ(out[-1], 77);
          EXPECT_EQ(out[bytes], 77);
        }
}

TEST_F(Library, CountsWithoutRoomAreTold) {
  struct Case {
    int64_t count, position;
    bool told;
  };
  const int64_t many = 1000; // more than one block
  for (DType type : {DType::i32, DType::i64})
    for (const Case &c : {Case{-1, 0, true}, {8, 999, true}, {7, 300, false}, {0, 300, false}}) {
      SCOPED_TRACE(std::string(runtime::name(type)) + ", " + std::to_string(c.count));
      std::vector<int64_t> counts(many, 3);
      counts[static_cast<size_t>(c.position)] = c.count;
      Buffer given(Tensor::ofInts(type, {many}, counts), 0);
      library::Fault fault{};
      library::CheckCounts a{integersOf(given, type), many, 7, &fault, 12};
      launch("braid_check_counts", many, a);
      EXPECT_EQ(fault.command, c.told ? 12u : 0u);
      EXPECT_EQ(fault.value, c.told ? c.count : 0);
      EXPECT_EQ(fault.position, c.told ? c.position : 0);
    }
}

TEST_F(Library, RotaryTablesAndRotary) {
  for (DType type : kStorages)
    for (DType offsetType : {DType::i32, DType::i64})
      for (bool offset : {false, true})
        for (int64_t pairs : {1, 8, 33}) {
          SCOPED_TRACE(std::string(runtime::name(type)) +
                       (offset ? ", offsets of " : ", no offsets of ") + runtime::name(offsetType) +
                       ", pairs " + std::to_string(pairs));
          const int64_t batch = 2, seq = 9, heads = 3;
          std::vector<double> frequencies;
          for (int64_t i = 0; i < pairs; ++i)
            frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / double(pairs)));
          Tensor offsets = integers({batch}, 0, 5000, offsetType);
          auto tables =
              interp::rotaryTables(type, seq, frequencies, 1.25, offset ? &offsets : nullptr);
          ASSERT_TRUE(tables.ok());
          const Shape shape = offset ? Shape{batch, seq, pairs} : Shape{seq, pairs};
          Buffer cos(type, shape, 3), sin(type, shape, 1), positions(offsets, 0);
          library::RotaryTable t{};
          t.frequencies = frequencies.data();
          t.scale = 1.25;
          t.cos = cos.address();
          t.sin = sin.address();
          t.batch = offset ? batch : 1;
          t.seq = seq;
          t.pairs = pairs;
          t.cosRow = cos.strides()[offset];
          t.sinRow = sin.strides()[offset];
          if (offset) {
            t.positionOffset = integersOf(positions, offsetType);
            t.cosBatch = cos.strides()[0];
            t.sinBatch = sin.strides()[0];
          }
          launch(ofType("braid_rotary_table", type), t.batch * seq * pairs, t);
          expectResult(cos, tables->cos, allowed(type, 1e-7));
          expectResult(sin, tables->sin, allowed(type, 1e-7));

          Tensor input = floats({batch, seq, heads, 2 * pairs}, type);
          Buffer in(input, 5), out(type, input.shape(), 2);
          library::Rotary r{};
          r.in = in.address();
          r.cos = t.cos;
          r.sin = t.sin;
          r.out = out.address();
          r.batch = batch;
          r.seq = seq;
          r.heads = heads;
          r.pairs = pairs;
          r.inBatch = in.strides()[0];
          r.inRow = in.strides()[1];
          r.inHead = in.strides()[2];
          r.outBatch = out.strides()[0];
          r.outRow = out.strides()[1];
          r.outHead = out.strides()[2];
          r.cosBatch = t.cosBatch;
          r.cosRow = t.cosRow;
          r.sinBatch = t.sinBatch;
          r.sinRow = t.sinRow;
          launch(ofType("braid_rotary", type), batch * seq * heads * pairs, r);
          expectResult(out, interp::rotary(input, cos.read(), sin.read()), allowed(type, 1e-7));
        }
}

namespace {
library::Operand operandOf(Buffer &buffer, DType type, const std::vector<int64_t> &shape) {
  library::Operand operand{};
  operand.data = buffer.address();
  operand.dtype = static_cast<int>(type);
  operand.rank = static_cast<int>(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    operand.sizes[d] = shape[d];
    operand.strides[d] = buffer.strides()[d];
  }
  return operand;
}
} // namespace

TEST_F(Library, PositionIds) {
  for (DType type : {DType::i32, DType::i64})
    for (int64_t seq : {1, 32, 75}) {
      SCOPED_TRACE(std::string(runtime::name(type)) + ", " + std::to_string(seq));
      Tensor ids = integers({11, seq}, 0, 2, type);
      interp::Result<Tensor> expected = interp::positionIds(ids, 1);
      ASSERT_TRUE(expected.ok());
      Buffer in(ids, 2), out(type, {11, seq}, 1);
      library::Call a{};
      a.operands[0] = operandOf(in, type, {11, seq});
      a.operands[1] = operandOf(out, type, {11, seq});
      a.integers[0] = 1;
      a.rows = 11;
      launch("braid_position_ids", 11 * 32, a);
      EXPECT_TRUE(out.guardsHold());
      EXPECT_EQ(interp::firstDifference(out.read(), *expected), -1);
    }
}

TEST_F(Library, TopK) {
  for (DType storage : kStorages)
    for (DType type : {DType::i32, DType::i64})
      for (int64_t n : {1, 31, 70})
        for (int64_t k : {int64_t(1), (n + 1) / 2, n}) {
          SCOPED_TRACE(std::string(runtime::name(storage)) + ", " + std::to_string(k) + " of " +
                       std::to_string(n));
          std::vector<double> numbers;
          for (int64_t i = 0; i < 2 * 5 * n; ++i)
            numbers.push_back(random() % 7 == 0 ? std::nan("") : double(random() % 5) - 2);
          Tensor input = Tensor::ofFloats(storage, {2, 5, n}, std::move(numbers));
          Buffer in(input, 3), values(storage, {2, 5, k}, 2), indices(type, {2, 5, k}, 1);
          library::Call a{};
          a.operands[0] = operandOf(in, storage, {2, 5, n});
          a.operands[1] = operandOf(values, storage, {2, 5, k});
          a.operands[2] = operandOf(indices, type, {2, 5, k});
          a.rows = 10;
          launch("braid_top_k", 10 * 32, a);
          interp::KernelCall call;
          call.inputs = {&input};
          call.outputs = {{storage, {2, 5, k}}, {type, {2, 5, k}}};
          auto expected = interp::computeLibraryKernel("top_k", call);
          ASSERT_TRUE(expected.ok());
          EXPECT_TRUE(values.guardsHold() && indices.guardsHold());
          EXPECT_EQ(interp::firstDifference(indices.read(), expected->at(1)), -1);
          const Tensor got = values.read();
          for (int64_t i = 0; i < got.numElements(); ++i) {
            const double x = got.floats()[i], y = expected->at(0).floats()[i];
            EXPECT_TRUE(x == y || (std::isnan(x) && std::isnan(y))) << i;
          }
        }
}

TEST_F(Library, ReduceDims) {
  const Shape shape{5, 3, 40};
  for (DType storage : kStorages)
    for (int64_t kind = 0; kind < 3; ++kind)
      for (int64_t dims = 1; dims < 8; ++dims) {
        SCOPED_TRACE(std::string(runtime::name(storage)) + ", kind " + std::to_string(kind) +
                     ", dims " + std::to_string(dims));
        Tensor input = floats(shape, storage);
        Shape kept;
        for (size_t d = 0; d < shape.size(); ++d)
          if ((dims >> d & 1) == 0)
            kept.push_back(shape[d]);
        const bool pair = kind == 1;
        Buffer in(input, 3), out(storage, kept, 1), expSum(DType::f32, kept, 2);
        library::Call a{};
        a.operands[0] = operandOf(in, storage, shape);
        a.operands[1] = operandOf(out, storage, kept);
        if (pair)
          a.operands[2] = operandOf(expSum, DType::f32, kept);
        a.integers[0] = kind;
        a.integers[1] = dims;
        a.rows = interp::numElements(kept);
        launch("braid_reduce_dims", a.rows * 32, a);
        interp::KernelCall call;
        call.inputs = {&input, nullptr};
        call.integers = {kind, dims};
        call.outputs = {{storage, kept}};
        if (pair)
          call.outputs.push_back({DType::f32, kept});
        auto expected = interp::computeLibraryKernel("reduce_dims", call);
        ASSERT_TRUE(expected.ok());
        EXPECT_TRUE(out.guardsHold() && expSum.guardsHold());
        if (pair)
          EXPECT_LE(interp::relativeL2(expSum.read(), expected->at(1)), 1e-6);
        EXPECT_LE(interp::relativeL2(out.read(), expected->at(0)), storage == DType::f32   ? 1e-6
                                                                   : storage == DType::f16 ? 1e-3
                                                                                           : 1e-2);
      }
}

TEST_F(Library, AppendsAtPositions) {
  for (DType type : {DType::f32, DType::bf16, DType::i8})
    for (DType idType : {DType::i32, DType::i64})
      for (int64_t columns : {1, 6, 64})
        for (int64_t wrong : {0, -1, 4}) {
          SCOPED_TRACE(std::string(runtime::name(type)) + " by " + runtime::name(idType) + ", " +
                       std::to_string(columns) + " columns");
          auto values = [&](Shape shape) {
            return interp::isFloat(type) ? floats(shape, type) : integers(shape, -128, 127, type);
          };
          // Two rows of three elements each go to a cache of six.
          Tensor source = values({2, 3, columns}), cache = values({2, 6, columns}),
                 position = Tensor::ofInts(idType, {2}, {3, 1});
          Tensor given = wrong == 0 ? position : Tensor::ofInts(idType, {2}, {3, wrong});
          const int64_t size = runtime::byteSize(type);
          Buffer from(source, 1), index(given, 0), to(cache, 2);
          library::Fault fault{};
          library::Append a{};
          a.copy.source = from.address();
          a.copy.dest = to.address();
          a.copy.unit = static_cast<int>(size);
          a.copy.runUnits = columns;
          a.copy.units = 2 * 3 * columns;
          a.copy.rank = 2;
          a.copy.counts[0] = 2;
          a.copy.counts[1] = 3;
          for (size_t d = 0; d < 2; ++d) {
            a.copy.sourceStrides[d] = from.strides()[d] * size;
            a.copy.destStrides[d] = to.strides()[d] * size;
          }
          a.positions = integersOf(index, idType);
          a.rowUnits = 3 * columns;
          a.stepBytes = to.strides()[1] * size;
          a.last = 3;
          a.fault = &fault;
          a.command = 11;
          launch("braid_append", a.copy.units, a);
          EXPECT_TRUE(to.guardsHold());
          EXPECT_EQ(fault.command, wrong == 0 ? 0u : 11u);
          EXPECT_EQ(fault.value, wrong);
          EXPECT_EQ(fault.position, wrong == 0 ? 0 : 1);
          interp::KernelCall call;
          call.inputs = {&source, &position, &cache};
          call.outputs = {{type, {2, 6, columns}}};
          call.integers = {1};
          auto expected = interp::computeLibraryKernel("append", call);
          ASSERT_TRUE(expected.ok());
          if (wrong == 0)
            EXPECT_EQ(interp::firstDifference(to.read(), expected->at(0)), -1);
        }
}

TEST_F(Library, LastToken) {
  for (DType storage : kStorages)
    for (DType type : {DType::i32, DType::i64})
      for (int64_t seq : {1, 31, 70}) {
        SCOPED_TRACE(std::string(runtime::name(storage)) + ", " + std::to_string(seq));
        Tensor input = floats({12, seq, 45}, storage);
        // Sparse enough that some masks of one token are empty, and tokens of every lane are last.
        Tensor valid = integers({12, seq}, -20, 1, type);
        std::vector<int64_t> values(valid.ints(), valid.ints() + valid.numElements());
        for (int64_t &value : values)
          value = std::max<int64_t>(value, 0);
        valid = Tensor::ofInts(type, {12, seq}, std::move(values));
        Buffer in(input, 3), mask(valid, 2), out(storage, {12, 1, 45}, 1);
        library::Call a{};
        a.operands[0] = operandOf(in, storage, {12, seq, 45});
        a.operands[1] = operandOf(mask, type, {12, seq});
        a.operands[2] = operandOf(out, storage, {12, 1, 45});
        a.rows = 12;
        launch("braid_last_token", 12 * 32, a);
        interp::KernelCall call;
        call.inputs = {&input, &valid};
        call.outputs = {{storage, {12, 1, 45}}};
        auto expected = interp::computeLibraryKernel("last_token", call);
        ASSERT_TRUE(expected.ok());
        EXPECT_TRUE(out.guardsHold());
        EXPECT_EQ(interp::firstDifference(out.read(), expected->at(0)), -1);
      }
}

namespace {
struct AttentionCase {
  int64_t queries, keys, heads, group, dim, valueDim;
};
} // namespace

TEST_F(Library, AttentionUnderEveryRestriction) {
  const AttentionCase cases[] = {
      {5, 13, 6, 3, 20, 20},   {1, 40, 2, 1, 64, 64}, {7, 7, 4, 4, 1, 1},   {3, 2, 3, 1, 200, 200},
      {2, 33, 2, 2, 256, 256}, {3, 0, 2, 1, 16, 16},  {5, 9, 4, 2, 24, 40}, {3, 9, 4, 2, 65, 7}};
  const int64_t batch = 2;
  for (const AttentionCase &c : cases)
    for (DType storage : kStorages)
      for (int restrict = 0; restrict < 8; ++restrict) {
        const DType type = restrict % 2 ? DType::i32 : DType::i64;
        SCOPED_TRACE(std::string(runtime::name(storage)) + ", " + std::to_string(c.queries) +
                     " queries, " + std::to_string(c.keys) + " keys, " + std::to_string(c.heads) +
                     " heads of " + std::to_string(c.dim) + ", restrictions " +
                     std::to_string(restrict));
        const Shape keyShape{batch, c.keys, c.heads / c.group, c.dim},
            valueShape{batch, c.keys, c.heads / c.group, c.valueDim};
        Tensor q = floats({batch, c.queries, c.heads, c.dim}, storage),
               k = floats(keyShape, storage), v = floats(valueShape, storage);
        // The first sequence has no key at all; the first queries of the second sequence come
        // before all keys.
        Tensor mask = integers({batch, c.keys}, 0, 1, type),
               valid = Tensor::ofInts(type, {2}, {0, c.keys - 1}),
               offset = Tensor::ofInts(type, {2}, {8, -2});
        Buffer query(q, 3), key(k, 1), value(v, 2), masks(mask, 4), lengths(valid, 0),
            offsets(offset, 0), out(storage, {batch, c.queries, c.heads, c.valueDim}, 7),
            logSum(DType::f32, {batch, c.queries, c.heads}, 2);
        interp::AttentionOperands operands{&q, &k, &v};
        library::Attention a{};
        operands.scale = a.scale = 0.3125f;
        if (restrict & 1) {
          operands.mask = &mask;
          a.mask = integersOf(masks, type, 1);
          a.maskBatch = masks.strides()[0];
        }
        if (restrict & 2) {
          operands.validLength = &valid;
          a.validLength = integersOf(lengths, type);
        }
        if (restrict & 4) {
          operands.causal = true;
          operands.positionOffset = &offset;
          a.causal = 1;
          a.positionOffset = integersOf(offsets, type);
        }
        a.query = query.address();
        a.key = key.address();
        a.value = value.address();
        a.out = out.address();
        a.logSum = static_cast<float *>(logSum.address());
        a.logSumBatch = logSum.strides()[0];
        a.logSumRow = logSum.strides()[1];
        a.logSumHead = logSum.strides()[2];
        a.batch = batch;
        a.queries = c.queries;
        a.heads = c.heads;
        a.keys = c.keys;
        a.headDim = c.dim;
        a.valueDim = c.valueDim;
        a.group = c.group;
        a.queryBatch = query.strides()[0];
        a.queryRow = query.strides()[1];
        a.queryHead = query.strides()[2];
        a.keyBatch = key.strides()[0];
        a.keyRow = key.strides()[1];
        a.keyHead = key.strides()[2];
        a.valueBatch = value.strides()[0];
        a.valueRow = value.strides()[1];
        a.valueHead = value.strides()[2];
        a.outBatch = out.strides()[0];
        a.outRow = out.strides()[1];
        a.outHead = out.strides()[2];
        launch(ofType("braid_attention", storage), batch * c.queries * c.heads * 32, a);
        Tensor expectedSums;
        expectResult(out, interp::attention(operands, &expectedSums), allowed(storage, 1e-6));
        EXPECT_TRUE(logSum.guardsHold());
        const Tensor sums = logSum.read();
        for (int64_t i = 0; i < sums.numElements(); ++i) {
          const double x = sums.floats()[i], y = expectedSums.floats()[i];
          EXPECT_TRUE(x == y || std::abs(x - y) < 1e-5 * std::max(1.0, std::abs(y))) << i;
        }
      }
}

TEST_F(Library, AttentionOfOffsetsThatNoSumHolds) {
  for (int64_t offset :
       {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    SCOPED_TRACE(offset);
    const Shape shape{1, 3, 1, 8};
    Tensor q = floats(shape), k = floats(shape), v = floats(shape),
           offsets = Tensor::ofInts(DType::i64, {1}, {offset});
    Buffer query(q, 0), key(k, 0), value(v, 0), out(DType::f32, shape, 0), given(offsets, 0);
    interp::AttentionOperands operands{&q, &k, &v};
    operands.causal = true;
    operands.positionOffset = &offsets;
    library::Attention a{};
    a.query = query.address();
    a.key = key.address();
    a.value = value.address();
    a.out = out.address();
    a.batch = a.heads = a.group = 1;
    a.queries = a.keys = 3;
    a.headDim = a.valueDim = 8;
    a.queryRow = a.keyRow = a.valueRow = a.outRow = 8;
    a.positionOffset = integersOf(given, DType::i64);
    a.scale = 1;
    a.causal = 1;
    launch("braid_attention_f32", 3 * 32, a);
    expectResult(out, interp::attention(operands), 1e-6);
  }
}

TEST_F(Library, ReductionsOfEveryType) {
  constexpr int64_t count = 300;
  for (DType type :
       {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64, DType::i8})
    for (int test = 0; test < 6; ++test) {
      const int kind = test % 3;
      const bool transposed = test >= 3; // the second half of [20, 15] to columns
      SCOPED_TRACE(std::string(runtime::name(type)) + ", kind " + std::to_string(kind) +
                   (transposed ? ", transposed" : ""));
      std::vector<Buffer> sources;
      std::vector<Tensor> values;
      for (int i = 0; i < 4; ++i) {
        values.push_back(interp::isFloat(type) ? floats({count}, type)
                                               : integers({count}, -30, 30, type));
        sources.emplace_back(values.back(), 0);
      }
      Buffer out(type, {count}, 0);
      library::Reduce a{};
      for (int i = 0; i < 4; ++i)
        a.sources[i] = sources[i].address();
      a.out = out.address();
      a.count = a.run = count;
      if (transposed) {
        a.first = a.count = count / 2;
        a.run = 1;
        a.rank = 2;
        a.counts[0] = a.outStrides[1] = 20;
        a.counts[1] = a.sourceStrides[0] = 15;
        a.sourceStrides[1] = a.outStrides[0] = 1;
      }
      a.numSources = 4;
      a.kind = kind;
      a.dtype = static_cast<int>(type);
      launch("braid_reduce", a.count, a);
      EXPECT_TRUE(out.guardsHold());
      Tensor got = out.read();
      auto combined = [&](auto of) {
        auto total = of(values[0]);
        for (int i = 1; i < 4; ++i) {
          auto next = of(values[i]);
          total = kind == 0   ? total + next
                  : kind == 1 ? std::max(total, next)
                              : std::min(total, next);
        }
        return total;
      };
      for (int64_t i = a.first; i < count; ++i) {
        const int64_t to = transposed ? i % 15 * 20 + i / 15 : i;
        if (!interp::isFloat(type)) {
          ASSERT_EQ(got.ints()[to], combined([&](const Tensor &one) { return one.ints()[i]; }))
              << i;
          continue;
        }
        // Computed in f32 or f64 and rounded once: the result is at most the other neighbor.
        const double sum = combined([&](const Tensor &one) { return one.floats()[i]; });
        const double unit = type == DType::bf16 ? 8e-3 : type == DType::f16 ? 1e-3 : 2e-7;
        ASSERT_NEAR(got.floats()[to], sum, std::abs(sum) * unit + 1e-6) << i;
      }
    }
}
