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
#include "LibraryTesting.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

using namespace braid;
using namespace braid::test;
using interp::DType;
using interp::Shape;
using interp::Tensor;

TEST_F(Library, NoOtherKernels) {
  size_t count = 0;
  for (const cuda::Header &header : cuda::kernelHeaders())
    for (llvm::StringRef part : {"library.cuh", "int8.cuh", "reductions.cuh"})
      if (llvm::StringRef(header.name).ends_with(part))
        count += llvm::StringRef(header.text).count("__global__");
  EXPECT_EQ(count, std::size(kLibraryKernels));
}

TEST_F(Library, CompilesForEveryGPU) {
  // Sines of large angles in f64 need some bytes of stack.
  std::vector<std::string> names;
  llvm::copy_if(std::vector<std::string>(std::begin(kLibraryKernels), std::end(kLibraryKernels)),
                std::back_inserter(names), [](const std::string &name) {
                  return name.find("rotary_table") == std::string::npos;
                });
  compileForGPUs(kLibrarySource, names, getCUDAArchitectures(), /*tightly=*/true);
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
