//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs row kernels that decode what they read and encode what they write on the CPU, launched as
// the executor launches them, and compares every byte with the CPU's codec before and behind the
// same kernel without payloads: on tensors and payloads of any alignment, with gaps that must not
// change, with threads in several random orders, each time over what the last launch left.
//
//===----------------------------------------------------------------------===//
#include "CodecMemory.h"
#include "KernelCheck.h"

#include "braid/Conversion/Passes.h"
#include "braid/InitAll.h"
#include "runtime/lib/Cuda/StreamCommand.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <deque>

using namespace braid;
using namespace braid::runtime;
using namespace braid::runtime::testing;
using mlir::cast;

namespace {

/// A function of rows x, vectors w and q and a payload p that becomes one kernel.
struct FusedCase {
  std::string in; ///< of p; empty: nothing is decoded
  DType encoded;  ///< of the tensor that p was made of
  int64_t senders, parts;
  std::string out; ///< of the last value; empty: nothing is encoded
  int64_t outParts;
  DType type; ///< of rows
  std::vector<int64_t> shape;
  bool norms;        ///< else nothing is reduced
  bool plain = true; ///< whether there are row operations at all
  int64_t gap = 0;   ///< elements between rows, and bytes between parts
  int64_t over = 0;  ///< bytes by which parts are misaligned
  Input input = Input::normal;
  int64_t self = -1; ///< of the senders, the one whose rows are as they were; negative: none
  /// The group that the last value is encoded for, the rank, and who gets the first part.
  int64_t outRanks = 1, outSelf = 0, outFirst = 0;

  int64_t columns() const { return shape.back(); }
  /// Whether rows have a dimension inside: a further operand q has only that.
  bool hasInner() const { return plain && shape.size() == 3; }
  /// Of the kernel's rows.
  std::vector<int64_t> rowShape() const {
    return hasInner() ? shape : std::vector<int64_t>{rows(), columns()};
  }
  int64_t rows() const {
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < shape.size(); ++d)
      rows *= shape[d];
    return rows;
  }
  PayloadLayout layout(bool ofOut) const {
    return layoutOf(*Encoding::parse(ofOut ? out : in), ofOut ? type : encoded, rows(), columns(),
                    ofOut ? outParts : parts);
  }
  std::string describe() const {
    return in + " of " + name(encoded) + " to " + out + ", " + name(type) + " " +
           shapeString(shape) + ", senders " + std::to_string(senders) + ", own " +
           std::to_string(self) + ", parts " + std::to_string(parts) + " and " +
           std::to_string(outParts) + " for rank " + std::to_string(outSelf) + " of " +
           std::to_string(outRanks) + " from " + std::to_string(outFirst) + ", gap " +
           std::to_string(gap) + ", over " + std::to_string(over) + ", input " +
           std::to_string(static_cast<int>(input));
  }
  std::string text(const std::string &function) const {
    std::string x = "tensor<", w = "tensor<" + std::to_string(columns()) + "x" + name(type) + ">";
    for (int64_t size : shape)
      x += std::to_string(size) + "x";
    x += std::string(name(type)) + ">";
    auto payload = [&](bool ofOut) {
      const int64_t count = ofOut ? outParts : parts * std::max<int64_t>(senders, 1);
      return "tensor<" + std::to_string(count) + "x" + std::to_string(layout(ofOut).partBytes) +
             "xi8>";
    };
    std::string arguments = "%x: " + x + ", %w: " + w, body, types, results, last = "%x";
    if (!in.empty()) {
      arguments += ", %p: " + payload(false);
      std::string how = "nn.decode %p", decoded = payload(false);
      if (senders != 0)
        how = "nn.decode_sum %p";
      if (self >= 0) {
        std::string own = "tensor<";
        for (int64_t size : shape)
          own += std::to_string(size) + "x";
        own += std::string(name(encoded)) + ">";
        arguments += ", %o: " + own;
        decoded += ", " + own;
        how += " own %o over <@mesh" + std::to_string(senders) + ", {tp}>";
      }
      if (senders != 0)
        how += " senders " + std::to_string(senders);
      body += "%d = " + how + " as <\"" + in + "\"> of " + name(encoded) + " : " + decoded +
              " -> " + x + "\n";
      last = "%d";
    }
    auto add = [&](const std::string &value, const std::string &operation,
                   const std::string &operandTypes) {
      body += value + " = " + operation + " : " + operandTypes + " -> " + x + "\n";
      last = value;
    };
    if (hasInner()) {
      const std::string q = "tensor<" + std::to_string(shape[1]) + "x" + std::to_string(columns()) +
                            "x" + name(type) + ">";
      arguments = "%q: " + q + ", " + arguments;
      add("%i", "nn.add " + last + ", %q", x + ", " + q);
    } else {
      arguments = "%q: " + w + ", " + arguments;
    }
    if (plain) {
      add("%a", "nn.add " + last + ", " + (in.empty() ? "%w" : "%x"),
          x + ", " + (in.empty() ? w : x));
      results = "%a";
      types = x;
      if (norms)
        add("%n", "nn.rms_norm %a, %w epsilon 1.0e-5", x + ", " + w);
      else
        add("%n", "nn.mul %a, %w", x + ", " + w);
    }
    if (!out.empty()) {
      std::string over;
      if (outRanks > 1)
        over =
            " over <@mesh" + std::to_string(outRanks) + ", {tp}> first " + std::to_string(outFirst);
      body += "%e = nn.encode " + last + over + " as <\"" + out + "\"> : " + x + " -> " +
              payload(true) + "\n";
      last = "%e";
    }
    results += (results.empty() ? "" : ", ") + last;
    types += (types.empty() ? "" : ", ") + (out.empty() ? x : payload(true));
    return "func.func @" + function + "(" + arguments + ") -> (" + types + ") {\n" + body +
           "return " + results + " : " + types + "\n}\n";
  }
};

/// The kernels of some cases, and the same without payloads, compiled for the host.
class FusedKernels {
public:
  explicit FusedKernels(const std::vector<FusedCase> &cases)
      : context(dialects(), mlir::MLIRContext::Threading::DISABLED) {
    std::string text;
    for (const char *ranks : {"2", "3", "4"})
      text += std::string("comm.mesh @mesh") + ranks + " <tp = " + ranks + ">\n";
    for (size_t i = 0; i < cases.size(); ++i)
      text += cases[i].text("f" + std::to_string(i));
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    mlir::PassManager passes(&context);
    FormKernelsOptions options;
    options.target = KernelTarget::CUDA;
    passes.addPass(createFormKernels(options));
    if (!module || failed(passes.run(*module))) {
      ADD_FAILURE() << text;
      return;
    }
    unpacked = module->clone();
    for (auto kernel : unpacked->getOps<rt::KernelOp>()) {
      const std::string named = "plain_" + kernel.getSymName().str();
      EXPECT_TRUE(succeeded(mlir::SymbolTable::replaceAllSymbolUses(
          kernel, mlir::StringAttr::get(&context, named), *unpacked)));
      kernel.setSymName(named);
      for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i)
        kernel.removeArgAttr(i, rt::RTDialect::kPayloadAttrName);
      for (unsigned i = 0; i < kernel.getResultTypes().size(); ++i)
        kernel.removeResultAttr(i,
                                mlir::StringAttr::get(&context, rt::RTDialect::kPayloadAttrName));
    }
    fused = emit(*module);
    plain = emit(*unpacked);
  }
  /// False after a failure, which has been reported.
  bool compile() {
    std::vector<std::string> all = functions();
    for (const CudaKernel &kernel : plain.kernels)
      all.push_back(kernel.function);
    kernels = test::HostKernels::compile(fused.text + plain.text, all);
    return kernels != nullptr;
  }
  std::vector<std::string> functions() const {
    std::vector<std::string> all;
    for (const CudaKernel &kernel : fused.kernels)
      all.push_back(kernel.function);
    return all;
  }
  rt::LaunchOp launchOf(size_t number, bool withPayloads) {
    auto function = (withPayloads ? module : unpacked)
                        ->lookupSymbol<mlir::func::FuncOp>("f" + std::to_string(number));
    auto launches = function.getBody().getOps<rt::LaunchOp>();
    EXPECT_TRUE(llvm::hasSingleElement(launches));
    return *launches.begin();
  }
  /// Runs a kernel, and returns what the executor would say of its faults.
  Status launch(rt::LaunchOp op, const DeviceLaunchCommand &command, uint64_t seed) const {
    const CudaKernel *kernel = nullptr;
    for (const CUDASource *source : {&fused, &plain})
      for (const CudaKernel &one : source->kernels)
        if (op.getKernel() == one.symbol)
          kernel = &one;
    ASSIGN_OR_RETURN(cuda::LaunchParameters made, cuda::launchParameters(*kernel, command));
    library::Fault fault{};
    for (cuda::LaunchParameters::Codec &codec : made.codecs)
      if (codec.decodes) {
        codec.arguments.fault = &fault;
        codec.arguments.command = cuda::payloadFault(7, codec.operand);
      }
    const std::string error =
        kernels->launch(kernel->function, static_cast<uint64_t>(kernel->blocks(command.rows)),
                        static_cast<unsigned>(kernel->threads), made.addresses(), seed);
    if (!error.empty())
      return Status::error(kernel->function, ": ", error);
    if (fault.command == 0)
      return {};
    EXPECT_EQ(cuda::commandOfFault(fault.command), 7u);
    return cuda::payloadError(command, fault);
  }

  CUDASource fused, plain;

private:
  static mlir::DialectRegistry &dialects() {
    static mlir::DialectRegistry registry = [] {
      mlir::DialectRegistry all;
      registerAllDialects(all);
      return all;
    }();
    return registry;
  }
  static CUDASource emit(mlir::ModuleOp module) {
    mlir::FailureOr<CUDASource> source = emitCUDA(module);
    if (failed(source)) {
      ADD_FAILURE() << "no CUDA source";
      return {};
    }
    // Removes the library's kernels, which have their own tests.
    constexpr llvm::StringRef library = "#include <braid/library.cuh>\n";
    EXPECT_TRUE(llvm::StringRef(source->text).starts_with(library));
    source->text.erase(0, library.size());
    return std::move(*source);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module, unpacked;
  std::unique_ptr<test::HostKernels> kernels;
};

/// Memory of a case's operands.
struct FusedOperands {
  FusedOperands(const FusedCase &c, std::mt19937 &random) : c(c) {
    x = rowsLike(c.gap);
    w = add({c.columns()}, {1}, c.type, 0);
    q = add({c.shape[c.shape.size() - 2], c.columns()}, {c.columns(), 1}, c.type, 0);
    fill(x, Input::normal, c.type, random);
    fill(w, Input::normal, c.type, random);
    fill(q, Input::normal, c.type, random);
    if (!c.in.empty())
      makePayload(random);
    if (c.self >= 0) {
      own = rowsLike(c.gap, c.encoded);
      fill(own, c.input, c.encoded, random);
    }
  }

  /// Rows of a tensor in memory with gaps, or of a payload.
  Tensor rowsLike(int64_t gap) { return rowsLike(gap, c.type); }
  Tensor rowsLike(int64_t gap, DType type) {
    const std::vector<int64_t> shape = c.rowShape();
    std::vector<int64_t> strides(shape.size(), 1);
    int64_t next = c.columns() + gap;
    for (size_t d = shape.size() - 1; d-- > 0; next *= shape[d])
      strides[d] = next;
    return add(shape, strides, type, 0);
  }
  Tensor payload(bool ofOut) {
    const int64_t bytes = c.layout(ofOut).partBytes,
                  count = ofOut ? c.outParts : c.parts * std::max<int64_t>(c.senders, 1);
    return add({count, bytes}, {bytes + c.gap + c.over, 1}, DType::i8, c.over);
  }
  LibraryArguments decodeTo(const Tensor &rows) const {
    const std::vector<int64_t> integers = {Encoding::parse(c.in)->code(),
                                           static_cast<int64_t>(c.encoded), c.senders};
    if (c.senders == 0)
      return call("decode", {&p, &rows}, integers);
    LibraryArguments a = call("decode_sum", {&p, c.self < 0 ? nullptr : &own, &rows}, integers);
    if (c.self >= 0) {
      a.parts = c.senders;
      a.part = c.self;
    }
    return a;
  }
  LibraryArguments encodeFrom(const Tensor &rows, const Tensor &to) const {
    LibraryArguments a = call("encode", {&rows, &to}, {Encoding::parse(c.out)->code(), c.outFirst});
    a.parts = c.outRanks;
    a.part = c.outSelf;
    return a;
  }
  /// The operands of a launch: inputs are the function's arguments, and the results in order.
  std::vector<Tensor> operandsOf(rt::LaunchOp launch, const Tensor &coded,
                                 const std::vector<Tensor> &results) const {
    std::vector<Tensor> operands;
    for (mlir::Value input : launch.getInputs()) {
      const unsigned number = cast<mlir::BlockArgument>(input).getArgNumber();
      operands.push_back(std::array{q, x, w, coded, own}[number]);
    }
    operands.insert(operands.end(), results.begin(), results.end());
    return operands;
  }
  GuardedBytes &bytesOf(const Tensor &tensor) {
    for (GuardedBytes &bytes : memory)
      if (bytes.bytes() == tensor.data)
        return bytes;
    std::abort();
  }

  const FusedCase &c;
  Tensor q, x, w, p, own;

private:
  Tensor add(const std::vector<int64_t> &shape, const std::vector<int64_t> &strides, DType type,
             int64_t over) {
    int64_t size = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      size = std::max(size, shape[d] * strides[d]);
    memory.emplace_back(static_cast<size_t>(size * byteSize(type)),
                        static_cast<size_t>(over * byteSize(type)));
    return {memory.back().bytes(), type, shape, strides};
  }
  void fill(const Tensor &to, Input input, DType type, std::mt19937 &random) {
    const int64_t columns = to.shape.back(), rows = to.numElements() / columns,
                  stride = to.shape.size() == 1 ? columns : to.strides[to.shape.size() - 2];
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<uint8_t> bytes = stored(type, inputOf(input, type, columns, random));
      std::memcpy(to.data + row * stride * byteSize(type), bytes.data(), bytes.size());
    }
  }
  void makePayload(std::mt19937 &random) {
    p = payload(false);
    for (int64_t sender = 0; sender < std::max<int64_t>(c.senders, 1); ++sender) {
      const Tensor whole = add({c.rows(), c.columns()}, {c.columns(), 1}, c.encoded, 0);
      fill(whole, c.input, c.encoded, random);
      Tensor part = p;
      part.shape[0] = c.parts;
      part.data += sender * c.parts * part.strides[0];
      ASSERT_OK(runOnCpu(call("encode", {&whole, &part}, {Encoding::parse(c.in)->code(), 0})));
    }
  }

  std::deque<GuardedBytes> memory;
};

/// A launch of the kernel with payloads into `results`.
DeviceLaunchCommand commandOf(rt::LaunchOp launch, const FusedOperands &o,
                              const std::vector<Tensor> &results) {
  DeviceLaunchCommand command{
      0, o.operandsOf(launch, o.p, results), static_cast<int64_t>(launch.getRows()), {}};
  const Tensor rows{nullptr, o.c.type, o.c.rowShape(), rowMajorStrides(o.c.rowShape())};
  rt::KernelOp kernel = launch.getKernelOp();
  for (unsigned i = 0; i < command.operands.size(); ++i)
    if (kernel.getPayload(i))
      command.encoded.push_back({i, i < launch.getInputs().size()
                                        ? o.decodeTo(rows)
                                        : o.encodeFrom(rows, command.operands[i])});
  return command;
}

void check(FusedKernels &kernels, size_t number, const FusedCase &c, std::mt19937 &random) {
  SCOPED_TRACE(c.describe());
  FusedOperands o(c, random);
  rt::LaunchOp launch = kernels.launchOf(number, true), plain = kernels.launchOf(number, false);
  // The CPU's codec before and behind the kernel of rows.
  Tensor coded = o.rowsLike(0);
  if (!c.in.empty())
    ASSERT_OK(runOnCpu(o.decodeTo(coded)));
  std::vector<Tensor> rows, expected, got;
  for (mlir::Type type : launch.getResultTypes()) {
    const bool isPayload = cast<mlir::RankedTensorType>(type).getElementType().isInteger(8);
    rows.push_back(o.rowsLike(isPayload ? 0 : c.gap));
    for (std::vector<Tensor> *all : {&expected, &got})
      all->push_back(isPayload ? o.payload(true) : o.rowsLike(c.gap));
    if (!isPayload)
      expected.back() = rows.back();
  }
  ASSERT_OK(kernels.launch(
      plain, {0, o.operandsOf(plain, coded, rows), static_cast<int64_t>(plain.getRows()), {}}, 1));
  for (size_t i = 0; i < rows.size(); ++i)
    if (expected[i].dtype == DType::i8)
      ASSERT_OK(runOnCpu(o.encodeFrom(rows[i], expected[i])));
  const DeviceLaunchCommand command = commandOf(launch, o, got);
  for (uint64_t seed : {1, 2}) {
    ASSERT_OK(kernels.launch(launch, command, seed));
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(differenceOf(o.bytesOf(got[i]), o.bytesOf(expected[i])), "")
          << "result " << i << ", order " << seed;
  }
}

constexpr DType f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16;

TEST(CudaFusedCodecs, GiveTheBitsOfSeparateKernels) {
  constexpr const char *kEncodings[] = {"int8:128",
                                        "int6:128",
                                        "int4:128+spikes",
                                        "int4:64+hadamard32",
                                        "fp8e4m3:128",
                                        "mxfp4",
                                        "nvfp4",
                                        "bf16",
                                        "int3:40+zero-point+bf16-scale",
                                        "int5:512+spikes",
                                        "mxfp8e5m2",
                                        "f16",
                                        "int2:8192+symmetric",
                                        "fp6e2m3:32+hadamard16+spikes"};
  constexpr size_t kCount = std::size(kEncodings);
  std::vector<FusedCase> cases;
  std::mt19937 random(71);
  for (size_t turn = 0; turn < 3 * kCount; ++turn) {
    FusedCase c;
    c.in = turn % 4 == 1 ? "" : kEncodings[turn % kCount];
    c.out = turn % 4 == 3 && !c.in.empty() ? "" : kEncodings[(turn * 5 + turn / kCount) % kCount];
    c.encoded = std::array{f32, f16, bf16}[turn / 2 % 3];
    c.type = std::array{f32, bf16, f16}[turn % 3];
    c.senders = std::array{2, 0, 3, 4, 1}[turn % 5];
    if (!c.in.empty() && c.senders > 1)
      c.self = std::min(static_cast<int64_t>(turn / 2 % 5) - 1, c.senders - 1);
    c.parts = std::array{1, 1, 2, 3}[turn / 3 % 4];
    c.outParts = std::array{1, 4, 3}[turn % 3];
    c.outRanks = std::array{1, 2, 3, 4}[turn / 2 % 4];
    c.outSelf = static_cast<int64_t>(turn) % c.outRanks;
    c.outFirst = static_cast<int64_t>(turn / 5) % c.outRanks;
    c.shape = {std::array<int64_t, 5>{1, 7, 5, 2, 3}[turn % 5],
               std::array<int64_t, 7>{576, 67, 200, 1032, 1, 384, 2051}[turn % 7]};
    if (turn % 6 == 5)
      c.shape.insert(c.shape.begin() + 1, 3);
    c.norms = turn % 3 != 2;
    c.plain = turn % 8 != 6;
    c.input = kInputs[turn % std::size(kInputs)];
    // Rows in memory are aligned to what vectors need, payloads are not.
    c.gap = turn % 4 == 2 ? 8 : 0;
    c.over = std::array{0, 4, 1}[turn % 3];
    if (!c.plain && (c.in.empty() || c.out.empty()))
      continue; // no kernel
    cases.push_back(c);
  }
  // Rows of a block that also writes padding.
  for (const char *out : {"nvfp4", "int4:128+spikes", "bf16"})
    cases.push_back({"", f32, 0, 1, out, 4, f32, {1, 2051}, true});
  ASSERT_GE(cases.size(), 2 * kCount);
  FusedKernels kernels(cases);
  ASSERT_TRUE(kernels.compile());
  for (size_t i = 0; i < cases.size(); ++i) {
    check(kernels, i, cases[i], random);
    if (HasFailure())
      return;
  }
}

/// What the CPU says of wrong payloads, to the word.
TEST(CudaFusedCodecs, TellWhatIsWrongAsTheCpu) {
  FusedCase c{"int4:32+spikes", f32, 0, 3, "bf16", 1, f32, {6, 40}, true};
  FusedKernels kernels({c});
  ASSERT_TRUE(kernels.compile());
  std::mt19937 random(72);
  FusedOperands o(c, random);
  rt::LaunchOp launch = kernels.launchOf(0, true);
  const std::vector<Tensor> results = {o.rowsLike(0), o.payload(true)};
  const DeviceLaunchCommand command = commandOf(launch, o, results);
  const PayloadLayout layout = c.layout(false);
  const auto part1 = static_cast<size_t>(layout.partBytes);
  const size_t spike = part1 + 16 + static_cast<size_t>(layout.rowBytes) +
                       2 * static_cast<size_t>(layout.groupHeaderBytes) - 1;
  std::string where;
  for (size_t i = 0; i < launch.getInputs().size(); ++i)
    if (cast<mlir::BlockArgument>(launch.getInputs()[i]).getArgNumber() == 3)
      where = "operand " + std::to_string(i) + ": ";
  uint8_t *bytes = o.bytesOf(o.p).data();
  ASSERT_OK(kernels.launch(launch, command, 1));
  for (const auto &[at, value, message] : std::vector<std::tuple<size_t, uint8_t, const char *>>{
           {part1 + 2, 9, "part 1: expects a payload of version 1, got 9"},
           {part1 + 8, 1, "part 1: expects a payload of 2 to 2 rows, got 1"},
           {4, 0x42, "part 0: expects a payload of int4:32+spikes, got int5:32+spikes"},
           {spike, 8, "row 3: expects a spike position below 8, got 8"}}) {
    const uint8_t good = bytes[at];
    bytes[at] = value;
    for (uint64_t seed : {1, 2, 3})
      EXPECT_ERROR(kernels.launch(launch, command, seed), where + message);
    bytes[at] = good;
  }
  EXPECT_OK(kernels.launch(launch, command, 1));
}

/// A launch that does not fit its kernel.
TEST(CudaFusedCodecs, AreLaunchedAsTheTableSays) {
  FusedCase c{"", f32, 0, 1, "int8:128", 1, f32, {2, 64}, true};
  FusedKernels kernels({c});
  std::mt19937 random(73);
  FusedOperands o(c, random);
  rt::LaunchOp launch = kernels.launchOf(0, true);
  const CudaKernel &kernel = kernels.fused.kernels.front();
  DeviceLaunchCommand command = commandOf(launch, o, {o.rowsLike(0), o.payload(true)});
  EXPECT_OK(cuda::launchParameters(kernel, command).status());
  const std::string where =
      "kernel '" + kernel.symbol + "', operand 3 '" + kernel.operands[3].name + "': ";
  DeviceLaunchCommand other = command;
  other.encoded.clear();
  EXPECT_ERROR(cuda::launchParameters(kernel, other).status(), where + "expects a payload");
  other = command;
  other.encoded.front().operand = 0;
  EXPECT_ERROR(cuda::launchParameters(kernel, other).status(),
               "kernel '" + kernel.symbol + "', operand 0 '" + kernel.operands[0].name +
                   "': expects no payload");
  c.out = "int4:128";
  other = commandOf(launch, o, {o.rowsLike(0), o.payload(true)});
  EXPECT_ERROR(cuda::launchParameters(kernel, other).status(),
               where + "expects what braid_encode_int8_128_of_f32 takes, got "
                       "braid_encode_int4_128_of_f32");
}

/// Without spills, on every architecture, at the widths of models.
/// $BRAID_EVERY_ENCODING: every encoding as well, which takes an hour.
TEST(CudaFusedCodecs, CompileForEveryGPU) {
  std::vector<FusedCase> cases;
  auto add = [&](const char *in, const char *out, DType type, int64_t columns, bool norms = true,
                 bool plain = true) {
    cases.push_back({in, type, 4, 1, out, 4, type, {8, columns}, norms, plain});
    cases.back().self = *in ? 1 : -1;
  };
  for (DType type : {f32, bf16}) {
    add("int8:128", "int8:128", type, 576);
    add("int4:128+spikes", "int8:128", type, 384);
    add("int8:128", "int8:128", type, 4096);
    add("int4:128+spikes", "int4:128+spikes", type, 4096);
    add("", "int6:128", type, 4096, /*norms=*/false);
    add("fp8e4m3:128", "fp8e4m3:128", type, 4096, true, /*plain=*/false);
    add("int4:128+hadamard128", "", type, 4096);
  }
  add("mxfp4", "mxfp4", f16, 4096);
  add("nvfp4", "nvfp4", f16, 4096);
  // The longest rows of blocks with 1024 threads.
  add("int8:128", "int8:128", f32, 4864);
  add("nvfp4", "int6:128+hadamard128", bf16, 9600);
  add("", "nvfp4", f32, 9000, /*norms=*/false);
  add("", "int4:128+spikes", bf16, 16384);
  add("int5:128+zero-point", "", f16, 8192);
  add("bf16", "int2:8192+symmetric+hadamard256+spikes", f32, 1024);
  if (std::getenv("BRAID_EVERY_ENCODING"))
    for (const Encoding &e : encodingsOf({128}, {0, 64}))
      cases.push_back({e.str(), f32, 4, 1, e.str(), 4, f32, {8, 4096}, true, true});
  // The most that any kernel of these uses: a multiprocessor has two blocks of 256 threads with
  // that.
  constexpr int64_t kMostRegisters = 85;
  // A compiler has no more than some megabytes of source at a time.
  constexpr size_t kAtATime = 24;
  for (size_t begin = 0; begin < cases.size(); begin += kAtATime) {
    const auto first = cases.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::vector<FusedCase> some(
        first, first + static_cast<std::ptrdiff_t>(std::min(kAtATime, cases.size() - begin)));
    SCOPED_TRACE("from case " + std::to_string(begin) + ", " + some.front().describe());
    const FusedKernels kernels(some);
    test::compileForGPUs("#include <braid/library.cuh>\n" + kernels.fused.text, kernels.functions(),
                         getCUDAArchitectures(), /*tightly=*/true,
                         /*mostRegisters=*/kMostRegisters);
  }
}

} // namespace
