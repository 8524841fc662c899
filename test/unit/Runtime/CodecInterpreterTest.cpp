//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The interpreter's payloads are those of the CPU, bit for bit.
//
//===----------------------------------------------------------------------===//
#include "CodecTesting.h"
#include "lib/Interpreter/Core/Codec.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;

namespace {

TEST(CodecInterpreter, GivesTheSameBytesAndNumbers) {
  std::mt19937 random(41);
  size_t turn = 0;
  for (const Encoding &e : encodingsOf({32, 128, 512}, {0, 16, 128}))
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      const Input input = kInputs[turn % std::size(kInputs)];
      const int64_t sizes[] = {1, 2 * e.group + 17, e.group + 1, 300};
      const int64_t columns = sizes[turn++ % std::size(sizes)];
      SCOPED_TRACE(::testing::Message()
                   << e.str() << " of " << name(type) << ", " << columns << " columns, input "
                   << static_cast<int>(input) << ", seed 41, turn " << turn);
      const std::vector<float> x = inputOf(input, type, columns, random);
      const CodecRow codec = CodecRow::of(layoutOf(e, type, 1, columns, 1));
      std::vector<uint8_t> bytes(static_cast<size_t>(codec.rowBytes));
      vectorKernels().codec->encodeRow(codec, stored(type, x).data(), bytes.data());
      ASSERT_EQ(braid::interp::encodeRow(e, type, x), bytes);
      const auto decoded = braid::interp::decodeRow(e, type, columns, bytes);
      ASSERT_OK(decoded);
      for (DType out : {DType::f32, DType::f16, DType::bf16}) {
        std::vector<uint8_t> got(x.size() * static_cast<size_t>(byteSize(out)));
        const void *rows[] = {bytes.data()};
        vectorKernels().codec->decodeRows(codec, rows, 1, static_cast<int>(out), got.data(), false);
        std::vector<float> cast;
        for (float y : *decoded)
          cast.push_back(braid::interp::castTo(out, y));
        ASSERT_EQ(got, stored(out, cast)) << name(out);
      }
    }
}

} // namespace
