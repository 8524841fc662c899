//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace braid::runtime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

using Names = std::vector<std::string>;

Names expanded(const std::string &list) {
  Result<Names> hosts = expandNodeList(list);
  EXPECT_TRUE(hosts.ok()) << hosts.status().message();
  return hosts.ok() ? *hosts : Names();
}

TEST(NodeList, Names) {
  EXPECT_THAT(expanded("a"), ElementsAre("a"));
  EXPECT_THAT(expanded("a,b-c.d,10.0.0.1,fe80::1%eth0"),
              ElementsAre("a", "b-c.d", "10.0.0.1", "fe80::1%eth0"));
}

TEST(NodeList, Ranges) {
  EXPECT_THAT(expanded("gpu[01-03,7],x"), ElementsAre("gpu01", "gpu02", "gpu03", "gpu7", "x"));
  EXPECT_THAT(expanded("n[8-11]"), ElementsAre("n8", "n9", "n10", "n11"));
  EXPECT_THAT(expanded("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(expanded("n[099-101]"), ElementsAre("n099", "n100", "n101"));
  EXPECT_THAT(expanded("n[5]"), ElementsAre("n5"));
  EXPECT_THAT(expanded("n[0-0]-ib"), ElementsAre("n0-ib"));
  EXPECT_THAT(expanded("r[1-2]n[3-4]x"), ElementsAre("r1n3x", "r1n4x", "r2n3x", "r2n4x"));
  EXPECT_THAT(expanded("[1-2]"), ElementsAre("1", "2"));
}

TEST(NodeList, Malformed) {
  for (const char *list : {"",       ",",       "a,",
                           ",a",     "a,,b",    "a[",
                           "a]",     "a[]",     "a[1",
                           "a[1,",   "a[1-",    "a[1-]",
                           "a[-1]",  "a[1--2]", "a[1,,2]",
                           "a[3-1]", "a[x]",    "a[1-x]",
                           "a[1;2]", "a[[1]]",  "a[1[2]]",
                           "a b",    "-a",      "a/b",
                           "a\n",    "a[ 1]",   "a[1234567890123456789]"}) {
    Result<Names> hosts = expandNodeList(list);
    EXPECT_FALSE(hosts.ok()) << list;
    EXPECT_THAT(hosts.status().message(), HasSubstr("node list")) << list;
  }
}

TEST(NodeList, Limits) {
  EXPECT_EQ(expanded("a[1-65536]").size(), 65536u);
  for (const char *list : {"a[1-65537]", "a[1-65536],b", "a[0-999999999999999999]",
                           "a[1-999]b[1-999]", "a[1-65536,1]"})
    EXPECT_THAT(expandNodeList(list).status().message(), HasSubstr("more than 65536 hosts"))
        << list;
  EXPECT_THAT(expandNodeList(std::string((1 << 20) + 1, 'a')).status().message(),
              HasSubstr("expects at most 1048576 characters"));
  EXPECT_THAT(expandNodeList(std::string(256, 'a')).status().message(),
              HasSubstr("expects names of hosts"));
}

std::string hostsText(const std::string &text) {
  Result<std::vector<HostRanks>> hosts = parseHosts(text);
  if (!hosts.ok())
    return hosts.status().message();
  std::string joined;
  for (const HostRanks &host : *hosts)
    joined += host.host + "*" + std::to_string(host.ranks) + " ";
  return joined;
}

TEST(Hosts, WithRanks) {
  EXPECT_EQ(hostsText("a"), "a*1 ");
  EXPECT_EQ(hostsText("a,b:2,me@c:3"), "a*1 b*2 me@c*3 ");
  EXPECT_EQ(hostsText("[::1],[fd77::2]:4,me@[::3]:5"), "::1*1 fd77::2*4 me@::3*5 ");
  EXPECT_EQ(hostsText("a:65535,b"), "a*65535 b*1 ");
}

TEST(Hosts, Malformed) {
  for (const char *text : {"", ",", "a,", "a,,b", "a:", ":2", "[::1", "[::1]x", "[::1]:", "[]:2",
                           "-oProxyCommand=x", "me@-x", "-x@a", "@a", "a@", "a b", "a;b"})
    EXPECT_THAT(hostsText(text), HasSubstr("expects hosts as HOST, HOST:RANKS or [ADDRESS]:RANKS"))
        << text;
  for (const char *ranks : {"0", "-1", "x", "1x", "65537", "99999999999999999999", "::1"})
    EXPECT_THAT(hostsText(std::string("a:") + ranks), HasSubstr("expects 1 to 65536 ranks on host"))
        << ranks;
  EXPECT_THAT(hostsText("a,b,a:2"), HasSubstr("host 'a' is given twice"));
  EXPECT_THAT(hostsText("a,me@a"), HasSubstr("host 'a' is given twice"));
  EXPECT_THAT(hostsText("a:65535,b:2"), HasSubstr("at most 65536 ranks in all"));
}

TEST(Rendezvous, Forms) {
  for (const char *text : {"tcp://node1:1", "tcp://10.0.0.1:65535", "tcp://[fe80::1%eth0]:29500",
                           "file:/shared/meet here"}) {
    Result<Rendezvous> parsed = parseRendezvous(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed->text(), text);
  }
}

TEST(Rendezvous, Malformed) {
  for (const char *text :
       {"",           "node1:1",     "udp://a:1",  "tcp://",        "tcp://a",
        "tcp://:1",   "tcp://a:",    "tcp://a:0",  "tcp://a:65536", "tcp://a:1x",
        "tcp://a:-1", "tcp://::1:5", "tcp://[]:5", "tcp://[::1]",   "tcp://[::1:5",
        "tcp://-a:1", "tcp://a b:1", "file:",      "file:relative", "FILE:/a"})
    EXPECT_THAT(parseRendezvous(text).status().message(),
                HasSubstr("expects a rendezvous as tcp://HOST:PORT"))
        << text;
}

} // namespace
