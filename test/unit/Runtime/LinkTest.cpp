//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/Link.h"
#include "ProcessTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Networks.h"

#include <csignal>
#include <cstring>
#include <numeric>
#include <sys/resource.h>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::testing;
using ::testing::MatchesRegex;

namespace {

using Work = std::function<Status(Link &)>;

Status waitFor(Link &link, const Transfer &transfer, double seconds = 20, int64_t latenessNs = 0) {
  for (const int64_t until = nowNs() + static_cast<int64_t>(seconds * kSecond);
       !transfer.done() && nowNs() < until;)
    RETURN_IF_ERROR(link.progress(until, latenessNs));
  return transfer.done() ? transfer.status() : Status::error("nothing came");
}

/// A link of each rank to all others, and its work. Their hosts are called "host0", ...
Status onLink(const Board &board, int64_t rank, int64_t ranks, const Work &work) {
  ASSIGN_OR_RETURN(auto context, openNetworks({}));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> link, Link::create(context, rank, ranks, 100));
  ASSIGN_OR_RETURN(const std::string address, link->address());
  board.write("address" + std::to_string(rank), address);
  for (int64_t peer = 0; peer < ranks; ++peer)
    if (peer != rank)
      RETURN_IF_ERROR(link->connect(peer, board.read("address" + std::to_string(peer)),
                                    "host" + std::to_string(peer)));
  RETURN_IF_ERROR(work(*link));
  return link->close(nowNs() + 5 * kSecond);
}

std::string text(const Status &status) { return status.ok() ? "done" : status.message(); }

/// Waits until all ranks come here, and moves messages meanwhile.
void meet(const Board &board, Link &link, const std::string &name) {
  board.write(name + std::to_string(link.rank()), "");
  for (int64_t peer = 0; peer < link.ranks(); ++peer)
    while (!std::filesystem::exists(board.path(name + std::to_string(peer))))
      (void)link.progress(nowNs() + kSecond / 1000);
}

void expectDone(int64_t ranks, const std::function<Status(const Board &, Link &)> &work) {
  Board board;
  RankProcessesOfTest processes(ranks, [&](int64_t rank) {
    return text(onLink(board, rank, ranks, [&](Link &link) { return work(board, link); }));
  });
  for (int64_t rank = 0; rank < ranks; ++rank)
    EXPECT_EQ(processes.result(rank), "done") << "rank " << rank;
}

std::vector<uint64_t> pattern(size_t count, uint64_t seed) {
  std::vector<uint64_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = (seed + i) * 0x9e3779b97f4a7c15u;
  return values;
}

TEST(Link, MessagesOfAllSizesGoBothWays) {
  expectDone(2, [](const Board &, Link &link) -> Status {
    const int64_t peer = 1 - link.rank();
    // Beyond 512 KiB a message waits for its receive.
    for (size_t count : {0, 1, 3, 100, 1000, 8191, 8192, 65535, 65536, 65537, 100000, 3000000}) {
      const std::vector<uint64_t> mine = pattern(count, static_cast<uint64_t>(link.rank()));
      std::vector<uint64_t> theirs(count + 1, 7);
      Transfer out, in;
      link.receive(in, peer, count, theirs.data(), count * 8);
      link.send(out, peer, count, mine.data(), count * 8);
      RETURN_IF_ERROR(waitFor(link, out));
      RETURN_IF_ERROR(waitFor(link, in));
      std::vector<uint64_t> expected = pattern(count, static_cast<uint64_t>(peer));
      expected.push_back(7);
      if (theirs != expected)
        return Status::error("wrong bytes in a message of ", count * 8);
    }
    return {};
  });
}

/// Copies what it is asked to read, or refuses to.
struct CopyingReader final : Transfer::Reader {
  explicit CopyingReader(size_t bytes, bool mayRead) : copy(bytes), mayRead(mayRead) {}
  bool read(const std::byte *bytes) override {
    ++asked;
    if (mayRead)
      std::memcpy(copy.data(), bytes, copy.size());
    return mayRead;
  }
  std::vector<std::byte> copy;
  bool mayRead;
  int asked = 0;
};

TEST(Link, ReadersTakeMessagesWhereTheyCame) {
  expectDone(2, [](const Board &board, Link &link) -> Status {
    constexpr size_t kCount = 8192, kBytes = kCount * 8, kLong = 200000;
    const std::vector<uint64_t> sent = pattern(kLong, 1);
    // Tags: posted before and after the message comes, read and refused; one that is rendezvous.
    Transfer transfers[5];
    if (link.rank() == 0) {
      for (uint64_t tag : {0, 1})
        link.send(transfers[tag], 1, tag, sent.data(), kBytes);
      meet(board, link, "early");
      meet(board, link, "posted");
      for (uint64_t tag : {2, 3})
        link.send(transfers[tag], 1, tag, sent.data(), kBytes);
      link.send(transfers[4], 1, 4, sent.data(), kLong * 8);
      for (Transfer &transfer : transfers)
        RETURN_IF_ERROR(waitFor(link, transfer));
      return {};
    }
    std::vector<CopyingReader> readers;
    std::vector<std::vector<uint64_t>> memory;
    for (uint64_t tag = 0; tag < 5; ++tag) {
      const size_t count = tag == 4 ? kLong : kCount;
      readers.emplace_back(count * 8, tag % 2 == 0);
      memory.emplace_back(count, 7);
    }
    meet(board, link, "early");
    while (link.senderOf(1) < 0)
      RETURN_IF_ERROR(link.progress(nowNs() + kSecond));
    for (uint64_t tag = 0; tag < 5; ++tag)
      link.receive(transfers[tag], 0, tag, memory[tag].data(), memory[tag].size() * 8,
                   &readers[tag]);
    meet(board, link, "posted");
    for (uint64_t tag = 0; tag < 5; ++tag) {
      RETURN_IF_ERROR(waitFor(link, transfers[tag]));
      const CopyingReader &reader = readers[tag];
      const std::vector<uint64_t> expected = pattern(kLong, 1), &got = memory[tag];
      if (reader.asked != (tag == 4 ? 0 : 1))
        return Status::error("the reader of message ", tag, " was asked ", reader.asked, " times");
      const bool isRead = reader.mayRead && tag != 4;
      if (isRead && std::memcmp(reader.copy.data(), expected.data(), kBytes) != 0)
        return Status::error("wrong bytes for the reader of message ", tag);
      for (size_t i = 0; i < got.size(); ++i)
        if (got[i] != (isRead ? 7 : expected[i]))
          return Status::error("wrong memory of message ", tag);
    }
    return {};
  });
}

TEST(Link, TagsAndSendersTellMessagesApart) {
  // Every rank sends to all others before anyone receives, and receives in another order.
  expectDone(4, [](const Board &board, Link &link) -> Status {
    constexpr uint64_t kTags = 8;
    const auto ranks = static_cast<size_t>(link.ranks());
    std::vector<Transfer> out(ranks * kTags), in(ranks * kTags);
    std::vector<std::vector<uint64_t>> sent(ranks * kTags), got(ranks * kTags);
    // Up to 512 KiB: all of them come early.
    auto size = [](uint64_t tag) { return size_t(4) << (2 * tag); };
    for (size_t peer = 0; peer < ranks; ++peer)
      for (uint64_t tag = 0; tag < kTags; ++tag) {
        const size_t i = peer * kTags + tag;
        if (static_cast<int64_t>(peer) == link.rank())
          continue;
        sent[i] = pattern(size(tag), static_cast<uint64_t>(link.rank()) * 100 + tag);
        link.send(out[i], static_cast<int64_t>(peer), tag << 56 | 5, sent[i].data(), size(tag) * 8);
      }
    meet(board, link, "sent");
    for (uint64_t tag = kTags; tag-- > 0;)
      for (size_t peer = 0; peer < ranks; ++peer) {
        const size_t i = peer * kTags + tag;
        if (static_cast<int64_t>(peer) == link.rank())
          continue;
        got[i].resize(size(tag));
        link.receive(in[i], static_cast<int64_t>(peer), tag << 56 | 5, got[i].data(),
                     size(tag) * 8);
      }
    for (size_t i = 0; i < ranks * kTags; ++i) {
      if (static_cast<int64_t>(i / kTags) == link.rank())
        continue;
      RETURN_IF_ERROR(waitFor(link, in[i]));
      RETURN_IF_ERROR(waitFor(link, out[i]));
      if (got[i] != pattern(got[i].size(), i / kTags * 100 + i % kTags))
        return Status::error("wrong bytes from rank ", i / kTags);
    }
    return {};
  });
}

TEST(Link, MessagesOfOneTagArriveInOrder) {
  expectDone(2, [](const Board &, Link &link) -> Status {
    // Sizes below and above that of a rendezvous take turns.
    constexpr size_t kMessages = 40;
    std::vector<std::vector<uint64_t>> values(kMessages);
    std::vector<Transfer> transfers(kMessages);
    for (size_t i = 0; i < kMessages; ++i) {
      values[i] = pattern(i % 2 == 0 ? 10 : 100000, i);
      const size_t bytes = values[i].size() * 8;
      if (link.rank() == 0) {
        link.send(transfers[i], 1, 3, values[i].data(), bytes);
      } else {
        values[i].assign(values[i].size(), 0);
        link.receive(transfers[i], 0, 3, values[i].data(), bytes);
      }
    }
    for (size_t i = 0; i < kMessages; ++i) {
      RETURN_IF_ERROR(waitFor(link, transfers[i]));
      if (values[i] != pattern(values[i].size(), i))
        return Status::error("message ", i, " is another one");
    }
    return {};
  });
}

/// How often the calling thread has given up its processor.
int64_t sleeps() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

TEST(Link, AWaitThatMayBeLateSleepsSeldom) {
  expectDone(2, [](const Board &board, Link &link) -> Status {
    // Single messages, one every 0.2 ms.
    constexpr size_t kMessages = 1000;
    std::vector<uint64_t> values(kMessages);
    std::vector<Transfer> transfers(kMessages);
    const bool sends = link.rank() == 0;
    for (size_t i = 0; i < kMessages && !sends; ++i)
      link.receive(transfers[i], 0, i, &values[i], 8);
    meet(board, link, "posted");
    const int64_t begin = nowNs(), sleptBefore = sleeps();
    for (size_t i = 0; i < kMessages; ++i) {
      if (sends) {
        values[i] = i;
        link.send(transfers[i], 1, i, &values[i], 8);
        sleepFor(0.0002);
        RETURN_IF_ERROR(link.progress(0));
        continue;
      }
      // No lateness is longer than 2 ms.
      RETURN_IF_ERROR(waitFor(link, transfers[i], 20, 100 * kSecond));
      if (values[i] != i)
        return Status::error("message ", i, " is another one");
    }
    // A wait sleeps so long, and once more until something comes.
    const int64_t slept = sleeps() - sleptBefore, most = 2 * (nowNs() - begin) / 2000000 + 20;
    if (!sends && slept > most)
      return Status::error("slept ", slept, " times in place of at most ", most);
    for (const Transfer &transfer : transfers)
      RETURN_IF_ERROR(waitFor(link, transfer));
    meet(board, link, "received");
    return {};
  });
}

TEST(Link, ASignalEndsAWaitThatMayBeLate) {
  expectDone(2, [](const Board &board, Link &link) -> Status {
    meet(board, link, "connected");
    if (link.rank() == 1)
      return {};
    std::thread other([&] {
      sleepFor(0.05);
      link.signal();
    });
    const int64_t begin = nowNs();
    const Status status = link.progress(begin + 20 * kSecond, 20 * kSecond);
    other.join();
    RETURN_IF_ERROR(status);
    return nowNs() - begin < 10 * kSecond ? Status() : Status::error("the signal was slept over");
  });
}

TEST(Link, AnotherSizeIsAnError) {
  for (size_t sent : {8, 8000000})
    for (const bool early : {false, true}) {
      Board board;
      RankProcessesOfTest processes(2, [&](int64_t rank) {
        return text(onLink(board, rank, 2, [&](Link &link) -> Status {
          std::vector<std::byte> values(sent);
          Transfer transfer;
          if (rank == 0) {
            link.send(transfer, 1, 1, values.data(), sent);
            meet(board, link, "sent");
            (void)waitFor(link, transfer);
            meet(board, link, "received");
            return {};
          }
          if (!early)
            link.receive(transfer, 0, 1, values.data(), 4);
          meet(board, link, "sent");
          if (early)
            link.receive(transfer, 0, 1, values.data(), 4);
          Status status = waitFor(link, transfer);
          meet(board, link, "received");
          return status;
        }));
      });
      EXPECT_EQ(processes.result(0), "done");
      EXPECT_EQ(processes.result(1),
                "rank 0 (host0) sent " + std::to_string(sent) + " bytes where rank 1 expects 4");
    }
}

TEST(Link, AKilledPeerIsAnErrorOfEveryWait) {
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t rank) {
    return text(onLink(board, rank, 3, [&](Link &link) -> Status {
      int value = 0;
      Transfer out[3], in[3];
      // A first message makes the connections.
      for (int64_t peer = 0; peer < 3; ++peer)
        if (peer != rank) {
          link.receive(in[peer], peer, 0, &value, sizeof value);
          link.send(out[peer], peer, 0, &rank, sizeof value);
        }
      for (int64_t peer = 0; peer < 3; ++peer)
        if (peer != rank)
          RETURN_IF_ERROR(waitFor(link, in[peer]));
      meet(board, link, "connected");
      if (rank == 2)
        sleepFor(60);
      std::vector<std::byte> large(size_t(1) << 24);
      Transfer receive, send, other;
      link.receive(receive, 2, 1, large.data(), large.size());
      link.send(send, 2, 1, large.data(), large.size());
      const Status status = waitFor(link, receive);
      if (waitFor(link, send).ok())
        return Status::error("a killed rank has received");
      // The others still reach each other, and the lost one stays lost.
      link.send(out[1 - rank], 1 - rank, 2, &value, sizeof value);
      link.receive(in[1 - rank], 1 - rank, 2, &value, sizeof value);
      RETURN_IF_ERROR(waitFor(link, in[1 - rank]));
      link.send(other, 2, 3, &value, sizeof value);
      if (!other.done() || other.status().message() != status.message())
        return Status::error("a lost peer is another error later");
      if (link.state(2).message() != status.message() || !link.state(1 - rank).ok())
        return Status::error("another peer is lost");
      meet(board, link, "told" + std::to_string(rank) + "-");
      return status;
    }));
  });
  board.read("connected2");
  sleepFor(0.2);
  processes.signal(2, SIGKILL);
  board.write("told0-1", ""), board.write("told0-2", "");
  board.write("told1-0", ""), board.write("told1-2", "");
  for (int64_t rank : {0, 1})
    EXPECT_THAT(processes.result(rank),
                MatchesRegex("the connection to rank 2 \\(host2\\) is lost: .*"));
  EXPECT_EQ(processes.result(2), "signal 9");
}

TEST(Link, CloseDoesNotWaitForAStoppedPeer) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    return text(onLink(board, rank, 2, [&](Link &link) -> Status {
      int value = 0;
      Transfer out, in;
      link.receive(in, 1 - rank, 0, &value, sizeof value);
      link.send(out, 1 - rank, 0, &value, sizeof value);
      RETURN_IF_ERROR(waitFor(link, in));
      meet(board, link, "connected");
      if (rank == 1)
        sleepFor(60);
      board.read("stopped");
      // More than the buffers of the connection hold.
      std::vector<std::byte> large(size_t(1) << 26);
      std::vector<Transfer> transfers(9);
      for (uint64_t i = 0; i < 8; ++i)
        link.send(transfers[i], 1, i, large.data(), large.size());
      link.receive(transfers[8], 1, 1, &value, sizeof value);
      const Status closed = link.close(nowNs() + kSecond);
      for (const Transfer &transfer : transfers)
        if (!transfer.done() || transfer.status().ok())
          return Status::error("a message to a stopped rank is not ended");
      // Whoever does not know that it is closed may go on to use it.
      Transfer late;
      link.receive(late, 1, 2, &value, sizeof value);
      link.setSpin({});
      link.signal();
      if (!late.done() || link.progress(nowNs()).ok() || !link.close(nowNs()).ok())
        return Status::error("a closed link moves messages");
      return Status::error(closed.ok() ? transfers[8].status().message() : closed.message());
    }));
  });
  board.read("connected1");
  sleepFor(0.2);
  processes.signal(1, SIGSTOP);
  board.write("stopped", "");
  EXPECT_EQ(processes.result(0, 10), "rank 0 closes its connections");
}

TEST(Link, WhatNobodyReceivesIsBounded) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    return text(onLink(board, rank, 2, [&](Link &link) -> Status {
      std::vector<Transfer> transfers(101);
      const uint64_t value = 0; // it lives until all is sent
      if (rank == 0) {
        for (uint64_t i = 0; i < 101; ++i)
          link.send(transfers[i], 1, i, &value, sizeof value);
        meet(board, link, "end");
        return {};
      }
      for (const int64_t until = nowNs() + 20 * kSecond; link.state(0).ok() && nowNs() < until;)
        RETURN_IF_ERROR(link.progress(until));
      meet(board, link, "end");
      return link.state(0);
    }));
  });
  EXPECT_EQ(processes.result(1),
            "rank 0 (host0) has sent 100 messages that nothing receives, of 800 bytes");
}

TEST(Link, StaleMessagesAreDropped) {
  expectDone(2, [](const Board &, Link &link) -> Status {
    std::vector<uint64_t> values(100000, 1);
    Transfer transfers[4];
    if (link.rank() == 0) {
      // Two of a run that failed, then the same of the next run.
      for (uint64_t i = 0; i < 4; ++i)
        link.send(transfers[i], 1, (i / 2) << 32 | i % 2, values.data(), i % 2 == 0 ? 8 : 800000);
      for (Transfer &transfer : transfers)
        RETURN_IF_ERROR(waitFor(link, transfer));
      return {};
    }
    Transfer last;
    link.receive(last, 0, uint64_t(1) << 32, values.data(), 8);
    RETURN_IF_ERROR(waitFor(link, last));
    link.drop([](uint64_t tag) { return tag >> 32 == 0; });
    Transfer other, stale;
    link.receive(other, 0, uint64_t(1) << 32 | 1, values.data(), 800000);
    RETURN_IF_ERROR(waitFor(link, other));
    link.receive(stale, 0, 0, values.data(), 8);
    if (stale.done())
      return Status::error("a stale message was received");
    link.cancel(stale);
    return stale.status().message() == "the receive was taken back" ? Status() : stale.status();
  });
}

TEST(Link, AnotherThreadWakesASleepingOne) {
  expectDone(1, [](const Board &, Link &link) -> Status {
    const int64_t begin = nowNs();
    std::thread other([&] {
      sleepFor(0.1);
      link.signal();
    });
    const Status status = link.progress(begin + 30 * kSecond);
    other.join();
    RETURN_IF_ERROR(status);
    // Far below the limit, however slow the machine is.
    return nowNs() - begin < 20 * kSecond ? Status() : Status::error("it slept to the end");
  });
}

/// Processor time of this process, in seconds.
double processorTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Link, WaitingTakesNoProcessorTime) {
  expectDone(2, [](const Board &board, Link &link) -> Status {
    int value = 0;
    Transfer out, in;
    link.receive(in, 1 - link.rank(), 0, &value, sizeof value);
    link.send(out, 1 - link.rank(), 0, &value, sizeof value);
    RETURN_IF_ERROR(waitFor(link, in));
    meet(board, link, "connected");
    const double begin = processorTime();
    Transfer never;
    link.receive(never, 1 - link.rank(), 9, &value, sizeof value);
    for (const int64_t until = nowNs() + 2 * kSecond; nowNs() < until;)
      RETURN_IF_ERROR(link.progress(until));
    const double used = processorTime() - begin;
    meet(board, link, "slept");
    link.cancel(never);
    return used < 1 ? Status() : Status::error("waiting took ", used, " s of 2");
  });
}

TEST(Link, ControlArrivesApartFromData) {
  expectDone(2, [](const Board &board, Link &link) -> Status {
    std::vector<std::vector<std::byte>> got;
    link.setHandler(
        [&](const std::byte *data, size_t bytes) { got.emplace_back(data, data + bytes); });
    std::vector<std::vector<std::byte>> frames{{}, {std::byte(1)}, {}};
    frames[2].assign(kMaxControlBytes, std::byte(7));
    for (const auto &frame : frames)
      for (const int64_t until = nowNs() + 20 * kSecond;
           !link.sendControl(1 - link.rank(), frame) && nowNs() < until;)
        RETURN_IF_ERROR(link.progress(nowNs() + kSecond / 1000));
    if (link.sendControl(1 - link.rank(), std::vector<std::byte>(kMaxControlBytes + 1)))
      return Status::error("a frame beyond the limit was sent");
    for (const int64_t until = nowNs() + 20 * kSecond; got.size() < 3 && nowNs() < until;)
      RETURN_IF_ERROR(link.progress(until));
    meet(board, link, "got");
    return got == frames ? Status() : Status::error("other frames arrived");
  });
}

/// The signals that have a handler. The C library handles two real-time signals of its own.
std::string caughtSignals() {
  std::string text;
  for (int signal = 1; signal < 32; ++signal) {
    struct sigaction action{};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
      text += " " + std::to_string(signal);
  }
  return text;
}

TEST(Link, LeavesNothingBehind) {
  RankProcessesOfTest process(1, [&](int64_t) {
    auto count = [](const char *folder) {
      auto entries = std::filesystem::directory_iterator(folder);
      return std::distance(begin(entries), end(entries));
    };
    const std::string signals = caughtSignals();
    auto round = [] {
      Result<std::shared_ptr<const UcxContext>> context = openNetworks({});
      if (!context.ok())
        return context.status();
      return Link::create(*context, 0, 1).status();
    };
    if (Status status = round(); !status.ok())
      return status.message();
    const auto files = count("/proc/self/fd");
    for (int i = 0; i < 5; ++i)
      if (Status status = round(); !status.ok())
        return status.message();
    if (caughtSignals() != signals)
      return "handled signals:" + signals + ", then" + caughtSignals();
    if (count("/proc/self/fd") != files)
      return std::string("descriptors are left");
    return std::string("done");
  });
  EXPECT_EQ(process.result(0), "done");
}

TEST(Link, NamesAnUnknownDevice) {
  RankProcessesOfTest process(1, [&](int64_t) {
    NetOptions options;
    options.devices = "nothing0";
    options.transports = "tcp";
    return openNetworks(options).status().message();
  });
  EXPECT_EQ(
      process.result(0),
      "UCX cannot use this host's networks (transports 'tcp', devices 'nothing0'): No such device");
}

} // namespace
