//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProcessWatch.h"

#include <cerrno>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace braid::runtime::net {

/// A descriptor that can be read when the process has ended; -1 with errno.
static int openProcess([[maybe_unused]] int64_t process) {
#if defined(SYS_pidfd_open)
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0));
#else
  errno = ENOSYS;
  return -1;
#endif
}

ProcessWatch::~ProcessWatch() {
  for (const Watched &one : all)
    if (one.descriptor >= 0)
      close(one.descriptor);
}

bool ProcessWatch::isSupported() {
  const int descriptor = openProcess(getpid());
  if (descriptor >= 0)
    close(descriptor);
  return descriptor >= 0;
}

void ProcessWatch::add(int64_t rank, int64_t process) {
  const int descriptor = openProcess(process);
  // One that cannot be watched for another reason is noticed by time limits.
  if (descriptor >= 0 || errno == ESRCH)
    all.push_back({rank, descriptor});
}

std::vector<int64_t> ProcessWatch::takeEnded() {
  std::vector<int64_t> ended;
  for (size_t i = all.size(); i-- > 0;) {
    const Watched one = all[i];
    pollfd entry{one.descriptor, POLLIN, 0};
    if (one.descriptor >= 0 && poll(&entry, 1, 0) <= 0)
      continue;
    if (one.descriptor >= 0)
      close(one.descriptor);
    ended.push_back(one.rank);
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return ended;
}

} // namespace braid::runtime::net
