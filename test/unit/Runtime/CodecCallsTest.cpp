//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library kernels encode, decode and decode_sum: parts, strides, threads, and payloads that are
// not what is expected.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"
#include "ProgramBuilder.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i8 = DType::i8;

Encoding encodingOf(const std::string &text) {
  Result<Encoding> e = Encoding::parse(text);
  EXPECT_OK(e);
  return *e;
}

Tensor bytesAsTensor(std::vector<uint8_t> &data, std::vector<int64_t> shape, int64_t stride) {
  return {reinterpret_cast<std::byte *>(data.data()), i8, std::move(shape), {stride, 1}};
}

/// Runs a call; the error of the resolution or of the run.
Status run(const LibraryArguments &a, int64_t threads, const VectorKernels &kernels) {
  RETURN_IF_ERROR(a.check());
  CpuResources resources;
  resources.threads = threads;
  ASSIGN_OR_RETURN(const LibraryCommand command, resolveLibrary(a, resources));
  Bench bench(threads, kernels);
  command->run(Command(), bench.context);
  return bench.control.failed() ? bench.control.failure() : Status();
}

/// A tensor of rows with a gap between them, and its payload.
struct Case {
  Case(const std::string &text, DType type, std::vector<int64_t> shape, int64_t parts, int64_t gap,
       std::mt19937 &random)
      : encoding(encodingOf(text)), type(type), shape(std::move(shape)), gap(gap) {
    rows = 1;
    for (size_t d = 0; d + 1 < this->shape.size(); ++d)
      rows *= this->shape[d];
    columns = this->shape.back();
    layout = layoutOf(encoding, type, rows, columns, parts);
    payload.assign(static_cast<size_t>(layout.bytes + parts * gap * 4), 0xEE);
    for (int64_t r = 0; r < rows; ++r)
      x.push_back(inputOf(Input::normal, type, columns, random));
    data.assign(static_cast<size_t>(rows * stride()), 0xEE);
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<uint8_t> row = stored(type, x[static_cast<size_t>(r)]);
      std::memcpy(data.data() + r * stride(), row.data(), row.size());
    }
  }
  int64_t stride() const { return (columns + gap) * byteSize(type); }
  int64_t partStride() const { return layout.partBytes + 4 * gap; }
  Tensor tensor() {
    std::vector<int64_t> strides(shape.size(), 1);
    int64_t next = columns + gap;
    for (size_t d = shape.size() - 1; d-- > 0; next *= shape[d])
      strides[d] = next;
    return {reinterpret_cast<std::byte *>(data.data()), type, shape, strides};
  }
  Tensor parts() { return bytesAsTensor(payload, {layout.parts, layout.partBytes}, partStride()); }
  /// With a group of `ranks`, at position `self` of which this rank is, parts are for it from
  /// `first` on.
  Status encode(int64_t threads = 1, int64_t ranks = 1, int64_t self = 0, int64_t first = 0) {
    const Tensor in = tensor(), out = parts();
    LibraryArguments a = call("encode", {&in, &out}, {encoding.code(), first});
    a.parts = ranks;
    a.part = self;
    return run(a, threads, vectorKernels());
  }

  Encoding encoding;
  DType type;
  std::vector<int64_t> shape;
  int64_t gap, rows = 0, columns = 0;
  PayloadLayout layout;
  std::vector<std::vector<float>> x;
  std::vector<uint8_t> data, payload;
};

void checkCalls(const std::string &text, DType type, const std::vector<int64_t> &shape,
                int64_t parts, int64_t gap, int64_t threads) {
  SCOPED_TRACE(::testing::Message()
               << text << " of " << name(type) << " " << shapeString(shape) << " in " << parts
               << " parts, gap " << gap << ", " << threads << " threads, seed 31");
  std::mt19937 random(31);
  Case c(text, type, shape, parts, gap, random);
  ASSERT_OK(c.encode(threads));
  // Every byte of the payload, and none between its parts.
  std::vector<uint8_t> expected(c.payload.size(), 0xEE);
  std::vector<std::vector<float>> y;
  for (int64_t part = 0; part < parts; ++part) {
    uint8_t *to = expected.data() + part * c.partStride();
    std::memset(to, 0, static_cast<size_t>(c.layout.partBytes));
    c.layout.writeHeader(reinterpret_cast<std::byte *>(to), part);
    for (int64_t r = 0; r < c.layout.rowsOf(part); ++r) {
      CodecReference reference(c.encoding, type, c.columns);
      const std::vector<uint8_t> row = reference.encode(c.x[y.size()]);
      std::memcpy(to + 16 + r * c.layout.rowBytes, row.data(), row.size());
      y.push_back(reference.decode(row));
    }
  }
  ASSERT_TRUE(c.payload == expected);
  for (DType outType : {f32, DType::f16, DType::bf16}) {
    Case out(text, outType, shape, parts, gap, random);
    std::fill(out.data.begin(), out.data.end(), 0xEE);
    const Tensor to = out.tensor(), from = c.parts();
    ASSERT_OK(run(call("decode", {&from, &to}, {c.encoding.code(), static_cast<int64_t>(type), 0}),
                  threads, vectorKernels()));
    std::vector<uint8_t> wanted(out.data.size(), 0xEE);
    for (size_t r = 0; r < y.size(); ++r) {
      const std::vector<uint8_t> row = storedResult(outType, y[r]);
      std::memcpy(wanted.data() + static_cast<int64_t>(r) * out.stride(), row.data(), row.size());
    }
    ASSERT_TRUE(out.data == wanted) << "decoded to " << name(outType);
    // The parts as terms of a sum: those rows of the last ones that do not exist add 0.
    if (c.layout.rowsOf(parts - 1) != c.layout.rowsPerPart)
      continue;
    Case sum(text, outType, {c.layout.rowsPerPart, c.columns}, 1, gap, random);
    const Tensor total = sum.tensor();
    Case ownRows(text, type, {c.layout.rowsPerPart, c.columns}, 1, gap + 1, random);
    const Tensor own = ownRows.tensor();
    // Of all payloads, and of all but this rank's, which is not read.
    for (int64_t self : {int64_t(-1), int64_t(0), parts - 1}) {
      if (self >= 0 && parts == 1)
        continue;
      LibraryArguments a = call("decode_sum", {&from, self < 0 ? nullptr : &own, &total},
                                {c.encoding.code(), static_cast<int64_t>(type), parts});
      const std::vector<uint8_t> payload = c.payload;
      if (self >= 0) {
        a.parts = parts;
        a.part = self;
        std::memset(c.payload.data() + self * c.partStride(), 0xAB,
                    static_cast<size_t>(c.layout.partBytes));
      }
      ASSERT_OK(run(a, threads, vectorKernels()));
      c.payload = payload;
      for (int64_t r = 0; r < c.layout.rowsPerPart; ++r) {
        std::vector<float> added;
        for (int64_t part = 0; part < parts; ++part) {
          const std::vector<float> &term =
              part == self ? ownRows.x[static_cast<size_t>(r)]
                           : y[static_cast<size_t>(part * c.layout.rowsPerPart + r)];
          added.resize(term.size());
          for (size_t i = 0; i < term.size(); ++i)
            added[i] = part == 0 ? term[i] : added[i] + term[i];
        }
        const std::vector<uint8_t> row = storedResult(outType, added);
        ASSERT_EQ(std::memcmp(sum.data.data() + r * sum.stride(), row.data(), row.size()), 0)
            << "sum in " << name(outType) << " on rank " << self << ", row " << r;
      }
    }
  }
}

TEST(CodecCalls, EqualTheDefinition) {
  for (const char *text : {"int8:128", "int4:128+spikes", "int3:32+hadamard16", "fp8e4m3:128",
                           "mxfp4", "nvfp4", "bf16"})
    for (DType type : {f32, DType::f16, DType::bf16})
      for (int64_t threads : {1, 3}) {
        checkCalls(text, type, {1, 1}, 1, 0, threads);
        checkCalls(text, type, {1, 100}, 4, 0, threads); // three parts of nothing
        checkCalls(text, type, {7, 192}, 2, 5, threads);
        checkCalls(text, type, {2, 3, 192}, 3, 3, threads);
        checkCalls(text, type, {8, 1}, 4, 1, threads);
      }
  checkCalls("int8:128", f32, {512, 576 / 3}, 4, 0, 3); // shared
  checkCalls("int5:8192", f32, {3, 8192 + 9}, 3, 1, 2);
}

/// What a rank would send to itself is zeros, and the other parts are as without a group, on any
/// number of threads.
TEST(CodecCalls, EncodeForOthers) {
  std::mt19937 random(37);
  for (int64_t ranks : {2, 3, 4})
    for (int64_t parts : {1, 2, 4, 7, 12})
      for (int64_t rows : {int64_t(1), parts, 2 * parts, 5 * parts - 3})
        for (int64_t first = 0; first < ranks; ++first)
          for (int64_t self = 0; self < ranks; ++self) {
            // Large enough for three threads.
            const int64_t columns = first == 0 && self == 0 ? (int64_t(1) << 18) / rows + 32 : 40;
            Case c("int8:32", f32, {std::max<int64_t>(rows, 1), columns}, parts, 1, random);
            ASSERT_OK(c.encode());
            std::vector<uint8_t> expected = c.payload;
            for (int64_t part = 0; part < parts; ++part)
              if ((first + part) % ranks == self)
                std::fill_n(expected.data() + part * c.partStride(), c.layout.partBytes, 0);
            std::fill(c.payload.begin(), c.payload.end(), 0xEE);
            for (int64_t part = 0; part < parts; ++part) // what is between parts is kept
              std::copy_n(expected.data() + part * c.partStride() + c.layout.partBytes, 4,
                          c.payload.data() + part * c.partStride() + c.layout.partBytes);
            ASSERT_OK(c.encode(3, ranks, self, first));
            ASSERT_TRUE(c.payload == expected) << "rank " << self << " of " << ranks << ", " << rows
                                               << " rows in " << parts << " parts from " << first;
          }
  Case c("int8:32", f32, {4, 40}, 4, 0, random);
  EXPECT_ERROR(c.encode(1, 2, 0, 2), "expects first in [0, 2), got 2");
  EXPECT_ERROR(c.encode(1, 1, 0, 1), "expects first in [0, 1), got 1");
  EXPECT_ERROR(c.encode(1, 2, 0, -1), "expects first in [0, 2), got -1");
}

TEST(CodecCalls, LargeTensors) {
  for (int64_t columns : {(int64_t(1) << 22) + 3, int64_t(4096)}) {
    const int64_t rows = columns == 4096 ? 1024 : 1;
    std::mt19937 random(32);
    for (const char *text : {"int8:128", "int4:8192", "mxfp8e5m2", "bf16"}) {
      SCOPED_TRACE(text);
      const Encoding e = encodingOf(text);
      const PayloadLayout layout = layoutOf(e, f32, rows, columns, 1);
      std::vector<float> x(static_cast<size_t>(rows * columns)), y(x.size());
      for (size_t i = 0; i < x.size(); ++i)
        x[i] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-31f;
      std::vector<uint8_t> payload(static_cast<size_t>(layout.bytes));
      std::vector<std::vector<uint8_t>> payloads;
      const std::vector<int64_t> shape{rows, columns};
      const Tensor in{reinterpret_cast<std::byte *>(x.data()), f32, shape, {columns, 1}},
          out{reinterpret_cast<std::byte *>(y.data()), f32, shape, {columns, 1}},
          bytes = bytesAsTensor(payload, {1, layout.partBytes}, layout.partBytes);
      ASSERT_OK(run(call("encode", {&in, &bytes}, {e.code(), 0}), 2, vectorKernels()));
      ASSERT_OK(run(call("decode", {&bytes, &out}, {e.code(), 0, 0}), 2, vectorKernels()));
      double worst = 0;
      for (size_t i = 0; i < x.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])));
      EXPECT_LT(worst, 0.13);
      EXPECT_GT(worst, 1e-6);
      for (const VectorKernels *kernels : allKernels()) {
        std::vector<uint8_t> other(payload.size(), 0xEE);
        std::vector<float> z(y.size());
        const Tensor to = bytesAsTensor(other, {1, layout.partBytes}, layout.partBytes),
                     back{reinterpret_cast<std::byte *>(z.data()), f32, shape, {columns, 1}};
        ASSERT_OK(run(call("encode", {&in, &to}, {e.code(), 0}), 1, *kernels));
        EXPECT_TRUE(other == payload) << kernels->isa;
        ASSERT_OK(run(call("decode", {&bytes, &back}, {e.code(), 0, 0}), 1, *kernels));
        EXPECT_TRUE(z == y) << kernels->isa;
      }
    }
  }
}

TEST(CodecCalls, RefuseWhatTheyCannotWalk) {
  std::mt19937 random(33);
  Case c("int8:32", f32, {2, 3, 32}, 1, 0, random);
  Tensor in = c.tensor(), payload = c.parts();
  auto encode = [&] {
    return run(call("encode", {&in, &payload}, {c.encoding.code(), 0}), 1, vectorKernels());
  };
  EXPECT_OK(encode());
  in.strides[2] = 2;
  const std::string expected = ": expects leading dimensions that can be walked as one and a "
                               "contiguous last one, got shape ";
  EXPECT_ERROR(encode(), "input" + expected + "[2, 3, 32] and strides [96, 32, 2]");
  in = c.tensor();
  in.strides[0] = 100;
  EXPECT_ERROR(encode(), "input" + expected + "[2, 3, 32] and strides [100, 32, 1]");
  in = c.tensor();
  payload.strides[1] = 2;
  EXPECT_ERROR(encode(), "payload" + expected + "[1, 240] and strides [240, 2]");
}

/// A part that no rank has sent, and several tensors of several parts.
TEST(CodecCalls, AbsentPartsAndSenders) {
  std::mt19937 random(36);
  Case c("int8:32", f32, {6, 40}, 6, 0, random), out("int8:32", f32, {6, 40}, 6, 0, random);
  ASSERT_OK(c.encode());
  std::vector<std::vector<float>> y;
  for (const std::vector<float> &row : c.x) {
    CodecReference reference(c.encoding, f32, 40);
    y.push_back(reference.decode(reference.encode(row)));
  }
  // Three senders of two rows each, a row in a part.
  Case sum("int8:32", f32, {2, 40}, 2, 0, random);
  const Tensor total = sum.tensor(), payload = c.parts();
  ASSERT_OK(run(call("decode_sum", {&payload, nullptr, &total}, {c.encoding.code(), 0, 3}), 1,
                vectorKernels()));
  for (size_t r = 0; r < 2; ++r)
    for (size_t i = 0; i < 40; ++i)
      ASSERT_EQ(total.as<float>()[r * 40 + i], y[r][i] + y[r + 2][i] + y[r + 4][i]);
  std::fill_n(c.payload.begin() + c.layout.partBytes, c.layout.partBytes, uint8_t(0));
  const Tensor to = out.tensor();
  auto decode = [&](int64_t absent) {
    return run(call("decode", {&payload, &to}, {c.encoding.code(), 0, absent}), 1, vectorKernels());
  };
  ASSERT_OK(decode(1));
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(to.as<float>()[i], y[0][i]);
    EXPECT_EQ(to.as<float>()[40 + i], 0.0f);
  }
  EXPECT_ERROR(decode(0), "rank 0: " + describe(Command()) +
                              ": part 1: expects a payload that begins with 0x5142, got 0");
}

TEST(CodecCalls, FailOnPayloadsOfAnother) {
  std::mt19937 random(34);
  Case c("int4:32+spikes", f32, {6, 40}, 3, 0, random);
  ASSERT_OK(c.encode());
  const std::vector<uint8_t> good = c.payload;
  const size_t part1 = static_cast<size_t>(c.layout.partBytes);
  auto change = [&](size_t at, std::vector<uint8_t> bytes) {
    c.payload = good;
    std::copy(bytes.begin(), bytes.end(), c.payload.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const Tensor payload = c.parts();
  Case whole("int4:32+spikes", f32, {6, 40}, 1, 0, random),
      sum("int4:32+spikes", f32, {2, 40}, 1, 0, random);
  auto decode = [&] {
    const Tensor out = whole.tensor();
    return run(call("decode", {&payload, &out}, {c.encoding.code(), 0, 0}), 2, vectorKernels());
  };
  auto decodeSum = [&] {
    const Tensor out = sum.tensor();
    return run(call("decode_sum", {&payload, nullptr, &out}, {c.encoding.code(), 0, 3}), 2,
               vectorKernels());
  };
  EXPECT_OK(decode());
  EXPECT_OK(decodeSum());
  const std::string where = "rank 0: " + describe(Command()) + ": ";
  change(part1, {0x42, 0x51 + 1});
  EXPECT_ERROR(decode(), where + "part 1: expects a payload that begins with 0x5142, got 21058");
  EXPECT_ERROR(decodeSum(), where + "part 1: expects a payload that begins with 0x5142, got 21058");
  change(part1 + 8, {1});
  EXPECT_ERROR(decode(), where + "part 1: expects a payload of 2 to 2 rows, got 1");
  EXPECT_ERROR(decodeSum(), where + "part 1: expects a payload of 2 rows, as part 0 has, got 1");
  change(2 * part1 + 8, {3});
  EXPECT_ERROR(decodeSum(), where + "part 2: expects a payload of 0 to 2 rows, got 3");
  change(12, {41});
  EXPECT_ERROR(decode(), where + "part 0: expects a payload of 40 columns, got 41");
  // A position of the second group, of 8 elements, in row 3.
  const size_t row3 = part1 + 16 + static_cast<size_t>(c.layout.rowBytes);
  change(row3 + 2 * static_cast<size_t>(c.layout.groupHeaderBytes) - 1, {8});
  EXPECT_ERROR(decode(), where + "row 3: expects a spike position below 8, got 8");
  EXPECT_ERROR(decodeSum(), where + "row 1: expects a spike position below 8, got 8");
}

/// x encoded and decoded, and a payload from outside decoded.
ProgramBuilder codecProgram(const PayloadLayout &layout) {
  const int64_t code = layout.encoding.code();
  const Shape shape{layout.rows, layout.columns}, bytes{layout.parts, layout.partBytes};
  ProgramBuilder b({{"tp", 1}});
  b.operand("x", f32, shape);
  b.operand("payload", i8, bytes);
  b.result("y", f32, shape);
  b.result("z", f32, shape);
  auto p = b.procedure("main", 4, static_cast<uint64_t>(layout.bytes), 0, 0);
  const V made = local(0, i8, bytes);
  EncodeLaunch encode;
  encode.input = argument(0, f32, shape).build();
  encode.payload = made.build();
  encode.code = code;
  p.compute("pack", std::move(encode));
  DecodeLaunch decode;
  decode.payload = made.build();
  decode.out = argument(2, f32, shape).build();
  decode.code = code;
  p.compute("unpack", std::move(decode));
  DecodeLaunch other;
  other.payload = argument(1, i8, bytes).build();
  other.out = argument(3, f32, shape).build();
  other.code = code;
  p.compute("unpack.other", std::move(other));
  return b;
}

TEST(CodecPrograms, RunTheKernels) {
  const Encoding e = encodingOf("int6:64+bf16-scale");
  const PayloadLayout layout = layoutOf(e, f32, 7, 100, 2);
  ProgramBuilder b = codecProgram(layout);
  WorldOptions options;
  options.timeLimitSeconds = 60;
  auto session = b.session(options);
  ASSERT_OK(session);
  std::mt19937 random(35);
  std::vector<float> x = inputOf(Input::normal, f32, 700, random);
  std::vector<int8_t> payload(static_cast<size_t>(layout.bytes));
  std::vector<float> expected;
  for (int64_t row = 0; row < 7; ++row) {
    CodecReference reference(e, f32, 100);
    const std::vector<uint8_t> bytes =
        reference.encode({x.begin() + row * 100, x.begin() + (row + 1) * 100});
    std::memcpy(payload.data() + layout.rowOffset(row), bytes.data(), bytes.size());
    const std::vector<float> y = reference.decode(bytes);
    expected.insert(expected.end(), y.begin(), y.end());
  }
  for (int64_t part : {0, 1})
    layout.writeHeader(reinterpret_cast<std::byte *>(payload.data()) + part * layout.partBytes,
                       part);
  ASSERT_OK((*session)->setInput("x", f32, {7, 100}, x.data()));
  ASSERT_OK((*session)->setInput("payload", i8, {2, layout.partBytes}, payload.data()));
  ASSERT_OK((*session)->run());
  for (const char *result : {"y", "z"}) {
    std::vector<float> y(700);
    ASSERT_OK((*session)->readOutput(result, y.data(), y.size() * 4));
    EXPECT_EQ(y, expected) << result;
  }
  payload[static_cast<size_t>(layout.partBytes) + 2] = 2;
  ASSERT_OK((*session)->setInput("payload", i8, {2, layout.partBytes}, payload.data()));
  EXPECT_ERROR((*session)->run(), "rank 0: decode 'unpack.other' in @main: part 1: expects a "
                                  "payload of version 1, got 2");
}

} // namespace
