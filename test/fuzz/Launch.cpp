//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the texts from which a launch is known: lists of hosts, a rendezvous, and variables, one a
// line; and what a host of the launcher says. What is accepted is within its limits and written as
// it was read.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Launch.h"
#include "Fuzz.h"
#include "runtime/lib/Launcher/Frames.h"

#include <algorithm>
#include <sstream>

using namespace braid::runtime;
using namespace braid::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  if (Result<std::vector<std::string>> hosts = expandNodeList(text); hosts.ok()) {
    require(!hosts->empty() && hosts->size() <= kMaxLaunchedRanks, "a node list has hosts");
    require(std::all_of(hosts->begin(), hosts->end(), isHostName), "each has a host's name");
  }
  if (Result<std::vector<HostRanks>> hosts = parseHosts(text); hosts.ok()) {
    int64_t ranks = 0;
    for (const HostRanks &host : *hosts) {
      require(host.ranks > 0 && host.host[0] != '-', "a host has ranks and is no option");
      ranks += host.ranks;
    }
    require(ranks <= kMaxLaunchedRanks, "a list of hosts has a limit");
  }
  if (Result<Rendezvous> place = parseRendezvous(text); place.ok()) {
    Result<Rendezvous> again = parseRendezvous(place->text());
    require(again.ok() && *again == *place, "a rendezvous is the same after it was written");
  }
  FrameReader whole("t"), pieces("t");
  whole.append(text.data(), text.size());
  for (size_t fed = 0;;) {
    Result<std::optional<Frame>> frame = whole.next(), piece = pieces.next();
    while (piece.ok() && !*piece && fed < text.size()) {
      pieces.append(&text[fed++], 1);
      piece = pieces.next();
    }
    require(frame.ok() == piece.ok(), "frames are the same in any pieces");
    if (!frame.ok() || !*frame)
      break;
    require(*piece && (*frame)->kind == (*piece)->kind && (*frame)->rank == (*piece)->rank &&
                (*frame)->bytes == (*piece)->bytes,
            "frames are the same in any pieces");
  }
  Environment environment;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const size_t equals = line.find('='); equals != std::string::npos)
      environment[line.substr(0, equals)] = line.substr(equals + 1);
  if (Result<std::optional<LaunchInfo>> found = launchInfo(environment); found.ok() && *found) {
    const LaunchInfo &info = **found;
    require(info.rank >= 0 && info.rank < info.size && info.size <= kMaxLaunchedRanks,
            "a rank is one of the launch");
    require(info.size == 1 || info.rendezvous, "several ranks have a place to meet");
    require(!info.localRank || !info.localSize || *info.localRank < *info.localSize,
            "a rank is one of its host");
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned) {
  return LLVMFuzzerMutate(data, size, maxSize); // text: a dictionary is enough
}
