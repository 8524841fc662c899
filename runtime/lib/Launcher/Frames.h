//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a launcher and the starter of a host's ranks say to each other through the agent's input and
// output. A frame is a line "@TOKEN KIND RANK BYTES", then so many bytes. Other lines are what a
// login shell printed before the starter ran; the token of the job tells them apart.
//
//   to the starter    job    what to start, as JSON; its token is "braid"
//                     start  the ranks, with the rendezvous as text
//                     signal a signal's number, for all ranks
//                     stop   end the ranks, by this signal and after the job's grace by SIGKILL
//                     kill   end them at once
//   to the launcher   ready  with a port that is free on this host
//                     out    what a rank wrote to its standard output
//                     err    the same for standard error
//                     end    of a rank, as waitpid gives its status
//                     fail   nothing was started; says why
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LAUNCHER_FRAMES_H
#define BRAID_LAUNCHER_FRAMES_H

#include "braid/Base/Status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace braid::runtime {

inline constexpr const char *kJobToken = "braid";

struct Frame {
  std::string kind; ///< empty: a line that is no frame
  int64_t rank = 0;
  std::string bytes;
};

std::string writeFrame(const std::string &token, const Frame &frame);

/// Puts frames together from bytes as they come.
class FrameReader {
public:
  explicit FrameReader(const std::string &token) : start("@" + token + " ") {}
  void append(const char *bytes, size_t count) { pending.append(bytes, count); }
  /// The next frame, nothing if it is not there yet, or an error if it cannot be one.
  Result<std::optional<Frame>> next();

private:
  std::string start, pending;
};

} // namespace braid::runtime
#endif // BRAID_LAUNCHER_FRAMES_H
