//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Processes that launcher and starter start, and the descriptors to them.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LAUNCHER_CHILD_H
#define BRAID_LAUNCHER_CHILD_H

#include "braid/Base/Status.h"
#include "braid/Runtime/Launch.h"

#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace braid::runtime {

/// A descriptor that is closed with its owner.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int file) : file(file) {}
  Descriptor(Descriptor &&other) noexcept : file(std::exchange(other.file, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(file, other.file);
    return *this;
  }
  ~Descriptor() { reset(); }
  void reset();
  int get() const { return file; }
  bool open() const { return file >= 0; }

private:
  int file = -1;
};

/// A process in a session of its own, so that a terminal's signals do not reach it, with no signal
/// blocked.
struct Child {
  pid_t pid = -1; ///< -1 when it has ended
  Descriptor input, output, errors;

  struct Options {
    const Environment *environment = nullptr; ///< null: ours
    bool withInput = false;                   ///< otherwise /dev/null
    bool diesWithParent = false;              ///< by SIGKILL, when the calling thread ends
  };
  /// Finds the program as a shell does. Our ends of the pipes do not block.
  static Result<Child> start(const std::vector<std::string> &words, const Options &options);
  /// To the process and all others of its session's first group.
  void signal(int number) const;
};

/// Writes all of it; waits where a pipe is full.
Status writeAll(int file, const std::string &bytes);

/// Appends what is there to `bytes`, up to a limit; false at the end of the file.
bool readSome(int file, std::string &bytes);

/// "ended with status 1", "was ended by signal 9 (Killed)"
std::string describeEnd(int waitStatus);

/// Blocks the signals that launcher and starter take, and gives a descriptor to read them from.
Result<Descriptor> takeSignals();

/// Milliseconds of a clock that only goes forward.
int64_t nowMs();

} // namespace braid::runtime
#endif // BRAID_LAUNCHER_CHILD_H
