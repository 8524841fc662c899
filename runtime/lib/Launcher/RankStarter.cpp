//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RankStarter.h"
#include "Child.h"
#include "Frames.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Launch/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::runtime {

namespace {

constexpr int64_t kJobLimitMs = 60000; ///< for the job, and for the start after it
constexpr int64_t kLeftoversMs = 5000;

/// What a launcher asks for.
struct Job {
  std::string token, directory;
  int64_t first = 0, ranks = 0, size = 0;
  int64_t graceMs = 0;
  std::vector<std::string> command;
  Environment environment; ///< over this process's own
};

Result<Job> parseJob(const std::string &text) {
  Job job;
  try {
    const auto json = nlohmann::json::parse(text);
    if (const int64_t protocol = json.at("protocol"); protocol != 1)
      return Status::error("expects protocol 1 of a launcher, got ", protocol,
                           ": the versions of Braid differ");
    job.token = json.at("token");
    job.directory = json.at("directory");
    job.first = json.at("first");
    job.ranks = json.at("ranks");
    job.size = json.at("size");
    job.graceMs = json.at("grace_ms");
    job.command = json.at("command").get<std::vector<std::string>>();
    job.environment = json.at("environment").get<Environment>();
  } catch (const std::exception &e) {
    return Status::error("expects a launcher's job: ", e.what());
  }
  if (job.first < 0 || job.ranks < 1 || job.size > kMaxLaunchedRanks ||
      job.first > job.size - job.ranks || job.command.empty())
    return Status::error("expects a launcher's job with ranks and a command");
  return job;
}

/// The first port that the system gives to clients.
int64_t firstPortOfClients() {
  constexpr int64_t kUsual = 32768;
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  int64_t first = 0;
  return file >> first ? first : kUsual;
}

/// A port that nothing listens on, for a rank 0 that will be started soon. A client could be given
/// it meanwhile, so it is below the ports of clients, unless many are taken.
Result<int64_t> freePort() {
  const Descriptor listener(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Descriptor older(listener.open() ? -1 : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage address{};
  const int file = listener.open() ? listener.get() : older.get();
  auto *base = reinterpret_cast<sockaddr *>(&address);
  // Both families have the port at the same place.
  auto &port = reinterpret_cast<sockaddr_in *>(base)->sin_port;
  socklen_t length = listener.open() ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  constexpr int64_t kFirst = 10000;
  constexpr int kTries = 100;
  const int64_t end = firstPortOfClients();
  std::random_device random;
  for (int i = 0; i <= kTries; ++i) {
    address.ss_family = listener.open() ? AF_INET6 : AF_INET;
    const bool isChosen = i < kTries && end > kFirst;
    port = isChosen ? htons(static_cast<uint16_t>(kFirst + random() % (end - kFirst))) : 0;
    if (bind(file, base, length) == 0 && getsockname(file, base, &length) == 0)
      return ntohs(port);
  }
  return Status::error("cannot find a free port: ", std::strerror(errno));
}

class RankStarter {
public:
  int run() {
    if (Status s = prepare(); !s.ok()) {
      send({"fail", 0, s.message()});
      return 1;
    }
    while (running > 0)
      turn();
    endLeftovers();
    for (size_t i = 0; i < ranks.size(); ++i)
      forward(i);
    return 0;
  }

private:
  Status prepare() {
    // Ends the line that a login shell may have begun.
    RETURN_IF_ERROR(writeAll(STDOUT_FILENO, "\n"));
    ASSIGN_OR_RETURN(signals, takeSignals());
    fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
    ASSIGN_OR_RETURN(const Frame asked, await("job"));
    ASSIGN_OR_RETURN(job, parseJob(asked.bytes));
    if (chdir(job.directory.c_str()) != 0)
      return Status::error("cannot work in directory '", job.directory,
                           "': ", std::strerror(errno));
    // What a rank leaves behind becomes a child of this process.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
      return Status::error("cannot look after the processes of ranks: ", std::strerror(errno));
    ASSIGN_OR_RETURN(const int64_t port, freePort());
    send({"ready", 0, std::to_string(port)});
    ASSIGN_OR_RETURN(const Frame start, await("start"));
    return startRanks(start.bytes);
  }

  /// The next frame, which must be of this kind.
  Result<Frame> await(const std::string &kind) {
    for (const int64_t until = nowMs() + kJobLimitMs;;) {
      ASSIGN_OR_RETURN(std::optional<Frame> frame, fromLauncher.next());
      if (frame && frame->kind == kind)
        return std::move(*frame);
      if (frame)
        return Status::error("expects a launcher that says '", kind, "'");
      pollfd entry{STDIN_FILENO, POLLIN, 0};
      const int64_t left = until - nowMs();
      std::string bytes;
      if (left <= 0 || (poll(&entry, 1, static_cast<int>(left)) > 0 &&
                        !readSome(STDIN_FILENO, bytes) && bytes.empty()))
        return Status::error("the launcher is gone");
      fromLauncher.append(bytes.data(), bytes.size());
    }
  }

  Status startRanks(const std::string &rendezvous) {
    Environment environment = processEnvironment();
    for (const auto &[variable, value] : job.environment)
      environment[variable] = value;
    environment["BRAID_RENDEZVOUS"] = rendezvous;
    environment["BRAID_SIZE"] = std::to_string(job.size);
    environment["BRAID_LOCAL_SIZE"] = std::to_string(job.ranks);
    for (int64_t i = 0; i < job.ranks; ++i) {
      environment["BRAID_RANK"] = std::to_string(job.first + i);
      environment["BRAID_LOCAL_RANK"] = std::to_string(i);
      Child::Options options;
      options.environment = &environment;
      options.diesWithParent = true;
      Result<Child> child = Child::start(job.command, options);
      if (!child.ok()) {
        signalRanks(SIGKILL);
        return child.status().within("rank " + std::to_string(job.first + i));
      }
      ranks.push_back(std::move(*child));
      ++running;
    }
    return {};
  }

  /// Waits for something to happen, and handles it.
  void turn() {
    std::vector<pollfd> entries{{signals.get(), POLLIN, 0},
                                {launcherGone ? -1 : STDIN_FILENO, POLLIN, 0}};
    for (const Child &rank : ranks)
      for (const Descriptor *file : {&rank.output, &rank.errors})
        entries.push_back({file->get(), POLLIN, 0});
    const int64_t left = killAt < 0 ? -1 : std::max<int64_t>(killAt - nowMs(), 0);
    poll(entries.data(), entries.size(), static_cast<int>(left));
    if (killAt >= 0 && nowMs() >= killAt) {
      signalRanks(SIGKILL);
      killAt = -1;
    }
    if (entries[1].revents)
      readLauncher();
    for (size_t i = 0; i < ranks.size(); ++i)
      if (entries[2 + 2 * i].revents || entries[3 + 2 * i].revents)
        forward(i);
    signalfd_siginfo info{};
    while (read(signals.get(), &info, sizeof info) == sizeof info)
      if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP)
        stop();
    reap();
  }

  void readLauncher() {
    std::string bytes;
    if (!readSome(STDIN_FILENO, bytes)) {
      launcherGone = true;
      stop();
    }
    fromLauncher.append(bytes.data(), bytes.size());
    for (;;) {
      Result<std::optional<Frame>> frame = fromLauncher.next();
      if (!frame.ok() || !*frame)
        return;
      if ((*frame)->kind == "signal") {
        const auto number = wholeNumber((*frame)->bytes, SIGRTMAX);
        signalRanks(static_cast<int>(number.value_or(0)));
      } else if ((*frame)->kind == "stop") {
        stop(static_cast<int>(wholeNumber((*frame)->bytes, SIGRTMAX).value_or(SIGTERM)));
      } else if ((*frame)->kind == "kill") {
        signalRanks(SIGKILL);
      }
    }
  }

  void stop(int number = SIGTERM) {
    if (stopping)
      return;
    stopping = true;
    killAt = nowMs() + job.graceMs;
    signalRanks(number);
    signalRanks(SIGCONT); // a stopped one would not notice
  }

  void signalRanks(int number) const {
    for (const Child &rank : ranks)
      rank.signal(number);
  }

  /// What a rank wrote, as it came; the launcher forms lines.
  void forward(size_t i) {
    for (bool errors : {false, true}) {
      Descriptor &file = errors ? ranks[i].errors : ranks[i].output;
      std::string bytes;
      if (file.open() && !readSome(file.get(), bytes))
        file.reset();
      if (!bytes.empty())
        send({errors ? "err" : "out", job.first + static_cast<int64_t>(i), bytes});
    }
  }

  void reap() {
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
      for (size_t i = 0; i < ranks.size(); ++i)
        if (ranks[i].pid == pid) {
          forward(i);
          ranks[i].pid = -1;
          --running;
          send({"end", job.first + static_cast<int64_t>(i), std::to_string(status)});
        }
  }

  /// Processes that ranks have left, whose parent is now this one.
  static void endLeftovers() {
    for (const int64_t until = nowMs() + kLeftoversMs; nowMs() < until;) {
      std::ifstream children("/proc/thread-self/children");
      for (pid_t pid; children >> pid;)
        kill(pid, SIGKILL);
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (waitpid(-1, nullptr, WNOHANG) < 0)
        return; // there are none
      poll(nullptr, 0, 5);
    }
  }

  /// A launcher that is gone is noticed by the end of our input.
  void send(const Frame &frame) const {
    (void)writeAll(STDOUT_FILENO, writeFrame(job.token.empty() ? kJobToken : job.token, frame));
  }

  FrameReader fromLauncher{kJobToken};
  Job job;
  Descriptor signals;
  std::vector<Child> ranks;
  int64_t running = 0, killAt = -1;
  bool launcherGone = false, stopping = false;
};

} // namespace

int runRankStarter() { return RankStarter().run(); }

} // namespace braid::runtime
