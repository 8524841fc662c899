//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches of kernels with encoded operands give the bits of separate launches of codec and kernel.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"
#include "braid/Base/StatusMacros.h"

#include <array>
#include <cmath>

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

constexpr DType f32 = DType::f32, i8 = DType::i8;

/// A memref descriptor of `rank` dimensions whose last stride is 1.
template <int rank> struct Memref {
  float *allocated, *aligned;
  int64_t offset, sizes[rank], strides[rank];
};

/// A row kernel: h = x + r, z = h / sqrt(mean(h^2)) * w, of [rows, columns] or [rows, inner,
/// columns].
template <int rank> void addNorm(void *const *descriptors) {
  auto at = [&](size_t i) { return static_cast<const Memref<rank> *>(descriptors[i]); };
  const auto *w = static_cast<const Memref<1> *>(descriptors[2]);
  const Memref<rank> *x = at(0), *r = at(1), *h = at(3), *z = at(4);
  const int64_t columns = x->sizes[rank - 1], inner = rank == 3 ? x->sizes[1] : 1;
  for (int64_t row = 0; row < x->sizes[0]; ++row)
    for (int64_t i = 0; i < inner; ++i) {
      auto rowOf = [&](const Memref<rank> *m) {
        return m->aligned + row * m->strides[0] + (rank == 3 ? i * m->strides[1] : 0);
      };
      float sum = 0;
      for (int64_t c = 0; c < columns; ++c) {
        rowOf(h)[c] = rowOf(x)[c] + rowOf(r)[c];
        sum += rowOf(h)[c] * rowOf(h)[c];
      }
      const float norm = 1 / std::sqrt(sum / static_cast<float>(columns) + 1e-6f);
      for (int64_t c = 0; c < columns; ++c)
        rowOf(z)[c] = rowOf(h)[c] * norm * w->aligned[c];
    }
}

/// A tensor of f32 or another type, or a payload, in memory of its own with gaps between rows or
/// parts.
struct Buffer {
  Buffer(DType type, std::vector<int64_t> shape, int64_t gap) : bytes() {
    tensor.dtype = type;
    tensor.strides.assign(shape.size(), 1);
    int64_t next = shape.back() + gap;
    for (size_t d = shape.size() - 1; d-- > 0; next *= shape[d])
      tensor.strides[d] = next;
    tensor.shape = std::move(shape);
    bytes.assign(static_cast<size_t>(next * byteSize(type)), 0xEE);
    tensor.data = reinterpret_cast<std::byte *>(bytes.data());
  }
  std::vector<uint8_t> bytes;
  Tensor tensor;
};

Status runCommand(const Result<LibraryCommand> &command, Bench &bench) {
  RETURN_IF_ERROR(command.status());
  (*command)->run(Command(), bench.context);
  return bench.control.failed() ? bench.control.failure() : Status();
}

Status runLibrary(const LibraryArguments &a, Bench &bench) {
  RETURN_IF_ERROR(a.check());
  CpuResources resources;
  resources.threads = bench.team.members();
  return runCommand(resolveLibrary(a, resources), bench);
}

struct CodecCase {
  Encoding in, out;
  DType encoded = f32; ///< of the tensor that was encoded
  int64_t senders = 0; ///< of a sum; 0: of a decode
  int64_t parts = 1;   ///< of each sender
  int64_t outParts = 1;
  /// The group that z is encoded for, the rank, and who gets the first part.
  int64_t outRanks = 1, outSelf = 0, outFirst = 0;
  std::vector<int64_t> shape; ///< of the kernel: rows, and perhaps inner rows, and columns
  int64_t gap = 0;
  Input input = Input::normal;
  int64_t self = -1; ///< of the senders, the one whose rows are as they were; negative: none
};

std::vector<int64_t> rowsOf(const CodecCase &c) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < c.shape.size(); ++d)
    rows *= c.shape[d];
  return {rows, c.shape.back()};
}

/// The operands of a case: a payload is decoded to x, z is encoded.
struct Operands {
  Operands(const CodecCase &c, std::mt19937 &random)
      : c(c), copies(std::max<int64_t>(c.senders, 1)), r(f32, c.shape, c.gap),
        w(f32, {c.shape.back()}, 0) {
    const std::vector<int64_t> flat = rowsOf(c);
    const PayloadLayout layout = layoutOf(c.in, c.encoded, flat[0], flat[1], c.parts);
    payload = std::make_unique<Buffer>(i8, std::vector<int64_t>{copies * c.parts, layout.partBytes},
                                       3 * c.gap);
    own = std::make_unique<Buffer>(c.encoded, c.shape, c.gap);
    for (int64_t row = 0; row < flat[0]; ++row) {
      const std::vector<uint8_t> bytes =
          stored(c.encoded, inputOf(c.input, c.encoded, flat[1], random));
      std::memcpy(own->bytes.data() + row * (flat[1] + c.gap) * byteSize(c.encoded), bytes.data(),
                  bytes.size());
    }
    outLayout = layoutOf(c.out, f32, flat[0], flat[1], c.outParts);
    Bench bench(1, vectorKernels());
    for (int64_t sender = 0; sender < copies; ++sender) {
      Buffer whole(c.encoded, flat, 0);
      whole.bytes = stored(c.encoded, inputOf(c.input, c.encoded, flat[0] * flat[1], random));
      whole.tensor.data = reinterpret_cast<std::byte *>(whole.bytes.data());
      Tensor part = payload->tensor;
      part.shape[0] = c.parts;
      part.data += sender * c.parts * part.strides[0];
      EXPECT_OK(runLibrary(call("encode", {&whole.tensor, &part}, {c.in.code(), 0}), bench));
    }
    for (Buffer *buffer : {&r, &w})
      for (size_t i = 0; i < buffer->bytes.size() / 4; ++i)
        buffer->tensor.as<float>()[i] = normal(random);
  }

  LibraryArguments decodeTo(const Tensor &x) const {
    const std::vector<int64_t> integers = {c.in.code(), static_cast<int64_t>(c.encoded), c.senders};
    if (c.senders == 0)
      return call("decode", {&payload->tensor, &x}, integers);
    LibraryArguments a =
        call("decode_sum", {&payload->tensor, c.self < 0 ? nullptr : &own->tensor, &x}, integers);
    if (c.self >= 0) {
      a.parts = c.senders;
      a.part = c.self;
    }
    return a;
  }
  LibraryArguments encodeFrom(const Tensor &z, const Tensor &to) const {
    LibraryArguments a = call("encode", {&z, &to}, {c.out.code(), c.outFirst});
    a.parts = c.outRanks;
    a.part = c.outSelf;
    return a;
  }
  std::vector<int64_t> outShape() const { return {c.outParts, outLayout.partBytes}; }
  KernelFunction function() const { return c.shape.size() == 3 ? addNorm<3> : addNorm<2>; }

  CodecCase c;
  int64_t copies;
  Buffer r, w;
  std::unique_ptr<Buffer> payload, own;
  PayloadLayout outLayout;
  std::normal_distribution<float> normal;
};

void runApart(Operands &o, Buffer &h, Buffer &payload) {
  Bench bench(1, vectorKernels());
  Buffer x(f32, o.c.shape, 0), z(f32, o.c.shape, 0);
  ASSERT_OK(runLibrary(o.decodeTo(x.tensor), bench));
  Result<LaunchCommand> launch =
      resolveLaunch(o.function(), {x.tensor, o.r.tensor, o.w.tensor, h.tensor, z.tensor},
                    {true, true, false, true, true}, o.c.shape[0], 1);
  ASSERT_OK(launch);
  bench.run(*launch);
  ASSERT_OK(runLibrary(o.encodeFrom(z.tensor, payload.tensor), bench));
}

Status runFused(Operands &o, Buffer &h, Buffer &payload, Bench &bench) {
  Buffer rows(f32, o.c.shape, 0); // only its type counts
  rows.tensor.data = nullptr;
  const std::vector<EncodedOperand> encoded = {{0, o.decodeTo(rows.tensor)},
                                               {4, o.encodeFrom(rows.tensor, payload.tensor)}};
  for (const EncodedOperand &one : encoded)
    RETURN_IF_ERROR(one.codec.check());
  return runCommand(
      resolveCodecLaunch(
          o.function(), {o.payload->tensor, o.r.tensor, o.w.tensor, h.tensor, payload.tensor},
          {false, true, false, true, false}, encoded, o.c.shape[0], bench.team.members()),
      bench);
}

void compare(const CodecCase &c, std::mt19937 &random, int64_t threads,
             const VectorKernels &kernels) {
  SCOPED_TRACE(::testing::Message()
               << c.in.str() << " of " << name(c.encoded) << " to " << c.out.str() << ", "
               << shapeString(c.shape) << ", senders " << c.senders << ", parts " << c.parts
               << " and " << c.outParts << " for rank " << c.outSelf << " of " << c.outRanks
               << " from " << c.outFirst << ", own " << c.self << ", gap " << c.gap << ", input "
               << static_cast<int>(c.input) << ", " << threads << " threads, " << kernels.isa);
  Operands o(c, random);
  Buffer apart(f32, c.shape, c.gap), fused(f32, c.shape, c.gap);
  Buffer payload(i8, o.outShape(), c.gap), fusedPayload(i8, o.outShape(), c.gap);
  runApart(o, apart, payload);
  Bench bench(threads, kernels);
  ASSERT_OK(runFused(o, fused, fusedPayload, bench));
  ASSERT_TRUE(fused.bytes == apart.bytes);
  ASSERT_TRUE(fusedPayload.bytes == payload.bytes);
  // Scratch memory that holds something else does not matter.
  std::fill(fusedPayload.bytes.begin(), fusedPayload.bytes.end(), 0xEE);
  ASSERT_OK(runFused(o, fused, fusedPayload, bench));
  ASSERT_TRUE(fusedPayload.bytes == payload.bytes);
}

TEST(CodecLaunch, GivesTheBitsOfSeparateLaunches) {
  std::mt19937 random(51);
  const std::vector<const VectorKernels *> kernels = allKernels();
  const std::vector<Encoding> encodings = encodingsOf({32, 128}, {0, 16, 64});
  size_t turn = 0;
  for (const Encoding &e : encodings) {
    const int64_t columns[] = {1, 7, 100, 192, 300, 576}, rows[] = {1, 3, 7, 16, 33};
    CodecCase c;
    c.in = e;
    c.out = encodings[(turn * 31 + 7) % encodings.size()];
    c.encoded = std::array{f32, DType::f16, DType::bf16}[turn % 3];
    c.senders = std::array{0, 1, 3, 4}[turn / 3 % 4];
    c.self = c.senders > 1 ? static_cast<int64_t>(turn % 5) - 1 : -1;
    c.self = std::min(c.self, c.senders - 1);
    c.parts = std::array{1, 2, 4}[turn / 5 % 3];
    c.outParts = std::array{1, 4, 3}[turn / 7 % 3];
    c.outRanks = std::array{1, 2, 3, 4}[turn / 2 % 4];
    c.outSelf = static_cast<int64_t>(turn) % c.outRanks;
    c.outFirst = static_cast<int64_t>(turn / 11) % c.outRanks;
    c.shape = {rows[random() % 5], columns[random() % 6]};
    if (turn % 4 == 3)
      c.shape.insert(c.shape.begin() + 1, 3);
    c.gap = turn % 2 == 0 ? 0 : 5;
    // Numbers that the kernel makes infinities or NaNs of, too.
    c.input = kInputs[turn % std::size(kInputs)];
    compare(c, random, turn % 2 == 0 ? 1 : 3, *kernels[turn % kernels.size()]);
    ++turn;
    if (HasFailure())
      return;
  }
  EXPECT_GE(turn, 200u);
}

/// More rows than a block has, for one and for several members of a team.
TEST(CodecLaunch, RunsInBlocks) {
  std::mt19937 random(52);
  CodecCase c;
  c.in = *Encoding::parse("int8:128");
  c.out = *Encoding::parse("int4:128+spikes");
  c.senders = 4;
  c.self = 1;
  c.outParts = c.outRanks = 4;
  c.outSelf = 2;
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{101, 768}, {37, 2048}, {1, 20000}, {5, 20000}})
    for (int64_t threads : {1, 3}) {
      c.shape = shape;
      compare(c, random, threads, vectorKernels());
    }
}

TEST(CodecLaunch, FailsOnPayloadsOfAnother) {
  std::mt19937 random(53);
  CodecCase c;
  c.in = *Encoding::parse("int4:32+spikes");
  c.out = *Encoding::parse("bf16");
  c.parts = 3;
  c.shape = {6, 40};
  Operands o(c, random);
  const PayloadLayout layout = layoutOf(c.in, f32, 6, 40, 3);
  const std::vector<uint8_t> good = o.payload->bytes;
  auto runWith = [&](size_t at, uint8_t byte) {
    std::copy(good.begin(), good.end(), o.payload->bytes.begin());
    o.payload->bytes[at] = byte;
    Buffer h(f32, c.shape, 0), payload(i8, o.outShape(), 0);
    Bench bench(2, vectorKernels());
    return runFused(o, h, payload, bench);
  };
  EXPECT_OK(runWith(0, good[0]));
  const std::string where = "rank 0: " + describe(Command()) + ": operand 0: ";
  const auto part1 = static_cast<size_t>(layout.partBytes);
  EXPECT_ERROR(runWith(part1 + 2, 9), where + "part 1: expects a payload of version 1, got 9");
  EXPECT_ERROR(runWith(part1 + 8, 1), where + "part 1: expects a payload of 2 to 2 rows, got 1");
  const size_t row3 = part1 + 16 + static_cast<size_t>(layout.rowBytes);
  EXPECT_ERROR(runWith(row3 + 2 * static_cast<size_t>(layout.groupHeaderBytes) - 1, 8),
               where + "row 3: expects a spike position below 8, got 8");
}

} // namespace
