//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Frames.h"
#include "braid/Base/Support.h"
#include "braid/Runtime/Launch.h"
#include "runtime/lib/Launch/Numbers.h"

#include <sstream>

namespace braid::runtime {

namespace {

constexpr int64_t kMaxFrameBytes = int64_t(1) << 24;
constexpr size_t kMaxLine = 4096; ///< of what is no frame; longer ones are cut into several

} // namespace

std::string writeFrame(const std::string &token, const Frame &frame) {
  return "@" + token + " " + frame.kind + " " + std::to_string(frame.rank) + " " +
         std::to_string(frame.bytes.size()) + "\n" + frame.bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  const size_t end = pending.find('\n');
  if (end == std::string::npos && pending.size() <= kMaxLine)
    return std::optional<Frame>();
  if (end > kMaxLine || pending.compare(0, start.size(), start) != 0) {
    const size_t length = std::min(end, kMaxLine);
    Frame line{"", 0, pending.substr(0, length)};
    pending.erase(0, length == end ? length + 1 : length);
    return std::optional<Frame>(std::move(line));
  }
  const std::string header = pending.substr(start.size(), end - start.size());
  std::istringstream words(header);
  Frame frame;
  std::string rank, bytes, more;
  words >> frame.kind >> rank >> bytes >> more;
  const std::optional<int64_t> number = wholeNumber(rank, kMaxLaunchedRanks),
                               count = wholeNumber(bytes, kMaxFrameBytes);
  if (frame.kind.empty() || !number || !count || !more.empty())
    return Status::error("expects a kind, a rank and a number of bytes, got ", inQuotes(header));
  if (pending.size() - (end + 1) < static_cast<size_t>(*count))
    return std::optional<Frame>();
  frame.rank = *number;
  frame.bytes = pending.substr(end + 1, static_cast<size_t>(*count));
  pending.erase(0, end + 1 + static_cast<size_t>(*count));
  return std::optional<Frame>(std::move(frame));
}

} // namespace braid::runtime
