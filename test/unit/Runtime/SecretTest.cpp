//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Secret.h"
#include "ProcessTesting.h"

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::testing;

namespace {

TEST(Secret, FilesAndTexts) {
  Board board;
  EXPECT_ERROR(JobSecret::fromText("short"), "a job secret expects 16 to 4096 bytes, got 5");
  EXPECT_TRUE(JobSecret::fromText("")->isEmpty());
  const std::string path = board.path("secret");
  const std::string name = "the file of the job secret '" + path + "'";
  EXPECT_ERROR(JobSecret::fromFile(path), "cannot open " + name + ": No such file or directory");
  put(path, "0123456789abcdef0123456789abcdef\n");
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  EXPECT_ERROR(JobSecret::fromFile(path),
               name + " expects to be a file that only its owner can use (chmod 600)");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  ASSERT_OK(JobSecret::fromFile(path));
  EXPECT_EQ(JobSecret::fromFile(path)->text(), "0123456789abcdef0123456789abcdef");
  put(path, "\n");
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  EXPECT_ERROR(JobSecret::fromFile(path), name + " is empty");
}

TEST(Secret, PartsOfAMacAreKeptApart) {
  auto mac = [](const std::string &a, const std::string &b) {
    return Mac("key", "purpose").add(a.data(), a.size()).add(b.data(), b.size()).value();
  };
  EXPECT_TRUE(areEqual(mac("ab", "c"), mac("ab", "c")));
  EXPECT_FALSE(areEqual(mac("ab", "c"), mac("a", "bc")));
  EXPECT_FALSE(areEqual(mac("ab", "c"), Mac("kez", "purpose").add("ab", 2).add("c", 1).value()));
  EXPECT_FALSE(areEqual(mac("ab", "c"), Mac("key", "other").add("ab", 2).add("c", 1).value()));
}

} // namespace
