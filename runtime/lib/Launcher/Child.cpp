//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Child.h"
#include "braid/Base/Support.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace braid::runtime {

void Descriptor::reset() {
  if (file >= 0)
    close(file);
  file = -1;
}

namespace {

Status makePipe(Descriptor &readEnd, Descriptor &writeEnd) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return Status::error("cannot make a pipe: ", std::strerror(errno));
  readEnd = Descriptor(ends[0]);
  writeEnd = Descriptor(ends[1]);
  return {};
}

std::vector<char *> pointers(std::vector<std::string> &texts) {
  std::vector<char *> all;
  for (std::string &text : texts)
    all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

/// In the new process; returns only if it fails.
void become(const std::array<int, 3> &files, char **words, char **variables, pid_t parent,
            bool diesWithParent) {
  setsid();
  // A parent that ended before the call to prctl sends no signal.
  if (diesWithParent && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
    _exit(1);
  for (int i = 0; i < 3; ++i)
    if (dup2(files[static_cast<size_t>(i)], i) < 0)
      return;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(words[0], words, variables);
}

} // namespace

Result<Child> Child::start(const std::vector<std::string> &words, const Options &options) {
  Child child;
  Descriptor input, output, errors, failure, failureEnd;
  if (options.withInput) {
    if (Status s = makePipe(input, child.input); !s.ok())
      return s;
    fcntl(child.input.get(), F_SETFL, O_NONBLOCK);
  } else {
    input = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  for (Status s : {makePipe(child.output, output), makePipe(child.errors, errors),
                   makePipe(failure, failureEnd)})
    if (!s.ok())
      return s;
  fcntl(child.output.get(), F_SETFL, O_NONBLOCK);
  fcntl(child.errors.get(), F_SETFL, O_NONBLOCK);
  // All that allocates happens before the fork.
  std::vector<std::string> copies = words, settings;
  for (const auto &[variable, value] :
       options.environment ? *options.environment : processEnvironment())
    settings.push_back(variable + "=" + value);
  std::vector<char *> argv = pointers(copies), envp = pointers(settings);
  const std::array<int, 3> files{input.get(), output.get(), errors.get()};
  const pid_t parent = getpid();
  child.pid = fork();
  if (child.pid == 0) {
    become(files, argv.data(), envp.data(), parent, options.diesWithParent);
    const int error = errno;
    (void)!write(failureEnd.get(), &error, sizeof error);
    _exit(127);
  }
  if (child.pid < 0)
    return Status::error("cannot start a process for ", inQuotes(words[0]), ": ",
                         std::strerror(errno));
  failureEnd.reset();
  int error = 0;
  ssize_t got;
  do
    got = read(failure.get(), &error, sizeof error);
  while (got < 0 && errno == EINTR);
  if (got == sizeof error) {
    waitpid(child.pid, nullptr, 0);
    return Status::error("cannot run ", inQuotes(words[0]), ": ", std::strerror(error));
  }
  return child;
}

void Child::signal(int number) const {
  if (pid > 0)
    kill(-pid, number);
}

Status writeAll(int file, const std::string &bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd entry{file, POLLOUT, 0};
      poll(&entry, 1, -1);
    } else if (errno != EINTR) {
      return Status::error("cannot write: ", std::strerror(errno));
    }
  }
  return {};
}

bool readSome(int file, std::string &bytes) {
  std::array<char, 16384> buffer{};
  constexpr size_t kLimit = size_t(1) << 18; // so that others get their turn
  for (size_t total = 0; total < kLimit;) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count == 0)
      return false;
    if (count > 0) {
      bytes.append(buffer.data(), static_cast<size_t>(count));
      total += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

std::string describeEnd(int waitStatus) {
  if (WIFSIGNALED(waitStatus))
    return "was ended by signal " + std::to_string(WTERMSIG(waitStatus)) + " (" +
           strsignal(WTERMSIG(waitStatus)) + ")";
  return "ended with status " + std::to_string(WEXITSTATUS(waitStatus));
}

Result<Descriptor> takeSignals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
    sigaddset(&taken, number);
  Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  // A write to a closed pipe returns an error.
  sigaddset(&taken, SIGPIPE);
  if (!signals.open() || sigprocmask(SIG_BLOCK, &taken, nullptr) != 0)
    return Status::error("cannot take signals: ", std::strerror(errno));
  return signals;
}

int64_t nowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

} // namespace braid::runtime
