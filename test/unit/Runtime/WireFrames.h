//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A frame of each kind, in the order of kinds.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_WIREFRAMES_H
#define BRAID_TEST_UNIT_RUNTIME_WIREFRAMES_H

#include "runtime/lib/Net/Wire.h"

namespace braid::runtime::net {

inline std::vector<Frame> sampleFrames() {
  Block block{};
  for (size_t i = 0; i < block.size(); ++i)
    block[i] = static_cast<std::byte>(3 * i + 1);
  Hello hello;
  hello.challenge = block;
  hello.job = "job7", hello.rank = 3, hello.size = 4, hello.bundle = "ab12", hello.mesh = "tp=4";
  hello.machine = "ef56";
  hello.hostId = "boot/4/5", hello.host = "a", hello.process = 77, hello.addresses = {"one", "two"};
  QueuePlace idle, waits;
  idle.progress = 12;
  waits.queue = 1, waits.progress = uint64_t(1) << 40, waits.waiting = 2, waits.stalled = true;
  waits.waitedNs = 5000000000, waits.isAtCommand = waits.waitsForRoom = true;
  waits.awaitedQueue = 1, waits.missing = {{5, 1}, {6, 1}};
  waits.operation = "all_reduce", waits.name = "sum", waits.path = "@main";
  return {Introduction{kProtocolVersion, block},
          Challenge{block},
          hello,
          Refusal{"ranks 2 and 3 of 4 have not come"},
          Table{block, 4, 2, {{"boot/4/5", "a", 1, {"x"}}, {"boot/4/6", "b", 0, {}}}},
          Ready(),
          Go(),
          Places{9, true, {idle, waits}},
          Failure{9, 3, "rank 1: id 7 is outside of its table"},
          Lost{7, "the connection to rank 7 (b) is lost: Connection reset by remote peer"},
          Goodbye(),
          GroupPlace{6, true, false, 250000000, uint64_t(1) << 63, "all_reduce (sum, 8 f32)"},
          GoodbyeHeard()};
}

} // namespace braid::runtime::net
#endif // BRAID_TEST_UNIT_RUNTIME_WIREFRAMES_H
