//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces libFuzzer in an ordinary build: runs every given file, and every file in the given
// folders, once.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

extern "C" size_t LLVMFuzzerMutate(uint8_t *, size_t size, size_t) { return size; }

int main(int argc, char **argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(argv[i], ignored)) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto &entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path &path : files) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) {
      std::fprintf(stderr, "cannot read '%s'\n", path.c_str());
      return 1;
    }
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    // When the process ends early, the last path is the faulty input.
    std::fprintf(stderr, "%s\n", path.c_str());
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  if (files.empty()) {
    std::fprintf(stderr, "expects files, or folders with files\n");
    return 1;
  }
  return 0;
}
