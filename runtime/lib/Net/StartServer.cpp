//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Rank 0's side of a start.
//
//===----------------------------------------------------------------------===//
#include "Channel.h"
#include "Port.h"
#include "Starters.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Sync/Counter.h"
#include "runtime/lib/Sync/RunControl.h"
#include "runtime/lib/Sync/SchedulePoint.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <unistd.h>

namespace braid::runtime::net {

namespace {

std::string ranksText(const std::vector<int64_t> &ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
  return text;
}

class Server {
public:
  Server(const JobOptions &options, Hello own)
      : options(options), own(std::move(own)),
        end(nowNs() + static_cast<int64_t>(options.timeLimitSeconds * 1e9)) {
    byRank.resize(static_cast<size_t>(options.size));
  }

  Result<Job> run() {
    const Rendezvous &rendezvous = options.rendezvous;
    RETURN_IF_ERROR(listen(rendezvous));
    atSchedulePoint("listens");
    Result<Job> job = serve(rendezvous.text());
    if (!job.ok())
      refuseAll(job.status().message());
    awaitEnds();
    port.close(nowNs() + 1000000000);
    if (!rendezvous.file.empty())
      unlink(rendezvous.file.c_str());
    return job;
  }

private:
  struct Connection {
    Connection(const JobSecret &secret, Port::Endpoint endpoint, std::string from, int64_t until)
        : endpoint(endpoint), from(std::move(from)), until(until), channel(secret, true) {}
    Port::Endpoint endpoint;
    std::string from; ///< its address
    int64_t until;    ///< when it must have said hello; when it ends, if it is refused
    Channel channel;
    enum { connected, introduced, member, refused } stage = connected;
    bool isReady = false, isTold = false; ///< of the job's failure
    Hello hello;
  };

  Status listen(const Rendezvous &rendezvous) {
    std::vector<SocketAddress> addresses;
    if (rendezvous.file.empty()) {
      ASSIGN_OR_RETURN(addresses, resolve(rendezvous.host, rendezvous.port)
                                      .within("rank 0 cannot listen at " + rendezvous.text()));
    } else {
      ASSIGN_OR_RETURN(SocketAddress address, ownAddress(options.device));
      addresses.push_back(address);
    }
    int error = 0;
    SocketAddress address, bound;
    for (const SocketAddress &one : addresses) {
      address = one;
      error = port.listen(address, bound);
      if (error == 0 || error == EADDRINUSE)
        break;
    }
    if (error == EADDRINUSE)
      return Status::error("rank 0 cannot listen at ", rendezvous.text(),
                           ": the port is taken by another program", Code::rankFailed);
    if (error != 0)
      return Status::error("rank 0 cannot listen at ", rendezvous.text(), ": ",
                           std::strerror(error),
                           " (it expects an address of the host that it is on)", Code::rankFailed);
    if (rendezvous.file.empty())
      return {};
    address.setPort(bound.port());
    return writeAddress(rendezvous.file, options.job, address);
  }

  Result<Job> serve(const std::string &place) {
    Job job;
    ASSIGN_OR_RETURN(session, randomBlock());
    while (numMembers + 1 < options.size) {
      RETURN_IF_ERROR(step());
      if (nowNs() >= end)
        return Status::error(ranksText(missing(&Server::isMember)), " of ", options.size,
                             numMissing() == 1 ? " has" : " have", " not come to ", place,
                             " within ", seconds(limitNs()), notes(), Code::rankFailed);
    }
    job.members.push_back({own.hostId, own.host, own.numaNode, own.addresses});
    for (size_t rank = 1; rank < byRank.size(); ++rank) {
      const Hello &hello = byRank[rank]->hello;
      job.members.push_back({hello.hostId, hello.host, hello.numaNode, hello.addresses});
    }
    atSchedulePoint("before the table");
    sendTable(job.members);
    while (numReady + 1 < options.size) {
      RETURN_IF_ERROR(step());
      if (nowNs() >= end)
        return Status::error(ranksText(missing(&Server::isReady)), " of ", options.size,
                             " did not answer within ", seconds(limitNs()), Code::rankFailed);
    }
    atSchedulePoint("before the others go on");
    for (auto &connection : connections)
      if (connection->stage == Connection::member)
        port.send(connection->endpoint, connection->channel.seal(Go()));
    job.key = sessionKey(options.secret, session);
    return job;
  }

  int64_t limitNs() const { return static_cast<int64_t>(options.timeLimitSeconds * 1e9); }
  bool isMember(size_t rank) const { return byRank[rank] != nullptr; }
  bool isReady(size_t rank) const { return byRank[rank]->isReady; }
  std::vector<int64_t> missing(bool (Server::*has)(size_t rank) const) const {
    std::vector<int64_t> ranks;
    for (size_t rank = 1; rank < byRank.size(); ++rank)
      if (!(this->*has)(rank))
        ranks.push_back(static_cast<int64_t>(rank));
    return ranks;
  }
  size_t numMissing() const { return missing(&Server::isMember).size(); }

  /// Waits, and handles what has come. An error ends the start.
  Status step() {
    int64_t until = end;
    for (const auto &connection : connections)
      if (connection->stage != Connection::member)
        until = std::min(until, connection->until);
    RETURN_IF_ERROR(port.wait(until));
    Status result;
    for (const Port::Arrival &arrival : port.takeArrivals()) {
      Connection *connection = find(arrival.from);
      Status handled = connection ? handle(*connection, arrival.bytes) : Status();
      // What came with it is answered, too.
      if (!handled.ok() && result.ok()) {
        failure = handled.message();
        result = std::move(handled);
      }
    }
    for (const Port::Loss &loss : port.takeLosses()) {
      const Connection *connection = find(loss.endpoint);
      if (connection && connection->stage == Connection::member) {
        if (result.ok())
          result =
              Status::error(describe(connection->hello),
                            " is gone before the job has started: ", loss.why, Code::rankFailed);
        failure = result.message();
        ++numTold; // it does not come again
      }
      if (connection)
        drop(*connection);
    }
    // Those that have ended make room.
    for (const Port::Request &request : port.takeRequests())
      accept(request);
    RETURN_IF_ERROR(std::move(result));
    for (size_t i = connections.size(); i-- > 0;) {
      Connection &connection = *connections[i];
      if (connection.stage == Connection::member || nowNs() < connection.until)
        continue;
      if (connection.stage == Connection::refused)
        drop(connection); // and was counted
      else
        refuse(connection, "said no hello within " +
                               seconds(static_cast<int64_t>(options.helloLimitSeconds * 1e9)));
    }
    return {};
  }

  void accept(const Port::Request &request) {
    std::string name = text(request.from);
    name.resize(name.rfind(':')); // its port says nothing
    connections.push_back(std::make_unique<Connection>(
        options.secret, request.endpoint, std::move(name),
        nowNs() + static_cast<int64_t>(options.helloLimitSeconds * 1e9)));
    // Strangers may open many connections, but no more than these are kept at a time.
    if (connections.size() > 4 * byRank.size() + 64)
      refuse(*connections.back(), "opened too many connections");
  }

  Connection *find(Port::Endpoint endpoint) {
    for (auto &connection : connections)
      if (connection->endpoint == endpoint)
        return connection.get();
    return nullptr;
  }

  void drop(const Connection &connection) {
    port.end(connection.endpoint);
    connections.erase(std::find_if(connections.begin(), connections.end(),
                                   [&](const auto &c) { return c.get() == &connection; }));
  }

  /// Ends one connection, which the others do not notice. `why` goes on "a process at 10.0.0.1
  /// ...".
  void refuse(const Connection &connection, const std::string &why) {
    ++refused[connection.from + " " + why];
    drop(connection);
  }

  /// Tells a process why it is refused. A connection that ends at once could end before this is
  /// read, so it ends when the process ends it, or after kGoodbyeNs.
  void tellRefused(Connection &connection, const std::string &why, FrameBytes refusal) {
    ++refused[connection.from + " " + why];
    port.send(connection.endpoint, std::move(refusal));
    connection.stage = Connection::refused;
    connection.until = nowNs() + kGoodbyeNs;
  }

  /// The last part of a message about missing ranks.
  std::string notes() const {
    std::string text;
    for (const auto &[what, times] : refused)
      text += (text.empty() ? "; refused: a process at " : "; a process at ") + what +
              (times > 1 ? " (" + std::to_string(times) + " times)" : "");
    return text;
  }

  Status handle(Connection &connection, const FrameBytes &bytes) {
    switch (connection.stage) {
    case Connection::connected:
      introduce(connection, bytes);
      return {};
    case Connection::introduced:
      return greet(connection, bytes);
    case Connection::refused:
      return {};
    case Connection::member:
      break;
    }
    // A member that has lost its state of mind, or somebody who writes into its connection.
    Result<Sealed> sealed = parseSealed(bytes.data(), bytes.size());
    if (!sealed.ok() || !connection.channel.isGenuine(bytes.data(), *sealed))
      return {};
    connection.channel.accept();
    Result<Frame> frame = parseFrame(bytes.data(), sealed->bytes);
    if (!frame.ok())
      return frame.status().within(describe(connection.hello) + " sent");
    if (const auto *refusal = std::get_if<Refusal>(&*frame))
      return Status::error(describe(connection.hello), ": ", refusal->text, Code::rankFailed);
    if (!std::holds_alternative<Ready>(*frame) || connection.isReady)
      return Status::error(describe(connection.hello), " sent a frame out of turn",
                           Code::rankFailed);
    connection.isReady = true;
    ++numReady;
    return {};
  }

  void introduce(Connection &connection, const FrameBytes &bytes) {
    Result<Frame> frame = parseFrame(bytes.data(), bytes.size());
    const auto *introduction = frame.ok() ? std::get_if<Introduction>(&*frame) : nullptr;
    Result<Block> nonce = randomBlock();
    if (!introduction || !nonce.ok()) {
      refuse(connection,
             introduction ? nonce.status().message() : "sent bytes that are no introduction");
      return;
    }
    if (introduction->version != options.version) {
      const std::string versions = std::to_string(introduction->version) +
                                   " of the protocol, rank 0 speaks version " +
                                   std::to_string(options.version);
      tellRefused(connection, "speaks version " + versions,
                  encode(Refusal{"this process speaks version " + versions}));
      return;
    }
    connection.channel.clientNonce = introduction->nonce;
    connection.channel.serverNonce = *nonce;
    connection.stage = Connection::introduced;
    port.send(connection.endpoint, connection.channel.seal(Challenge{*nonce}));
  }

  Status greet(Connection &connection, const FrameBytes &bytes) {
    Result<Sealed> sealed = parseSealed(bytes.data(), bytes.size());
    Result<Frame> frame =
        sealed.ok() ? parseFrame(bytes.data(), sealed->bytes) : Result<Frame>(sealed.status());
    const auto *hello = frame.ok() ? std::get_if<Hello>(&*frame) : nullptr;
    if (!hello) {
      // It gave up as the challenge was not sealed with its secret, and waits until this is read.
      Result<Frame> plain = parseFrame(bytes.data(), bytes.size());
      if (plain.ok() && std::holds_alternative<Refusal>(*plain))
        tellRefused(connection, "has another job secret", encode(Refusal{"another secret"}));
      else
        refuse(connection, "sent bytes that are no hello");
      return {};
    }
    if (!connection.channel.isGenuine(bytes.data(), *sealed)) {
      const bool isReplay = !areEqual(hello->challenge, connection.channel.serverNonce) &&
                            connection.channel.isGenuine(bytes.data(), *sealed, hello->challenge);
      refuse(connection,
             isReplay ? "repeated the hello of an earlier connection" : "has another job secret");
      return {};
    }
    connection.channel.accept();
    connection.hello = *hello;
    if (hello->job != options.job) {
      const std::string jobs = "belongs to job '" + hello->job + "', ";
      tellRefused(connection, jobs + "this is job '" + options.job + "'",
                  connection.channel.seal(Refusal{describe(*hello) + " " + jobs +
                                                  "rank 0 to job '" + options.job + "'"}));
      return {};
    }
    connection.stage = Connection::member;
    if (!failure.empty()) {
      tellFailure(connection);
      return {};
    }
    RETURN_IF_ERROR(compare(*hello, own));
    if (hello->rank == 0)
      return rankTwice(own, *hello);
    if (const Connection *other = byRank[static_cast<size_t>(hello->rank)])
      return rankTwice(other->hello, *hello);
    byRank[static_cast<size_t>(hello->rank)] = &connection;
    ++numMembers;
    return {};
  }

  void sendTable(const std::vector<Member> &members) {
    for (size_t first = 0; first < members.size();) {
      Table table{session, options.size, static_cast<int64_t>(first), {}};
      for (size_t bytes = 0; first < members.size(); ++first) {
        bytes += encodedBytes(members[first]);
        if (!table.members.empty() && bytes > kMaxFrameBytes - 1024)
          break;
        table.members.push_back(members[first]);
      }
      for (auto &connection : connections)
        if (connection->stage == Connection::member)
          port.send(connection->endpoint, connection->channel.seal(table));
    }
  }

  void refuseAll(const std::string &why) {
    failure = why;
    for (auto &connection : connections)
      if (connection->stage == Connection::member && !connection->isTold)
        tellFailure(*connection);
  }
  void tellFailure(Connection &connection) {
    port.send(connection.endpoint, connection.channel.seal(Refusal{failure}));
    connection.isTold = true;
    ++numTold;
  }

  /// Lets the members end their connections first, for a second at most, as they do when they have
  /// read what was said last. If the start has failed, ranks that come meanwhile are told why,
  /// while those are missing that may still come within the limit.
  void awaitEnds() {
    const int64_t until = nowNs() + 1000000000, lateUntil = std::min(until, end);
    auto isMember = [](const auto &connection) { return connection->stage == Connection::member; };
    for (;;) {
      const bool hasMembers = std::any_of(connections.begin(), connections.end(), isMember),
                 mayCome = !failure.empty() && numTold + 1 < options.size && nowNs() < lateUntil;
      if (nowNs() >= until || (!hasMembers && !mayCome) ||
          !port.wait(mayCome ? lateUntil : until).ok())
        return;
      takeWhatCame();
    }
  }

  /// After the start: tells those that say hello why it has failed, and drops what has ended.
  void takeWhatCame() {
    for (const Port::Request &request : port.takeRequests())
      accept(request);
    for (const Port::Arrival &arrival : port.takeArrivals())
      if (Connection *connection = find(arrival.from); connection && !failure.empty())
        (void)handle(*connection, arrival.bytes); // who it is from is told already
    for (const Port::Loss &loss : port.takeLosses())
      if (const Connection *connection = find(loss.endpoint))
        drop(*connection);
  }

  const JobOptions &options;
  Hello own;
  int64_t end;
  Port port;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<Connection *> byRank; ///< that have said hello
  Block session{};
  int64_t numMembers = 0, numReady = 0;
  std::string failure;                    ///< why the start has failed; empty: it has not
  int64_t numTold = 0;                    ///< that know of it
  std::map<std::string, int64_t> refused; ///< why, and how often
};

} // namespace

Result<Job> serveStart(const JobOptions &options, Hello own) {
  return Server(options, std::move(own)).run();
}

} // namespace braid::runtime::net
