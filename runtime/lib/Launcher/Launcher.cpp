//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Launcher.h"
#include "Child.h"
#include "Frames.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"
#include "runtime/lib/Launch/Numbers.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sstream>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::runtime {

namespace {

constexpr int64_t kCloseLimitMs = 3000; ///< for a starter to be gone after its ranks or its input

/// Lines of a stream, with a prefix each. A long line is cut.
class Lines {
public:
  explicit Lines(std::string prefix = "") : prefix(std::move(prefix)) {}
  /// The lines that these bytes complete.
  std::string add(const std::string &bytes) {
    std::string complete;
    for (char c : bytes) {
      pending += c;
      constexpr size_t kMaxLine = size_t(1) << 16;
      if (c == '\n' || pending.size() == kMaxLine)
        complete += finish();
    }
    return complete;
  }
  std::string finish() {
    if (pending.empty())
      return "";
    if (pending.back() != '\n')
      pending += '\n';
    last = pending.substr(0, pending.size() - 1);
    return prefix + std::exchange(pending, "");
  }
  const std::string &lastLine() const { return last; }

private:
  std::string prefix, pending, last;
};

struct Rank {
  Lines output, errors;
  bool ended = false;
};

struct Host {
  std::string name; ///< without the user
  int64_t first = 0, count = 0;
  std::vector<Rank> ranks;
  Child agent;
  FrameReader frames{""};
  Lines noise;
  bool ready = false, failed = false;
  int64_t port = 0;

  bool running() const { return agent.pid > 0; }
  bool allEnded() const {
    return std::all_of(ranks.begin(), ranks.end(), [](const Rank &rank) { return rank.ended; });
  }
};

bool isLocal(const std::string &host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

std::string quotedForShell(const std::string &word) {
  std::string quoted = "'";
  for (char c : word)
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

Result<std::string> randomHex(size_t bytes) {
  std::string hex;
  while (bytes-- > 0) {
    unsigned char byte = 0;
    if (getrandom(&byte, 1, 0) != 1)
      return Status::error("cannot draw a secret: ", std::strerror(errno));
    for (int digit : {byte >> 4, byte & 15})
      hex += "0123456789abcdef"[digit];
  }
  return hex;
}

class Launch {
public:
  explicit Launch(const LaunchRequest &request) : request(request) {}

  LaunchOutcome run() {
    sigset_t before;
    sigprocmask(SIG_BLOCK, nullptr, &before);
    if (Status s = start(); !s.ok())
      fail(static_cast<int>(s.code()), s.message());
    while (std::any_of(hosts.begin(), hosts.end(), [](const Host &h) { return h.running(); }))
      turn();
    for (Host &host : hosts)
      finish(host);
    signals.reset();
    // A write to an agent that was gone left a signal that would end this process now.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    const timespec atOnce{};
    sigtimedwait(&pipe, nullptr, &atOnce);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return outcome;
  }

private:
  Status start() {
    int64_t first = 0;
    bool local = false, remote = false;
    for (const HostRanks &given : request.hosts) {
      Host host;
      const size_t at = given.host.find('@');
      host.name = at == std::string::npos ? given.host : given.host.substr(at + 1);
      host.first = first;
      host.count = given.ranks;
      first += given.ranks;
      (isLocal(host.name) ? local : remote) = true;
      hosts.push_back(std::move(host));
    }
    if (local && remote && isLocal(hosts[0].name) && !request.rendezvous)
      return Status::error("rank 0 is on '", hosts[0].name,
                           "', by which name other hosts do not find it: give its name in the "
                           "network, or --rendezvous");
    ASSIGN_OR_RETURN(token, randomHex(8));
    ASSIGN_OR_RETURN(secret, randomHex(32));
    ASSIGN_OR_RETURN(signals, takeSignals());
    readyUntil = nowMs() + static_cast<int64_t>(request.startLimitSeconds * 1000);
    for (size_t i = 0; i < hosts.size(); ++i)
      RETURN_IF_ERROR(startAgent(hosts[i], request.hosts[i].host, first));
    return {};
  }

  Status startAgent(Host &host, const std::string &address, int64_t size) {
    for (int64_t rank = host.first; rank < host.first + host.count; ++rank) {
      const std::string prefix = "[" + std::to_string(rank) + "@" + host.name + "] ";
      host.ranks.push_back({Lines(prefix), Lines(prefix)});
    }
    host.frames = FrameReader(token);
    host.noise = Lines("[" + host.name + "] ");
    nlohmann::json job{{"protocol", 1},
                       {"token", token},
                       {"directory", request.directory},
                       {"first", host.first},
                       {"ranks", host.count},
                       {"size", size},
                       {"grace_ms", static_cast<int64_t>(request.graceSeconds * 1000)},
                       {"command", request.command}};
    Environment environment = request.environment;
    environment["BRAID_JOB"] = token;
    environment["BRAID_JOB_SECRET"] = secret;
    job["environment"] = environment;
    std::string text;
    try {
      text = job.dump();
    } catch (const std::exception &) {
      return Status::error("expects arguments, a directory and BRAID_ variables in UTF-8");
    }
    // It must fit into a pipe, as nothing here waits for an agent to read.
    constexpr size_t kMaxJob = 60000;
    if (text.size() > kMaxJob)
      return Status::error("expects at most ", kMaxJob, " bytes of arguments and variables, got ",
                           text.size());
    std::vector<std::string> words = request.starter;
    if (!isLocal(host.name)) {
      std::string command = "exec";
      for (const std::string &word : request.starter)
        command += " " + quotedForShell(word);
      words = request.agent;
      words.push_back(address);
      words.push_back(command);
    }
    Child::Options options;
    options.withInput = true;
    Result<Child> agent = Child::start(words, options);
    if (!agent.ok())
      return agent.status().within("host '" + host.name + "'");
    host.agent = std::move(*agent);
    tell(host, {"job", 0, text});
    return {};
  }

  void turn() {
    std::vector<pollfd> entries{{signals.get(), POLLIN, 0}};
    for (const Host &host : hosts)
      for (const Descriptor *file : {&host.agent.output, &host.agent.errors})
        entries.push_back({file->get(), POLLIN, 0});
    const int64_t until = nextDeadline();
    const int64_t left = until < 0 ? -1 : std::max<int64_t>(until - nowMs(), 0);
    poll(entries.data(), entries.size(), static_cast<int>(std::min<int64_t>(left, INT_MAX)));
    for (size_t i = 0; i < hosts.size(); ++i)
      if (entries[1 + 2 * i].revents || entries[2 + 2 * i].revents)
        readAgent(hosts[i]);
    readSignals();
    reap();
    checkDeadlines();
  }

  int64_t nextDeadline() const {
    if (killAt >= 0)
      return killAt;
    if (stopUntil >= 0)
      return stopUntil;
    return started ? -1 : readyUntil;
  }

  void checkDeadlines() {
    const int64_t now = nowMs();
    if (!started && stopUntil < 0 && now >= readyUntil) {
      for (const Host &host : hosts)
        if (!host.ready)
          return fail(static_cast<int>(Code::rankFailed),
                      "host '" + host.name + "' was not ready within " +
                          std::to_string(static_cast<int64_t>(request.startLimitSeconds)) + " s" +
                          said(host));
    }
    // First the end of their input tells starters that it is over, then agents are ended.
    if (stopUntil >= 0 && killAt < 0 && now >= stopUntil) {
      killAt = now + kCloseLimitMs;
      for (Host &host : hosts)
        host.agent.input.reset();
    } else if (killAt >= 0 && now >= killAt) {
      for (const Host &host : hosts)
        if (host.running())
          host.agent.signal(SIGKILL);
      killAt = now + kCloseLimitMs;
    }
  }

  void readAgent(Host &host) {
    std::string bytes;
    if (host.agent.output.open() && !readSome(host.agent.output.get(), bytes))
      host.agent.output.reset();
    host.frames.append(bytes.data(), bytes.size());
    while (!host.failed) {
      Result<std::optional<Frame>> frame = host.frames.next();
      if (!frame.ok()) {
        host.failed = true;
        fail(static_cast<int>(Code::rankFailed),
             "host '" + host.name + "': " + frame.status().message());
      } else if (!*frame) {
        break;
      } else {
        handle(host, **frame);
      }
    }
    bytes.clear();
    if (host.agent.errors.open() && !readSome(host.agent.errors.get(), bytes))
      host.agent.errors.reset();
    print(STDERR_FILENO, host.noise.add(bytes));
  }

  void handle(Host &host, const Frame &frame) {
    if (frame.kind.empty() && frame.bytes.empty())
      return;
    if (frame.kind.empty())
      return print(STDERR_FILENO, host.noise.add(frame.bytes + "\n"));
    if (frame.kind == "fail") {
      host.failed = true;
      return fail(static_cast<int>(started ? Code::rankFailed : Code::invalid),
                  "host '" + host.name + "': " + frame.bytes);
    }
    if (frame.kind == "ready") {
      host.ready = true;
      host.port = wholeNumber(frame.bytes, 65535).value_or(0);
      if (std::all_of(hosts.begin(), hosts.end(), [](const Host &h) { return h.ready; }))
        startRanks();
      return;
    }
    if (frame.rank < host.first || frame.rank >= host.first + host.count)
      return;
    Rank &rank = host.ranks[static_cast<size_t>(frame.rank - host.first)];
    if (frame.kind == "out")
      return print(STDOUT_FILENO, rank.output.add(frame.bytes));
    if (frame.kind == "err")
      return print(STDERR_FILENO, rank.errors.add(frame.bytes));
    if (frame.kind == "end") {
      rank.ended = true;
      const int status = static_cast<int>(wholeNumber(frame.bytes, INT_MAX).value_or(0));
      if (status != 0)
        fail(WIFSIGNALED(status) ? static_cast<int>(Code::rankFailed) : WEXITSTATUS(status),
             "rank " + std::to_string(frame.rank) + " on host '" + host.name + "' " +
                 describeEnd(status));
    }
  }

  void startRanks() {
    if (stopUntil >= 0)
      return;
    started = true;
    Rendezvous place;
    place.host = isLocal(hosts[0].name) ? "127.0.0.1" : hosts[0].name;
    place.port = static_cast<uint16_t>(hosts[0].port);
    if (request.rendezvous)
      place = *request.rendezvous;
    tellAll({"start", 0, place.text()});
  }

  void readSignals() {
    signalfd_siginfo info{};
    while (read(signals.get(), &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD)
        continue;
      if (number == SIGUSR1 || number == SIGUSR2) {
        tellAll({"signal", 0, std::to_string(number)});
      } else if (interrupted) {
        tellAll({"kill", 0, ""});
      } else {
        interrupted = true;
        if (stopUntil >= 0)
          tellAll({"signal", 0, std::to_string(number)});
        fail(128 + number,
             "ended by signal " + std::to_string(number) + " (" + strsignal(number) + ")", number);
      }
    }
  }

  void reap() {
    for (Host &host : hosts) {
      int status = 0;
      if (!host.running() || waitpid(host.agent.pid, &status, WNOHANG) != host.agent.pid)
        continue;
      readAgent(host);
      host.agent.pid = -1;
      host.agent.input.reset(); // a starter that outlived its agent has no launcher
      print(STDERR_FILENO, host.noise.finish());
      if (host.failed || (started && host.allEnded()))
        continue;
      std::string what = "host '" + host.name + "': " +
                         (isLocal(host.name) ? std::string("the starter of its ranks ")
                                             : "agent '" + request.agent[0] + "' ") +
                         describeEnd(status) + (started ? " while ranks ran" : "") + said(host);
      constexpr int kNotFound = 127; // a shell's
      if (!started && WIFEXITED(status) && WEXITSTATUS(status) == kNotFound)
        what += "; the program must be at the same path on all hosts";
      fail(static_cast<int>(started ? Code::rankFailed : Code::invalid), what);
    }
  }

  static std::string said(const Host &host) {
    return host.noise.lastLine().empty() ? "" : ", and said: " + host.noise.lastLine();
  }

  /// Keeps the first failure, and ends all ranks, by this signal first.
  void fail(int exitStatus, const std::string &message, int number = SIGTERM) {
    if (outcome.exitStatus == 0)
      outcome = {exitStatus, message};
    if (stopUntil >= 0)
      return;
    stopUntil = nowMs() + static_cast<int64_t>(request.graceSeconds * 1000) + kCloseLimitMs;
    tellAll({"stop", 0, std::to_string(number)});
    // A starter that has no ranks yet waits for nothing else.
    if (!started)
      for (Host &host : hosts)
        host.agent.input.reset();
  }

  void tellAll(const Frame &frame) {
    for (Host &host : hosts)
      tell(host, frame);
  }

  static void tell(Host &host, const Frame &frame) {
    const std::string bytes = writeFrame(kJobToken, frame);
    // An agent that takes nothing is gone or stuck. To a starter, the end of its input is the end.
    if (host.agent.input.open() &&
        write(host.agent.input.get(), bytes.data(), bytes.size()) != ssize_t(bytes.size()))
      host.agent.input.reset();
  }

  void finish(Host &host) {
    for (Rank &rank : host.ranks) {
      print(STDOUT_FILENO, rank.output.finish());
      print(STDERR_FILENO, rank.errors.finish());
    }
  }

  void print(int file, const std::string &text) {
    if (!text.empty() && !writeAll(file, text).ok() && file == STDOUT_FILENO)
      fail(static_cast<int>(Code::invalid), "cannot write to standard output");
  }

  const LaunchRequest &request;
  std::vector<Host> hosts;
  std::string token, secret;
  Descriptor signals;
  LaunchOutcome outcome;
  bool started = false, interrupted = false;
  int64_t readyUntil = 0;
  int64_t stopUntil = -1; ///< when ranks that were asked to end are given up; -1: they were not
  int64_t killAt = -1;    ///< when agents are killed; -1: not yet
};

} // namespace

LaunchOutcome launchRanks(const LaunchRequest &request) { return Launch(request).run(); }

Environment forwardedVariables(const Environment &environment) {
  Environment forwarded;
  for (const auto &[variable, value] : environment) {
    const bool ours = variable.rfind("BRAID_", 0) == 0;
    const bool launchers = variable == "BRAID_RANK" || variable == "BRAID_SIZE" ||
                           variable == "BRAID_LOCAL_RANK" || variable == "BRAID_LOCAL_SIZE" ||
                           variable == "BRAID_RENDEZVOUS" || variable == "BRAID_PORT" ||
                           variable.rfind("BRAID_JOB", 0) == 0;
    if ((ours && !launchers) || variable.rfind("UCX_", 0) == 0)
      forwarded.emplace(variable, value);
  }
  return forwarded;
}

std::vector<std::string> splitWords(const std::string &text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

Result<std::string> programPath() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0 || static_cast<size_t>(length) == path.size())
    return Status::error("cannot find the path of this program");
  return std::string(path.data(), static_cast<size_t>(length));
}

} // namespace braid::runtime
