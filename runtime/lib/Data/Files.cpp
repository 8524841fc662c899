//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Files.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace braid::runtime {

namespace {

Status failed(const char *what, const std::string &path, int error) {
  return Status::error("cannot ", what, " ", inQuotes(path), ": ", std::strerror(error));
}

class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  int get() const { return fd; }
  void release() { fd = -1; }

private:
  int fd;
};

/// The path with symbolic links followed, or as it is if it leads to no file.
std::string resolved(const std::string &path) {
  std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? std::string(real.get()) : path;
}

} // namespace

Result<InputFile> openFile(const std::string &path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    return failed("read", path, errno);
  if (S_ISDIR(info.st_mode))
    return failed("read", path, EISDIR);
  if (!S_ISREG(info.st_mode))
    return Status::error("cannot read ", inQuotes(path), ": expects a regular file");
  InputFile result{{::fdopen(file.get(), "rb"), &std::fclose}, static_cast<uint64_t>(info.st_size)};
  if (!result.stream)
    return failed("read", path, errno);
  file.release();
  return result;
}

Result<Bytes> readFile(const std::string &path, uint64_t maxBytes) {
  ASSIGN_OR_RETURN(InputFile file, openFile(path));
  if (file.bytes > maxBytes)
    return Status::error("cannot read ", inQuotes(path), ": expects at most ", maxBytes,
                         " bytes, got ", file.bytes);
  Bytes bytes(file.bytes);
  if (std::fread(bytes.data(), 1, bytes.size(), file.stream.get()) == bytes.size())
    return bytes;
  if (std::ferror(file.stream.get()))
    return failed("read", path, errno);
  return Status::error("cannot read ", inQuotes(path), ": the file became shorter meanwhile");
}

FileWriter::~FileWriter() {
  if (file >= 0)
    ::close(file);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status FileWriter::create(const std::string &given) {
  path = given;
  struct stat info;
  bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    return failed("write", path, EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {
    // Renaming would replace the device or pipe itself.
    file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file < 0 ? failed("write", path, errno) : Status();
  }
  target = resolved(path);
  // The process id distinguishes processes; the number distinguishes threads, and files that a
  // killed process left.
  std::string name;
  for (int number = 0; file < 0 && number < 1000; ++number) {
    name = target + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(number);
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST)
      return failed("write", path, errno);
  }
  if (file < 0)
    return failed("write", path, EEXIST);
  temporary = std::move(name);
  if (exists && ::fchmod(file, info.st_mode & 07777) != 0)
    return failed("write", path, errno);
  return {};
}

Status FileWriter::append(ByteSpan piece) {
  const char *data = static_cast<const char *>(piece.data);
  for (size_t done = 0; done < piece.size;) {
    ssize_t count = ::write(file, data + done, piece.size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failed("write", path, errno);
    done += static_cast<size_t>(count);
  }
  return {};
}

Status FileWriter::commit() {
  // Without fsync, a crash of the system may leave the new name without the data. Closing reports
  // errors of delayed writes.
  const bool synced = temporary.empty() || ::fsync(file) == 0;
  const int error = errno;
  if (::close(std::exchange(file, -1)) != 0 || !synced)
    return failed("write", path, synced ? errno : error);
  if (temporary.empty())
    return {};
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return failed("write", path, errno);
  temporary.clear();
  return {};
}

Status writeFile(const std::string &path, const std::vector<ByteSpan> &pieces) {
  FileWriter file;
  RETURN_IF_ERROR(file.create(path));
  for (const ByteSpan &piece : pieces)
    RETURN_IF_ERROR(file.append(piece));
  return file.commit();
}

std::string cacheDirectory() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::getenv("BRAID_CACHE_DIR"))
    return variable("BRAID_CACHE_DIR");
  if (const std::string caches = variable("XDG_CACHE_HOME"); !caches.empty())
    return caches + "/braid";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/braid";
}

Status checkWritable(const std::string &path) {
  if (path.empty())
    return {};
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return failed("write", path, EISDIR);
  // A device or a pipe is written in place.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return ::access(path.c_str(), W_OK) == 0 ? Status() : failed("write", path, errno);
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "."
                          : slash == 0               ? "/"
                                                     : path.substr(0, slash);
  // Tries to write: access(2) is wrong for root and for read-only file systems.
  std::string name = directory + "/.braid-XXXXXX";
  int file = ::mkstemp(name.data());
  if (file < 0)
    return failed("write", path, errno);
  ::close(file);
  ::unlink(name.c_str());
  return {};
}

} // namespace braid::runtime
