//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ArenaExchange.h"
#include "Secret.h"
#include "Wire.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace braid::runtime::net {

namespace {

class Descriptor {
public:
  explicit Descriptor(int number = -1) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }
  int get() const { return number; }
  bool isOpen() const { return number >= 0; }

private:
  int number;
};

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr int64_t kRetryNs = 2000000;
constexpr int64_t kLookNs = 100000000; ///< how often the state of the job is asked for

/// A memory file of a size that does not change.
Result<Descriptor> makeFile(size_t bytes, size_t needed) {
  if (needed > availableMemory())
    return Status::error("cannot share ", needed, " bytes, the system has ", availableMemory(),
                         " available");
  Descriptor file(memfd_create("braid-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.isOpen() || ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
    return Status::error("cannot make a memory file of ", bytes, " bytes: ", std::strerror(errno));
  return file;
}

Result<Descriptor> makeSocket() {
  Descriptor file(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return file.isOpen() ? Result<Descriptor>(std::move(file))
                       : Status::error("cannot make a local socket: ", std::strerror(errno));
}

bool isOfThisUser(int socket, uid_t &user) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
    return false;
  user = credentials.uid;
  return user == geteuid();
}

class Exchange {
public:
  Exchange(const ArenaOptions &options, size_t bytes)
      : options(options), bytes(std::max<size_t>(bytes, 1)), arenas(options.ranks.size()),
        requests(options.ranks.size()), isServed(options.ranks.size()),
        end(nowNs() + static_cast<int64_t>(options.timeLimitSeconds * 1e9)) {}

  Result<std::vector<HostMemory>> run() {
    for (size_t i = 0; i < arenas.size(); ++i)
      if (options.ranks[i] == options.rank)
        self = i;
    ASSIGN_OR_RETURN(file, makeFile(bytes, options.neededBytes.value_or(bytes)));
    RETURN_IF_ERROR(arenas[self].mapFile(file.get(), bytes));
    isServed[self] = true;
    if (arenas.size() > 1)
      RETURN_IF_ERROR(listen());
    while (!isDone()) {
      if (options.state)
        RETURN_IF_ERROR(options.state());
      if (nowNs() >= end)
        return Status::error(missing(), " of this host ", numMissing == 1 ? "has" : "have",
                             " not shared memory with rank ", options.rank, " within ",
                             seconds(static_cast<int64_t>(options.timeLimitSeconds * 1e9)),
                             options.remark ? options.remark() : "", Code::rankFailed);
      RETURN_IF_ERROR(step());
    }
    return std::move(arenas);
  }

private:
  Block mac(const char *kind, int64_t from, int64_t to, uint64_t size) const {
    return Mac(options.key, kind)
        .add(&from, sizeof from)
        .add(&to, sizeof to)
        .add(&size, sizeof size)
        .value();
  }

  /// The socket at which a rank gives its memory away.
  socklen_t nameOf(int64_t rank, sockaddr_un &address) const {
    const Block block = mac("braid arena socket", rank, rank, 0);
    std::string name = "braid-";
    for (size_t i = 0; i < 16; ++i) {
      constexpr char kHex[] = "0123456789abcdef";
      const auto byte = std::to_integer<unsigned>(block[i]);
      name += {kHex[byte >> 4], kHex[byte & 15]};
    }
    address = {};
    address.sun_family = AF_UNIX;
    // A first byte of 0: the name is not one of the file system.
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }

  Status listen() {
    sockaddr_un address;
    const socklen_t length = nameOf(options.rank, address);
    ASSIGN_OR_RETURN(listener, makeSocket());
    if (bind(listener.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0)
      return Status::error("rank ", options.rank, " cannot share memory on this host: ",
                           errno == EADDRINUSE ? "another process is this rank"
                                               : std::strerror(errno),
                           Code::rankFailed);
    if (::listen(listener.get(), 128) != 0)
      return Status::error("cannot listen at a local socket: ", std::strerror(errno));
    return {};
  }

  bool isDone() const {
    return std::all_of(isServed.begin(), isServed.end(), [](bool is) { return is; }) &&
           std::all_of(arenas.begin(), arenas.end(),
                       [](const HostMemory &arena) { return arena.data() != nullptr; });
  }

  std::string missing() {
    std::string text;
    numMissing = 0;
    for (size_t i = 0; i < arenas.size(); ++i)
      if (!isServed[i] || !arenas[i].data()) {
        text += (numMissing == 0 ? "" : ", ") + std::to_string(options.ranks[i]);
        ++numMissing;
      }
    return (numMissing == 1 ? "rank " : "ranks ") + text;
  }

  Status step() {
    for (size_t i = 0; i < arenas.size(); ++i)
      if (!arenas[i].data() && !requests[i].isOpen())
        RETURN_IF_ERROR(request(i));
    std::vector<pollfd> entries{{listener.get(), POLLIN, 0}};
    bool anyUnconnected = false;
    for (const Descriptor &file : requests) {
      entries.push_back({file.get(), POLLIN, 0}); // without a descriptor it is passed over
      anyUnconnected |= !file.isOpen();
    }
    for (const Descriptor &file : clients)
      entries.push_back({file.get(), POLLIN, 0});
    // A rank that does not listen yet is tried again.
    const int64_t until = std::min(end, nowNs() + (anyUnconnected ? kRetryNs : kLookNs));
    const int64_t left = std::max<int64_t>(0, until - nowNs());
    if (::poll(entries.data(), entries.size(), static_cast<int>(left / 1000000 + 1)) < 0 &&
        errno != EINTR)
      return Status::error("cannot wait for local sockets: ", std::strerror(errno));
    const size_t numClients = clients.size();
    for (size_t i = numClients; i-- > 0;)
      if (entries[1 + requests.size() + i].revents != 0) {
        serve(clients[i]);
        clients.erase(clients.begin() + static_cast<ptrdiff_t>(i));
      }
    for (size_t i = 0; i < requests.size(); ++i)
      if (entries[1 + i].revents != 0)
        RETURN_IF_ERROR(take(i).within("the memory of rank " + std::to_string(options.ranks[i])));
    if (entries[0].revents != 0)
      accept();
    return {};
  }

  /// Asks a rank for its memory, if it listens already.
  Status request(size_t i) {
    sockaddr_un address;
    const socklen_t length = nameOf(options.ranks[i], address);
    ASSIGN_OR_RETURN(Descriptor file, makeSocket());
    if (connect(file.get(), reinterpret_cast<const sockaddr *>(&address), length) != 0)
      return {};
    uid_t user = 0;
    if (!isOfThisUser(file.get(), user))
      return Status::error("the memory of rank ", options.ranks[i], " is offered by user ", user,
                           ", expects user ", geteuid(), Code::rankFailed);
    const FrameBytes message = encode(ArenaMessage{
        options.rank, 0, mac("braid arena request", options.rank, options.ranks[i], 0)});
    // Its end is noticed when the answer is read.
    (void)send(file.get(), message.data(), message.size(), MSG_NOSIGNAL);
    requests[i] = std::move(file);
    return {};
  }

  void accept() {
    Descriptor client(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    uid_t user = 0;
    if (!client.isOpen() || !isOfThisUser(client.get(), user))
      return;
    // Of those that say nothing the oldest goes.
    if (clients.size() >= 4 * arenas.size() + 16)
      clients.erase(clients.begin());
    clients.push_back(std::move(client));
  }

  /// Gives the memory to whoever shows that it is a rank of this job.
  void serve(const Descriptor &client) {
    std::byte data[kArenaMessageBytes + 1];
    const ssize_t got = recv(client.get(), data, sizeof data, 0);
    Result<ArenaMessage> message = parseArenaMessage(data, got < 0 ? 0 : static_cast<size_t>(got));
    if (!message.ok() || message->bytes != 0 ||
        !areEqual(message->mac, mac("braid arena request", message->rank, options.rank, 0)))
      return;
    const auto found = std::find(options.ranks.begin(), options.ranks.end(), message->rank);
    if (found == options.ranks.end())
      return;
    const FrameBytes answer = encode(
        ArenaMessage{options.rank, bytes, mac("braid arena", options.rank, message->rank, bytes)});
    iovec part{const_cast<std::byte *>(answer.data()), answer.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = file.get();
    std::memcpy(CMSG_DATA(rights), &number, sizeof number);
    if (sendmsg(client.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(answer.size()))
      isServed[static_cast<size_t>(found - options.ranks.begin())] = true;
  }

  /// Receives and maps the memory of a rank.
  Status take(size_t i) {
    std::byte data[kArenaMessageBytes + 1];
    iovec part{data, sizeof data};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    const ssize_t got = recvmsg(requests[i].get(), &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
      return {};
    Descriptor received;
    if (const cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(rights), sizeof number);
      received = Descriptor(number);
    }
    if (got <= 0) {
      // It ended, or it took us for a stranger: it is asked again until the limit.
      requests[i] = Descriptor();
      return {};
    }
    ASSIGN_OR_RETURN(const ArenaMessage message, parseArenaMessage(data, static_cast<size_t>(got)));
    if (message.rank != options.ranks[i] ||
        !areEqual(message.mac, mac("braid arena", message.rank, options.rank, message.bytes)))
      return Status::error("comes from another process", Code::rankFailed);
    struct stat info{};
    const int seals = received.isOpen() ? fcntl(received.get(), F_GET_SEALS) : -1;
    if (seals < 0 || (seals & kSeals) != kSeals || fstat(received.get(), &info) != 0 ||
        message.bytes == 0 || static_cast<uint64_t>(info.st_size) != message.bytes)
      return Status::error("expects to be a memory file of ", message.bytes,
                           " bytes that keeps its size", Code::rankFailed);
    RETURN_IF_ERROR(arenas[i].mapFile(received.get(), message.bytes));
    requests[i] = Descriptor();
    return {};
  }

  const ArenaOptions &options;
  const size_t bytes;
  std::vector<HostMemory> arenas;
  std::vector<Descriptor> requests; ///< to the others
  std::vector<bool> isServed;       ///< the others that have ours
  int64_t end;
  size_t self = 0, numMissing = 0;
  Descriptor file, listener;
  std::vector<Descriptor> clients; ///< that have not said who they are
};

} // namespace

bool canShareArenas() { return makeFile(1, 1).ok() && makeSocket().ok(); }

Result<std::vector<HostMemory>> exchangeArenas(const ArenaOptions &options, size_t bytes) {
  if (std::count(options.ranks.begin(), options.ranks.end(), options.rank) != 1)
    return Status::error("rank ", options.rank, " is not once among the ranks of its host");
  return Exchange(options, bytes).run();
}

} // namespace braid::runtime::net
