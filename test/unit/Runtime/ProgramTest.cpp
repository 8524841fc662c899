//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Program.h"

#include "SampleProgram.h"
#include "Testing.h"

#include <cstring>
#include <functional>
#include <limits>

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using program::CollectiveKind;
using Type = program::DType;
using program::ProgramT;

namespace {

using Change = std::function<void(ProgramT &)>;

Status verifyAfter(const Change &change, const Manifest &manifest = sampleManifest()) {
  ProgramT program = sampleProgram();
  change(program);
  return verifyProgram(serialized(program), manifest);
}

// The commands of the sample by what they are.
program::LocalSliceT &slice(ProgramT &p) { return *p.procedures[0]->compute[0]->op.AsLocalSlice(); }
program::ProductT &product(ProgramT &p) { return *p.procedures[0]->compute[1]->op.AsProduct(); }
program::RecordT &record(ProgramT &p) { return *p.procedures[0]->compute[2]->op.AsRecord(); }
program::CollectiveWaitT &wait(ProgramT &p) {
  return *p.procedures[0]->compute[3]->op.AsCollectiveWait();
}
program::LaunchT &launch(ProgramT &p) { return *p.procedures[0]->compute[4]->op.AsLaunch(); }
program::AwaitT &await(ProgramT &p) { return *p.procedures[0]->communication[0]->op.AsAwait(); }
program::CollectiveStartT &collective(ProgramT &p) {
  return *p.procedures[0]->communication[1]->op.AsCollectiveStart();
}
program::ProcedureT &layer(ProgramT &p) { return *p.procedures[0]; }
program::ProcedureT &mainOf(ProgramT &p) { return *p.procedures[1]; }
/// Both copies of a call.
void eachCall(ProgramT &p, size_t index, const std::function<void(program::CallT &)> &change) {
  change(*mainOf(p).compute[index]->op.AsCall());
  change(*mainOf(p).communication[index]->op.AsCall());
}
/// Puts an operation in the place of the launch, the last command of the layer's compute queue.
template <typename Op> void replaceLaunch(ProgramT &p, Op op) {
  layer(p).compute[4] = command(std::move(op), "new");
}

/// A value that no enumerator has, as a damaged file may hold; a byte is what the file has room
/// for.
template <typename Enum> Enum unknown(int8_t value) {
  static_assert(sizeof(Enum) == sizeof(value));
  Enum result;
  std::memcpy(&result, &value, sizeof(result));
  return result;
}

// Functions, since a constant string could throw before main.
std::string slicePlace() { return "procedure 'layer', compute command 0 ('slice'): "; }
std::string productPlace() { return "procedure 'layer', compute command 1 ('linear'): "; }
std::string launchPlace() { return "procedure 'layer', compute command 4 ('gelu'): "; }
std::string collectivePlace() {
  return "procedure 'layer', communication command 1 ('all_reduce'): ";
}
std::string call0Place() { return "procedure 'main', compute command 0 ('layer.0'): "; }
std::string call1Place() { return "procedure 'main', compute command 1 ('layer.1'): "; }
std::string newPlace() { return "procedure 'layer', compute command 4 ('new'): "; }

TEST(Program, AcceptsTheSample) {
  EXPECT_OK(verifyAfter([](ProgramT &) {}));
}

TEST(Program, RefusesOtherBytes) {
  EXPECT_ERROR(verifyProgram({}, sampleManifest()), "not a Braid program, or a damaged one");
  EXPECT_ERROR(verifyProgram(toBytes("not a program at all, but long enough for a header"),
                             sampleManifest()),
               "not a Braid program, or a damaged one");
  Bytes truncated = serialized(sampleProgram());
  truncated.resize(truncated.size() / 2);
  EXPECT_ERROR(verifyProgram(truncated, sampleManifest()), "not a Braid program, or a damaged one");
}

/// Whatever a flipped bit does, the checks neither crash nor read outside (under the address
/// sanitizer, noticed).
TEST(Program, SurvivesEveryFlippedBit) {
  const Bytes good = serialized(sampleProgram());
  const Manifest manifest = sampleManifest();
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1 << bit);
      Status status = verifyProgram(bad, manifest);
      refused += status.ok() ? 0 : 1;
      if (!status.ok())
        EXPECT_FALSE(status.message().empty());
    }
  EXPECT_GT(refused, good.size()) << "most bits matter";
}

TEST(Program, SurvivesEveryTruncation) {
  const Bytes good = serialized(sampleProgram());
  // At the end there may be padding.
  for (size_t size = 0; size + 8 < good.size(); ++size)
    EXPECT_FALSE(
        verifyProgram(Bytes(good.begin(), good.begin() + static_cast<long>(size)), sampleManifest())
            .ok())
        << size;
}

TEST(Program, RefusesWhatDoesNotFitTheManifest) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.version = 2; }), "expects program version 1, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->axes[0]->size = 4; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->axes[0]->name = "dp"; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->order = {1, 0}; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries.clear(); }),
               "expects the 1 entries of the manifest, got 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries[0]->name = "other"; }),
               "entry 'main' of the manifest is missing");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries[0]->procedure = 2; }),
               "entry 'main': expects a procedure below 2, got 2");
  Manifest manifest = sampleManifest();
  manifest.entries[0].operands.push_back({"z", braid::runtime::DType::f32, {1}, {}});
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': expects a procedure of 3 parameters and operands and 1 results, got "
               "3 arguments");
  manifest = sampleManifest();
  manifest.entries[0].operands[0].dtype = braid::runtime::DType::i32;
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': operand 'x' has type i32, but the program uses it as f32");
  manifest = sampleManifest();
  manifest.entries[0].results[0].globalShape = {2, 4};
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': result 'y' has 32 bytes on a rank, but the program uses 64");
  manifest = sampleManifest();
  manifest.entries[0].parameters[0].sharding.dims = {{{"tp"}}, {{"tp"}}};
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': parameter 'w': expects a shape that its sharding divides");
}

TEST(Program, RefusesArgumentsUsedAgainstTheirKind) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT copy;
                 copy.source = local(0, {2, 4});
                 copy.dest = argument(0, {2, 4});
                 mainOf(p).compute.push_back(command(std::move(copy)));
               }),
               "entry 'main': parameter 'w' is read-only, but the program writes it");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT copy;
                 copy.source = local(0, {2, 4});
                 copy.dest = argument(1, {2, 4});
                 mainOf(p).compute.push_back(command(std::move(copy)));
               }),
               "entry 'main': operand 'x' is not returned under its name, but the program writes "
               "it");
  Manifest donated = sampleManifest();
  donated.entries[0].results[0].name = "x";
  EXPECT_OK(verifyAfter(
      [](ProgramT &p) {
        program::CopyT copy;
        copy.source = local(0, {2, 4});
        copy.dest = argument(1, {2, 4});
        mainOf(p).compute.push_back(command(std::move(copy)));
      },
      donated));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 1, [](program::CallT &c) { c.arguments[2] = local(128, {2, 8}); });
               }),
               "entry 'main': result 'y' is never written");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 collective(p).inputs[0] = argument(0, {2, 8});
                 eachCall(p, 1, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 8}); });
               }),
               "entry 'main': operand 'x' is the caller's memory, but a collective uses it as "
               "symmetric");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).inputs[0] = argument(0, {2, 8}); }),
               call1Place() + "argument 0: expects symmetric memory, got local");
}

TEST(Program, RefusesBadViews) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->space = unknown<program::Space>(3); }),
               productPlace() + "lhs: unknown memory space 3");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { product(p).lhs->space = unknown<program::Space>(-1); }),
      productPlace() + "lhs: unknown memory space -1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->dtype = unknown<Type>(7); }),
               productPlace() + "lhs: unknown type 7");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->strides.pop_back(); }),
               productPlace() +
                   "lhs: expects as many strides as sizes, got shape [2, 4] and strides [4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->shape[0] = 0; }),
               productPlace() +
                   "lhs: expects positive sizes and no negative strides, got shape [0, 4] "
                   "and strides [4, 1]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->strides[0] = -4; }),
               productPlace() +
                   "lhs: expects positive sizes and no negative strides, got shape [2, 4] "
                   "and strides [-4, 1]");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { product(p).lhs = local(0, std::vector<int64_t>(9, 1)); }),
      productPlace() + "lhs: expects at most 8 dimensions, got shape of 9");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->offset_bytes = 2; }),
               productPlace() + "lhs: expects an offset at a multiple of 4 bytes for f32, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->offset_bytes = 36; }),
               productPlace() + "lhs: view ends at byte 68 of a local frame of 64 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->strides[0] = 13; }),
               productPlace() + "lhs: view ends at byte 68 of a local frame of 64 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { layer(p).symmetric_bytes = 0; }),
               productPlace() + "out: view ends at byte 64 of a symmetric frame of 0 bytes");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs->index = 3; }),
               productPlace() + "rhs: expects an argument below 3, got 3");
}

TEST(Program, RefusesViewsThatOverflow) {
  const int64_t big = std::numeric_limits<int64_t>::max();
  auto message = [](const std::string &shape, const std::string &strides) {
    return productPlace() + "lhs: view of shape " + shape + " and strides " + strides +
           " is too large";
  };
  auto with = [&](std::vector<int64_t> shape, std::vector<int64_t> strides, uint64_t offset) {
    return verifyAfter([&](ProgramT &p) {
      product(p).lhs->shape = shape;
      product(p).lhs->strides = strides;
      product(p).lhs->offset_bytes = offset;
    });
  };
  const std::string text = std::to_string(big);
  EXPECT_ERROR(with({3, 4}, {big, 1}, 0), message("[3, 4]", "[" + text + ", 1]"));
  EXPECT_ERROR(with({2, 2}, {big, big}, 0), message("[2, 2]", "[" + text + ", " + text + "]"));
  EXPECT_ERROR(with({2, 4}, {big / 2, 1}, 0),
               message("[2, 4]", "[" + std::to_string(big / 2) + ", 1]"));
  EXPECT_ERROR(with({2, 4}, {4, 1}, ~uint64_t(3)), message("[2, 4]", "[4, 1]"));
  // The elements are all the same one, but their number does not fit.
  EXPECT_ERROR(with({big, 4}, {0, 1}, 0), message("[" + text + ", 4]", "[0, 1]"));
}

TEST(Program, RefusesBadBuffers) {
  auto with = [](const std::function<void(ProgramT &, program::BufferT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      auto buffer = std::make_unique<program::BufferT>();
      buffer->space = program::Space::local;
      buffer->size_bytes = 32;
      product(p).lhs->buffer = 0;
      change(p, *buffer);
      layer(p).buffers.push_back(std::move(buffer));
    });
  };
  EXPECT_OK(with([](ProgramT &, program::BufferT &) {}));
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.space = program::Space::argument; }),
               "procedure 'layer': buffer 0: expects local or symmetric memory");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.offset_bytes = 64; }),
               "procedure 'layer': buffer 0 of 32 bytes at 64 is not within a local frame of 64 "
               "bytes");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.offset_bytes = ~uint64_t(0); }),
               "procedure 'layer': buffer 0 of 32 bytes at 18446744073709551615 is not within a "
               "local frame of 64 bytes");
  for (int32_t index : {1, -2})
    EXPECT_ERROR(with([&](ProgramT &p, program::BufferT &) { product(p).lhs->buffer = index; }),
                 productPlace() + "lhs: expects a buffer below 1, got " + std::to_string(index));
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.size_bytes = 16; }),
               productPlace() +
                   "lhs: view of bytes 0 to 32 is not within its buffer 0 of bytes 0 to 16");
  EXPECT_ERROR(with([](ProgramT &, program::BufferT &b) { b.space = program::Space::symmetric; }),
               productPlace() +
                   "lhs: view of bytes 0 to 32 is not within its buffer 0 of bytes 0 to 32");
  EXPECT_ERROR(with([](ProgramT &p, program::BufferT &) { product(p).rhs->buffer = 0; }),
               productPlace() + "rhs: expects no buffer for an argument, got 0");
}

TEST(Program, RefusesBadLaunches) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).kernel = 1; }),
               launchPlace() + "expects a kernel below 1, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands.pop_back(); }),
               launchPlace() + "kernel 'gelu' expects 2 operands, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).row_operand.pop_back(); }),
               launchPlace() + "expects 'row_operand' for 2 operands, got 1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).rows = 3; }),
               launchPlace() + "operand 0: expects 3 rows, got shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands[1] = argument(2, {}); }),
               launchPlace() + "operand 1: expects 2 rows, got shape []");
  for (uint32_t outputs : {0u, 3u, ~0u})
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { p.kernels[0]->num_outputs = outputs; }),
                 "kernel 'gelu' of 2 operands expects at least 1 and no more outputs, got " +
                     std::to_string(outputs));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { launch(p).operands[1]->strides = {4, 1}; }),
               launchPlace() +
                   "operand 1: writes through strides [4, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 launch(p).operands[0] = argument(1, {2, 8});
                 p.kernels[0]->num_outputs = 2;
               }),
               "entry 'main': parameter 'w' is read-only, but the program writes it");
  EXPECT_OK(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {0, 1}; }));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {0}; }),
               "kernel 'gelu': expects 'in_place' to hold pairs, got 1 operands");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->in_place = {1, 1}; }),
               "kernel 'gelu': expects 'in_place' to pair a read with a written operand, got 1 as "
               "the read one");
  for (uint32_t operand : {0u, 2u})
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { p.kernels[0]->in_place = {0, operand}; }),
                 "kernel 'gelu': expects 'in_place' to pair a read with a written operand, got " +
                     std::to_string(operand) + " as the written one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.kernels[0]->symbol = ""; }),
               "expects the symbol of a kernel, got ''");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.kernels.push_back(std::make_unique<program::KernelT>(*p.kernels[0]));
               }),
               "kernel 'gelu' stands there twice");
}

TEST(Program, RefusesBadProducts) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs = local(0, {}); }),
               productPlace() + "lhs: expects at least 1 dimension");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs = argument(1, {32}); }),
               productPlace() + "rhs: expects 2 dimensions, got shape [32]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs = argument(1, {4, 8}); }),
               productPlace() + "rhs: expects shape [4, 4], got [4, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).out = symmetric(0, {2, 4}); }),
               productPlace() + "out: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).bias = local(0, {4}); }),
               productPlace() + "bias: expects shape [8], got [4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).bias = local(0, {8}, Type::i32); }),
               productPlace() + "bias: expects a floating-point type, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->dtype = Type::i32; }),
               productPlace() + "lhs: expects a floating-point type, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).lhs->dtype = Type::bf16; }),
               productPlace() + "rhs: expects bf16, got f32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).out->strides = {4, 1}; }),
               productPlace() + "out: writes through strides [4, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 product(p).lhs = local(0, {2, 2, 2});
                 product(p).lhs->strides = {3, 6, 1};
                 product(p).rhs = argument(1, {2, 2});
                 product(p).out = symmetric(0, {2, 2, 2});
               }),
               productPlace() +
                   "lhs: expects leading dimensions that can be walked as one, got shape "
                   "[2, 2, 2] and strides [3, 6, 1]");
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    product(p).lhs = local(0, {2, 1, 4});
    product(p).lhs->strides = {4, 77, 1}; // a dimension of size 1 has any stride
    product(p).out = symmetric(0, {2, 1, 8});
  }));
}

program::AttentionT attention() {
  program::AttentionT op;
  op.query = local(0, {1, 2, 4, 2});
  op.key = local(0, {1, 3, 2, 2});
  op.value = local(0, {1, 3, 2, 2});
  op.out = argument(2, {1, 2, 4, 2});
  op.scale = 0.5;
  return op;
}

TEST(Program, RefusesBadAttention) {
  auto with = [](const std::function<void(program::AttentionT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::AttentionT op = attention();
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(with([](program::AttentionT &) {}));
  EXPECT_OK(with([](program::AttentionT &op) {
    op.mask = local(0, {1, 3}, Type::i64);
    op.valid_length = local(0, {1}, Type::i64);
    op.position_offset = local(0, {1}, Type::i64);
  }));
  EXPECT_ERROR(with([](program::AttentionT &op) { op.query = local(0, {2, 4, 2}); }),
               newPlace() + "query: expects 4 dimensions, got shape [2, 4, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.key = local(0, {1, 3, 2, 1}); }),
               newPlace() + "key: expects shape [1, 3, 2, 2], got [1, 3, 2, 1]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.value = local(0, {1, 2, 2, 2}); }),
               newPlace() + "value: expects shape [1, 3, 2, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.out = argument(2, {1, 2, 2, 2}); }),
               newPlace() + "out: expects shape [1, 2, 4, 2], got [1, 2, 2, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) {
                 op.key = local(0, {1, 2, 3, 2});
                 op.value = local(0, {1, 2, 3, 2});
               }),
               newPlace() + "expects query heads to divide among 3 key/value heads, got 4");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.mask = local(0, {1, 2}, Type::i64); }),
               newPlace() + "mask: expects shape [1, 3], got [1, 2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.mask = local(0, {1, 3}); }),
               newPlace() + "mask: expects i64, got f32");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.valid_length = local(0, {2}, Type::i64); }),
               newPlace() + "valid_length: expects shape [1], got [2]");
  EXPECT_ERROR(with([](program::AttentionT &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i64, got f32");
  EXPECT_ERROR(
      with([](program::AttentionT &op) { op.scale = std::numeric_limits<float>::infinity(); }),
      newPlace() + "expects a finite scale");
}

TEST(Program, RefusesBadRotaryEmbeddings) {
  auto table = [](const std::function<void(program::RotaryTableT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::RotaryTableT op;
      op.frequencies = {1.0, 0.1};
      op.position_offset = local(0, {1}, Type::i64);
      op.cos = local(0, {1, 2, 2});
      op.sin = argument(2, {1, 2, 2});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(table([](program::RotaryTableT &) {}));
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.position_offset = nullptr; }),
               newPlace() + "cos: expects 2 dimensions, got shape [1, 2, 2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.frequencies = {1.0}; }),
               newPlace() + "cos: expects shape [1, 2, 1], got [1, 2, 2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.sin = argument(2, {1, 2, 1}); }),
               newPlace() + "sin: expects shape [1, 2, 2], got [1, 2, 1]");
  EXPECT_ERROR(
      table([](program::RotaryTableT &op) { op.position_offset = local(0, {2}, Type::i64); }),
      newPlace() + "position_offset: expects shape [1], got [2]");
  EXPECT_ERROR(table([](program::RotaryTableT &op) { op.position_offset = local(0, {1}); }),
               newPlace() + "position_offset: expects i64, got f32");
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")})
    EXPECT_ERROR(table([&](program::RotaryTableT &op) { op.frequencies[1] = bad; }),
                 newPlace() + "expects finite frequencies and a finite scale");

  auto rotary = [](const std::function<void(program::RotaryT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::RotaryT op;
      op.input = local(0, {1, 2, 1, 4});
      op.cos = local(0, {2, 2});
      op.sin = local(0, {2, 2});
      op.out = argument(2, {1, 2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(rotary([](program::RotaryT &) {}));
  EXPECT_OK(rotary([](program::RotaryT &op) {
    op.cos = local(0, {1, 2, 2});
    op.sin = local(0, {1, 2, 2});
  }));
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.input = local(0, {2, 1, 4}); }),
               newPlace() + "input: expects 4 dimensions, got shape [2, 1, 4]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.input = local(0, {1, 2, 1, 3}); }),
               newPlace() + "input: expects an even last dimension, got shape [1, 2, 1, 3]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.cos = local(0, {2, 1}); }),
               newPlace() + "cos: expects shape [2, 2], got [2, 1]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.sin = local(0, {1, 2, 2}); }),
               newPlace() + "sin: expects shape [2, 2], got [1, 2, 2]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.out = argument(2, {1, 2, 4, 1}); }),
               newPlace() + "out: expects shape [1, 2, 1, 4], got [1, 2, 4, 1]");
  EXPECT_ERROR(rotary([](program::RotaryT &op) { op.cos = local(0, {2, 2}, Type::i32); }),
               newPlace() + "cos: expects f32, got i32");
}

TEST(Program, RefusesBadGathersCopiesAndSlices) {
  auto gather = [](const std::function<void(program::GatherT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::GatherT op;
      op.source = local(0, {4, 4});
      op.ids = local(0, {2, 1}, Type::i64);
      op.out = argument(2, {2, 1, 4});
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  EXPECT_OK(gather([](program::GatherT &) {}));
  EXPECT_ERROR(gather([](program::GatherT &op) { op.source = local(0, {4}); }),
               newPlace() + "source: expects 2 dimensions, got shape [4]");
  EXPECT_ERROR(gather([](program::GatherT &op) { op.ids = local(0, {2, 1}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(gather([](program::GatherT &op) { op.out = argument(2, {2, 4}); }),
               newPlace() + "out: expects shape [2, 1, 4], got [2, 4]");
  EXPECT_ERROR(gather([](program::GatherT &op) {
                 op.axes.push_back(std::make_unique<program::AxisRefT>());
                 op.axes.back()->name = "pp";
               }),
               newPlace() + "unknown axis 'pp' in mesh 'mesh'");
  auto positions = [](const std::function<void(program::PositionIdsT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::PositionIdsT op;
      op.ids = local(0, {2, 4}, Type::i32);
      op.out = local(0, {2, 4}, Type::i32);
      change(op);
      replaceLaunch(p, std::move(op));
    });
  };
  // All that is wrong with it: the launch that it replaces wrote the result.
  EXPECT_ERROR(positions([](program::PositionIdsT &) {}),
               "entry 'main': result 'y' is never written");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.ids = local(0, {2, 4}); }),
               newPlace() + "ids: expects i32 or i64, got f32");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.ids = local(0, {8}, Type::i32); }),
               newPlace() + "ids: expects 2 dimensions, got shape [8]");
  EXPECT_ERROR(positions([](program::PositionIdsT &op) { op.out = local(0, {4, 2}, Type::i32); }),
               newPlace() + "out: expects shape [2, 4], got [4, 2]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT op;
                 op.source = local(0, {2, 4});
                 op.dest = argument(2, {4, 2});
                 replaceLaunch(p, std::move(op));
               }),
               newPlace() + "dest: expects shape [2, 4], got [4, 2]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT op;
                 op.source = local(0, {2, 4}, Type::i32);
                 op.dest = argument(2, {2, 4});
                 replaceLaunch(p, std::move(op));
               }),
               newPlace() + "dest: expects i32, got f32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).dim = 2; }),
               slicePlace() + "expects a dimension below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).dim = 0; }),
               slicePlace() +
                   "source: expects 2 times dest of shape [2, 4] along dimension 0, got [2, "
                   "8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes[0]->name = "dp"; }),
               slicePlace() + "unknown axis 'dp' in mesh 'mesh'");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes[0]->size = 3; }),
               slicePlace() + "sub-axis (1)3 does not divide axis 'tp' of size 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { slice(p).axes.clear(); }),
               slicePlace() + "expects at least one mesh axis");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 slice(p).axes.push_back(std::make_unique<program::AxisRefT>(*slice(p).axes[0]));
               }),
               slicePlace() + "axis 'tp' is used twice");
}

TEST(Program, RefusesBadCollectives) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 layer(p).compute.push_back(std::move(layer(p).communication[1]));
                 layer(p).communication.pop_back();
               }),
               "procedure 'layer', compute command 5 ('all_reduce'): expects a collective on the "
               "communication queue");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).inputs[0] = local(0, {2, 8}); }),
               collectivePlace() + "input 0: expects symmetric memory, got local");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).kind = unknown<CollectiveKind>(10); }),
               collectivePlace() + "unknown collective 10");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { collective(p).reduce = unknown<program::ReduceKind>(-1); }),
      collectivePlace() + "unknown reduction -1");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).axes[0]->name = "dp"; }),
               collectivePlace() + "unknown axis 'dp' in mesh 'mesh'");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).inputs.clear(); }),
               collectivePlace() +
                   "expects as many outputs as inputs and at least one, got 1 and 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0] = symmetric(0, {2, 4}); }),
               collectivePlace() + "output 0: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0]->dtype = Type::i32; }),
               collectivePlace() + "output 0: expects f32, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).outputs[0]->strides = {0, 1}; }),
               collectivePlace() +
                   "output 0: writes through strides [0, 1] that overlap for shape [2, 8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { collective(p).done = 2; }),
               collectivePlace() + "expects an event below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 collective(p).kind = CollectiveKind::reduce_scatter;
                 collective(p).dim = 1;
               }),
               collectivePlace() +
                   "input 0: expects 2 times output 0 of shape [2, 8] along dimension 1, got [2, "
                   "8]");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 collective(p).kind = CollectiveKind::all_gather;
                 collective(p).dim = 0;
               }),
               collectivePlace() +
                   "output 0: expects 2 times input 0 of shape [2, 8] along dimension 0, got [2, "
                   "8]");
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    collective(p).kind = CollectiveKind::reduce_scatter;
    collective(p).dim = 1;
    collective(p).outputs[0] = symmetric(0, {2, 4});
  }));
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    collective(p).kind = CollectiveKind::all_gather;
    collective(p).dim = 0;
    collective(p).inputs[0] = symmetric(0, {1, 8});
  }));
}

TEST(Program, RefusesBadExchanges) {
  auto asAllToAll = [](program::CollectiveStartT &c, uint32_t dim, uint32_t concat,
                       const std::vector<int64_t> &out) {
    c.kind = CollectiveKind::all_to_all;
    c.dim = dim;
    c.concat_dim = concat;
    c.outputs[0] = symmetric(0, out);
  };
  EXPECT_OK(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 0, {4, 4}); }));
  EXPECT_OK(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 1, {2, 8}); }));
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 0, {2, 8}); }),
               collectivePlace() + "output 0: expects shape [4, 4], got [2, 8]");
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) { asAllToAll(collective(p), 1, 2, {4, 4}); }),
               collectivePlace() + "expects a dimension below 2, got 2");
  EXPECT_ERROR(verifyAfter([&](ProgramT &p) {
                 asAllToAll(collective(p), 0, 1, {1, 16});
                 collective(p).inputs[0] = symmetric(0, {3, 4});
               }),
               collectivePlace() + "expects dimension 0 of shape [3, 4] to divide by 2");
  for (CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::broadcast}) {
    EXPECT_OK(verifyAfter([&](ProgramT &p) {
      collective(p).kind = kind;
      collective(p).root = 1;
    }));
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) {
                   collective(p).kind = kind;
                   collective(p).root = 2;
                 }),
                 collectivePlace() + "expects a root at a position below 2, got 2");
  }
  auto permute = [](const std::vector<uint32_t> &pairs) {
    return verifyAfter([&](ProgramT &p) {
      collective(p).kind = CollectiveKind::permute;
      collective(p).pairs = pairs;
    });
  };
  EXPECT_OK(permute({}));
  EXPECT_OK(permute({0, 1, 1, 0}));
  EXPECT_ERROR(permute({0, 1, 1}),
               collectivePlace() + "expects pairs of positions, got 3 positions");
  EXPECT_ERROR(permute({0, 2}),
               collectivePlace() + "expects a target at a position below 2, got 2");
  EXPECT_ERROR(permute({0, 1, 0, 0}), collectivePlace() + "expects position 0 as a source once");
  EXPECT_ERROR(permute({0, 1, 1, 1}), collectivePlace() + "expects position 1 as a target once");
}

TEST(Program, RefusesBadCounts) {
  // Four blocks of at most two rows and their counts.
  auto counted = [](const std::function<void(program::CollectiveStartT &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::CollectiveStartT &c = collective(p);
      c.kind = CollectiveKind::all_to_all_v;
      c.inputs.clear();
      c.outputs.clear();
      for (auto *views : {&c.inputs, &c.outputs}) {
        views->push_back(symmetric(0, {4, 2}));
        views->push_back(symmetric(0, {4}));
        views->back()->dtype = Type::i32;
      }
      change(c);
    });
  };
  EXPECT_OK(counted([](program::CollectiveStartT &) {}));
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs.erase(c.inputs.begin());
                 c.outputs.erase(c.outputs.begin());
               }),
               collectivePlace() + "expects at least one value beside the counts");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs[1]->dtype = c.outputs[1]->dtype = Type::f32;
               }),
               collectivePlace() + "input 1: expects counts of i32 or i64, got f32");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 c.inputs[0] = symmetric(0, {4});
                 c.outputs[0] = symmetric(0, {4});
               }),
               collectivePlace() + "input 0: expects 4 blocks by one capacity, got [4]");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 for (auto *views : {&c.inputs, &c.outputs})
                   views->insert(views->begin() + 1, symmetric(0, {4, 1}));
               }),
               collectivePlace() + "input 1: expects 4 blocks by one capacity, got [4, 1]");
  EXPECT_ERROR(counted([](program::CollectiveStartT &c) {
                 for (auto *views : {&c.inputs, &c.outputs}) {
                   (*views)[0] = symmetric(0, {3, 2});
                   (*views)[1]->shape = {3};
                 }
               }),
               collectivePlace() + "expects 3 blocks to divide by 2");
}

TEST(Program, RefusesBadHalves) {
  for (CollectiveKind kind : {CollectiveKind::send, CollectiveKind::recv}) {
    const bool sends = kind == CollectiveKind::send;
    auto half = [&](const std::vector<uint32_t> &pairs, bool both = false) {
      return verifyAfter([&](ProgramT &p) {
        collective(p).kind = kind;
        collective(p).pairs = pairs;
        if (!both)
          (sends ? collective(p).outputs : collective(p).inputs).clear();
      });
    };
    EXPECT_OK(half({0, 1}));
    EXPECT_OK(half({}));
    EXPECT_ERROR(half({0, 1}, true),
                 collectivePlace() + (sends ? "expects inputs and no outputs, got 1 and 1 values"
                                            : "expects outputs and no inputs, got 1 and 1 values"));
    EXPECT_ERROR(half({1, 1}), collectivePlace() + "expects no position to send to itself, got 1");
    EXPECT_ERROR(half({0, 2}), collectivePlace() + "expects a target at a position below 2, got 2");
  }
}

TEST(Program, RefusesBadCalls) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).communication.pop_back(); }),
               "procedure 'main', compute command 1 ('layer.1'): expects the same call in the "
               "other queue");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).compute.pop_back(); }),
               "procedure 'main', communication command 1 ('layer.1'): expects the same call in "
               "the other queue");
  const std::string same =
      call1Place() +
      "expects the same call as procedure 'main', communication command 1 ('layer.1')";
  const std::function<void(program::CallT &)> differences[] = {
      [](program::CallT &c) { c.event_base = 0; },
      [](program::CallT &c) { c.local_base_bytes = 0; },
      [](program::CallT &c) { c.symmetric_base_bytes = 64; },
      [](program::CallT &c) { c.procedure = 1; },
      [](program::CallT &c) { c.arguments.pop_back(); },
      [](program::CallT &c) { c.arguments[0]->offset_bytes = 64; },
      [](program::CallT &c) { c.arguments[0]->strides[0] = 9; },
      [](program::CallT &c) { c.arguments[0]->shape[0] = 1; }};
  for (const auto &difference : differences)
    EXPECT_ERROR(verifyAfter([&](ProgramT &p) { difference(*mainOf(p).compute[1]->op.AsCall()); }),
                 same);
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { eachCall(p, 0, [](program::CallT &c) { c.procedure = 2; }); }),
      call0Place() + "expects a procedure below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.procedure = 1; });
                 eachCall(p, 1, [](program::CallT &c) { c.event_base = 4; });
               }),
               "procedure 'main' calls itself, or one that does");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).local_bytes = 127; }),
               call0Place() + "expects local bytes of the callee below 127, got 64 from 64");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.local_base_bytes = ~uint64_t(63); });
               }),
               call0Place() + "expects local bytes of the callee below 192, got 64 from "
                              "18446744073709551552");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).symmetric_bytes = 0; }),
               call0Place() + "expects symmetric bytes of the callee below 0, got 64 from 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 3; }),
               call1Place() + "expects events of the callee below 3, got 2 from 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.local_base_bytes = 32; });
               }),
               call0Place() + "expects a callee's frame at a multiple of 64 bytes, got 32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments.pop_back(); });
               }),
               call0Place() + "expects 3 arguments, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 7}); });
               }),
               call0Place() + "argument 0: the callee expects 64 bytes, got 56");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) {
        eachCall(p, 0, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 8}, Type::i32); });
      }),
      call0Place() + "argument 0: the callee expects f32, got i32");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 0, [](program::CallT &c) { c.arguments[2] = local(64, {2, 8}); });
               }),
               call0Place() + "argument 2: lies in the callee's frame");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { product(p).rhs->dtype = Type::f16; }),
               productPlace() + "rhs: expects f32, got f16");
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { launch(p).operands[1] = argument(1, {2, 8}, Type::i32); }),
      launchPlace() + "operand 1: argument 1 is used as i32 here and as f32 elsewhere");
}

/// A procedure that does nothing but call `callee` `times` times.
std::unique_ptr<program::ProcedureT> caller(const std::string &name, uint32_t callee, int times) {
  auto procedure = std::make_unique<program::ProcedureT>();
  procedure->name = name;
  for (auto *queue : {&procedure->compute, &procedure->communication})
    for (int i = 0; i < times; ++i) {
      program::CallT call;
      call.procedure = callee;
      queue->push_back(command(std::move(call)));
    }
  return procedure;
}

TEST(Program, BoundsTheCallTree) {
  // Each level calls the one before it twice: few bytes, 2^40 commands.
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller("leaf", 0, 0));
                 for (uint32_t i = 0; i < 40; ++i)
                   p.procedures.push_back(caller("level", 2 + i, 2));
                 program::CallT call;
                 call.procedure = 42;
                 mainOf(p).compute.push_back(command(call));
                 mainOf(p).communication.push_back(command(call));
               }),
               "entry 'main': expects at most 16777216 commands with all calls expanded");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller("leaf", 0, 0));
                 for (uint32_t i = 0; i < 64; ++i)
                   p.procedures.push_back(caller("level" + std::to_string(i), 2 + i, 1));
               }),
               "procedure 'level63': expects calls at most 64 deep");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures.push_back(caller("a", 3, 1));
                 p.procedures.push_back(caller("b", 2, 1));
               }),
               "procedure 'a' calls itself, or one that does");
}

TEST(Program, RefusesBadEvents) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { record(p).event = 2; }),
               "procedure 'layer', compute command 2: expects an event below 2, got 2");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { record(p).event = 1; }),
               "entry 'main': " + collectivePlace() + "sets event 1 for the second time");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { layer(p).num_events = 3; }),
               call1Place() + "shares events with command 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 5; }),
               "entry 'main': procedure 'main': nothing sets event 4");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { mainOf(p).num_events = 4000000000u; }),
               "entry 'main': procedure 'main': has 4000000000 events, but only 18 commands that "
               "could set them");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { wait(p).event = 0; }),
               "entry 'main': procedure 'layer', compute command 3: waits for event 0 of a "
               "collective, which a record sets");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { await(p).event = 1; }),
               "entry 'main': procedure 'layer', communication command 0: waits for event 1 "
               "of a record, which a collective sets");
}

TEST(Program, FindsDeadlocks) {
  // The compute queue waits for the collective before it records what the collective waits for.
  EXPECT_ERROR(
      verifyAfter([](ProgramT &p) { std::swap(layer(p).compute[2], layer(p).compute[3]); }),
      "entry 'main': deadlock: procedure 'layer', compute command 2 waits for event "
      "1, which is not set by then; procedure 'layer', communication command 0 "
      "waits for event 0, which is not set by then");
  // One queue alone.
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 layer(p).compute.insert(layer(p).compute.begin() + 2,
                                         std::move(layer(p).communication[0]));
                 layer(p).communication.erase(layer(p).communication.begin());
               }),
               "entry 'main': deadlock: procedure 'layer', compute command 2 waits for event 0, "
               "which is not set by then");
}

/// What is in flight across a call belongs to the caller: a callee starts, its caller waits.
TEST(Program, AcceptsEventsAcrossCalls) {
  EXPECT_OK(verifyAfter([](ProgramT &p) {
    layer(p).compute.erase(layer(p).compute.begin() + 3); // the wait
    mainOf(p).compute.push_back(eventCommand<program::CollectiveWaitT>(1));
    mainOf(p).compute.push_back(eventCommand<program::CollectiveWaitT>(3));
  }));
}

} // namespace
