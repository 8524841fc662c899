//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "lib/Import/Rope.h"

#include "test/unit/Runtime/Testing.h"

#include <gmock/gmock.h>

using namespace braid;

namespace {

/// The frequencies as text, or the error message.
std::string frequencies(const std::string &fields, int64_t headDim, int64_t seq,
                        std::vector<double> &values) {
  runtime::testing::TemporaryFolder folder;
  std::string path = folder.path("config.json");
  runtime::testing::put(path, "{\"max_position_embeddings\": 16, " + fields + "}");
  llvm::Expected<Config> config = Config::read(path);
  if (!config)
    return llvm::toString(config.takeError());
  llvm::Expected<std::vector<double>> result = rotaryFrequencies(*config, headDim, seq);
  if (!result)
    return llvm::toString(result.takeError());
  values = *result;
  return "";
}

void expect(const std::string &fields, int64_t headDim, int64_t seq,
            const std::vector<double> &expected) {
  std::vector<double> values;
  ASSERT_EQ(frequencies(fields, headDim, seq, values), "") << fields;
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-12 * expected[i]) << fields << ", pair " << i;
}

void expectError(const std::string &fields, const std::string &message) {
  std::vector<double> values;
  EXPECT_THAT(frequencies(fields, 4, 8, values), ::testing::HasSubstr(message));
}

TEST(Rope, BothSpellings) {
  for (const char *fields :
       {"\"rope_theta\": 100", "\"rope_theta\": 100, \"rope_scaling\": null",
        "\"rope_parameters\": {\"rope_theta\": 100, \"rope_type\": \"default\"}"})
    expect(fields, 4, 8, {1, 0.1});
  expect("\"rope_scaling\": {}", 4, 8, {1, 0.01});
}

TEST(Rope, Linear) {
  for (const char *fields :
       {"\"rope_theta\": 100, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 4}",
        "\"rope_theta\": 100, \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4}",
        "\"rope_parameters\": {\"rope_theta\": 100, \"rope_type\": \"linear\", \"factor\": 4}"})
    expect(fields, 4, 8, {0.25, 0.025});
}

TEST(Rope, DynamicStretchesLongSequencesOnly) {
  const char *fields =
      "\"rope_theta\": 100, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}";
  expect(fields, 4, 16, {1, 0.1});
  // Twice the trained length: the base is 100 * (2 * 2 - 1)^(4 / 2) = 900.
  expect(fields, 4, 32, {1, 1.0 / 30});
}

TEST(Rope, Llama3) {
  // The original context has 2 pi * 8 positions, in which the pairs turn 8, 2.53, 0.8 and 0.253
  // times. The first pair is fast, the last is slow, and the others are interpolated.
  std::vector<double> values;
  const char *fields = "\"rope_theta\": 100, \"rope_scaling\": {\"rope_type\": \"llama3\", "
                       "\"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
                       "\"original_max_position_embeddings\": 50}";
  ASSERT_EQ(frequencies(fields, 8, 8, values), "");
  const double pi = 3.14159265358979323846;
  double raw = 1 / std::sqrt(10.0), smooth = (50 * raw / (2 * pi) - 1) / 3;
  EXPECT_DOUBLE_EQ(values[0], 1);
  EXPECT_NEAR(values[1], (1 - smooth) * raw / 8 + smooth * raw, 1e-15);
  EXPECT_NEAR(values[2], 0.1 / 8, 1e-15);
  EXPECT_NEAR(values[3], raw / 80, 1e-15);
}

TEST(Rope, Errors) {
  expectError("\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2}",
              "rope type 'yarn' is not supported, expects default, linear, dynamic or llama3");
  expectError("\"rope_scaling\": {\"type\": \"linear\"}",
              "field 'rope_scaling.factor' is missing, expects a positive number");
  expectError("\"rope_scaling\": {\"type\": \"linear\", \"factor\": 0.5}",
              "expects a rope factor of at least 1, got");
  expectError("\"rope_scaling\": 3", "expects field 'rope_scaling' to be an object, got 3");
  expectError("\"rope_scaling\": {}, \"rope_parameters\": {}",
              "expects one of 'rope_parameters' and 'rope_scaling', got both");
  expectError("\"rope_theta\": 1, \"rope_parameters\": {\"rope_theta\": 2}",
              "expects 'rope_theta' to be that of 'rope_parameters', got");
  expectError("\"partial_rotary_factor\": 0.5", "is not supported, expects 1");
}

} // namespace
