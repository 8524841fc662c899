//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "runtime/lib/Net/ArenaExchange.h"
#include "ArenaTesting.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Secret.h"
#include "runtime/lib/Net/Wire.h"

#include <cstddef>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

using namespace braid::runtime;
using namespace braid::runtime::net;
using namespace braid::runtime::net::testing;
using namespace braid::runtime::testing;

namespace {

size_t openDescriptors() {
  auto entries = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

TEST(ArenaExchange, EveryRankReadsAndWritesAllArenas) {
  const std::vector<int64_t> ranks{3, 5, 8};
  Board board;
  RankProcessesOfTest processes(3, [&](int64_t position) {
    auto run = [&]() -> Status {
      const auto own = static_cast<size_t>(position);
      const size_t descriptors = openDescriptors();
      // Sizes differ; one is of huge pages.
      ASSIGN_OR_RETURN(std::vector<HostMemory> arenas,
                       exchangeArenas(optionsOf(board, ranks[own], ranks),
                                      own == 1 ? (size_t(5) << 20) + 7 : 1000 + own));
      if (openDescriptors() != descriptors)
        return Status::error("descriptors are left");
      if (arenas[0].bytes() != 1000 || arenas[1].bytes() != (size_t(5) << 20) + 7 ||
          arenas[2].bytes() != 1002)
        return Status::error("other sizes");
      for (const HostMemory &arena : arenas)
        for (size_t at : {size_t(0), arena.bytes() - 1})
          if (arena.data()[at] != std::byte(0))
            return Status::error("an arena is not zeroed");
      board.meet("mapped", position, 3);
      RETURN_IF_ERROR(arenas[own].touch(0, arenas[own].bytes()));
      // Each writes a byte of its own into each arena, at the beginning and at the end.
      for (const HostMemory &arena : arenas) {
        arena.data()[own] = static_cast<std::byte>(own + 1);
        arena.data()[arena.bytes() - 1 - own] = static_cast<std::byte>(own + 11);
      }
      board.meet("written", position, 3);
      for (const HostMemory &arena : arenas)
        for (size_t i = 0; i < 3; ++i)
          if (arena.data()[i] != static_cast<std::byte>(i + 1) ||
              arena.data()[arena.bytes() - 1 - i] != static_cast<std::byte>(i + 11))
            return Status::error("what rank ", ranks[i], " wrote is not here");
      return {};
    };
    return text(run());
  });
  for (int64_t rank = 0; rank < 3; ++rank)
    EXPECT_EQ(processes.result(rank), "done");
}

TEST(ArenaExchange, OneRankAlone) {
  Board board;
  auto arenas = exchangeArenas(optionsOf(board, 4, {4}), 100);
  ASSERT_OK(arenas);
  EXPECT_EQ((*arenas)[0].bytes(), 100U);
  EXPECT_ERROR(exchangeArenas(optionsOf(board, 4, {1, 2}), 100),
               "rank 4 is not once among the ranks of its host");
}

TEST(ArenaExchange, MissingRanksAreNamed) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    return text(exchangeArenas(optionsOf(board, rank, {0, 1, 2, 3}, 0.7), 100).status());
  });
  for (int64_t rank : {0, 1})
    EXPECT_EQ(processes.result(rank), "ranks 2, 3 of this host have not shared memory with rank " +
                                          std::to_string(rank) + " within 0.7 s");
}

TEST(ArenaExchange, AKilledRankIsNamed) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    ArenaOptions options = optionsOf(board, rank, {0, 1}, 2);
    if (rank == 1) // so it does not end by itself
      options.ranks = {0, 1, 2}, options.timeLimitSeconds = 60;
    else
      board.read("killed");
    return text(exchangeArenas(options, 100).status());
  });
  sleepFor(0.3);
  processes.signal(1, SIGKILL);
  EXPECT_EQ(processes.result(1), "signal 9");
  board.write("killed", "");
  EXPECT_EQ(processes.result(0),
            "rank 1 of this host has not shared memory with rank 0 within 2.0 s");
}

TEST(ArenaExchange, ARankTwice) {
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t process) {
    if (process == 1)
      sleepFor(0.3);
    return text(exchangeArenas(optionsOf(board, 0, {0, 1}, 1), 100).status());
  });
  EXPECT_EQ(processes.result(1),
            "rank 0 cannot share memory on this host: another process is this rank");
}

TEST(ArenaExchange, MoreThanThereIs) {
  Board board;
  EXPECT_ERROR_HAS(exchangeArenas(optionsOf(board, 0, {0}), size_t(1) << 60),
                   "cannot share 1152921504606846976 bytes, the system has ");
}

TEST(ArenaExchange, UsersAreKeptApart) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root can be two users";
  Board board;
  RankProcessesOfTest processes(2, [&](int64_t rank) {
    if (rank == 1 && setuid(65534) != 0)
      return std::string("setuid");
    return text(exchangeArenas(optionsOf(board, rank, {0, 1}, 1), 100).status());
  });
  // Whoever comes second finds the other; the first waits in vain.
  const std::string zero = processes.result(0), one = processes.result(1);
  EXPECT_TRUE(zero == "the memory of rank 1 is offered by user 65534, expects user 0" ||
              one == "the memory of rank 0 is offered by user 0, expects user 65534")
      << zero << "\n"
      << one;
  EXPECT_NE(zero, "done");
  EXPECT_NE(one, "done");
}

/// Offers a file as rank 1's memory, at the socket where rank 1 would.
int offer(const std::string &key, int file, uint64_t bytes) {
  auto mac = [&](const char *kind, int64_t from, int64_t to, uint64_t size) {
    return Mac(key, kind)
        .add(&from, sizeof from)
        .add(&to, sizeof to)
        .add(&size, sizeof size)
        .value();
  };
  const Block name = mac("braid arena socket", 1, 1, 0);
  std::string path = "braid-";
  for (size_t i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(name[i]));
    path += digits;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  if (bind(listener, reinterpret_cast<const sockaddr *>(&address),
           static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size())) != 0 ||
      listen(listener, 1) != 0)
    return -1;
  const int client = accept(listener, nullptr, nullptr);
  std::byte request[100];
  (void)!recv(client, request, sizeof request, 0);
  const FrameBytes answer = encode(ArenaMessage{1, bytes, mac("braid arena", 1, 0, bytes)});
  iovec part{const_cast<std::byte *>(answer.data()), answer.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (file >= 0) {
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &file, sizeof file);
  }
  const bool sent = sendmsg(client, &header, 0) > 0;
  sleepFor(0.5);
  return sent ? 0 : -1;
}

TEST(ArenaExchange, MemoryThatMayShrinkIsRefused) {
  enum class Kind { none, unsealed, otherSize, ordinaryFile };
  for (Kind kind : {Kind::none, Kind::unsealed, Kind::otherSize, Kind::ordinaryFile}) {
    Board board;
    RankProcessesOfTest processes(2, [&](int64_t rank) -> std::string {
      const ArenaOptions options = optionsOf(board, rank, {0, 1}, 5);
      if (rank == 0)
        return text(exchangeArenas(options, 100).status());
      int file = -1;
      if (kind == Kind::ordinaryFile) {
        board.write("file", std::string(4096, '\0'));
        file = open(board.path("file").c_str(), O_RDWR);
      } else if (kind != Kind::none) {
        file = memfd_create("test", MFD_ALLOW_SEALING);
        (void)!ftruncate(file, kind == Kind::otherSize ? 100 : 4096);
        if (kind == Kind::otherSize)
          fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
      }
      return offer(options.key, file, 4096) == 0 ? "done" : "not offered";
    });
    EXPECT_EQ(processes.result(0),
              "the memory of rank 1: expects to be a memory file of 4096 bytes "
              "that keeps its size");
    EXPECT_EQ(processes.result(1), "done");
  }
}

} // namespace
