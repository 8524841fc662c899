//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A process of a job that only sends. `speed` moves messages from rank 0 to rank 1 and back, checks
// their bytes, and prints how long they took. `watch` waits until a rank is lost, and prints which.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Net/Bootstrap.h"
#include "runtime/lib/Net/Control.h"
#include "runtime/lib/Net/Link.h"
#include "runtime/lib/Net/Networks.h"
#include "runtime/lib/Sync/Cores.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <thread>

using namespace braid::runtime;
using namespace braid::runtime::net;

namespace {

struct Options {
  std::string rendezvous = "tcp://127.0.0.1:4711", secret;
  int64_t rank = 0, size = 2;
  std::vector<size_t> bytes{size_t(1) << 20, size_t(8) << 20, size_t(64) << 20};
  size_t chunk = size_t(256) << 10;
  int64_t rounds = 5;
  double limit = 30;
};

double processorSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// How often this process has given up a processor to wait.
int64_t sleeps() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw;
}

/// One message, in chunks that are all posted at once.
class Message {
public:
  Message(Link &link, std::vector<std::byte> &memory, size_t chunk) : link(link), memory(memory) {
    chunk = chunk == 0 ? memory.size() : chunk;
    for (size_t at = 0; at < memory.size(); at += chunk)
      chunks.push_back({at, std::min(chunk, memory.size() - at)});
    transfers = std::vector<Transfer>(chunks.size());
  }
  void send(uint64_t tag) {
    for (size_t i = 0; i < chunks.size(); ++i)
      link.send(transfers[i], 1 - link.rank(), tag + i, memory.data() + chunks[i].first,
                chunks[i].second);
  }
  void receive(uint64_t tag) {
    for (size_t i = 0; i < chunks.size(); ++i)
      link.receive(transfers[i], 1 - link.rank(), tag + i, memory.data() + chunks[i].first,
                   chunks[i].second);
  }
  Status wait(int64_t until) {
    for (const Transfer &transfer : transfers) {
      while (!transfer.done()) {
        RETURN_IF_ERROR(link.progress(until));
        if (!transfer.done() && nowNs() >= until)
          return Status::error("a message has not come within the limit");
      }
      RETURN_IF_ERROR(transfer.status());
    }
    return {};
  }

private:
  Link &link;
  std::vector<std::byte> &memory;
  std::vector<std::pair<size_t, size_t>> chunks;
  std::vector<Transfer> transfers;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Rank 0 sends and rank 1 sends it back; or both send at once.
Status measure(Link &link, const Options &options, size_t bytes, bool isBothWays,
               nlohmann::ordered_json &report) {
  const int64_t limit = static_cast<int64_t>(options.limit * 1e9);
  std::vector<std::byte> mine(bytes), theirs(bytes);
  for (size_t i = 0; i < bytes; ++i)
    mine[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  std::vector<double> times;
  double processor = 0, slept = 0;
  // The first round makes connections and touches memory.
  for (int64_t round = 0; round <= options.rounds; ++round) {
    std::fill(theirs.begin(), theirs.end(), std::byte(0));
    Message out(link, mine, options.chunk), in(link, theirs, options.chunk);
    in.receive(0);
    std::byte token{}, answer{};
    Transfer start, started;
    link.receive(started, 1 - link.rank(), uint64_t(1) << 60, &answer, 1);
    link.send(start, 1 - link.rank(), uint64_t(1) << 60, &token, 1);
    const int64_t until = nowNs() + limit;
    while (!started.done() || !start.done()) {
      RETURN_IF_ERROR(link.progress(until));
      if (nowNs() >= until)
        return Status::error("rank ", 1 - link.rank(), " has not come to the next round");
    }
    RETURN_IF_ERROR(started.status());
    const double begin = processorSeconds();
    const int64_t beginSleeps = sleeps();
    const auto beginNs = nowNs();
    if (link.rank() == 0 || isBothWays)
      out.send(0);
    RETURN_IF_ERROR(in.wait(until));
    if (link.rank() == 1 && !isBothWays)
      out.send(0);
    RETURN_IF_ERROR(out.wait(until));
    const double took = static_cast<double>(nowNs() - beginNs) * 1e-9;
    if (round > 0) {
      times.push_back(isBothWays ? took : took / 2);
      processor += (processorSeconds() - begin) / static_cast<double>(options.rounds);
      slept += static_cast<double>(sleeps() - beginSleeps) / static_cast<double>(options.rounds);
    }
    if (mine != theirs)
      return Status::error("other bytes came than were sent");
  }
  report.push_back({{"bytes", bytes},
                    {"both_ways", isBothWays},
                    {"seconds", median(times)},
                    {"megabytes_per_s", static_cast<double>(bytes) / median(times) * 1e-6},
                    {"processor_s_per_round", processor},
                    {"sleeps_per_round", slept}});
  return {};
}

Status run(const Options &options, bool isSpeed) {
  JobOptions job;
  ASSIGN_OR_RETURN(job.rendezvous, parseRendezvous(options.rendezvous));
  ASSIGN_OR_RETURN(job.secret, JobSecret::fromText(options.secret));
  job.job = "link-probe";
  job.rank = options.rank;
  job.size = options.size;
  job.timeLimitSeconds = options.limit;
  ASSIGN_OR_RETURN(auto networks, openNetworks({}));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> data, Link::create(networks, job.rank, job.size));
  ASSIGN_OR_RETURN(std::unique_ptr<Link> control, Link::create(networks, job.rank, job.size));
  ASSIGN_OR_RETURN(const std::string first, data->address());
  ASSIGN_OR_RETURN(const std::string second, control->address());
  ASSIGN_OR_RETURN(const Job started, startJob(job, {first, second}));
  for (int64_t peer = 0; peer < job.size; ++peer) {
    const Member &member = started.members[static_cast<size_t>(peer)];
    if (peer == job.rank)
      continue;
    RETURN_IF_ERROR(data->connect(peer, member.addresses[0], member.host));
    RETURN_IF_ERROR(control->connect(peer, member.addresses[1], member.host));
  }
  ControlOptions watching;
  watching.timeLimitSeconds = options.limit;
  ASSIGN_OR_RETURN(std::unique_ptr<Control> all,
                   Control::start(std::move(control), started, watching));
  if (!isSpeed) {
    std::cout << "started" << std::endl; // the test waits for it
    while (all->state().ok())
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::cout << all->state().message() << std::endl;
    return {};
  }
  data->setSpin(spinFor(1));
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  for (const bool isBothWays : {false, true})
    for (size_t bytes : options.bytes)
      RETURN_IF_ERROR(measure(*data, options, bytes, isBothWays, report));
  if (job.rank == 0)
    std::cout << report.dump(1) << std::endl;
  return data->close(nowNs() + 2000000000);
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("a process of a job that only sends", "braid-test-link");
  app.add_option("--rendezvous", options.rendezvous);
  app.add_option("--secret", options.secret);
  app.add_option("--rank", options.rank);
  app.add_option("--size", options.size);
  app.add_option("--limit", options.limit, "in seconds: of the start, of silence and of a message");
  CLI::App *speed = app.add_subcommand("speed", "moves messages between two ranks");
  speed->add_option("--bytes", options.bytes, "of messages")->delimiter(',');
  speed->add_option("--chunk", options.chunk, "bytes; 0: a message is not cut");
  speed->add_option("--rounds", options.rounds);
  app.add_subcommand("watch", "waits until a rank is lost");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options, speed->parsed());
  if (!status.ok())
    std::cerr << "braid-test-link: error: " << status.message() << "\n";
  return static_cast<int>(status.code());
}
