//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs a program with its manifest. Execution must be safe for every program that the verifier
// accepts, whatever it computes. Kernels are excluded: they are machine code, which the user of a
// bundle has to trust.
//
//===----------------------------------------------------------------------===//
#include "braid/Program/Program.h"
#include "Fuzz.h"
#include "ProgramMutator.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/ManifestJson.h"
#include "braid/Runtime/Model.h"

#include <algorithm>
#include <map>

using namespace braid::runtime;
using namespace braid::fuzz;
namespace fb = braid::program;

namespace {

void doNothing(void *const *) {}

/// Whether a program is small enough to be run thousands of times. Products of sizes saturate at
/// the limit.
class Budget {
public:
  bool fits(const Bytes &bytes, const Manifest &manifest) {
    constexpr int64_t kMaxRanks = 8;
    if (manifest.mesh.numRanks() > kMaxRanks)
      return false;
    const fb::Program *program = fb::GetProgram(bytes.data());
    for (const fb::Procedure *procedure : *program->procedures()) {
      take(procedure->local_bytes());
      take(procedure->symmetric_bytes());
      take(uint64_t(procedure->num_events()));
      for (const fb::Stream *stream : *procedure->streams())
        for (const fb::Command *command : *stream->commands())
          take(*command);
    }
    for (const Entry &entry : manifest.entries) {
      for (const Parameter &p : entry.parameters)
        take(p.globalShape);
      for (const auto *values : {&entry.operands, &entry.results})
        for (const EntryValue &value : *values)
          take(value.shardedShape());
    }
    return left > 0;
  }

private:
  void take(uint64_t amount) {
    left -= static_cast<int64_t>(std::min<uint64_t>(amount, uint64_t(1) << 40));
    left = std::max<int64_t>(left, -1);
  }
  template <typename Shape> uint64_t product(const Shape &shape) {
    uint64_t result = 1;
    for (int64_t size : shape)
      if (__builtin_mul_overflow(result, static_cast<uint64_t>(size), &result))
        return UINT64_MAX;
    return result;
  }
  template <typename Shape> void take(const Shape &shape) { take(product(shape)); }
  void take(const fb::View *view) {
    if (view)
      take(product(*view->shape()));
  }
  void takeTimes(const fb::View *view, int64_t times) {
    uint64_t amount = product(*view->shape());
    if (__builtin_mul_overflow(amount, static_cast<uint64_t>(times), &amount))
      amount = UINT64_MAX;
    take(amount);
  }
  /// Counts a command's work where it exceeds the bytes of its views.
  void take(const fb::Command &command) {
    take(uint64_t(64));
    if (const fb::Launch *launch = command.op_as_Launch()) {
      // A matmul reads the rows of its second operand for each element of the first operand;
      // attention reads the keys for each element of the queries. No kernel does more.
      const auto &operands = *launch->operands();
      for (const fb::View *operand : operands)
        take(operand);
      if (operands.size() > 1 && operands.Get(1)->shape()->size() > 0) {
        const auto &second = *operands.Get(1)->shape();
        takeTimes(operands.Get(0), *std::max_element(second.begin(), second.end()));
      }
    } else if (const fb::Copy *copy = command.op_as_Copy()) {
      take(copy->source());
    } else if (command.op_as_Call()) {
      take(uint64_t(4096)); // the procedure is expanded at each call
    }
  }
  int64_t left = 1 << 21;
};

HostTensor inputFor(const EntryValue &operand, Random &random) {
  HostTensor tensor = HostTensor::zeros(operand.dtype, operand.globalShape);
  const size_t bytes = static_cast<size_t>(byteSize(operand.dtype));
  // Mostly small integers, valid as ids, lengths and counts, and sometimes an arbitrary value.
  for (size_t i = 0; i < tensor.data.size(); ++i)
    if (i % bytes == 0)
      tensor.data[i] = static_cast<std::byte>(random.below(4));
  if (!tensor.data.empty() && random.oneIn(2))
    random.of(tensor.data) = static_cast<std::byte>(random.next());
  return tensor;
}

void execute(const ProgramInput &input, const Manifest &manifest,
             const std::map<std::string, KernelFunction> &kernels) {
  BundleContents contents{manifest, {{manifest.programMember, input.program}}};
  contents.manifest.kernels.clear(); // `kernels` stands in for them
  contents.manifest.moduleMember.clear();
  Result<Bundle> bundle = Bundle::create(std::move(contents));
  if (!bundle.ok())
    return;
  WorldOptions options;
  options.threadsPerRank = input.choices & 1 ? 2 : 1;
  options.trace = input.choices & 2;
  options.kernels = &kernels;
  options.timeLimitSeconds = 0.2; // a send without its recv stalls, which is a valid outcome
  const Result<std::shared_ptr<const World>> world = World::create(options);
  require(world.ok(), "the options are right");
  auto model = Model::load(*world, std::make_shared<const Bundle>(std::move(*bundle)));
  if (!model.ok())
    return;
  Execution *execution = *(*model)->execution(manifest.entries[0].name);
  const Entry &entry = execution->entry();
  Random random(input.choices);
  if (!entry.parameters.empty() && !(*model)->loadWeights(*WeightSource::random(7)).ok())
    return;
  for (const EntryValue &operand : entry.operands)
    if (!execution->setInput(operand.name, inputFor(operand, random)).ok())
      return;
  if (!execution->run().ok())
    return;
  // A changed program may give ranks different values where they should be equal.
  for (const EntryValue &result : entry.results) {
    const Result<HostTensor> output = execution->output(result.name);
    require(output.ok() || output.status().message().find("expects equal values on ranks") !=
                               std::string::npos,
            "a run that succeeded has its outputs");
  }
  (void)execution->report();
  if (options.trace)
    (void)execution->writeTrace("/dev/null");
}

void interpret(const ProgramInput &input, const Manifest &manifest) {
  auto lookup = [](const std::string &) -> Result<KernelFunction> { return doNothing; };
  const Entry &entry = manifest.entries[0];
  auto interpreter =
      braid::interp::ProgramInterpreter::create(input.program, manifest, entry, lookup);
  if (!interpreter.ok() || !(*interpreter)->loadWeights(*WeightSource::random(7)).ok())
    return;
  Random random(input.choices);
  for (const EntryValue &operand : entry.operands)
    if (!(*interpreter)->setInput(operand.name, inputFor(operand, random)).ok())
      return;
  (void)(*interpreter)->run(1);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ProgramInput input;
  if (!ProgramInput::parse(data, size, input))
    return 0;
  Result<Manifest> manifest = manifestFromJson(input.manifest);
  if (!manifest.ok() || !verifyProgram(input.program, *manifest).ok())
    return 0;
  if (!Budget().fits(input.program, *manifest) || manifest->entries.empty())
    return 0;
  std::map<std::string, KernelFunction> kernels;
  for (const fb::Kernel *kernel : *fb::GetProgram(input.program.data())->kernels())
    kernels[kernel->symbol()->str()] = doNothing;
  if (input.choices & 4)
    interpret(input, *manifest);
  else
    execute(input, *manifest, kernels);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  ProgramInput input;
  if (!ProgramInput::parse(data, size, input))
    return LLVMFuzzerMutate(data, size, maxSize);
  if (random.oneIn(8))
    input.choices = static_cast<uint8_t>(random.next());
  else if (random.oneIn(8))
    input.manifest = mutateJson(input.manifest, random);
  else if (random.oneIn(5))
    mutateExtent(input, random);
  else
    input.program = mutateProgram(input.program, random);
  std::string bytes = input.bytes();
  return put(bytes.data(), bytes.size(), data, size, maxSize);
}
