//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tells which processes of this host have ended, however they did. Memory that they shared does not
// tell, and a connection does not as long as a process that they forked has it.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_NET_PROCESSWATCH_H
#define BRAID_NET_PROCESSWATCH_H

#include <cstdint>
#include <vector>

namespace braid::runtime::net {

class ProcessWatch {
public:
  ProcessWatch() = default;
  ProcessWatch(const ProcessWatch &) = delete;
  ProcessWatch &operator=(const ProcessWatch &) = delete;
  ~ProcessWatch();

  /// Whether the system can watch processes: pidfd_open, of Linux 5.3.
  static bool isSupported();
  /// Watches the process of a rank, by its number in this process's namespace.
  void add(int64_t rank, int64_t process);
  /// The ranks whose processes have ended, each once.
  std::vector<int64_t> takeEnded();

private:
  struct Watched {
    int64_t rank;
    int descriptor; ///< -1: the process has ended already
  };
  std::vector<Watched> all;
};

} // namespace braid::runtime::net
#endif // BRAID_NET_PROCESSWATCH_H
