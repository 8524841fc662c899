//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tables of encodings: which collectives a list of PATTERN=ENCODING names, and what they get.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/EncodingTable.h"
#include "Testing.h"

#include <gtest/gtest.h>

using namespace braid::runtime;

namespace {

struct Operand {
  std::string name;
};

/// Two calls of a layer, and a collective of the entry that was split.
EncodingTable layers() {
  return EncodingTable::of(std::vector<Operand>{
      {"input_ids"},
      {"encoding-of-@main|@layer|mlp.down"},
      {"encoding-of-@main|@layer#1|mlp.down"},
      {"encoding-of-@main|@layer#1|attention.output"},
      {"encoding-of-@main|head|reduce_scatter"},
      {"not-encoding-of-@main|head"},
  });
}

/// The encodings that a list sets, by collective.
std::vector<std::string> encodingsOf(const std::string &list) {
  EncodingTable table = layers();
  EXPECT_OK(table.set(list));
  std::vector<std::string> texts;
  for (const EncodingTable::Entry &entry : table.entries)
    texts.push_back(entry.str());
  return texts;
}

using Texts = std::vector<std::string>;

TEST(EncodingTable, HasTheOperandsOfEncodings) {
  const EncodingTable table = layers();
  Texts identities;
  for (const EncodingTable::Entry &entry : table.entries) {
    identities.push_back(entry.identity);
    EXPECT_EQ(EncodingTable::identityOf(entry.operand()), entry.identity);
    EXPECT_EQ(entry.str(), "none");
  }
  EXPECT_EQ(identities, (Texts{"@main/@layer/mlp.down", "@main/@layer#1/mlp.down",
                               "@main/@layer#1/attention.output", "@main/head/reduce_scatter"}));
  EXPECT_EQ(table.entries[1].operand(), "encoding-of-@main|@layer#1|mlp.down");
}

TEST(EncodingTable, CodesOfBothHalves) {
  EncodingTable table = layers();
  ASSERT_OK(table.set("*=none,mlp.down=int4:128+spikes/int8:128,attention.output=none/bf16"));
  auto codes = [&](size_t entry) {
    const HostTensor value = table.entries[entry].codes();
    EXPECT_EQ(value.dtype, DType::i32);
    EXPECT_EQ(value.shape, (std::vector<int64_t>{2}));
    return std::vector<int32_t>(value.as<int32_t>(), value.as<int32_t>() + 2);
  };
  auto codeOf = [](const char *text) {
    return static_cast<int32_t>(Encoding::parse(text)->code());
  };
  EXPECT_EQ(codes(0), (std::vector<int32_t>{codeOf("int4:128+spikes"), codeOf("int8:128")}));
  EXPECT_EQ(codes(2), (std::vector<int32_t>{0, codeOf("bf16")}));
  EXPECT_EQ(codes(3), (std::vector<int32_t>{0, 0}));
  EXPECT_EQ(table.entries[0].str(), "int4:128+spikes/int8:128");
  EXPECT_EQ(table.entries[2].str(), "none/bf16");
}

TEST(EncodingTable, ARoleIsAnywhere) {
  EXPECT_EQ(encodingsOf("mlp.down=int8"), (Texts{"int8:128", "int8:128", "none", "none"}));
  EXPECT_EQ(encodingsOf("[am]*.?ut*=int8"), (Texts{"none", "none", "int8:128", "none"}));
  // The part that a collective is belongs to its role.
  EXPECT_EQ(encodingsOf("head/reduce_scatter=int8"), (Texts{"none", "none", "none", "int8:128"}));
  EXPECT_EQ(encodingsOf("head*=int8"), (Texts{"none", "none", "none", "int8:128"}));
}

TEST(EncodingTable, APathBeginsAtTheEntry) {
  EXPECT_EQ(encodingsOf("@main/@layer#1/mlp.down=int8"),
            (Texts{"none", "int8:128", "none", "none"}));
  EXPECT_EQ(encodingsOf("@main/@layer*/*=int8"),
            (Texts{"int8:128", "int8:128", "int8:128", "none"}));
  // A `*` is of one part, and all parts are named.
  EXPECT_EQ(encodingsOf("@main/*=int8"), (Texts{"none", "none", "none", "int8:128"}));
  EXPECT_EQ(encodingsOf("@*/@*/*=int8"), (Texts{"int8:128", "int8:128", "int8:128", "none"}));
}

TEST(EncodingTable, TheLastOneThatMatchesCounts) {
  EXPECT_EQ(encodingsOf("*=int8,@main/@layer/*=mxfp4,attention.*=none"),
            (Texts{"mxfp4", "int8:128", "none", "int8:128"}));
  EXPECT_EQ(encodingsOf("@main/@layer/*=mxfp4,*=int8"),
            (Texts{"int8:128", "int8:128", "int8:128", "int8:128"}));
  // A second list goes on from the first one.
  EncodingTable table = layers();
  ASSERT_OK(table.set("*=int8"));
  ASSERT_OK(table.set("head*=none/bf16"));
  EXPECT_EQ(table.entries[0].str(), "int8:128");
  EXPECT_EQ(table.entries[3].str(), "none/bf16");
}

TEST(EncodingTable, NamesWhatIsWrong) {
  auto set = [](const std::string &list) { return layers().set(list); };
  for (const char *item : {"", "int8", "=int8", "*="})
    EXPECT_ERROR(set(item), "expects a list of PATTERN=ENCODING, such as '*=int8:128', got '" +
                                std::string(item) + "'");
  EXPECT_ERROR(set("*=int8,"), "expects a list of PATTERN=ENCODING, such as '*=int8:128', got ''");
  EXPECT_ERROR(set("*=int8/int8/int8"), "expects at most two encodings of '*', got "
                                        "'int8/int8/int8'");
  EXPECT_ERROR(set("*=int9"), Encoding::parse("int9").status().message());
  EXPECT_ERROR(set("*=int8/"), Encoding::parse("").status().message());
  EXPECT_ERROR(set("mlp.up=int8"), "the table of encodings has no collective 'mlp.up', it has "
                                   "'@main/@layer/mlp.down' and 3 more");
  EXPECT_ERROR(set("@layer/mlp.down=int8"),
               "the table of encodings has no collective '@layer/mlp.down', it has "
               "'@main/@layer/mlp.down' and 3 more");
  EncodingTable one;
  one.entries.push_back({"@main/sum", std::nullopt, std::nullopt});
  EXPECT_ERROR(one.set("other=int8"),
               "the table of encodings has no collective 'other', it has '@main/sum'");
  EXPECT_ERROR(EncodingTable().set("*=int8"), "the table of encodings has no collective '*': the "
                                              "program was not compiled with --quantize table");
}

} // namespace
