//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "OutputFiles.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::runtime {

/// As access(2) does, but by trying: root and read-only file systems make the mode bits lie.
static Status tryCreating(const std::string &directory, const std::string &forMessages) {
  std::string name = directory + "/.braid-XXXXXX";
  int file = mkstemp(name.data());
  if (file < 0)
    return Status::error("cannot write " + forMessages + ": " + std::strerror(errno));
  close(file);
  unlink(name.c_str());
  return {};
}

Status checkWritable(const std::string &path) {
  if (path.empty())
    return {};
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return Status::error("cannot write '" + path + "': is a directory");
  if (stat(path.c_str(), &info) == 0 &&
      !S_ISREG(info.st_mode)) // a device or a pipe is written in place
    return access(path.c_str(), W_OK) == 0
               ? Status()
               : Status::error("cannot write '" + path + "': " + std::strerror(errno));
  size_t slash = path.rfind('/');
  std::string directory = slash == std::string::npos ? "."
                          : slash == 0               ? "/"
                                                     : path.substr(0, slash);
  return tryCreating(directory, "'" + path + "'");
}

OutputFiles::~OutputFiles() {
  if (created && !written)
    rmdir(directory.c_str());
}

Status OutputFiles::prepare(const std::string &path, const std::vector<std::string> &names) {
  if (path.empty())
    return {};
  for (const std::string &name : names)
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      return Status::error("result '" + name + "' cannot be a file name");
  directory = path;
  if (mkdir(path.c_str(), 0777) == 0) {
    created = true;
    return {};
  }
  if (errno != EEXIST)
    return Status::error("cannot create output directory '" + path + "': " + std::strerror(errno));
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return Status::error("cannot write to '" + path + "': is not a directory");
  return tryCreating(path, "to output directory '" + path + "'");
}

Status OutputFiles::write(const std::map<std::string, HostTensor> &tensors) {
  if (directory.empty())
    return {};
  std::vector<std::pair<std::string, std::string>> files; // temporary name, name
  Status status;
  for (const auto &[name, tensor] : tensors) {
    std::string path = directory + "/" + name + ".npy";
    files.emplace_back(directory + "/." + name + "." + std::to_string(getpid()) + ".npy", path);
    status = writeNpy(files.back().first, tensor);
    if (!status.ok())
      break;
  }
  for (const auto &[temporary, path] : files) {
    if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
      status = Status::error("cannot write '" + path + "': " + std::strerror(errno));
    if (!status.ok())
      unlink(temporary.c_str());
  }
  written = status.ok();
  return status;
}

} // namespace braid::runtime
