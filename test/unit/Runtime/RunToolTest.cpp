//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// braid-run in this process: arguments, exit status, files and messages.
//
//===----------------------------------------------------------------------===//
#include "LimitTesting.h"
#include "ProgramBuilder.h"
#include "braid/Runtime/Npy.h"
#include "braid/Runtime/RunOptions.h"

#include <cstdlib>
#include <filesystem>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

namespace {

constexpr DType f32 = DType::f32;

class RunTool : public ::testing::Test {
protected:
  void SetUp() override {
    const char *base = std::getenv("TMPDIR");
    directory = std::string(base ? base : "/tmp") + "/braid-run-test-XXXXXX";
    ASSERT_NE(mkdtemp(directory.data()), nullptr);
    ASSERT_OK(projection().bundle()->write(file("m.braid")));
    HostTensor x = HostTensor::zeros(f32, {4, 16});
    for (int i = 0; i < 64; ++i)
      x.as<float>()[i] = static_cast<float>(i % 7) - 3;
    ASSERT_OK(writeNpy(file("x.npy"), x));
  }
  void TearDown() override { std::filesystem::remove_all(directory); }
  std::string file(const std::string &name) const { return directory + "/" + name; }
  bool exists(const std::string &name) const { return access(file(name).c_str(), F_OK) == 0; }

  int run(std::vector<std::string> arguments, const RunHooks &hooks = {}) {
    std::vector<const char *> argv = {"braid-run"};
    for (const std::string &a : arguments)
      argv.push_back(a.c_str());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    int status = runMain(static_cast<int>(argv.size()), argv.data(), hooks);
    out = ::testing::internal::GetCapturedStdout();
    err = ::testing::internal::GetCapturedStderr();
    return status;
  }
  /// The arguments of a run that succeeds, followed by `more`.
  std::vector<std::string> good(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {file("m.braid"), "--random-weights", "5", "--input",
                                    "x=" + file("x.npy")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string directory, out, err;
};

TEST_F(RunTool, RunsChecksReportsAndTraces) {
  ASSERT_EQ(run(good({"--output", file("out")})), 0) << err;
  ASSERT_TRUE(exists("out/y.npy"));
  EXPECT_THAT(out, StartsWith("by hand on 2 ranks x 1 thread: median "));
  EXPECT_THAT(out, HasSubstr("communication: 128 bytes sent per rank, "));

  ASSERT_EQ(run(good({"--check", file("out/y.npy"), "--repeat", "4", "--warmup", "2", "--threads",
                      "2", "--report", file("r.json"), "--trace", file("t.json")})),
            0)
      << err;
  EXPECT_THAT(out, HasSubstr("relative L2 0, allowed 2e-05, largest difference 0: passed"));

  auto report = nlohmann::json::parse(get(file("r.json")));
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["threads_per_rank"], 2);
  EXPECT_EQ(report["runs"], 4);
  EXPECT_EQ(report["bytes_sent_per_rank"], 128);
  EXPECT_EQ(report["weights"], "random weights (seed 5)");
  EXPECT_EQ(report["collectives"][0]["name"], "proj");
  EXPECT_EQ(report["collectives"][0]["kind"], "all_reduce");
  EXPECT_EQ(report["checks"][0]["passed"], true);
  EXPECT_GT(report["median_run_s"], 0.0);
  EXPECT_GE(report["comm_s"], report["hidden_comm_s"]);

  auto trace = nlohmann::json::parse(get(file("t.json")));
  int products = 0, collectives = 0, waits = 0;
  for (const auto &event : trace["traceEvents"]) {
    products += event["name"] == "proj";
    collectives += event["name"] == "proj.sum" && event["cat"] == "communication" &&
                   event["args"]["bytes_sent"] == 128;
    waits += event["name"] == "wait proj.sum";
  }
  EXPECT_EQ(products, 2);
  EXPECT_EQ(collectives, 2);
  EXPECT_EQ(waits, 2);
}

TEST_F(RunTool, AFailedCheckExitsWithTwoAndWritesNoResult) {
  HostTensor wrong = HostTensor::zeros(f32, {4, 8});
  wrong.as<float>()[0] = 1;
  ASSERT_OK(writeNpy(file("y.npy"), wrong));
  EXPECT_EQ(run(good({"--check", file("y.npy"), "--output", file("out")})), 2);
  EXPECT_THAT(out, HasSubstr("allowed 2e-05"));
  EXPECT_THAT(out, HasSubstr("FAILED"));
  EXPECT_EQ(err, "braid-run: error: check failed for 'y'\n");
  EXPECT_FALSE(exists("out"));
  EXPECT_EQ(run(good({"--check", file("y.npy"), "--tolerance", "1000"})), 0);
  ASSERT_OK(writeNpy(file("y.npy"), HostTensor::zeros(f32, {4, 9})));
  EXPECT_EQ(run(good({"--check", file("y.npy")})), 1);
  EXPECT_THAT(err, HasSubstr("expects [4, 8] of result 'y', got [4, 9]"));
  EXPECT_EQ(run(good({"--check", "reference"})), 1);
  EXPECT_EQ(err, "braid-run: error: --check reference needs the compiler: use `braid run`\n");
}

TEST_F(RunTool, AStalledRankExitsWithThree) {
  expectRankFailed(
      MatchesRegex("braid-run: error: rank 0: all_reduce 'proj\\.sum' in @main on the "
                   "communication queue waited [0-9.]+ s for rank 1, which has not arrived \\(rank "
                   "1 is at matmul 'proj' in @main on its compute queue\\)\n"),
      [&](double limit) {
        int status = run(good({"--inject-stall", "1:proj", "--time-limit", std::to_string(limit),
                               "--output", file("out")}));
        return Status::error(err, status == 3 ? Code::rankFailed : Code::invalid);
      });
  EXPECT_FALSE(exists("out"));
}

TEST_F(RunTool, SaysAllThatIsMissing) {
  EXPECT_EQ(run({file("m.braid")}), 1);
  EXPECT_EQ(err,
            "braid-run: error: the model also needs:\n  --input x=FILE.npy   with f32 [4, 16]\n"
            "      (or --random-inputs SEED)\n"
            "  --weights FILE.safetensors   with 1 parameters (or --random-weights SEED):\n"
            "      proj.weight f32 [8, 16]\n");
}

TEST_F(RunTool, DrawsInputs) {
  auto drawn = [&](const std::string &seed, const std::string &directory) {
    EXPECT_EQ(run({file("m.braid"), "--random-weights", "5", "--random-inputs", seed, "--output",
                   file(directory)}),
              0)
        << err;
    return get(file(directory + "/y.npy"));
  };
  std::string once = drawn("1", "a");
  EXPECT_EQ(drawn("1", "b"), once);
  EXPECT_NE(drawn("2", "c"), once);
  EXPECT_EQ(run({file("m.braid"), "--random-weights", "5", "--random-inputs", "-1"}), 1);
  EXPECT_THAT(err, HasSubstr("--random-inputs: expects a whole number of at least 0, got -1"));
  // Given inputs are not drawn at random.
  ASSERT_EQ(run(good({"--output", file("d")})), 0) << err;
  ASSERT_EQ(run(good({"--output", file("e"), "--random-inputs", "1"})), 0) << err;
  EXPECT_EQ(get(file("d/y.npy")), get(file("e/y.npy")));
}

TEST_F(RunTool, RefusesWrongRequests) {
  EXPECT_EQ(run(good({"--ranks", "4"})), 1);
  EXPECT_EQ(err, "braid-run: error: bundle is for mesh <tp = 2> (2 ranks), got 4 ranks\n");
  EXPECT_EQ(run(good({"--input", "z=" + file("x.npy")})), 1);
  EXPECT_EQ(err, "braid-run: error: the model has no input 'z', it has 'x' f32 [4, 16]\n");
  EXPECT_EQ(run(good({"--input", "x"})), 1);
  EXPECT_EQ(err, "braid-run: error: --input expects NAME=FILE.npy, got 'x'\n");
  EXPECT_EQ(run(good({"--input", "x=" + file("x.npy")})), 1);
  EXPECT_EQ(err, "braid-run: error: --input 'x' is given twice\n");
  EXPECT_EQ(run(good({"--weights", "w.safetensors"})), 1);
  EXPECT_THAT(err, HasSubstr("excludes"));
  EXPECT_EQ(run(good({"--output", file("missing/out")})), 1);
  EXPECT_THAT(err, HasSubstr("cannot create output directory"));
  EXPECT_EQ(run(good({"--output", file("x.npy")})), 1);
  EXPECT_THAT(err, HasSubstr("is not a directory"));
  EXPECT_EQ(run(good({"--output", "/proc/self"})), 1);
  EXPECT_THAT(err, HasSubstr("cannot write '/proc/self/"));
  EXPECT_EQ(run(good({"--report", file("missing/r.json")})), 1);
  EXPECT_THAT(err, HasSubstr("cannot write '"));
  EXPECT_EQ(run({file("nothing.braid")}), 1);
  EXPECT_THAT(err, HasSubstr("nothing.braid"));
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_THAT(out, HasSubstr("Exit status:"));
  EXPECT_THAT(out, Not(HasSubstr("reference"))); // needs the compiler's hooks
  EXPECT_EQ(run(good({"--cuda-graph"})), 1);
  EXPECT_EQ(err, "braid-run: error: --cuda-graph expects --target cuda\n");
  EXPECT_EQ(run(good({"--cuda-library", "/nowhere/libcuda.so"})), 1);
  EXPECT_EQ(err, "braid-run: error: --cuda-library expects --target cuda\n");
  EXPECT_EQ(run(good({"--target", "cuda", "--cuda-library", "/nowhere/libcuda.so"})), 1);
  EXPECT_THAT(err,
              HasSubstr("braid-run: error: target 'cuda' expects an NVIDIA GPU and its driver "
                        "on this machine: cannot load the CUDA driver: /nowhere/libcuda.so: "));
}

TEST_F(RunTool, HooksAddTheReference) {
  RunHooks hooks;
  hooks.program = "braid run";
  std::string mesh;
  hooks.extraOptions.push_back({"--mesh", "mesh to compile for", &mesh});
  float scale = 1;
  hooks.reference =
      [&](const ReferenceRequest &request) -> Result<std::map<std::string, HostTensor>> {
    HostTensor weight = HostTensor::zeros(f32, {8, 16}), y = HostTensor::zeros(f32, {4, 8});
    Status status =
        request.weights->read(request.entry.parameters[0], {{0, 0}, {8, 16}}, weight.data.data());
    if (!status.ok())
      return status;
    const float *x = request.inputs.at("x").as<float>();
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 8; ++j)
        for (int k = 0; k < 16; ++k)
          y.as<float>()[i * 8 + j] += scale * x[i * 16 + k] * weight.as<float>()[j * 16 + k];
    return std::map<std::string, HostTensor>{{"y", y}};
  };
  EXPECT_EQ(run(good({"--check", "reference", "--mesh", "tp=2"}), hooks), 0) << err;
  EXPECT_EQ(mesh, "tp=2");
  scale = 1.001f;
  EXPECT_EQ(run(good({"--check", "reference"}), hooks), 2);
  EXPECT_EQ(err, "braid run: error: check failed for 'y'\n");
  scale = 1;
  EXPECT_EQ(run(good({"--target", "reference", "--output", file("ref")}), hooks), 0) << err;
  EXPECT_TRUE(exists("ref/y.npy"));
  EXPECT_EQ(run(good({"--check", file("ref/y.npy")})), 0) << err;
}

} // namespace
