//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frames from each process of a job to all others. One process of each host, its relay, passes them
// on: the others of the host are connected to it alone, and relays to each other. With R ranks on H
// hosts a process has 1 connection, or R/H + H - 2 as a relay, in place of R - 1; and a message of
// a relay holds the frames of many.
//
// The relay of a host is its lowest rank that is still there and has been heard of lately. All
// know the ranks of all hosts, so each finds the relays for itself; while two disagree, frames find
// their way by what is said with them of how far they are to be passed on (Reach), not by who is
// taken for a relay.
//
// A frame carries its sender, a number that rises and an HMAC of a key that the ranks share. Relays
// pass it on as it is, so whoever receives it compares what its sender has made, and nobody passes
// on what is not genuine or what came before.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_RELAYEDFRAMES_H
#define BRAID_NET_RELAYEDFRAMES_H

#include "EnvelopeSeal.h"
#include "Link.h"

#include <deque>
#include <map>

namespace braid::runtime::net {

class RelayedFrames {
public:
  /// Called while the link makes progress.
  using Handler = std::function<void(int64_t sender, const Frame &frame)>;
  /// `hosts` has the number of each rank's host. `purpose` tells apart what the key is used for.
  /// Relays keep frames of Places for up to `gatherNs`, to send those of many together. The link
  /// must outlive this, or make no progress any more.
  RelayedFrames(Link &link, std::string key, std::string purpose, std::vector<int64_t> hosts,
                int64_t gatherNs, Handler handler);
  RelayedFrames(const RelayedFrames &) = delete;
  RelayedFrames &operator=(const RelayedFrames &) = delete;

  /// To all others, with the next `send`. Places that still wait are replaced by those that come
  /// after them; all other frames arrive, in order, if their way stays.
  void tell(const Frame &frame);
  /// Sends what is due. Returns when there is more to send, in nowNs(); INT64_MAX: nothing waits.
  int64_t send(int64_t now);

  bool isRelay() const { return relayOf(host(link.rank())) == link.rank(); }
  bool isOnThisHost(int64_t rank) const { return host(rank) == host(link.rank()); }
  /// Whether this process and that rank send each other frames without a relay between them.
  bool isNeighbour(int64_t rank) const { return at(rank).isNeighbour; }
  /// The rank has ended: it neither gets nor passes on frames.
  void setGone(int64_t rank);
  /// The rank says nothing: it does not count on as a relay until it does.
  void setSilent(int64_t rank, bool isSilent);

private:
  struct Waiting {
    std::shared_ptr<const FrameBytes> envelope;
    Reach reach = Reach::receiver;
  };
  struct Peer {
    bool isNeighbour = false, isGone = false, isSilent = false;
    uint64_t received = 0;                    ///< the number of its last frame
    std::shared_ptr<const FrameBytes> places; ///< its last frame of these
    // What is to be sent to it, the first part in front of the second.
    std::deque<Waiting> told;
    std::map<int64_t, Waiting> placesOf; ///< by sender
    int64_t dueNs = INT64_MAX;
  };

  void onMessage(const std::byte *data, size_t bytes);
  void onEnvelope(const Relayed &relayed);
  /// Finds the relays anew.
  void findNeighbours();
  /// Sends on from here, where the frame still has to go.
  void pass(int64_t sender, const std::shared_ptr<const FrameBytes> &envelope, bool isPlaces,
            Reach reach, int64_t dueNs);
  void add(int64_t receiver, int64_t sender, Waiting waiting, bool isPlaces, int64_t dueNs);
  /// What is known here of all others, for a neighbour that may have missed it.
  void tellKnown(int64_t neighbour);
  bool sendTo(int64_t receiver);
  int64_t host(int64_t rank) const { return hosts[static_cast<size_t>(rank)]; }
  int64_t relayOf(int64_t host) const { return relays[static_cast<size_t>(host)]; }
  Peer &at(int64_t peer) { return peers[static_cast<size_t>(peer)]; }
  const Peer &at(int64_t peer) const { return peers[static_cast<size_t>(peer)]; }

  Link &link;
  const EnvelopeSeal seal;
  const std::vector<int64_t> hosts;
  const int64_t gatherNs;
  const Handler handler;
  std::vector<Peer> peers;     ///< that of this process has its own places only
  std::vector<int64_t> relays; ///< by host; -1: nobody is left there
  uint64_t sent = 0;           ///< the number of this process's last frame
};

} // namespace braid::runtime::net
#endif // BRAID_NET_RELAYEDFRAMES_H
