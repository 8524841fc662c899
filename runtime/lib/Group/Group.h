//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A group of processes, one of each rank, that run collectives on memory of their own. Collectives
// are asked for at any time, by any thread, in the same order on all ranks; a thread of the group
// runs them one after the other in this order, and calls back as each ends. Sends and receives go
// beside them. Collectives of ranks on one host go through memory that they share (Staging.h).
//
// Ranks are compared as they go: a rank that waits says for what, and a rank that has reached the
// same place with another collective ends the group, with a message that names both. So do a rank
// that is lost and a time limit. A group that has ended runs nothing any more, on any rank.
//
// A rank may be ahead of another one by as many collectives as need nothing from it, but not by
// more than two rounds: at the end of each round, all ranks tell each other that they are there.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_GROUP_GROUP_H
#define BRAID_GROUP_GROUP_H

#include "GroupEngine.h"
#include "braid/Base/Support.h"
#include "runtime/lib/Net/ProcessWatch.h"
#include "runtime/lib/Net/SealedFrames.h"
#include "runtime/lib/Net/Secret.h"

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace braid::runtime {

struct GroupOptions {
  int64_t rank = 0, size = 1;
  std::string name; ///< the same on all ranks, and of no other group that they may meet
  net::JobSecret secret;
  /// As of net::NetOptions; empty: all transports, and memory that ranks of a host share.
  std::string transports, devices;
  double timeLimitSeconds = 60;  ///< for the start
  std::vector<int64_t> jobRanks; ///< what the ranks are called in a larger job; empty: the same
};

class Group {
public:
  /// Prepares the rank; ranks then give each other their introductions, in any way, and connect.
  static Result<std::unique_ptr<Group>> create(const GroupOptions &options);
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;
  /// Ends the group if close() was not called.
  ~Group();
  const std::string &introduction() const { return ownIntroduction; }
  /// Connects to the ranks that have these introductions, by rank, and starts the group's thread.
  Status connect(const std::vector<std::string> &introductions);

  /// Called on the group's thread, or on the caller's where the group has ended. A callback may
  /// ask for more, and must not wait for it.
  using Done = std::function<void(const Status &)>;
  using Received = std::function<void(const Status &, int64_t sender)>;

  // Asks for something. Memory must stay until the callback. `limitNs`: of the time from its turn
  // on. The signature says what all ranks do alike: "all_reduce (sum, 8 f32)".
  void run(std::string signature, GroupCollective collective, int64_t limitNs, Done done);
  /// A collective of which each rank knows its own messages; those between two ranks match in their
  /// order. Sizes that differ are an error of the receiver.
  void exchange(std::string signature, std::vector<GroupMessage> messages, int64_t limitNs,
                Done done);
  // Messages of one sender, receiver and tag arrive in their order; they may come before they are
  // asked for.
  void send(int64_t to, uint32_t tag, const void *data, int64_t bytes, int64_t limitNs, Done done);
  /// From any rank if `from` is -1.
  void receive(int64_t from, uint32_t tag, void *data, int64_t bytes, int64_t limitNs,
               Received done);

  /// Why the group has ended.
  Status state() const;
  /// Waits for what was asked for, and then for the others to have what was sent to them; at most
  /// so long, and then fails it.
  void close(int64_t limitNs);
  /// Whether a callback calls. It must neither close nor destroy the group.
  bool isOnOwnThread() const { return std::this_thread::get_id() == thread.get_id(); }
  /// Fails what was asked for; the other ranks learn why.
  void end(const std::string &why);
  /// "rank 1 (HOST)"
  std::string describe(int64_t rank) const;

private:
  struct Operation {
    std::string signature;
    std::optional<GroupCollective> collective; ///< or else messages
    std::vector<GroupMessage> messages;
    int64_t limitNs = 0;
    Done done;
    int64_t bytes = 0; ///< that a rank which sends only may be ahead by
  };
  struct PointToPoint {
    bool isSend = false;
    int64_t peer = -1;
    uint32_t tag = 0;
    void *data = nullptr;
    int64_t bytes = 0, limitNs = 0, beganNs = 0;
    Received done;
    net::Transfer transfer;
    bool isPosted = false;
  };
  /// The end of a round.
  struct Round {
    struct Mark {
      uint64_t collectives = 0, history = 0;
    };
    Mark mine;
    std::vector<Mark> theirs; ///< by rank
    std::vector<std::unique_ptr<net::Transfer>> transfers;
    std::vector<int64_t> peers; ///< of the transfers
  };
  struct Peer {
    net::GroupPlace place;
    int64_t heardNs = 0; ///< 0: never
    int64_t endedNs = 0; ///< when its process was found to have ended; 0: never
    bool hasLeft = false, hasHeard = false;
    int64_t leftNs = 0;
  };
  /// What this rank did at a number, for comparison with the others.
  struct Record {
    uint64_t number = 0, history = 0;
    std::string signature;
  };

  explicit Group(const GroupOptions &options);
  Status introduce();
  /// With ranks whose memory is at the same place.
  Status shareMemory(const std::vector<std::string> &places, const std::vector<int64_t> &processes,
                     const std::string &key);
  void ask(Operation operation);
  void ask(std::unique_ptr<PointToPoint> message);

  // What follows is for the group's thread.
  void loop();
  /// True when something began or ended.
  bool step();
  void takeAsked();
  /// With the mutex held.
  void queueAsked();
  bool begin();
  Status checkOwn(const std::vector<GroupMessage> &all) const;
  bool advance();
  bool moveMessages();
  void beginRound();
  /// Whether the round before the last one has ended on all ranks.
  bool hasRoundEnded();
  void checkLimits(int64_t now);
  void watchProcesses(int64_t now);
  void tellPlace(int64_t now);
  void onFrame(int64_t sender, const net::Frame &frame);
  void compare(int64_t sender, const net::GroupPlace &place);
  net::GroupPlace place(int64_t now) const;
  int64_t awaitedRank() const;
  std::string whatIsKnown(int64_t rank, int64_t now) const;
  std::string where() const;
  std::string whatOf(const PointToPoint &message) const;
  /// Ends the group on this rank.
  void fail(const Status &why, bool tellOthers);
  void failAll();
  void sayGoodbye();
  void moveFrames(int64_t until);
  Status wait(int64_t until);
  bool isIdle() const { return queue.empty() && messages.empty(); }

  const GroupOptions options;
  std::string ownIntroduction;
  net::Block nonce{};
  std::unique_ptr<net::Link> link;
  std::unique_ptr<net::SealedFrames> frames;
  std::unique_ptr<GroupEngine> engine;
  std::vector<std::string> names; ///< of ranks
  net::ProcessWatch watch;        ///< of ranks that share memory
  Spin spin;                      ///< at counters

  mutable std::mutex mutex; ///< of what follows
  std::deque<Operation> asked;
  std::deque<std::unique_ptr<PointToPoint>> askedMessages;
  Status failure;
  Status endAsked; ///< by end(), for the group's thread

  std::atomic<bool> isClosing{false};
  std::atomic<int64_t> closeNs{0}; ///< when a close fails what is left

  // Of the group's thread.
  std::deque<Operation> queue; ///< the first one is under way once it has begun
  std::deque<std::unique_ptr<PointToPoint>> messages;
  bool hasBegun = false;
  int64_t turnNs = 0; ///< when the first operation came to the front; 0: it has not
  uint64_t ended = 0, history = 0;
  std::array<Record, 256> records;
  std::vector<Peer> peers;
  std::array<Round, 2> rounds;
  uint64_t round = 0;
  int64_t collectivesOfRound = 0, bytesOfRound = 0;
  int64_t toldNs = 0, watchedNs = 0;
  bool isOver = false;
  Status pending; ///< an end that a frame has brought
  bool isTold = false;
  std::thread thread; ///< last, as it uses the rest
};

} // namespace braid::runtime
#endif // BRAID_GROUP_GROUP_H
