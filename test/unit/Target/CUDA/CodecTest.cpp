//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs the kernels of codec.cuh on the CPU, launched as the executor launches them, and compares
// every byte with the CPU's codec: on tensors and payloads of any alignment, with gaps that must
// not change, with threads in several random orders, each time over what the last launch left.
//
//===----------------------------------------------------------------------===//
#include "CodecMemory.h"
#include "KernelCheck.h"

#include "runtime/lib/Cuda/StreamCommand.h"
#include "test/unit/Runtime/CodecTesting.h"

#include <cstdlib>

using namespace braid;
using namespace braid::runtime;
using namespace braid::runtime::testing;
using Element = Encoding::Element;
using IntegerForm = Encoding::Form;

namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// An encoding, the type of the tensor, and the one that it is decoded to.
struct Kind {
  Encoding encoding;
  DType type, out;

  CudaCodec encode() const { return {encoding, type, std::nullopt}; }
  CudaCodec decode() const { return {encoding, type, out}; }
};

/// Codes of an element, of integers in a form, with each type of scale, with and without spikes.
/// Types take turns for integers, so that codes of each number of bits are of all types; others
/// have each. Groups and rotations take turns too.
std::vector<Kind> kindsOf(Element element, IntegerForm form) {
  constexpr int64_t kGroups[] = {128, 32, 256, 40, 512, 128, 8192, 1024};
  constexpr int64_t kRotations[] = {0, 64, 16, 256, 0, 128, 32};
  std::vector<Kind> kinds;
  size_t turn = 0;
  for (const Encoding &e : encodingsOf({128}, {0})) {
    if (e.element != element || e.form != form)
      continue;
    std::vector<DType> types(std::begin(kTypes), std::end(kTypes));
    if (element == Element::integer)
      types = {kTypes[turn % 3]};
    for (DType type : types) {
      Kind kind{e, type, kTypes[(turn + turn / 3) % 3]};
      if (e.scale == Encoding::Scale::f16 || e.scale == Encoding::Scale::bf16)
        kind.encoding.group = e.isCast() ? 0 : kGroups[turn % std::size(kGroups)];
      if (!e.isCast())
        kind.encoding.rotation = kRotations[turn % std::size(kRotations)];
      if (kind.encoding.rotation != 0 && kind.encoding.group % kind.encoding.rotation != 0)
        kind.encoding.rotation = kind.encoding.group % 16 == 0 ? 16 : 0;
      EXPECT_OK(Encoding::fromCode(kind.encoding.code()));
      kinds.push_back(kind);
      ++turn;
    }
  }
  return kinds;
}

/// A source with the kernels of some encodings.
struct Source {
  explicit Source(const std::vector<Kind> &kinds) {
    std::map<std::string, std::string> sources; // by function
    for (const Kind &kind : kinds)
      for (const CudaCodec &codec : {kind.encode(), kind.decode()})
        sources.emplace(codec.function(), codec.source());
    for (const auto &[function, definition] : sources) {
      functions.push_back(function);
      text += definition;
    }
  }
  std::string text = "#include <braid/codec.cuh>\n";
  std::vector<std::string> functions;
};

/// Kernels for some encodings, compiled for the host.
class HostCodecs {
public:
  explicit HostCodecs(const std::vector<Kind> &kinds) {
    const Source source(kinds);
    kernels = test::HostKernels::compile(source.text, source.functions);
  }

  /// Launches a call, and returns what the executor would say of its fault.
  Status run(const LibraryArguments &a, uint64_t seed) const {
    RETURN_IF_ERROR(a.check());
    ASSIGN_OR_RETURN(cuda::CodecLaunch launch, cuda::codecLaunch(a));
    library::Fault fault{};
    launch.arguments.fault = &fault;
    launch.arguments.command = 7;
    const uint64_t blocks = static_cast<uint64_t>(launch.threads + library::kThreads - 1) /
                            static_cast<uint64_t>(library::kThreads);
    const std::string error = kernels->launch(launch.kernel.function(), blocks, library::kThreads,
                                              {&launch.arguments}, seed);
    if (!error.empty())
      return Status::error(launch.kernel.function(), ": ", error);
    if (fault.command == 0)
      return {};
    EXPECT_EQ(fault.command, 7u);
    return cuda::payloadError(a, fault);
  }

  std::unique_ptr<test::HostKernels> kernels;
};

struct Form {
  std::vector<int64_t> leading; ///< dimensions
  int64_t parts, gap, over;     ///< bytes beyond an aligned address, of tensor and payload
};
constexpr size_t kForms = 6;
const Form &formOf(size_t turn) {
  static const Form forms[kForms] = {{{1}, 1, 0, 0},    {{1}, 4, 0, 0}, {{7}, 2, 5, 0},
                                     {{2, 3}, 3, 3, 4}, {{3}, 3, 0, 2}, {{5}, 4, 1, 0}};
  return forms[turn % kForms];
}

/// A tensor with a gap after each row, and its payload with one after each part.
struct Operands {
  Operands(const Kind &kind, int64_t columns, const Form &form)
      : type(kind.type), form(form), columns(columns) {
    for (int64_t size : form.leading)
      rows *= size;
    layout = layoutOf(kind.encoding, type, rows, columns, form.parts);
  }
  int64_t rowStride() const { return columns + form.gap; }
  int64_t partStride() const { return layout.partBytes + form.gap + form.over; }
  GuardedBytes tensorBytes(DType of) const {
    return {static_cast<size_t>(rows * rowStride() * byteSize(of)),
            static_cast<size_t>(form.over * byteSize(of))};
  }
  GuardedBytes payloadBytes() const {
    return {static_cast<size_t>(form.parts * partStride()), static_cast<size_t>(form.over)};
  }
  Tensor tensor(GuardedBytes &bytes, DType of) const {
    std::vector<int64_t> shape = form.leading, strides(shape.size() + 1, 1);
    shape.push_back(columns);
    int64_t next = rowStride();
    for (size_t d = shape.size() - 1; d-- > 0; next *= shape[d])
      strides[d] = next;
    return {bytes.bytes(), of, shape, strides};
  }
  Tensor payload(GuardedBytes &bytes) const {
    return {bytes.bytes(), DType::i8, {form.parts, layout.partBytes}, {partStride(), 1}};
  }
  void fill(GuardedBytes &bytes, Input input, std::mt19937 &random) const {
    for (int64_t r = 0; r < rows; ++r) {
      const std::vector<uint8_t> row = stored(type, inputOf(input, type, columns, random));
      std::memcpy(bytes.data() + r * rowStride() * byteSize(type), row.data(), row.size());
    }
  }

  DType type;
  Form form;
  int64_t columns, rows = 1;
  PayloadLayout layout;
};

/// Runs a call of which `out` is the result on the CPU, and on the device several times over what
/// the last one left.
void expectTheCpus(const HostCodecs &codecs, LibraryArguments a, const Tensor &outOnCpu,
                   GuardedBytes &expected, const Tensor &outOnDevice, GuardedBytes &got) {
  const std::string kernel = a.kernel->name;
  auto into = [&](const Tensor &out) {
    a.operands.back() = OperandType{out.dtype, out.shape, out.strides};
    a.data.back() = out.data;
    return a;
  };
  ASSERT_OK(runOnCpu(into(outOnCpu)));
  for (uint64_t seed : {1, 2}) {
    SCOPED_TRACE(::testing::Message() << kernel << ", order " << seed);
    ASSERT_OK(codecs.run(into(outOnDevice), seed));
    ASSERT_EQ(differenceOf(got, expected), "");
  }
}

void check(const HostCodecs &codecs, const Kind &kind, int64_t columns, const Form &form,
           Input input, std::mt19937 &random) {
  const Operands o(kind, columns, form);
  SCOPED_TRACE(::testing::Message()
               << kind.encoding.str() << " of " << name(kind.type) << " to " << name(kind.out)
               << ", " << o.rows << " rows of " << columns << " in " << form.parts << " parts, gap "
               << form.gap << ", over " << form.over << ", input " << static_cast<int>(input));
  const int64_t code = kind.encoding.code(), type = static_cast<int64_t>(kind.type);
  GuardedBytes x = o.tensorBytes(kind.type), expected = o.payloadBytes(), got = o.payloadBytes();
  o.fill(x, input, random);
  const Tensor in = o.tensor(x, kind.type), payload = o.payload(expected), made = o.payload(got);
  ASSERT_NO_FATAL_FAILURE(expectTheCpus(codecs, call("encode", {&in, nullptr}, {code, 0}), payload,
                                        expected, made, got));
  // Of a rank in a group, what it would send to itself is zeros.
  if (form.parts > 1) {
    GuardedBytes forOthers = o.payloadBytes(), gotForOthers = o.payloadBytes();
    LibraryArguments a = call("encode", {&in, nullptr}, {code, 1});
    a.parts = form.parts;
    a.part = form.parts - 1;
    ASSERT_NO_FATAL_FAILURE(expectTheCpus(codecs, a, o.payload(forOthers), forOthers,
                                          o.payload(gotForOthers), gotForOthers));
    ASSERT_NE(differenceOf(forOthers, expected), "");
  }
  GuardedBytes y = o.tensorBytes(kind.out), z = o.tensorBytes(kind.out);
  const Tensor out = o.tensor(y, kind.out), decoded = o.tensor(z, kind.out);
  ASSERT_NO_FATAL_FAILURE(expectTheCpus(
      codecs, call("decode", {&payload, nullptr}, {code, type, 0}), out, y, decoded, z));
  // The same parts as payloads of several senders.
  Form each = form;
  each.leading = {o.layout.rowsPerPart};
  each.parts = 1;
  const Operands sum(kind, columns, each);
  if (sum.layout.partBytes != o.layout.partBytes || o.layout.rowsOf(form.parts - 1) == 0 ||
      o.layout.rowsOf(form.parts - 1) != o.layout.rowsPerPart)
    return;
  GuardedBytes s = sum.tensorBytes(kind.out), t = sum.tensorBytes(kind.out);
  const Tensor total = sum.tensor(s, kind.out), added = sum.tensor(t, kind.out);
  LibraryArguments a = call("decode_sum", {&payload, nullptr, nullptr}, {code, type, form.parts});
  ASSERT_NO_FATAL_FAILURE(expectTheCpus(codecs, a, total, s, added, t));
  if (form.parts == 1)
    return;
  // What a rank adds itself is no payload, and its part is not read.
  Form wider = each;
  wider.gap += 3;
  const Operands own(kind, columns, wider);
  GuardedBytes ownBytes = own.tensorBytes(kind.type);
  own.fill(ownBytes, input, random);
  const Tensor ownRows = own.tensor(ownBytes, kind.type);
  a = call("decode_sum", {&payload, &ownRows, nullptr}, {code, type, form.parts});
  a.parts = form.parts;
  for (int64_t self : {int64_t(0), form.parts - 1}) {
    SCOPED_TRACE(::testing::Message() << "rank " << self);
    a.part = self;
    const std::vector<uint8_t> part(expected.data() + self * o.partStride(),
                                    expected.data() + self * o.partStride() + o.layout.partBytes);
    std::fill_n(expected.data() + self * o.partStride(), o.layout.partBytes, uint8_t(0xAB));
    ASSERT_NO_FATAL_FAILURE(expectTheCpus(codecs, a, total, s, added, t));
    std::copy(part.begin(), part.end(), expected.data() + self * o.partStride());
  }
}

/// An element and, of integers, a form.
class CudaCodecOf : public ::testing::TestWithParam<std::pair<Element, IntegerForm>> {};

TEST_P(CudaCodecOf, GivesTheBitsOfTheCpu) {
  const std::vector<Kind> kinds = kindsOf(GetParam().first, GetParam().second);
  const HostCodecs codecs(kinds);
  ASSERT_TRUE(codecs.kernels);
  std::mt19937 random(51);
  size_t turn = 0;
  for (const Kind &kind : kinds) {
    const int64_t group = kind.encoding.isCast() ? 256 : kind.encoding.group;
    const int64_t sizes[] = {1, 2 * group + 17, 192, group, 31, 3 * group + 8, 300};
    for (int i = 0; i < 4; ++i, ++turn) {
      check(codecs, kind, sizes[turn % std::size(sizes)], formOf(turn),
            kInputs[turn % std::size(kInputs)], random);
      if (HasFailure())
        return;
    }
  }
}

std::vector<std::pair<Element, IntegerForm>> allElements() {
  std::vector<std::pair<Element, IntegerForm>> all;
  for (int element = 0; element <= static_cast<int>(Element::e2m1); ++element)
    all.emplace_back(static_cast<Element>(element), IntegerForm::asymmetric);
  all.emplace_back(Element::integer, IntegerForm::symmetric);
  all.emplace_back(Element::integer, IntegerForm::zeroPoint);
  return all;
}
std::string nameOfElement(const ::testing::TestParamInfo<std::pair<Element, IntegerForm>> &info) {
  const char *names[] = {"bf16", "f16", "integer", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};
  const char *forms[] = {"", "Symmetric", "ZeroPoint"};
  return std::string(names[static_cast<size_t>(info.param.first)]) +
         forms[static_cast<size_t>(info.param.second)];
}
INSTANTIATE_TEST_SUITE_P(, CudaCodecOf, ::testing::ValuesIn(allElements()), nameOfElement);

Kind kindOf(const std::string &text, DType type = DType::f32, DType out = DType::f32) {
  Result<Encoding> e = Encoding::parse(text);
  EXPECT_OK(e);
  return {*e, type, out};
}

/// Bytes that no encoder writes, behind a right header: codes of infinities and NaNs, scales of
/// either sign, and without spikes groups that are refused by their scale or offset only.
TEST(CudaCodecs, AnyBytesDecodeAsOnTheCpu) {
  std::vector<Kind> kinds;
  for (const char *text : {"int8:32", "int5:64+spikes", "int3:32+symmetric+bf16-scale+spikes",
                           "int7:32+zero-point", "fp8e4m3:32+spikes", "fp8e5m2:32", "mxfp8e5m2",
                           "mxfp6e2m3", "nvfp4", "bf16", "f16", "int4:256+hadamard64"})
    for (DType out : {DType::f32, DType::f16})
      kinds.push_back(kindOf(text, out == DType::f16 ? DType::bf16 : DType::f32, out));
  const HostCodecs codecs(kinds);
  ASSERT_TRUE(codecs.kernels);
  std::mt19937 random(52);
  for (const Kind &kind : kinds)
    for (int64_t columns : {64, 300}) {
      SCOPED_TRACE(::testing::Message() << kind.encoding.str() << " to " << name(kind.out) << ", "
                                        << columns << " columns, seed 52");
      const Operands o(kind, columns, {{6}, 2, 0, 0});
      GuardedBytes bytes = o.payloadBytes(), y = o.tensorBytes(kind.out),
                   z = o.tensorBytes(kind.out);
      for (int64_t i = 0; i < o.form.parts * o.partStride(); ++i)
        bytes.data()[i] = static_cast<uint8_t>(random() % 5 == 0 ? 0xff : random());
      for (int64_t part = 0; part < 2; ++part)
        o.layout.writeHeader(bytes.bytes() + part * o.partStride(), part);
      // Places of spikes must be elements of their groups, and scales and offsets finite.
      const int64_t h = o.layout.groupHeaderBytes;
      for (int64_t row = 0; kind.encoding.spikes && row < 6; ++row)
        for (int64_t g = 0; g < o.layout.groups; ++g) {
          uint8_t *header = bytes.data() + o.layout.rowOffset(row) + g * h;
          header[1] &= 0x3f;
          header[3] &= 0x3f;
          header[h - 2] = static_cast<uint8_t>(random() % 12);
          header[h - 1] = static_cast<uint8_t>(random() % 12);
        }
      const Tensor payload = o.payload(bytes), out = o.tensor(y, kind.out),
                   decoded = o.tensor(z, kind.out);
      expectTheCpus(codecs,
                    call("decode", {&payload, nullptr},
                         {kind.encoding.code(), static_cast<int64_t>(kind.type), 0}),
                    out, y, decoded, z);
      if (HasFailure())
        return;
    }
}

/// What the CPU says of wrong payloads, to the word.
TEST(CudaCodecs, TellWhatIsWrongAsTheCpu) {
  const Kind kind = kindOf("int4:32+spikes");
  const HostCodecs codecs({kind});
  ASSERT_TRUE(codecs.kernels);
  const Operands o(kind, 40, {{6}, 3, 0, 0}), sum(kind, 40, {{2}, 1, 0, 0});
  std::mt19937 random(53);
  GuardedBytes x = o.tensorBytes(DType::f32), bytes = o.payloadBytes(),
               y = o.tensorBytes(DType::f32), s = sum.tensorBytes(DType::f32);
  o.fill(x, Input::normal, random);
  const Tensor in = o.tensor(x, DType::f32), payload = o.payload(bytes),
               out = o.tensor(y, DType::f32), total = sum.tensor(s, DType::f32);
  const int64_t code = kind.encoding.code();
  const LibraryArguments encode = call("encode", {&in, &payload}, {code, 0}),
                         decode = call("decode", {&payload, &out}, {code, 0, 0}),
                         absent = call("decode", {&payload, &out}, {code, 0, 1}),
                         decodeSum = call("decode_sum", {&payload, nullptr, &total}, {code, 0, 3});
  const auto part1 = static_cast<size_t>(o.layout.partBytes);
  const size_t row3 = part1 + 16 + static_cast<size_t>(o.layout.rowBytes);
  struct Change {
    size_t at;
    std::vector<uint8_t> bytes;
    const char *decode, *decodeSum;
  };
  const char *magic = "part 1: expects a payload that begins with 0x5142, got 21058";
  const char *another = "part 0: expects a payload of int4:32+spikes, got int5:32+spikes";
  for (const Change &c :
       std::vector<Change>{{0, {}, nullptr, nullptr},
                           {part1, {0x42, 0x52}, magic, magic},
                           {2,
                            {2},
                            "part 0: expects a payload of version 1, got 2",
                            "part 0: expects a payload of version 1, got 2"},
                           {3,
                            {1},
                            "part 0: expects a payload of f32, got type 1",
                            "part 0: expects a payload of f32, got type 1"},
                           {4, {0x42}, another, another},
                           {part1 + 8,
                            {1},
                            "part 1: expects a payload of 2 to 2 rows, got 1",
                            "part 1: expects a payload of 2 rows, as part 0 has, got 1"},
                           {2 * part1 + 8,
                            {3},
                            "part 2: expects a payload of 2 to 2 rows, got 3",
                            "part 2: expects a payload of 0 to 2 rows, got 3"},
                           {2 * part1 + 12,
                            {41},
                            "part 2: expects a payload of 40 columns, got 41",
                            "part 2: expects a payload of 40 columns, got 41"},
                           // A place in the second group, of 8 elements, of row 3.
                           {row3 + 2 * static_cast<size_t>(o.layout.groupHeaderBytes) - 1,
                            {8},
                            "row 3: expects a spike position below 8, got 8",
                            "row 1: expects a spike position below 8, got 8"}}) {
    ASSERT_OK(codecs.run(encode, 1));
    std::copy(c.bytes.begin(), c.bytes.end(), bytes.data() + c.at);
    for (const LibraryArguments *a : {&decode, &decodeSum}) {
      const char *expected = a == &decode ? c.decode : c.decodeSum;
      if (!expected) {
        EXPECT_OK(codecs.run(*a, 1));
        continue;
      }
      EXPECT_ERROR(runOnCpu(*a), ofCpu(expected));
      for (uint64_t seed : {1, 2, 3})
        EXPECT_ERROR(codecs.run(*a, seed), expected);
    }
  }
  // The first part that is read tells the number of rows; the rank's own is not.
  ASSERT_OK(codecs.run(encode, 1));
  const Tensor two = sum.tensor(s, DType::f32), own = o.tensor(x, DType::f32);
  Tensor ownRows = own;
  ownRows.shape[0] = 2;
  LibraryArguments mixed = call("decode_sum", {&payload, &ownRows, &two}, {code, 0, 3});
  mixed.parts = 3;
  bytes.data()[8] = 7;
  EXPECT_OK(codecs.run(mixed, 1));
  bytes.data()[part1 + 8] = 1;
  const char *expected = "part 2: expects a payload of 1 rows, as part 1 has, got 2";
  EXPECT_ERROR(runOnCpu(mixed), ofCpu(expected));
  EXPECT_ERROR(codecs.run(mixed, 1), expected);
  // A part that nobody sent is zeros, if that is allowed.
  ASSERT_OK(codecs.run(encode, 1));
  std::fill_n(bytes.data() + part1, part1, uint8_t(0));
  EXPECT_ERROR(codecs.run(decode, 1), "part 1: expects a payload that begins with 0x5142, got 0");
  GuardedBytes z = o.tensorBytes(DType::f32);
  const Tensor decoded = o.tensor(z, DType::f32);
  expectTheCpus(codecs, call("decode", {&payload, nullptr}, {code, 0, 1}), out, y, decoded, z);
  for (size_t i = 0; i < 2 * 40 * 4; ++i)
    EXPECT_EQ(z.data()[2 * 40 * 4 + i], 0);
}

/// Parts that have no row are checked too.
TEST(CudaCodecs, TellOfPartsWithoutRows) {
  const Kind kind = kindOf("int8:32");
  const HostCodecs codecs({kind});
  ASSERT_TRUE(codecs.kernels);
  const Operands o(kind, 8, {{1}, 300, 0, 0});
  GuardedBytes x = o.tensorBytes(DType::f32), bytes = o.payloadBytes(),
               y = o.tensorBytes(DType::f32);
  std::mt19937 random(54);
  o.fill(x, Input::normal, random);
  const Tensor in = o.tensor(x, DType::f32), payload = o.payload(bytes),
               out = o.tensor(y, DType::f32);
  const int64_t code = kind.encoding.code();
  ASSERT_OK(codecs.run(call("encode", {&in, &payload}, {code, 0}), 1));
  const LibraryArguments decode = call("decode", {&payload, &out}, {code, 0, 0});
  ASSERT_OK(codecs.run(decode, 1));
  bytes.data()[299 * o.layout.partBytes + 2] = 9;
  EXPECT_ERROR(codecs.run(decode, 1), "part 299: expects a payload of version 1, got 9");
}

TEST(CudaCodecs, AreRefusedBeyondWhatTheyCount) {
  const Encoding e = kindOf("mxfp4").encoding;
  const int64_t rows = int64_t(1) << 20, columns = int64_t(1) << 22;
  const PayloadLayout layout = layoutOf(e, DType::f32, rows, columns, 1);
  const Tensor in{nullptr, DType::f32, {rows, columns}, {columns, 1}},
      payload{nullptr, DType::i8, {1, layout.partBytes}, {layout.partBytes, 1}};
  EXPECT_ERROR(cuda::codecLaunch(call("encode", {&in, &payload}, {e.code(), 0})).status(),
               "expects fewer than 2^31 columns, parts and blocks of 256 elements on target "
               "'cuda', got 1048576 rows of 4194304 in 1 parts");
}

/// Without spills, on every architecture. $BRAID_EVERY_ENCODING: those of all tests
/// above, which takes minutes.
TEST(CudaCodecs, CompileForEveryGPU) {
  std::vector<Kind> kinds;
  for (const char *text :
       {"int8:128", "int6:128", "int4:128+spikes", "int3:512+bf16-scale+hadamard128+spikes",
        "int5:128+zero-point", "int2:8192+symmetric+hadamard256+spikes", "fp8e4m3:128",
        "fp6e3m2:128", "mxfp8e5m2", "mxfp4+hadamard32", "nvfp4", "bf16"})
    kinds.push_back(kindOf(text, kTypes[kinds.size() % 3], kTypes[kinds.size() / 3 % 3]));
  // These spilled while nothing was said of registers.
  kinds.push_back(kindOf("int7:128+zero-point+spikes", DType::f32, DType::f16));
  kinds.push_back(kindOf("int2:32+hadamard16+spikes", DType::f16, DType::f16));
  kinds.push_back(kindOf("fp4e2m1:512+spikes", DType::f16, DType::f32));
  if (std::getenv("BRAID_EVERY_ENCODING"))
    for (const auto &[element, form] : allElements())
      for (const Kind &kind : kindsOf(element, form))
        kinds.push_back(kind);
  const Source source(kinds);
  test::compileForGPUs(source.text, source.functions, getCUDAArchitectures(),
                       /*tightly=*/true);
}

} // namespace
