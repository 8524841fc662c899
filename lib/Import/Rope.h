//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rotation angles of a model's queries and keys.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_LIB_IMPORT_ROPE_H
#define BRAID_LIB_IMPORT_ROPE_H

#include "Config.h"

namespace braid {

/// Angle per position of each pair of a head's elements, in f64, for sequences of `seq` tokens.
/// Reads either spelling: `rope_theta` with `rope_scaling`, or `rope_parameters`. Knows the types
/// default, linear, dynamic and llama3.
llvm::Expected<std::vector<double>> rotaryFrequencies(const Config &config, int64_t headDim,
                                                      int64_t seq);
/// The rope's type; "default" when missing.
llvm::Expected<std::string> rotaryType(const Config &config);

} // namespace braid
#endif // BRAID_LIB_IMPORT_ROPE_H
