//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "NullDevice.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace braid::null {

World &world() {
  // Never destroyed: work that did not end may still use it.
  static World &instance = *new World;
  return instance;
}

CUresult result(const std::string &message) {
  if (message.empty())
    return kSuccess;
  world().lastError = message;
  return kUnknownError;
}

void addRows(std::vector<Access> &accesses, bool writes, const void *data,
             const std::vector<int64_t> &shape, const std::vector<int64_t> &strides,
             int64_t elementBytes) {
  for (int64_t extent : shape)
    if (extent == 0)
      return;
  // Trailing contiguous dimensions form one run.
  int64_t run = elementBytes;
  size_t outer = shape.size();
  while (outer > 0 && (shape[outer - 1] == 1 || strides[outer - 1] == run))
    run *= shape[--outer];
  std::vector<int64_t> index(outer, 0);
  for (;;) {
    int64_t offset = 0;
    for (size_t d = 0; d < outer; ++d)
      offset += index[d] * strides[d];
    accesses.push_back({reinterpret_cast<uint64_t>(data) + static_cast<uint64_t>(offset),
                        static_cast<uint64_t>(run), writes});
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}

std::string World::wait(const Clock &clock) {
  host.clock.join(clock);
  std::string problem;
  std::vector<HostRead> left;
  for (HostRead &read : hostReads)
    if (host.clock.at(read.lane) < read.time)
      left.push_back(std::move(read));
    else if (std::memcmp(reinterpret_cast<const void *>(read.address), read.bytes.data(),
                         read.bytes.size()) != 0)
      problem = "the host has written to " + std::to_string(read.bytes.size()) +
                " bytes of its memory before it waited for " + read.what + ", which reads them";
  hostReads = std::move(left);
  return problem;
}

uint64_t Memory::allocate(size_t bytes, int device) {
  void *memory = std::aligned_alloc(512, (std::max<size_t>(bytes, 1) + 511) / 512 * 512);
  if (!memory)
    return 0;
  // Marks detect reads of unwritten bytes; the pattern shows them in a debugger too.
  std::memset(memory, 0xA5, bytes);
  const auto address = reinterpret_cast<uint64_t>(memory);
  Block &block = blocks[address];
  block.bytes = bytes;
  block.number = ++count;
  block.device = device;
  block.segments[address].end = address + bytes;
  block.segments[address].written = device == kHost; // by the host, at time 0
  return address;
}

const Memory::Block *Memory::find(uint64_t address) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return nullptr;
  --after;
  return address < after->first + after->second.bytes ? &after->second : nullptr;
}

void Memory::split(Block &block, uint64_t at) {
  auto after = block.segments.upper_bound(at);
  --after;
  if (after->first == at || at >= after->second.end)
    return;
  Segment second = after->second;
  after->second.end = at;
  block.segments.emplace(at, std::move(second));
}

std::string Memory::release(uint64_t address, bool ofHost, const Lane &host) {
  auto found = blocks.find(address);
  if (found == blocks.end() || (found->second.device == kHost) != ofHost)
    return "memory is freed that was not allocated, or was freed before";
  for (const auto &[begin, segment] : found->second.segments) {
    std::vector<Mark> marks = segment.reads;
    if (segment.written)
      marks.push_back(segment.write);
    for (const Mark &mark : marks)
      if (host.clock.at(mark.lane) < mark.time)
        return "allocation " + std::to_string(found->second.number) + " is freed while " +
               *mark.what + " may still use it";
  }
  blocks.erase(found);
  std::free(reinterpret_cast<void *>(address));
  return {};
}

std::string Memory::access(const Access &a, const Lane &lane, const Label &what) {
  if (a.bytes == 0)
    return {};
  const uint64_t end = a.begin + a.bytes;
  const std::string verb = a.writes ? " writes " : " reads ";
  auto *block = const_cast<Block *>(find(a.begin));
  if (!block)
    return *what + verb + std::to_string(a.bytes) + " bytes outside of any allocation";
  const uint64_t base = block->segments.begin()->first;
  auto problem = [&](const std::string &text) {
    return *what + verb + std::to_string(a.bytes) + " bytes at " + std::to_string(a.begin - base) +
           " of allocation " + std::to_string(block->number) + " (" + std::to_string(block->bytes) +
           " bytes)" + text;
  };
  if (end > base + block->bytes)
    return problem(", beyond its end");
  if (block->device != kHost && block->device != lane.device)
    return problem(", which is on device " + std::to_string(block->device) + ", not " +
                   std::to_string(lane.device));
  split(*block, a.begin);
  split(*block, end);
  const Mark mine{lane.number, lane.clock.at(lane.number), what};
  const auto first = block->segments.lower_bound(a.begin);
  auto s = first;
  for (; s != block->segments.end() && s->first < end; ++s) {
    Segment &segment = s->second;
    auto ordered = [&](const Mark &mark) { return lane.clock.at(mark.lane) >= mark.time; };
    if (!segment.written && !a.writes)
      return problem(", which nothing has written");
    if (segment.written && !ordered(segment.write))
      return problem(" without being ordered after " + *segment.write.what + ", which writes them");
    if (a.writes) {
      for (const Mark &mark : segment.reads)
        if (!ordered(mark))
          return problem(" without being ordered after " + *mark.what + ", which reads them");
      continue;
    }
    auto own = std::find_if(segment.reads.begin(), segment.reads.end(),
                            [&](const Mark &mark) { return mark.lane == lane.number; });
    if (own == segment.reads.end())
      segment.reads.push_back(mine);
    else
      *own = mine;
  }
  if (a.writes) { // from here on they have the same past, so they are one
    block->segments.erase(std::next(first), s);
    first->second = {end, true, mine, {}};
  }
  return {};
}

Action checked(std::string what, std::vector<Access> accesses, std::function<void()> run) {
  return [what = std::move(what), accesses = std::move(accesses),
          run = std::move(run)](const std::vector<Lane *> &lanes) -> std::string {
    Lane &lane = *lanes.front();
    lane.step();
    const auto label = std::make_shared<const std::string>(what + " on " + lane.name);
    // All reads come before all writes, since a kernel may work in place.
    for (bool writes : {false, true})
      for (const Access &access : accesses)
        if (access.writes == writes)
          if (std::string error = world().memory.access(access, lane, label); !error.empty())
            return error;
    run();
    return {};
  };
}

std::string submit(Stream *stream, Action action) {
  World &w = world();
  if (w.streams.count(stream) && !stream->capture && stream->device != w.current)
    return stream->lane.name + " is of device " + std::to_string(stream->device) +
           ", the current one is " + std::to_string(w.current);
  return submit(std::vector<Stream *>{stream}, std::move(action));
}

std::string submit(const std::vector<Stream *> &streams, Action action) {
  World &w = world();
  for (Stream *stream : streams)
    if (!w.streams.count(stream))
      return "a stream that does not exist is used";
  Graph *capture = streams.front()->capture;
  std::vector<Lane *> lanes;
  std::vector<size_t> numbers;
  for (Stream *stream : streams) {
    if (stream->capture != capture)
      return "streams of which some are being captured are used together";
    stream->lane.clock.join(w.host.clock);
    lanes.push_back(&stream->lane);
    numbers.push_back(stream->captureLane);
  }
  if (capture) {
    capture->nodes.push_back({numbers, std::move(action)});
    for (size_t number : numbers)
      capture->order[number].set(number, capture->order[number].at(number) + 1);
    return {};
  }
  bool stuck = false;
  for (Lane *lane : lanes)
    stuck |= lane->stuck;
  for (Lane *lane : lanes)
    lane->stuck = stuck;
  return stuck ? std::string() : action(lanes);
}

} // namespace braid::null
