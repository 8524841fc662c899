//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "RandomExchange.h"

#include <sstream>

namespace braid::test {
namespace {

constexpr const char *kType = "tensor<4x6xf32>";

class Stages {
public:
  explicit Stages(Random &random) : random(random) {}

  std::string build() {
    stages = 2 + below(2);
    batches = 1 + below(4);
    ranks = 1 + below(2);
    std::ostringstream os;
    os << "comm.mesh @mesh <pp = " << stages << ", tp = " << ranks << ">\n";
    for (size_t stage = 0; stage < stages; ++stage)
      os << function(stage);
    os << "func.func @main(";
    for (size_t batch = 0; batch < batches; ++batch)
      os << (batch ? ", " : "") << "%x" << batch << ": " << kType << " {nn.name = \"x" << batch
         << "\", comm.on = " << place(0) << "}";
    os << ") -> (";
    for (size_t batch = 0; batch < batches; ++batch)
      os << (batch ? ", " : "") << kType << " {nn.name = \"y" << batch
         << "\", comm.on = " << place(stages - 1) << "}";
    os << ") attributes {nn.entry} {\n";
    for (size_t stage = 0; stage < stages; ++stage) {
      std::string on = place(stage);
      os << "  %w" << stage << " = nn.parameter \"w" << stage << "\" of tensor<6x" << 6 * ranks
         << "xf32> sharded <@mesh, [{}, {tp}]> on " << on.substr(on.find('<'))
         << " : tensor<6x6xf32>\n";
    }
    std::vector<size_t> next(stages, 0); // batches that each stage has begun
    for (size_t calls = stages * batches; calls > 0;) {
      const size_t stage = below(stages);
      if (next[stage] == batches)
        continue;
      os << call(stage, next[stage]++);
      --calls;
    }
    os << "  return ";
    for (size_t batch = 0; batch < batches; ++batch)
      os << (batch ? ", " : "") << "%y" << batch;
    os << " : ";
    for (size_t batch = 0; batch < batches; ++batch)
      os << (batch ? ", " : "") << kType;
    os << "\n}\n";
    return os.str();
  }

private:
  size_t below(size_t n) { return random() % n; }
  static std::string place(size_t stage) {
    return "#comm.place<@mesh, {pp = [" + std::to_string(stage) + "]}>";
  }
  std::string message(const char *kind, size_t from) const {
    return std::string(kind) + " pairs [" + std::to_string(from) + " -> " +
           std::to_string(from + 1) + "] over <@mesh, {pp}> tag " + std::to_string(from) +
           " role \"hand-off." + std::to_string(from) + "\" : " + kType + "\n";
  }

  std::string function(size_t stage) {
    std::ostringstream os;
    const bool isFirst = stage == 0, isLast = stage + 1 == stages;
    os << "func.func private @stage" << stage << "(" << (isFirst ? "%v0: " : "")
       << (isFirst ? kType : "") << (isFirst ? ", " : "") << "%w: tensor<6x6xf32>)"
       << (isLast ? std::string(" -> ") + kType : "") << " {\n";
    if (!isFirst)
      os << "  %v0 = " << message("comm.recv", stage - 1);
    size_t value = 0;
    for (size_t i = 0, n = 1 + below(4); i < n; ++i) {
      const std::string from = "%v" + std::to_string(value), to = "%v" + std::to_string(++value);
      switch (below(3)) {
      case 0:
        os << "  " << to << " = nn.activation " << (below(2) ? "tanh " : "gelu ") << from << " : "
           << kType << "\n";
        break;
      case 1:
        os << "  " << to << " = nn.add " << from << ", %v" << below(value) << " : " << kType << ", "
           << kType << " -> " << kType << "\n";
        break;
      default: // a sum over the ranks of the stage, of products with parts of a weight
        os << "  %p" << value << " = nn.activation tanh " << from << " : " << kType << "\n"
           << "  %m" << value << " = nn.matmul %p" << value << ", %w : " << kType
           << ", tensor<6x6xf32> -> " << kType << "\n"
           << "  %g" << value << " = comm.all_gather(%m" << value
           << ") dim 1 over <@mesh, {tp}> role \"gather." << value << "\" : " << kType
           << " -> tensor<4x" << 6 * ranks << "xf32>\n"
           << "  " << to << " = nn.slice %g" << value << " dim 1 from " << below(6 * ranks - 5)
           << " size 6 : tensor<4x" << 6 * ranks << "xf32> -> " << kType << "\n";
      }
    }
    const std::string last = "%v" + std::to_string(value);
    if (isLast)
      os << "  return " << last << " : " << kType << "\n}\n";
    else
      os << "  comm.send(" << last << ") " << message("", stage).substr(1) << "  return\n}\n";
    return os.str();
  }

  std::string call(size_t stage, size_t batch) {
    std::ostringstream os;
    const bool isFirst = stage == 0, isLast = stage + 1 == stages;
    os << "  ";
    if (isLast)
      os << "%y" << batch << " = ";
    os << "func.call @stage" << stage << "(";
    if (isFirst)
      os << "%x" << batch << ", ";
    os << "%w" << stage << ") {comm.on = " << place(stage) << "} : (";
    if (isFirst)
      os << kType << ", ";
    os << "tensor<6x6xf32>) -> " << (isLast ? kType : "()") << "\n";
    return os.str();
  }

  Random &random;
  size_t stages = 2, batches = 1, ranks = 1;
};

} // namespace

std::string buildStages(Random &random) { return Stages(random).build(); }

} // namespace braid::test
