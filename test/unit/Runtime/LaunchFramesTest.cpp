//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Launcher/Frames.h"
#include "runtime/lib/Launcher/Launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace braid::runtime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

namespace {

/// "kind rank bytes", or the line that is no frame, of all that comes; the error at the end.
std::vector<std::string> read(const std::string &bytes, size_t step) {
  FrameReader reader("token");
  std::vector<std::string> found;
  for (size_t at = 0; at < bytes.size(); at += step) {
    const std::string piece = bytes.substr(at, step);
    reader.append(piece.data(), piece.size());
    for (;;) {
      Result<std::optional<Frame>> frame = reader.next();
      if (!frame.ok()) {
        found.push_back("error: " + frame.status().message());
        return found;
      }
      if (!*frame)
        break;
      found.push_back((*frame)->kind.empty()
                          ? "line: " + (*frame)->bytes
                          : (*frame)->kind + " " + std::to_string((*frame)->rank) + " " +
                                (*frame)->bytes);
    }
  }
  return found;
}

TEST(Frames, ComeInAnyPieces) {
  const std::string bytes = "welcome\n\n" + writeFrame("token", {"ready", 0, "4711"}) +
                            writeFrame("token", {"out", 12, "a\nb@token out 1 3\n"}) +
                            writeFrame("token", {"err", 3, ""}) +
                            writeFrame("other", {"end", 1, "0"});
  for (size_t step : {size_t(1), size_t(2), size_t(7), bytes.size()})
    EXPECT_THAT(read(bytes, step),
                ElementsAre("line: welcome", "line: ", "ready 0 4711",
                            "out 12 a\nb@token out 1 3\n", "err 3 ", "line: @other end 1 1"))
        << step;
}

TEST(Frames, Malformed) {
  for (const char *header : {"out", "out 1", "out 1 x", "out -1 0", "out 1 -1", "out 1 0 0",
                             "out 99999999 0", "out 1 16777217", "out 1 99999999999999999999", ""})
    EXPECT_THAT(read(std::string("@token ") + header + "\n", 1000),
                ElementsAre(HasSubstr("error: expects a kind, a rank and a number of bytes, got")))
        << header;
}

TEST(Frames, LinesWithoutEndDoNotGrow) {
  const std::vector<std::string> found = read(std::string(10000, 'x') + "\n", 3000);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].size(), 4096 + 6u);
  EXPECT_EQ(found[0].size() + found[1].size() + found[2].size(), 10000 + 3 * 6u);
  for (size_t length : {4095, 4096, 4097, 8192, 8193})
    EXPECT_EQ(read(std::string(length, 'x') + "\n", 1), read(std::string(length, 'x') + "\n", 9999))
        << length;
}

TEST(Launcher, ForwardedVariables) {
  EXPECT_THAT(forwardedVariables({{"BRAID_MAX_ISA", "avx2"},
                                  {"UCX_TLS", "tcp"},
                                  {"HOME", "/root"},
                                  {"BRAID_RANK", "1"},
                                  {"BRAID_LOCAL_SIZE", "1"},
                                  {"BRAID_JOB", "1"},
                                  {"BRAID_JOB_SECRET", "1"},
                                  {"BRAID_RENDEZVOUS", "tcp://a:1"},
                                  {"XBRAID_X", "1"}}),
              UnorderedElementsAre(Pair("BRAID_MAX_ISA", "avx2"), Pair("UCX_TLS", "tcp")));
}

TEST(Launcher, Words) {
  EXPECT_THAT(splitWords("  ssh -x\t-p 22\n"), ElementsAre("ssh", "-x", "-p", "22"));
  EXPECT_THAT(splitWords(" "), ElementsAre());
}

} // namespace
