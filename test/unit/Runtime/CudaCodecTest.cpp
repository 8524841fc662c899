//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs with encodings on the null device: the bits of the CPU in every run, also of a graph,
// and wrong payloads.
//
//===----------------------------------------------------------------------===//
#include "CudaTesting.h"

#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i8 = DType::i8;
constexpr int64_t kRows = 7, kColumns = 100, kParts = 2;

Encoding encodingOf(const std::string &text) {
  Result<Encoding> e = Encoding::parse(text);
  EXPECT_OK(e);
  return *e;
}

PayloadLayout layoutOf(const Encoding &encoding) {
  Result<PayloadLayout> layout = PayloadLayout::of(encoding, f32, kRows, kColumns, kParts);
  EXPECT_OK(layout);
  return *layout;
}

/// x is encoded and decoded, twice in the same memory, and a payload from outside is decoded as one
/// of two senders' parts.
ProgramBuilder program(const Encoding &encoding) {
  const PayloadLayout layout = layoutOf(encoding);
  const int64_t code = encoding.code();
  const Shape shape{kRows, kColumns}, bytes{kParts, layout.partBytes},
      half{layout.rowsPerPart, kColumns};
  ProgramBuilder b({{"tp", 1}});
  b.operand("x", f32, shape);
  b.operand("payload", i8, bytes);
  b.result("y", f32, shape);
  b.result("sum", f32, half);
  const auto at = static_cast<uint64_t>(layout.bytes + 255) / 256 * 256;
  auto p = b.procedure("main", 4, at + 4 * kRows * kColumns, 0, 0);
  const V made = local(0, i8, bytes), decoded = local(at, f32, shape);
  auto encode = [&](const char *name, const V &input) {
    EncodeLaunch launch;
    launch.input = input.build();
    launch.payload = made.build();
    launch.code = code;
    p.compute(name, std::move(launch));
  };
  auto decode = [&](const char *name, const V &out) {
    DecodeLaunch launch;
    launch.payload = made.build();
    launch.out = out.build();
    launch.code = code;
    p.compute(name, std::move(launch));
  };
  encode("pack", argument(0, f32, shape));
  decode("unpack", decoded);
  encode("pack.again", decoded);
  decode("unpack.again", argument(2, f32, shape));
  DecodeSumLaunch sum;
  sum.payload = argument(1, i8, bytes).build();
  sum.out = argument(3, f32, half).build();
  sum.code = code;
  sum.senders = kParts;
  p.compute("add", std::move(sum));
  return b;
}

/// Payloads of two senders: headers, and any numbers that are finite, as nothing else is checked.
std::vector<int8_t> payloadOf(const Encoding &encoding, uint32_t seed) {
  const PayloadLayout layout = layoutOf(encoding);
  std::vector<int8_t> bytes(static_cast<size_t>(layout.bytes));
  std::mt19937 random(seed);
  for (int8_t &byte : bytes)
    byte = static_cast<int8_t>(random() % 64);
  for (int64_t part = 0; part < kParts; ++part) {
    int8_t *to = bytes.data() + part * layout.partBytes;
    layout.writeHeader(reinterpret_cast<std::byte *>(to), 0);
    // The last two bytes of a group's header are places, of which the last group has 4.
    for (int64_t row = 0; encoding.spikes && row < layout.rowsPerPart; ++row)
      for (int64_t g = 1; g <= layout.groups; ++g)
        for (int64_t i : {1, 2})
          to[PayloadLayout::kHeaderBytes + row * layout.rowBytes + g * layout.groupHeaderBytes -
             i] = static_cast<int8_t>(random() % 4);
  }
  return bytes;
}

std::vector<float> randomRows(uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(kRows * kColumns);
  for (float &v : x)
    v = normal(random);
  return x;
}

Status run(Session &session, const Encoding &encoding, const std::vector<float> &x,
           const std::vector<int8_t> &payload) {
  Status status = session.setInput("x", f32, {kRows, kColumns}, x.data());
  if (status.ok())
    status =
        session.setInput("payload", i8, {kParts, layoutOf(encoding).partBytes}, payload.data());
  return status.ok() ? session.run() : status;
}

std::vector<char> bytesOf(Session &session, const char *result) {
  Result<HostTensor> tensor = session.output(result);
  EXPECT_OK(tensor);
  std::vector<char> bytes(static_cast<size_t>(tensor->numElements()) * 4);
  EXPECT_OK(session.readOutput(result, bytes.data(), bytes.size()));
  return bytes;
}

TEST(CudaCodec, EveryRunGivesTheBitsOfTheCpu) {
  for (const char *text : {"int8:128", "int6:64+bf16-scale", "int3:32+spikes+hadamard32", "nvfp4",
                           "fp6e2m3:40", "mxfp8e4m3", "bf16"})
    for (bool graph : {false, true}) {
      SCOPED_TRACE(std::string(text) + (graph ? ", as a graph" : ""));
      const Encoding encoding = encodingOf(text);
      ProgramBuilder b = program(encoding);
      WorldOptions options = onNullDevice();
      options.cudaGraph = graph;
      auto cuda = cudaSession(b, options), cpu = b.session();
      ASSERT_OK(cuda);
      ASSERT_OK(cpu);
      // The second run of a graph captures it, others replay it; the last ones repeat inputs.
      for (uint32_t seed : {1, 2, 3, 2, 2}) {
        const std::vector<float> x = randomRows(seed);
        const std::vector<int8_t> payload = payloadOf(encoding, seed);
        ASSERT_OK(run(**cuda, encoding, x, payload));
        ASSERT_OK(run(**cpu, encoding, x, payload));
        for (const char *result : {"y", "sum"})
          EXPECT_EQ(bytesOf(**cuda, result), bytesOf(**cpu, result)) << result;
      }
    }
}

TEST(CudaCodec, NamesWrongPayloadsInEveryRun) {
  const Encoding encoding = encodingOf("int4:32+spikes");
  const PayloadLayout layout = layoutOf(encoding);
  const auto part = static_cast<size_t>(layout.partBytes);
  const std::vector<float> x = randomRows(4);
  const std::vector<int8_t> good = payloadOf(encoding, 4);
  struct Case {
    size_t at;
    int8_t byte;
    const char *message;
  };
  const size_t place = part + 16 + 2 * static_cast<size_t>(layout.rowBytes) +
                       4 * static_cast<size_t>(layout.groupHeaderBytes) - 1;
  for (const Case &c :
       {Case{part + 2, 2, "part 1: expects a payload of version 1, got 2"},
        Case{part + 8, 3, "part 1: expects a payload of 4 rows, as part 0 has, got 3"},
        Case{place, 4, "row 2: expects a spike position below 4, got 4"}})
    for (bool graph : {false, true}) {
      ProgramBuilder b = program(encoding);
      WorldOptions options = onNullDevice();
      options.cudaGraph = graph;
      auto session = cudaSession(b, options);
      ASSERT_OK(session);
      for (int turn = 0; turn < 3; ++turn) {
        std::vector<int8_t> wrong = good;
        wrong[c.at] = c.byte;
        EXPECT_ERROR(run(**session, encoding, x, wrong),
                     std::string("rank 0: decode_sum 'add' in @main: ") + c.message);
        EXPECT_OK(run(**session, encoding, x, good)); // nothing is left of it
      }
    }
}

} // namespace
