//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs whose kernels have operands that are payloads.
//
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using Type = program::DType;
using program::ProgramT;

namespace {

/// Of rows of 8 elements.
std::unique_ptr<program::OperandCodecT> codecOfRows(const char *name,
                                                    std::vector<int64_t> integers) {
  auto codec = std::make_unique<program::OperandCodecT>();
  codec->codec = std::make_unique<program::LibraryCallT>();
  codec->codec->name = name;
  codec->codec->integers = std::move(integers);
  codec->row_shape = {8};
  return codec;
}

/// A program whose generated kernel decodes its input, with a change.
Status verifyCodec(const std::function<void(program::KernelT &, program::LaunchT &)> &change) {
  return verifyAfter([&](ProgramT &p) {
    program::KernelT &kernel = *p.kernels[0];
    kernel.codecs.push_back(codecOfRows("decode_sum", {Encoding::parse("int8:32")->code(), 0, 1}));
    launch(p).operands[0] = symmetric(0, {1, 48});
    launch(p).operands[0]->dtype = Type::i8;
    launch(p).row_operand[0] = false;
    change(kernel, launch(p));
  });
}

TEST(Program, RefusesBadCodecs) {
  using K = program::KernelT;
  using L = program::LaunchT;
  EXPECT_OK(verifyCodec([](K &, L &) {}));
  const std::string kernel = "kernel 'gelu': ", codec = kernel + "codec of operand 0: ";
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->operand = 2; }),
               kernel + "codec of operand 2: expects an operand below 2, got 2");
  EXPECT_ERROR(verifyCodec([](K &k, L &) {
                 k.codecs.push_back(std::make_unique<program::OperandCodecT>(*k.codecs[0]));
               }),
               kernel + "expects codecs of ascending operands, got operand 0 behind 0");
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->codec->name = "encode"; }),
               codec + "expects the codec decode or decode_sum, got 'encode'");
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->operand = 1; }),
               kernel + "codec of operand 1: expects the codec encode, got 'decode_sum'");
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->codec->integers.pop_back(); }),
               codec + "expects 3 integers of decode_sum and nothing else, got 2");
  const std::string both = "expects own rows and the axes of a group of decode_sum, or neither";
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->codec->axes = tensorParallel(); }),
               codec + both);
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->own = 1; }), codec + both);
  for (int32_t own : {0, 1, 2})
    EXPECT_ERROR(verifyCodec([own](K &k, L &) {
                   k.codecs[0]->own = own;
                   k.codecs[0]->codec->axes = tensorParallel();
                 }),
                 codec + "expects own rows in an operand that is read and has no codec, got " +
                     std::to_string(own));
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->dtype = static_cast<Type>(7); }),
               codec + "expects an element type, got 7");
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {-8}, {int64_t(1) << 33}, std::vector<int64_t>(8, 1)})
    EXPECT_ERROR(verifyCodec([&](K &k, L &) { k.codecs[0]->row_shape = shape; }),
                 codec + "expects 1 to 7 dimensions of a row with up to 2^32 elements, got " +
                     shapeString(shape));
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.in_place = {0, 1}; }),
               codec + "expects it not to be in 'in_place'");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 kernelAt(p, 1).codecs.push_back(std::make_unique<program::OperandCodecT>());
                 program::OperandCodecT &added = *kernelAt(p, 1).codecs[0];
                 added.codec = std::make_unique<program::LibraryCallT>();
                 added.codec->name = "decode";
               }),
               "kernel 'matmul.2': expects no codecs of a kernel of the library");
  EXPECT_ERROR(verifyCodec([](K &, L &l) { l.row_operand[0] = true; }),
               launchPlace() + "operand 0: expects a payload to be no row operand");
  const std::string operand = launchPlace() + "operand 0: ";
  EXPECT_ERROR(verifyCodec([](K &, L &l) { l.operands[0]->shape = {1, 32}; }),
               operand + "payload: expects shape [1, 48], got [1, 32]");
  EXPECT_ERROR(verifyCodec([](K &, L &l) { l.operands[0] = symmetric(0, {2, 8}); }),
               operand + "payload: expects shape [2, 32], got [2, 8]");
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->codec->integers[0] = 0x7fffffff; }),
               operand + Encoding::fromCode(0x7fffffff).status().message());
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->codec->integers[2] = 2; }),
               operand + "payload: expects the parts of 2 ranks, got shape [1, 48]");
  EXPECT_ERROR(verifyCodec([](K &k, L &) { k.codecs[0]->dtype = Type::i32; }),
               operand + "out: expects a floating-point type, got i32");
}

/// The same with the payloads of two ranks, of which one is the rank itself.
TEST(Program, RefusesBadOwnRows) {
  using K = program::KernelT;
  using L = program::LaunchT;
  auto verifyOwn = [](const std::function<void(K &, L &)> &change) {
    return verifyCodec([&](K &k, L &l) {
      k.num_operands = 3;
      k.codecs[0]->own = 1;
      k.codecs[0]->codec->axes = tensorParallel();
      k.codecs[0]->codec->integers[2] = 2;
      l.operands[0]->shape = {2, 48};
      l.operands[0]->strides = {0, 1}; // one behind the other would not fit the frame
      l.operands.insert(l.operands.begin() + 1, local(0, {2, 8}));
      l.row_operand = {false, true, true};
      change(k, l);
    });
  };
  EXPECT_OK(verifyOwn([](K &, L &) {}));
  const std::string operand = launchPlace() + "operand 0: ";
  EXPECT_ERROR(verifyOwn([](K &k, L &l) {
                 k.codecs[0]->codec->integers[2] = 1;
                 l.operands[0]->shape = {1, 48};
               }),
               operand + "expects a group of 1 ranks, as many as senders, got 2");
  EXPECT_ERROR(verifyOwn([](K &, L &l) { l.row_operand[1] = false; }),
               operand + "expects its own rows, operand 1, to be a row operand");
  EXPECT_ERROR(verifyOwn([](K &, L &l) { l.operands[1]->shape = {2, 4}; }),
               operand + "own: expects shape [2, 8], got [2, 4]");
  EXPECT_ERROR(verifyOwn([](K &, L &l) { l.operands[1]->dtype = Type::f16; }),
               operand + "own: expects f32, got f16");
}

/// A program whose generated kernel encodes its output for the ranks of a group.
TEST(Program, RefusesBadEncodesForOthers) {
  using K = program::KernelT;
  auto verifyEncode = [](const std::function<void(K &)> &change) {
    return verifyAfter([&](ProgramT &p) {
      program::KernelT &kernel = *p.kernels[0];
      kernel.codecs.push_back(codecOfRows("encode", {Encoding::parse("int8:32")->code(), 1}));
      kernel.codecs[0]->operand = 1;
      kernel.codecs[0]->codec->axes = tensorParallel();
      launch(p).operands[1] = symmetric(0, {1, 48});
      launch(p).operands[1]->dtype = Type::i8;
      launch(p).row_operand[1] = false;
      change(kernel);
    });
  };
  // The launch is right; what it writes is no longer the program's result.
  EXPECT_ERROR(verifyEncode([](K &) {}), "entry 'main': result 'y' is never written");
  const std::string operand = launchPlace() + "operand 1: ",
                    codec = "kernel 'gelu': codec of operand 1: ";
  EXPECT_ERROR(verifyEncode([](K &k) { k.codecs[0]->codec->integers[1] = 2; }),
               operand + "expects first in [0, 2), got 2");
  EXPECT_ERROR(verifyEncode([](K &k) { k.codecs[0]->codec->axes.clear(); }),
               operand + "expects first in [0, 1), got 1");
  EXPECT_ERROR(verifyEncode([](K &k) { k.codecs[0]->own = 0; }),
               codec + "expects own rows and the axes of a group of decode_sum, or neither");
}

} // namespace
