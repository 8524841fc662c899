//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "OutputFiles.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Files.h"
#include "braid/Runtime/Npy.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

namespace braid::runtime {

OutputFiles::~OutputFiles() {
  if (created && !written)
    rmdir(directory.c_str());
}

Status OutputFiles::prepare(const std::string &path, const std::vector<std::string> &names) {
  if (path.empty())
    return {};
  for (const std::string &name : names)
    if (name.empty() || name[0] == '.' || name.find('/') != std::string::npos)
      return Status::error("result '", name, "' cannot be a file name");
  directory = path;
  if (mkdir(path.c_str(), 0777) == 0) {
    created = true;
    return {};
  }
  if (errno != EEXIST)
    return Status::error("cannot create output directory '", path, "': ", std::strerror(errno));
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return Status::error("cannot write to '", path, "': is not a directory");
  for (const std::string &name : names)
    RETURN_IF_ERROR(checkWritable(path + "/" + name + ".npy"));
  return {};
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
      status = Status::error("cannot write '", path, "': ", std::strerror(errno));
    if (!status.ok())
      unlink(temporary.c_str());
  }
  written = status.ok();
  return status;
}

} // namespace braid::runtime
