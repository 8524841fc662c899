//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Rope.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>

using namespace braid;
using llvm::Expected;
using llvm::StringRef;

namespace {

constexpr double kPi = 3.14159265358979323846;

/// The object with the settings, and the base, which is outside of the object in the old spelling.
struct Settings {
  Config scaling;
  double theta;
};

Expected<Settings> readSettings(const Config &config) {
  constexpr double kDefaultTheta = 10000;
  bool both = config.has("rope_parameters") && config.has("rope_scaling");
  if (both)
    return importError("'", config.path(),
                       "': expects one of 'rope_parameters' and 'rope_scaling', got both");
  bool modern = config.has("rope_parameters");
  Expected<Config> scaling = config.object(modern ? "rope_parameters" : "rope_scaling");
  if (!scaling)
    return scaling.takeError();
  Expected<double> outer = config.positive("rope_theta", kDefaultTheta);
  if (!outer)
    return outer.takeError();
  Expected<double> theta = scaling->positive("rope_theta", *outer);
  if (!theta)
    return theta.takeError();
  if (modern && config.has("rope_theta") && *theta != *outer)
    return importError("'", config.path(),
                       "': expects 'rope_theta' to be that of 'rope_parameters', got ", *outer,
                       " and ", *theta);
  return Settings{std::move(*scaling), *theta};
}

std::vector<double> geometric(double theta, int64_t headDim) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < headDim; i += 2)
    frequencies.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(headDim)));
  return frequencies;
}

/// Divides frequencies whose period is long relative to the original context by `factor`, keeps
/// high frequencies, and interpolates between.
llvm::Error scaleLlama3(const Config &scaling, std::vector<double> &frequencies, double factor) {
  Expected<double> low = scaling.positive("low_freq_factor");
  if (!low)
    return low.takeError();
  Expected<double> high = scaling.positive("high_freq_factor");
  if (!high)
    return high.takeError();
  Expected<int64_t> original = scaling.size("original_max_position_embeddings");
  if (!original)
    return original.takeError();
  if (*high <= *low)
    return importError("'", scaling.path(),
                       "': expects 'high_freq_factor' to be more than 'low_freq_factor', got ",
                       *high, " and ", *low);
  for (double &frequency : frequencies) {
    double turns = static_cast<double>(*original) * frequency / (2 * kPi);
    double keep = std::clamp((turns - *low) / (*high - *low), 0.0, 1.0);
    frequency *= keep + (1 - keep) / factor;
  }
  return llvm::Error::success();
}

} // namespace

Expected<std::string> braid::rotaryType(const Config &config) {
  Expected<Settings> settings = readSettings(config);
  if (!settings)
    return settings.takeError();
  // Early configurations call it "type".
  StringRef field = settings->scaling.has("rope_type") ? "rope_type" : "type";
  return settings->scaling.string(field, "default");
}

Expected<std::vector<double>> braid::rotaryFrequencies(const Config &config, int64_t headDim,
                                                       int64_t seq) {
  Expected<Settings> settings = readSettings(config);
  if (!settings)
    return settings.takeError();
  // The module lists all frequencies.
  constexpr int64_t kMaxHeadDim = 1 << 16;
  if (headDim > kMaxHeadDim)
    return importError("'", config.path(), "': expects heads of at most ", kMaxHeadDim,
                       " elements for rotary embedding, got ", headDim);
  const Config &scaling = settings->scaling;
  Expected<std::string> type = rotaryType(config);
  if (!type)
    return type.takeError();
  if (!llvm::is_contained({"default", "linear", "dynamic", "llama3"}, *type))
    return importError("'", config.path(), "': rope type '", *type,
                       "' is not supported, expects default, linear, dynamic or llama3");
  for (const Config *holder : {&config, &scaling}) {
    Expected<double> partial = holder->positive("partial_rotary_factor", 1);
    if (!partial)
      return partial.takeError();
    if (*partial != 1)
      return importError("'", config.path(), "': partial_rotary_factor ", *partial,
                         " is not supported, expects 1");
  }
  if (*type == "default")
    return geometric(settings->theta, headDim);
  Expected<double> factor = scaling.positive("factor");
  if (!factor)
    return factor.takeError();
  if (*factor < 1)
    return importError("'", config.path(), "': expects a rope factor of at least 1, got ", *factor);

  if (*type == "dynamic") {
    if (headDim < 4)
      return importError("'", config.path(),
                         "': expects heads of at least 4 elements for dynamic rope, got ", headDim);
    Expected<int64_t> positions = config.size("max_position_embeddings");
    if (!positions)
      return positions.takeError();
    // The base grows with the sequence beyond the length that the model was trained for.
    double stretch =
        static_cast<double>(std::max(seq, *positions)) / static_cast<double>(*positions);
    double dim = static_cast<double>(headDim);
    return geometric(settings->theta * std::pow(*factor * stretch - (*factor - 1), dim / (dim - 2)),
                     headDim);
  }
  std::vector<double> frequencies = geometric(settings->theta, headDim);
  if (*type == "linear") {
    for (double &frequency : frequencies)
      frequency /= *factor;
    return frequencies;
  }
  if (llvm::Error error = scaleLlama3(scaling, frequencies, *factor))
    return error;
  return frequencies;
}
