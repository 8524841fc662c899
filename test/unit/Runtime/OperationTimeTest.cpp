//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Times of operations, computed by hand for the sample machine.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/OperationTime.h"
#include "SampleMachine.h"
#include "Testing.h"
#include "runtime/lib/Cost/Interpolation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

using namespace braid::cost;
using namespace braid::cost::testing;
using braid::runtime::DType;
using braid::runtime::Encoding;
using braid::runtime::findLibraryKernel;
using braid::runtime::LibraryCall;
using braid::runtime::OperandType;
using braid::runtime::PayloadLayout;

namespace {

OperandType tensor(const std::vector<int64_t> &shape, DType dtype = DType::f32) {
  OperandType type{dtype, shape, std::vector<int64_t>(shape.size(), 1)};
  for (size_t d = shape.size(); d-- > 1;)
    type.strides[d - 1] = type.strides[d] * shape[d];
  return type;
}

LibraryCall matmul(int64_t m, int64_t n, int64_t k, DType dtype = DType::f32) {
  LibraryCall call;
  call.kernel = findLibraryKernel("matmul");
  call.operands.resize(call.kernel->operands.size());
  call.operands[0] = tensor({m, k}, dtype);
  call.operands[1] = tensor({n, k}, dtype);
  call.operands[6] = tensor({m, n}, dtype == DType::i8 ? DType::f32 : dtype);
  if (dtype == DType::i8) {
    call.operands[4] = tensor({m});
    call.operands[5] = tensor({n});
  }
  call.integers = {0, 1, 0};
  return call;
}

LibraryCall attention(int64_t positions, int64_t keys, int64_t heads, bool causal) {
  LibraryCall call;
  call.kernel = findLibraryKernel("attention");
  call.operands.resize(call.kernel->operands.size());
  call.operands[0] = tensor({1, positions, heads, 32});
  call.operands[1] = call.operands[2] = tensor({1, keys, heads, 32});
  call.operands[6] = tensor({1, positions, heads, 32});
  call.integers = {causal};
  call.numbers = {1};
  return call;
}

/// Of f32. `senders` counts those of a decode_sum.
LibraryCall codec(const char *kernel, const char *encodingText, int64_t rows, int64_t columns,
                  int64_t senders = 0) {
  const Encoding encoding = *Encoding::parse(encodingText);
  const PayloadLayout layout = *PayloadLayout::of(encoding, DType::f32, rows, columns, 1);
  LibraryCall call;
  call.kernel = findLibraryKernel(kernel);
  call.operands = {tensor({std::max<int64_t>(senders, 1), layout.partBytes}, DType::i8),
                   tensor({rows, columns})};
  call.integers = {encoding.code(), 0, senders};
  if (std::string(kernel) == "encode") {
    std::swap(call.operands[0], call.operands[1]);
    call.integers = {encoding.code(), 0};
  } else if (senders != 0) {
    call.operands.insert(call.operands.begin() + 1, std::nullopt);
  }
  EXPECT_OK(call.check());
  return call;
}

double seconds(const braid::runtime::Result<double> &result) {
  EXPECT_TRUE(result.ok()) << result.status().message();
  return result.ok() ? *result : -1;
}

constexpr double kCommand = 1e-6; ///< of the sample

/// Equal but for rounding.
#define EXPECT_CLOSE(got, expected) EXPECT_NEAR(got, expected, 1e-10 * (expected))

} // namespace

TEST(OperationTime, OfAMatmulAtAMeasuredSize) {
  const OperationTimes times(sampleMachine(), {1, 1});
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(16, 64, 256))),
               kCommand + 2.0 * 16 * 64 * 256 / 1e10);
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(64, 64, 256))),
               kCommand + 2.0 * 64 * 64 * 256 / 4e10);
  // Beyond the table: the rate of its border.
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(1024, 1024, 1024))),
               kCommand + 2.0 * 1024 * 1024 * 1024 / 4e10);
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(1, 8, 8))), kCommand + 2.0 * 8 * 8 / 1e10);
}

TEST(OperationTime, OfAMatmulOf8BitIntegers) {
  Machine machine = sampleMachine();
  EXPECT_ERROR(OperationTimes(machine, {1, 1}).ofLibrary(matmul(1, 8, 8, DType::i8)).status(),
               "the machine file has no rates of int8_matmul");
  machine.compute[0].int8Matmul = {{16, 64, 256, 8e10}};
  const OperationTimes times(machine, {1, 1});
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(16, 64, 256, DType::i8))),
               kCommand + 2.0 * 16 * 64 * 256 / 8e10);
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(16, 64, 256))),
               kCommand + 2.0 * 16 * 64 * 256 / 1e10);
}

TEST(OperationTime, ProductsThatFindTheirRightSidesInCaches) {
  Machine machine = sampleMachine();
  const LibraryCall product = matmul(16, 64, 256);
  EXPECT_EQ(OperationTimes(machine, {1, 1}).savedByCaches(product, 1000), 0);
  machine.compute[0].weightReads = {
      {1, 1000, 8e9}, {1, 100000, 4e9}, {16, 1000, 4e9}, {16, 100000, 1e9}};
  // Without overheads, so that differences are exact.
  machine.overheads->commandSeconds = 0;
  const double rhs = 64 * 256 * 4, time = 2.0 * 16 * 64 * 256 / 1e10;
  const OperationTimes times(machine, {1, 1});
  // It takes less time than the file's products do to read as much from memory.
  EXPECT_CLOSE(times.savedByCaches(product, 100), time - rhs / 4e9);
  EXPECT_EQ(times.savedByCaches(product, 100000), 0);
  EXPECT_EQ(times.savedByCaches(product, 1e9), 0);
  for (auto &point : machine.compute[0].matmul)
    point.flopsPerSecond = 1e9;
  const OperationTimes slow(machine, {1, 1});
  EXPECT_CLOSE(slow.savedByCaches(product, 1000), rhs / 1e9 - rhs / 4e9);
  // Rates are those of 16 rows beyond them, and between sizes of the logarithm in the middle.
  EXPECT_CLOSE(slow.savedByCaches(matmul(1000, 64, 256), 1000), rhs / 1e9 - rhs / 4e9);
  EXPECT_CLOSE(slow.savedByCaches(matmul(1000, 64, 256), 10000), rhs / 1e9 - rhs / 2e9);
  EXPECT_CLOSE(slow.savedByCaches(matmul(4, 64, 256), 1000),
               rhs / std::sqrt(4e9 * 1e9) - rhs / std::sqrt(8e9 * 4e9));
  // Two threads share columns here, and rows there. Each has its caches for itself.
  const OperationTimes two(machine, {1, 2});
  EXPECT_CLOSE(two.savedByCaches(product, 20000), rhs / 2 / 1e9 - rhs / 2 / 2e9);
  EXPECT_CLOSE(two.savedByCaches(matmul(1000, 64, 256), 20000), rhs / 1e9 - rhs / 2e9);
  EXPECT_EQ(slow.savedByCaches(attention(8, 8, 2, false), 1000), 0);
}

TEST(OperationTime, OfAMatmulBetweenMeasuredSizes) {
  const OperationTimes times(sampleMachine(), {1, 1});
  // In the middle of 16 and 64 by their logarithms, 1e10 and 4e10 meet at 2e10.
  EXPECT_NEAR(seconds(times.ofLibrary(matmul(32, 100, 100))) - kCommand,
              2.0 * 32 * 100 * 100 / 2e10, 1e-12);
}

TEST(OperationTime, DependsOnBusyCoresAndThreads) {
  const double alone =
      seconds(OperationTimes(sampleMachine(), {1, 1}).ofLibrary(matmul(64, 64, 64)));
  const double busy =
      seconds(OperationTimes(sampleMachine(), {2, 1}).ofLibrary(matmul(64, 64, 64)));
  EXPECT_CLOSE(busy - kCommand, 2 * (alone - kCommand));
  // More than were measured: as the most.
  EXPECT_CLOSE(seconds(OperationTimes(sampleMachine(), {8, 1}).ofLibrary(matmul(64, 64, 64))),
               busy);
  // Two threads have half the rows each.
  EXPECT_CLOSE(seconds(OperationTimes(sampleMachine(), {2, 2}).ofLibrary(matmul(128, 64, 64))),
               busy);
}

TEST(OperationTime, OfAttention) {
  const OperationTimes times(sampleMachine(), {1, 1});
  const double flops = 4.0 * 100 * 128 * 32 * 3;
  EXPECT_CLOSE(seconds(times.ofLibrary(attention(100, 128, 3, false))), kCommand + flops / 1e10);
  EXPECT_CLOSE(seconds(times.ofLibrary(attention(100, 128, 3, true))),
               kCommand + flops * (101.0 / 2 / 128) / 2e10);
}

TEST(OperationTime, CausalPartOfTheKeys) {
  EXPECT_EQ(causalPart(4, 4, false), (1 + 2 + 3 + 4) / 16.0);
  EXPECT_EQ(causalPart(2, 4, false), (1 + 2) / 8.0);
  EXPECT_EQ(causalPart(6, 4, false), (1 + 2 + 3 + 4 + 4 + 4) / 24.0);
  EXPECT_EQ(causalPart(2, 4, true), (3 + 4) / 8.0);
  EXPECT_EQ(causalPart(1, 100, true), 1);
}

TEST(OperationTime, OfRowsIsTheLongerOfArithmeticAndTraffic) {
  const OperationTimes times(sampleMachine(), {1, 1});
  // 10 rows of 100 simple operations at 1e9 and 10 of exp at 1e8: 1e-6 + 1e-6.
  const RowWork work{{"simple", 100}, {"exp", 10}};
  EXPECT_CLOSE(seconds(times.ofRows(work, 10, 2048, 2048)), kCommand + 2e-6);
  EXPECT_CLOSE(seconds(times.ofRows({{"simple", 1}}, 1, 204800, 204800)), kCommand + 409600 / 1e10);
  EXPECT_CLOSE(seconds(times.ofCopy(2048)), kCommand + 4096 / 4e10);
}

TEST(OperationTime, OfRowsWhoseArithmeticAndTrafficGoOnTogetherInPart) {
  Machine machine = sampleMachine();
  for (ComputeRates &rates : machine.compute)
    rates.rowOverlapEfficiency = 0.75;
  const OperationTimes times(machine, {1, 1});
  // 2e-6 of arithmetic, and a quarter of the traffic of 4096 bytes at 4e10.
  EXPECT_CLOSE(seconds(times.ofRows({{"simple", 100}, {"exp", 10}}, 10, 2048, 2048)),
               kCommand + 2e-6 + 0.25 * 4096 / 4e10);
  // A quarter of the arithmetic of one operation at 1e9.
  EXPECT_CLOSE(seconds(times.ofRows({{"simple", 1}}, 1, 204800, 204800)),
               kCommand + 409600 / 1e10 + 0.25 * 1e-9);
}

TEST(OperationTime, OfOtherKernelsOfTheLibrary) {
  LibraryCall call;
  call.kernel = findLibraryKernel("embedding");
  call.operands = {tensor({50000, 64}), tensor({4}, DType::i64), tensor({4, 64})};
  call.integers = {0};
  // Only the rows that are gathered count.
  EXPECT_EQ(bytesOf(call), 2 * 4 * 64 * 4);
  const OperationTimes times(sampleMachine(), {1, 1});
  EXPECT_CLOSE(seconds(times.ofLibrary(call)), kCommand + 2048 / 4e10);
}

// A tensor that no cache has takes no less than its traffic.
TEST(OperationTime, OfCodecsBeyondMeasuredSizes) {
  Machine machine = sampleMachine();
  machine.compute[0].memory.back().copyBytesPerSecond = 1e9;
  const OperationTimes times(machine, {1, 1});
  const LibraryCall large = codec("encode", "int8:128", 1000, 1000);
  EXPECT_CLOSE(seconds(times.ofLibrary(large)), kCommand + bytesOf(large) / 1e9);
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128", 100, 1000))),
               kCommand + 1e5 / 5e8);
  // What computes for longer than that, and what a file without memory tells.
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128+spikes", 1000, 1000))),
               kCommand + 1e6 / 1.25e8);
  machine.compute[0].memory.clear();
  EXPECT_CLOSE(seconds(OperationTimes(machine, {1, 1}).ofLibrary(large)), kCommand + 1e6 / 5e8);
}

// What a rank would send to itself is not encoded: neither computed nor read.
TEST(OperationTime, OfAnEncodeForOthers) {
  Machine machine = sampleMachine();
  LibraryCall call = codec("encode", "int8:128", 100, 1000);
  call.parts = 4;
  EXPECT_CLOSE(seconds(OperationTimes(machine, {1, 1}).ofLibrary(call)),
               kCommand + 0.75 * 1e5 / 5e8);
  EXPECT_CLOSE(call.kernel->flops(call), 0.75 * 6e5);
  LibraryCall large = codec("encode", "int8:128", 1000, 1000);
  const double payload = bytesOf(large) - 4e6;
  large.parts = 4;
  EXPECT_CLOSE(bytesOf(large), 3e6 + payload);
}

TEST(OperationTime, OfCodecsAtMeasuredSizes) {
  const OperationTimes times(sampleMachine(), {1, 1});
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128", 1, 1000))), kCommand + 1e-6);
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("decode", "int8:128", 1, 1000))), kCommand + 0.5e-6);
  // A payload is decoded, and two more are added at 4e9.
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("decode_sum", "int8:128", 1, 1000, 3))),
               kCommand + 0.5e-6 + 2 * 0.25e-6);
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128", 100, 1000))),
               kCommand + 1e5 / 5e8);
  // Between the sizes by logarithms, beyond them as at the border.
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128", 10, 1000))),
               kCommand + 1e4 / (1e9 * std::sqrt(0.5)));
  EXPECT_CLOSE(seconds(times.ofLibrary(codec("encode", "int8:128", 1, 10))), kCommand + 1e-8);
  // Two threads share it; each of two busy cores has half the rate.
  EXPECT_CLOSE(
      seconds(
          OperationTimes(sampleMachine(), {2, 2}).ofLibrary(codec("encode", "int8:128", 1, 1000))),
      kCommand + 1e-6);
}

TEST(OperationTime, OfCodecsThatWereNotMeasured) {
  const OperationTimes times(sampleMachine(), {1, 1});
  auto ofEncode = [&](const char *encoding) {
    return seconds(times.ofLibrary(codec("encode", encoding, 1, 1000))) - kCommand;
  };
  // Groups of 32 take 1 ns of an element longer than groups of 128, so one group takes 128/3 ns.
  EXPECT_CLOSE(ofEncode("int8:64"), 1e-6 + 1e-6 * (128 / 3.0) * (1.0 / 64 - 1.0 / 128));
  EXPECT_CLOSE(ofEncode("int8:8192"), 1e-6 + 1e-6 * (128 / 3.0) * (1.0 / 8192 - 1.0 / 128));
  // 3 ns longer with spikes, 1 ns with a rotation.
  EXPECT_CLOSE(ofEncode("int8:128+hadamard64+spikes"), 1e-6 + 3e-6 + 1e-6);
  EXPECT_CLOSE(ofEncode("int8:32+hadamard32"), 2e-6 + 1e-6);
  // Forms and types of scales make no difference.
  EXPECT_CLOSE(ofEncode("int8:128+symmetric+bf16-scale"), 1e-6);
}

TEST(OperationTime, OfRowsThatAreEncoded) {
  const OperationTimes times(sampleMachine(), {1, 1});
  // 1 us of arithmetic, 1 us of an encode and 0.5 us of a decode in the cache, whatever their
  // number of rows is: longer than the traffic.
  const std::vector<LibraryCall> codecs{codec("encode", "int8:128", 10, 100),
                                        codec("decode", "int8:128", 10, 100)};
  EXPECT_CLOSE(seconds(times.ofRows({{"simple", 100}}, 10, 1000, 1000, codecs)), kCommand + 2.5e-6);
  EXPECT_CLOSE(seconds(times.ofRows({{"simple", 1}}, 1, 204800, 204800, {})),
               kCommand + 409600 / 1e10);
  // The rate is that of the nearest cache.
  EXPECT_CLOSE(seconds(times.ofRows({}, 100, 0, 0, {codec("encode", "int8:128", 100, 1000)})),
               kCommand + 1e5 / 1e9);
}

TEST(OperationTime, NamesWhatTheFileLacks) {
  const OperationTimes times(sampleMachine(), {1, 1});
  EXPECT_ERROR(times.ofRows({{"erf", 1}}, 1, 8, 8).status(),
               "the machine file has no rate of the row operation 'erf'");
  Machine machine = sampleMachine();
  machine.compute[0].matmul.clear();
  machine.compute[0].attention.clear();
  machine.compute[0].memory.clear();
  const OperationTimes less(machine, {1, 1});
  EXPECT_ERROR(less.ofLibrary(matmul(1, 1, 1)).status(), "the machine file has no rates of matmul");
  EXPECT_ERROR(less.ofLibrary(attention(1, 1, 1, true)).status(),
               "the machine file has no rates of attention");
  EXPECT_ERROR(less.ofCopy(1).status(), "the machine file has no rates of memory");
  auto ofEncode = [&](const char *encoding) {
    return OperationTimes(machine, {1, 1}).ofLibrary(codec("encode", encoding, 1, 1000)).status();
  };
  EXPECT_ERROR(ofEncode("int4:128"), "the machine file does not tell what 'int4:128' takes: it has "
                                     "no rates of such codes");
  auto keep = [&](std::initializer_list<const char *> names) {
    machine.compute[0].codecs = sampleMachine().compute[0].codecs;
    std::vector<CodecPoint> &codecs = machine.compute[0].codecs;
    codecs.erase(std::remove_if(codecs.begin(), codecs.end(),
                                [&](const CodecPoint &p) {
                                  return std::find(names.begin(), names.end(), p.encoding) ==
                                         names.end();
                                }),
                 codecs.end());
  };
  keep({"int8:128"});
  EXPECT_ERROR(ofEncode("int8:64"), "the machine file does not tell what 'int8:64' takes: it has "
                                    "no rates of an encoding in groups of two sizes");
  EXPECT_ERROR(ofEncode("int8:128+spikes"),
               "the machine file does not tell what 'int8:128+spikes' takes: it has no rates of an "
               "encoding with and without spikes");
  EXPECT_ERROR(ofEncode("int8:128+hadamard16"),
               "the machine file does not tell what 'int8:128+hadamard16' takes: it has no rates "
               "of an encoding with and without a rotation");
  keep({});
  EXPECT_ERROR(ofEncode("int8:128"), "the machine file has no rates of codecs");
  machine.compute.clear();
  EXPECT_ERROR(OperationTimes(machine, {1, 1}).ofCopy(1).status(),
               "the machine file has no rates of a processor");
}

TEST(OperationTime, OnAGpu) {
  const Machine machine = *openMachine("h100");
  const OperationTimes times(machine, {});
  // 0.8 of 989.4 TFLOP/s behind a launch of 20 us; small products are bound by memory.
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(8192, 8192, 8192, DType::bf16))),
               2e-5 + 2.0 * 8192 * 8192 * 8192 / (0.8 * 9.894e14));
  EXPECT_CLOSE(seconds(times.ofLibrary(matmul(1, 8192, 8192, DType::bf16))),
               2e-5 + 2.0 * (8192 + 8192.0 * 8192 + 8192) / 3.35e12);
  EXPECT_CLOSE(seconds(times.ofCopy(3.35e9)), 2e-5 + 2e-3);
  // A codec is bound by memory, and computes in f32, 6 operations of an element, at 66.9 TFLOP/s.
  const LibraryCall call = codec("encode", "int8:128", 1024, 8192);
  EXPECT_CLOSE(seconds(times.ofLibrary(call)), 2e-5 + bytesOf(call) / 3.35e12);
  EXPECT_CLOSE(seconds(times.ofRows({}, 1024, 0, 0, {call})), 2e-5 + 6.0 * 1024 * 8192 / 6.69e13);
  EXPECT_ERROR(times.ofLibrary(matmul(8, 8, 8, DType::i64)).status(),
               "the machine file has no peak rate of matrix operations on i64");
}

TEST(Interpolation, SecondsByBytes) {
  const std::vector<std::pair<double, double>> points{{10, 1}, {20, 3}, {40, 4}};
  EXPECT_EQ(secondsAt(points, 0), 0);
  EXPECT_EQ(secondsAt(points, 5), 0.5);
  EXPECT_EQ(secondsAt(points, 10), 1);
  EXPECT_EQ(secondsAt(points, 15), 2);
  EXPECT_EQ(secondsAt(points, 40), 4);
  EXPECT_EQ(secondsAt(points, 60), 5);
  EXPECT_EQ(secondsAt({{10, 1}}, 30), 3);
  EXPECT_EQ(secondsAt({{10, 3}, {20, 2}}, 15), 2.5);
  EXPECT_EQ(secondsAt({{10, 3}, {20, 2}}, 30), 2);
  EXPECT_EQ(secondsAt({}, 30), 0);
  double last = 0;
  for (int bytes = 0; bytes < 100; ++bytes) {
    EXPECT_GE(secondsAt(points, bytes), last);
    last = secondsAt(points, bytes);
  }
}

TEST(Interpolation, RatesAtACornerAreThose) {
  const RateGrid<2> grid({{{1, 10}, 2}, {{1, 1000}, 8}, {{4, 10}, 4}, {{4, 1000}, 32}});
  EXPECT_CLOSE(grid.rate({1, 10}), 2);
  EXPECT_CLOSE(grid.rate({4, 1000}), 32);
  EXPECT_CLOSE(grid.rate({2, 10}), std::sqrt(2.0 * 4));
  EXPECT_CLOSE(grid.rate({2, 100}), std::pow(2.0 * 8 * 4 * 32, 0.25));
  EXPECT_CLOSE(grid.rate({9, 5}), 4);
}
