//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the processes of a job tell each other beside the data: each says several times a second
// where its queues are, and at once that a run has failed. So a rank that dies, stalls or cannot be
// reached is named on all others, with what each waits for, in the words of RunControl.
//
// A thread of its own does it, over a link of its own (Link.h), by frames that one process of each
// host passes on (RelayedFrames.h). A process watches those it is connected to, and says it to all
// when one of them is lost.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_CONTROL_H
#define BRAID_NET_CONTROL_H

#include "Bootstrap.h"
#include "Link.h"
#include "Mirror.h"
#include "RelayedFrames.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace braid::runtime::net {

struct ControlOptions {
  /// A process that says nothing for so long is lost; 0: never.
  double timeLimitSeconds = 60;
  /// How often a process says where it is.
  double periodSeconds = 0.25;
};

class Control {
public:
  /// Over a link that knows the addresses of all members of the job; returns when all have been
  /// heard of.
  static Result<std::unique_ptr<Control>> start(std::unique_ptr<Link> link, const Job &job,
                                                const ControlOptions &options);
  Control(const Control &) = delete;
  Control &operator=(const Control &) = delete;
  /// Says goodbye, so that the others do not take the end for a failure. A process that passes on
  /// what others of its host say waits for theirs, up to a second. Ends within 3 s.
  ~Control();

  /// The queues of this process's rank in a run are told to the others from now on, and theirs are
  /// written to `control`. A failure of one process fails the run on all, also on those that have
  /// ended this run and are in a later one of the same model. Processes number their runs alike.
  /// Called after RunControl::begin.
  void begin(RunControl &control, uint64_t run, bool isFirstOfModel = false);
  /// The run is over: `control` is not used any more, but if it has failed the others learn of it.
  void end();

  /// Why a peer is lost, for good; runs that begin later fail with it.
  Status state() const;
  /// "; rank 1 (host) has not been heard of for 3.9 s" of peers that may be lost, or nothing: for
  /// whoever gives up before it is known.
  std::string silence() const;
  /// The error of another link that has lost a peer, with where the peer was in this run and who
  /// waits for it. A peer that ends since the run has failed there says why, and its connections
  /// may break off before that is read: so this waits up to a second for a failure of the run, and
  /// returns that one if it comes. It may be of a run that is over here.
  Status describeLoss(int64_t peer, const Status &error) const;

private:
  struct Peer {
    int64_t heardNs = 0;
    bool isKnown = false;  ///< anything has come
    bool isBroken = false; ///< its connection is, as was seen once
    bool isLost = false;   ///< has been given up
    bool isSilent = false; ///< has not been heard of lately, though it is connected to this process
    bool hasLeft = false;  ///< has said goodbye
    bool isWatched = false; ///< was a neighbour (RelayedFrames) at the last check, and since when
    int64_t watchedNs = 0;
    int64_t leftNs = 0;
  };

  Control(std::unique_ptr<Link> link, const Job &job, const ControlOptions &options);
  void run();
  void onFrame(int64_t sender, const Frame &frame);
  void handle(int64_t sender, const Frame &frame);
  void tellPlaces();
  void checkPeers();
  bool othersOfHostHaveLeft() const;
  /// `isTold`: all others know it, too.
  void lose(int64_t peer, const std::string &what, bool isTold);
  void shareFailure(const Status &failure);
  void handleFailure(uint64_t run, const Status &failure);
  bool concernsThisRun(uint64_t run) const;
  std::string circumstances(int64_t peer) const;
  int64_t numPeers() const { return static_cast<int64_t>(peers.size()); }

  std::unique_ptr<Link> link;
  RelayedFrames frames; ///< for the thread only
  const int64_t self, limitNs, periodNs;
  std::vector<Peer> peers;        ///< with an unused one for this process
  std::vector<std::string> hosts; ///< of all ranks
  std::vector<Mirror> mirrors;

  mutable std::mutex mutex; ///< of what follows
  RunControl *control = nullptr;
  uint64_t runNumber = 0;
  bool isShared = false; ///< the failure of this run was told
  /// A failure that came between runs, with the number of its run.
  std::optional<std::pair<uint64_t, Status>> other;
  uint64_t firstOfModel = 0; ///< the number of the first run of the model that runs
  uint64_t lastFailed = 0;   ///< the number of the last run that failed here
  Status loss;
  std::vector<Frame> untold; ///< for all others, not yet in `frames`
  std::string silentPeers;   ///< at the last check, for silence()
  uint64_t progressSeen = 0; ///< of this process, and when it changed
  int64_t progressNs = 0;

  std::atomic<bool> isEnding{false};
  std::atomic<int64_t> numKnown{0};
  std::thread thread; ///< last, as it uses the rest
};

} // namespace braid::runtime::net
#endif // BRAID_NET_CONTROL_H
