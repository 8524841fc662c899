//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Doctor.h"
#include "Paths.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace braid::runtime;
using braid::runtime::testing::kFakeLibrariesFolder;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace {

using State = Finding::State;

class DoctorTest : public ::testing::Test {
protected:
  void SetUp() override {
    const char *base = std::getenv("TMPDIR");
    directory = std::string(base ? base : "/tmp") + "/braid-doctor-test-XXXXXX";
    ASSERT_NE(mkdtemp(directory.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  void write(const std::string &file, const std::string &text) {
    std::filesystem::create_directories(
        std::filesystem::path(directory + "/" + file).parent_path());
    std::ofstream(directory + "/" + file) << text;
  }

  /// A host without any optional library.
  DoctorOptions bare() {
    DoctorOptions options;
    options.libraryDirectories = {directory};
    return options;
  }

  static Finding find(const Diagnosis &diagnosis, const std::string &name) {
    for (const Finding &finding : diagnosis.findings)
      if (finding.name == name)
        return finding;
    ADD_FAILURE() << "nothing is said of " << name;
    return {};
  }

  std::string directory;
};

TEST_F(DoctorTest, ThisHostRunsTheCpuTarget) {
  Diagnosis diagnosis = diagnose();
  EXPECT_TRUE(diagnosis.ready()) << diagnosis.text();
  EXPECT_THAT(diagnosis.text(), EndsWith("the CPU target has all that it needs\n"));
  EXPECT_EQ(find(diagnosis, "oneDNN").state, State::used);
  EXPECT_THAT(find(diagnosis, "oneDNN").found, HasSubstr("libdnnl"));
}

TEST_F(DoctorTest, WithoutLibraries) {
  Diagnosis diagnosis = diagnose(bare());
  EXPECT_TRUE(diagnosis.ready());
  for (const char *name : {"MPI", "UCX", "CUDA driver", "cuBLASLt", "NCCL"})
    EXPECT_EQ(find(diagnosis, name).state, State::absent) << name;
  EXPECT_EQ(find(diagnosis, "MPI").found, "no libmpi.so.40, libmpi.so.12, libmpi.so");
}

TEST_F(DoctorTest, LibrariesSayTheirVersions) {
  DoctorOptions options;
  options.libraryDirectories = {directory, kFakeLibrariesFolder};
  Diagnosis diagnosis = diagnose(options);
  const std::string place = kFakeLibrariesFolder;
  EXPECT_EQ(find(diagnosis, "MPI").found, "Some MPI v9.8.7, " + place + "/libmpi.so.40");
  EXPECT_EQ(find(diagnosis, "CUDA driver").found,
            "for CUDA 13.2, 2 GPUs, " + place + "/libcuda.so.1");
  EXPECT_EQ(find(diagnosis, "cuBLASLt").found, "13.0.2, " + place + "/libcublasLt.so.13");
  EXPECT_EQ(find(diagnosis, "NCCL").found, "2.27.3, " + place + "/libnccl.so.2");
  EXPECT_EQ(find(diagnosis, "UCX").found, "1.99.7, " + place + "/libucp.so.0");
  EXPECT_EQ(find(diagnosis, "MPI").state, State::unused);
  for (const char *name : {"UCX", "CUDA driver", "cuBLASLt", "NCCL"})
    EXPECT_EQ(find(diagnosis, name).state, State::used) << name;
  EXPECT_EQ(find(diagnosis, "cuBLASLt").use, "matmuls on GPUs");
}

TEST_F(DoctorTest, TransportsOfUcx) {
  Finding ucx = find(diagnose(), "UCX");
  if (ucx.state == State::absent)
    GTEST_SKIP() << "UCX is not here: " << ucx.found;
  EXPECT_THAT(ucx.found, ContainsRegex("^1\\.[0-9.]+, .*/libucp\\.so\\.0.*, transports .*tcp"));
}

TEST_F(DoctorTest, LibrariesWithoutGpu) {
  // All libraries except the driver.
  for (const char *file : {"libcublasLt.so.13", "libnccl.so.2"})
    std::filesystem::create_symlink(std::string(kFakeLibrariesFolder) + "/" + file,
                                    directory + "/" + file);
  Diagnosis diagnosis = diagnose(bare());
  EXPECT_EQ(find(diagnosis, "CUDA driver").state, State::absent);
  for (const char *name : {"cuBLASLt", "NCCL"}) {
    EXPECT_EQ(find(diagnosis, name).state, State::unused) << name;
    EXPECT_EQ(find(diagnosis, name).use, "not used: there is no GPU");
  }
}

TEST_F(DoctorTest, DamagedLibrary) {
  write("libnccl.so.2", "no library");
  Finding nccl = find(diagnose(bare()), "NCCL");
  EXPECT_EQ(nccl.state, State::absent);
  EXPECT_THAT(nccl.found, StartsWith(directory + "/libnccl.so.2: "));
}

TEST_F(DoctorTest, KernelSettings) {
  DoctorOptions options = bare();
  options.kernelSettings = directory;
  EXPECT_EQ(find(diagnose(options), "huge pages").state, State::absent);
  write("transparent_hugepage/enabled", "always [madvise] never\n");
  EXPECT_EQ(find(diagnose(options), "huge pages").found, "transparent: madvise");
  EXPECT_EQ(find(diagnose(options), "huge pages").state, State::used);
  write("transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(find(diagnose(options), "huge pages").state, State::unused);
  write("transparent_hugepage/enabled", "[always] madvise never\n");
  EXPECT_EQ(find(diagnose(options), "huge pages").state, State::used);
}

TEST_F(DoctorTest, WhatIsMissingIsSaid) {
  DoctorOptions options = bare();
  options.processes = directory;
  write("meminfo", "MemTotal:  2097152 kB\nHugePages_Total:       0\nMemAvailable: 1048576 kB\n");
  Diagnosis diagnosis = diagnose(options);
  EXPECT_EQ(find(diagnosis, "memory").found, "2.0 GiB, 1.0 GiB available");
  EXPECT_EQ(find(diagnosis, "kernel loading").state, State::missing);
  EXPECT_EQ(find(diagnosis, "kernel loading").found, "no " + directory + "/self/fd");
  EXPECT_FALSE(diagnosis.ready());
  EXPECT_THAT(diagnosis.text(), EndsWith("the CPU target lacks what is 'missing'\n"));
  auto json = nlohmann::json::parse(diagnosis.json());
  EXPECT_FALSE(json["ready"].get<bool>());
  EXPECT_EQ(json["findings"].size(), diagnosis.findings.size());
}

TEST_F(DoctorTest, NoTemporaryDirectory) {
  const char *before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", (directory + "/nothing").c_str(), 1);
  Diagnosis diagnosis = diagnose(bare());
  before ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_EQ(find(diagnosis, "temporary directory").state, State::missing);
  EXPECT_EQ(find(diagnosis, "temporary directory").found,
            directory + "/nothing: No such file or directory");
  EXPECT_FALSE(diagnosis.ready());
}

} // namespace
