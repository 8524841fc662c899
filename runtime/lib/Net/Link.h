//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Messages of bytes between the processes of a job. A link is one worker of UCX with an endpoint
// to each peer. A process has a link for each queue that communicates, used by the queue's thread,
// and one for control (Control.h): a thread that computes, or a large message in front, delays no
// heartbeat and no other queue, as each link has connections of its own, and no lock is shared.
//
// Messages are UCX's active messages with a header of our own. Compared with UCX's tags it has room
// for sender and tag; a receive fails at once when its peer is lost; and the size of a message is
// compared with the receive's before any byte goes to memory.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_LINK_H
#define BRAID_NET_LINK_H

#include "braid/Base/Status.h"
#include "runtime/lib/Sync/Counter.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid::runtime::net {

class UcxContext;
class Worker;

/// A message on its way, owned by whoever posts it. It neither moves nor ends before it is done.
class Transfer {
public:
  /// Reads what has come of a receive where it lies, at any address, which saves a copy. The bytes
  /// go away when it returns. False if it cannot be done now: they are copied to the receive's
  /// memory then.
  class Reader {
  public:
    virtual bool read(const std::byte *bytes) = 0;

  protected:
    ~Reader() = default;
  };

  Transfer() = default;
  Transfer(const Transfer &) = delete;
  Transfer &operator=(const Transfer &) = delete;
  /// Of a send: its memory may be written. Of a receive: the bytes are there. Or it has failed.
  bool done() const { return state == State::done; }
  const Status &status() const { return result; }

private:
  friend class Link;
  struct Header {
    int64_t sender;
    uint64_t tag, bytes;
  };
  enum class State { idle, posted, moving, done };
  State state = State::idle;
  Header header{};
  int64_t peer = -1;
  void *data = nullptr;
  Reader *reader = nullptr;
  class Link *link = nullptr;
  Status result;
};

/// The largest message of control, in bytes: a frame of 64 KiB, with what RelayedFrames puts in
/// front of it.
constexpr size_t kMaxControlBytes = (size_t(1) << 16) + 64;
/// Bytes of one peer that may wait in memory for their receives. Senders that run ahead need an
/// answer from their receivers now and then.
constexpr size_t kMaxEarlyBytes = size_t(1) << 30;

/// Everything but `signal` is for one thread at a time.
class Link {
public:
  /// The link of a rank among `ranks`. A peer that sends more than `mostEarly` messages that are
  /// not received is lost.
  static Result<std::unique_ptr<Link>> create(std::shared_ptr<const UcxContext> context,
                                              int64_t rank, int64_t ranks,
                                              size_t mostEarly = size_t(1) << 16);
  Link(const Link &) = delete;
  Link &operator=(const Link &) = delete;
  /// Closes within a second.
  ~Link();

  int64_t rank() const { return self; }
  int64_t ranks() const { return static_cast<int64_t>(peers.size()); }
  /// What `connect` of another process expects.
  Result<std::string> address() const;
  /// Connects to a peer; messages call it "rank 3 (HOST)". The connection itself is made with the
  /// first message.
  Status connect(int64_t peer, const std::string &address, const std::string &host);
  /// The same with the first message to this peer, so that only peers that talk to each other cost
  /// memory and time. A peer that is lost before is noticed when it is talked to: what waits for
  /// its messages needs another link that tells.
  void connectLater(int64_t peer, const std::string &address, const std::string &host);
  /// Messages name a rank by this: "rank 3 (host)".
  std::string describe(int64_t peer) const;
  /// An error that names rank and host once the connection to a peer is lost.
  const Status &state(int64_t peer) const;
  /// Gives up the connection to a peer, with this reason, and all that is posted for it.
  void lose(int64_t peer, const Status &reason);
  /// The same for all peers: nothing that is left to send is worth waiting for.
  void giveUp();

  /// Begins to send or receive a message. Sends of one peer and tag arrive in order. A message
  /// whose size differs from its receive's is an error of the receive. What has come from a peer
  /// before it is lost can still be received.
  void send(Transfer &transfer, int64_t to, uint64_t tag, const void *data, size_t bytes);
  /// A `reader` is asked, if there is one, when the message has come in one piece, while the link
  /// makes progress or in `receive` itself.
  void receive(Transfer &transfer, int64_t from, uint64_t tag, void *data, size_t bytes,
               Transfer::Reader *reader = nullptr);
  /// Takes back a receive whose message has not begun to arrive; else does nothing. Whoever waits
  /// no longer then goes on to wait for `done`, or closes the link.
  void cancel(Transfer &receive);
  /// Drops messages that came and were not received, such as those of a run that failed, as far as
  /// `stale` says so of their tag.
  void drop(const std::function<bool(uint64_t tag)> &stale);

  /// A peer that has sent a message of this tag which nothing has received; -1 if none has.
  int64_t senderOf(uint64_t tag) const;

  /// Short messages of control, of at most kMaxControlBytes: they are copied when they are sent,
  /// and given to the handler while the link makes progress.
  using Handler = std::function<void(const std::byte *data, size_t bytes)>;
  void setHandler(Handler handler);
  /// False, and nothing is sent, as long as the last one to this peer has not left, or when the
  /// peer is lost.
  bool sendControl(int64_t to, const std::vector<std::byte> &frame);

  /// How `progress` spins before it sleeps.
  void setSpin(SpinLimit limit);
  /// Moves messages until one of them is done, a peer is lost, a handler was called or `signal`
  /// was, or nowNs() reaches `until`; with `until` 0 it does not wait. All but a signal may be told
  /// late by `latenessNs`, with which a wait takes less of the processor.
  Status progress(int64_t until, int64_t latenessNs = 0);
  /// Makes `progress` return. For any thread.
  void signal();

  /// Sends what is left, ends all connections, and fails what is posted; all of it before nowNs()
  /// reaches `until`. What is posted afterwards fails, too.
  Status close(int64_t until);

private:
  struct Early;
  struct Peer;
  struct Callbacks;
  Link(std::unique_ptr<Worker> worker, int64_t rank, int64_t ranks, size_t mostEarly);
  Status connectNow(int64_t peer);
  void finish(Transfer &transfer, Status status);
  /// The status of a transfer that UCX has ended with this one.
  Status outcome(const Transfer &transfer, int status) const;
  /// Takes a message that has come. Returns whether its data is still needed: it is on its way.
  bool take(Transfer &receive, size_t bytes, void *data, bool isRendezvous);
  void dropEarly(Peer &peer, const std::function<bool(const Early &message)> &stale);
  /// Ends the endpoints of peers that were lost while the worker made progress.
  void abandonLost();
  Peer &at(int64_t peer) const { return *peers[static_cast<size_t>(peer)]; }

  std::unique_ptr<Worker> worker;
  int64_t self;
  size_t mostEarly;
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<Transfer *> moving; ///< UCX sends from their memory, or receives into it
  bool someLost = false;
  Handler handler;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_LINK_H
