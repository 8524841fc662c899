//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Injects every fault of two kinds into a program: it removes a wait, or places a buffer or a
// callee's frame over another buffer. Three checks must agree on each fault: the check of
// procedures (rt), the check of the serialized program's order, and a hundred runs of the program
// interpreter. The programs are a BERT, and a program with communication in flight during
// computation. In the programs of examples/programs, waits are removed and commands and parts
// moved; the first two checks must agree. In the pipeline, ranks run different commands.
//
//===----------------------------------------------------------------------===//
#include "../Import/Testing.h"
#include "braid/Base/Weights.h"
#include "braid/Conversion/BufferCheck.h"
#include "braid/InitAll.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/KernelLibrary.h"
#include "braid/Target/Bundle/Bundle.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Program/program_generated.h"
#pragma clang diagnostic pop

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

#include <algorithm>

using namespace mlir;
using namespace braid;

namespace {

namespace fb = braid::program;
using runtime::Bytes;
using runtime::HostTensor;

constexpr int64_t kSchedules = 100;

/// Two branches. The second is computed while the sum of the first is in flight.
constexpr const char *kBranches = R"(
comm.mesh @mesh <tp = 2>
func.func private @branches(%x: tensor<8x4xf32>, %a: tensor<8x4xf32>, %b: tensor<4x8xf32>, %c: tensor<8x4xf32>,
                            %d: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %0 = nn.linear %x, %a role "mlp.up" : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x8xf32>
  %1 = nn.linear %0, %b role "mlp.down" : tensor<8x8xf32>, tensor<4x8xf32> -> tensor<8x4xf32>
  %2 = nn.linear %x, %c role "mlp.up" : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x8xf32>
  %3 = nn.linear %2, %d role "mlp.down" : tensor<8x8xf32>, tensor<4x8xf32> -> tensor<8x4xf32>
  %4 = nn.activation silu %1 : tensor<8x4xf32>
  %5 = nn.activation silu %3 : tensor<8x4xf32>
  %6 = nn.add %4, %5 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %6 : tensor<8x4xf32>
}
func.func @main(%x: tensor<8x4xf32> {nn.name = "x"}) -> (tensor<8x4xf32> {nn.name = "y"}) attributes {nn.entry} {
  %a = nn.parameter "a" : tensor<8x4xf32>
  %b = nn.parameter "b" : tensor<4x8xf32>
  %c = nn.parameter "c" : tensor<8x4xf32>
  %d = nn.parameter "d" : tensor<4x8xf32>
  %0 = call @branches(%x, %a, %b, %c, %d) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>,
                                             tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = nn.activation silu %0 : tensor<8x4xf32>
  %2 = call @branches(%1, %a, %b, %c, %d) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x8xf32>, tensor<8x4xf32>,
                                             tensor<4x8xf32>) -> tensor<8x4xf32>
  %3 = nn.add %0, %2 : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
)";

/// A program compiled with tp=2.
class ProgramFaults : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    const StringRef name = GetParam();
    const std::string file = BRAID_PROGRAMS "/" + name.lower() + ".mlir";
    const bool isByHand = name != "Bert" && name != "Branches";
    if (name == "Bert")
      module = importBert();
    else if (name == "Branches")
      module = parseSourceString<ModuleOp>(kBranches, context.get());
    else if (name.starts_with("Weights"))
      module = parseSourceString<ModuleOp>(
          printedBy("weights.py 3" + std::string(name == "Weights" ? "" : " --inside")),
          context.get());
    else if (name == "Pipeline")
      module = parseSourceString<ModuleOp>(printedBy("pipeline.py 2 3"), context.get());
    else
      module = parseSourceFile<ModuleOp>(file, context.get());
    ASSERT_TRUE(module);
    CompileOptions options;
    if (!isByHand)
      options.mesh = "tp=2";
    options.isas = {"host"};
    auto compiled = compileToBundle(*module, options);
    ASSERT_TRUE(succeeded(compiled));
    bundle.emplace(std::move(*compiled));
    auto loaded = runtime::KernelLibraryHandle::load(*bundle);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    kernels = std::move(*loaded);
  }

  /// What a script of examples/programs prints.
  static std::string printedBy(const std::string &script) {
    llvm::SmallString<128> path;
    llvm::ErrorOr<std::string> python = llvm::sys::findProgramByName("python3");
    if (!python || llvm::sys::fs::createTemporaryFile("program", "mlir", path)) {
      ADD_FAILURE() << "no python3, or no temporary file";
      return {};
    }
    llvm::FileRemover remover(path);
    SmallVector<StringRef> arguments;
    StringRef(script).split(arguments, ' ');
    const std::string file = BRAID_PROGRAMS "/" + arguments.front().str();
    arguments.front() = file;
    arguments.insert(arguments.begin(), *python);
    EXPECT_EQ(llvm::sys::ExecuteAndWait(*python, arguments, std::nullopt,
                                        {StringRef(), path.str(), StringRef()}, 60),
              0)
        << script;
    auto printed = llvm::MemoryBuffer::getFile(path);
    return printed ? (*printed)->getBuffer().str() : "";
  }

  /// A BERT of two layers.
  OwningOpRef<ModuleOp> importBert() {
    braid::testing::BertDirectory directory;
    directory.write();
    ImportOptions request;
    request.path = directory.path();
    request.batch = 2;
    request.seq = 4;
    auto imported = importHuggingFace(context.get(), request,
                                      [](const std::string &message) { ADD_FAILURE() << message; });
    return succeeded(imported) ? std::move(*imported) : OwningOpRef<ModuleOp>();
  }

  const Bytes &program() const { return bundle->program(); }

  /// The bits of the result in `count` orders, or the detected fault.
  runtime::Result<interp::ProgramResults> interpret(const Bytes &bytes, int64_t count) const {
    auto interpreter = interp::ProgramInterpreter::create(
        bytes, bundle->manifest(), bundle->manifest().entries[0],
        [&](const std::string &symbol) { return kernels->find(symbol); });
    if (!interpreter.ok())
      return interpreter.status();
    auto weights = runtime::WeightSource::random(3);
    if (runtime::Status status = (*interpreter)->loadWeights(*weights); !status.ok())
      return status;
    for (const runtime::EntryValue &operand : bundle->manifest().entries[0].operands) {
      HostTensor value = HostTensor::zeros(operand.dtype, operand.globalShape);
      for (int64_t i = 0; i < value.numElements(); ++i) {
        if (operand.dtype == runtime::DType::f32)
          value.as<float>()[i] = static_cast<float>(i % 7) - 2.5F;
        else
          value.as<int64_t>()[i] = operand.name == "input_ids" ? i : 1;
      }
      if (runtime::Status status = (*interpreter)->setInput(operand.name, value); !status.ok())
        return status;
    }
    return (*interpreter)->runSchedules(1, count);
  }

  runtime::Result<interp::ProgramRoles> expand(const Bytes &bytes) const {
    return interp::expandProgram(bytes, bundle->manifest(), bundle->manifest().entries[0]);
  }

  /// Whether the fault was detected. An error other than a failed check fails the test.
  bool isNoticed(const runtime::Result<interp::ProgramResults> &outcome, const std::string &what) {
    if (outcome.ok())
      return false;
    const std::string message = outcome.status().message();
    EXPECT_EQ(outcome.status().code(), runtime::Code::checkFailed) << what << ": " << message;
    const std::string prefix = "in the order of seed ";
    if (message.rfind(prefix, 0) == 0)
      lastSeed = std::max(lastSeed, std::stoll(message.substr(prefix.size())));
    return true;
  }

  void judge(rt::ProcedureOp procedure, const std::string &what, bool mayBeHarmless);
  void expectCounts();

  long long lastSeed = 0;             ///< the largest seed that was needed to detect a fault
  int64_t numWrong = 0, numRight = 0; ///< according to the check of procedures
  int64_t numHarmless = 0;            ///< of the wrong ones, those that the other checks accept
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  std::optional<runtime::Bundle> bundle;
  std::shared_ptr<const runtime::KernelLibraryHandle> kernels;
};

Bytes serialize(const fb::ProgramT &program) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &program));
  const auto *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  return Bytes(begin, begin + builder.GetSize());
}

/// Whether a call takes this buffer together with another buffer.
bool isArgumentBesideAnother(rt::AllocOp buffer) {
  for (auto call : buffer->getParentOfType<rt::ProcedureOp>().getOps<rt::CallOp>()) {
    llvm::SmallDenseSet<Operation *> taken;
    for (Value argument : call.getArguments())
      if (auto alloc = rt::getRoot(argument).getDefiningOp<rt::AllocOp>())
        taken.insert(alloc);
    if (taken.size() > 1 && taken.contains(buffer))
      return true;
  }
  return false;
}

/// Compares the verdicts of the checks on the current module. The check of procedures treats a call
/// as one command and does not look inside; `mayBeHarmless` is set where it can therefore reject a
/// correct program.
void ProgramFaults::judge(rt::ProcedureOp procedure, const std::string &what, bool mayBeHarmless) {
  const bool isWrong = failed(checkBuffers(procedure));
  ++(isWrong ? numWrong : numRight);
  FailureOr<Bytes> bytes = buildProgram(*module);
  ASSERT_TRUE(succeeded(bytes)) << what;
  auto expanded = expand(*bytes);
  if (!expanded.ok()) { // detected before it runs
    EXPECT_THAT(expanded.status().message(), ::testing::EndsWith("lies in the callee's frame"));
    EXPECT_TRUE(isWrong) << what;
    return;
  }
  std::vector<std::string> faults = interp::checkOrder(*expanded);
  auto outcome = interpret(*bytes, kSchedules);
  EXPECT_EQ(isNoticed(outcome, what), !faults.empty())
      << what << ": " << ::testing::PrintToString(faults);
  if (faults.empty() && isWrong && mayBeHarmless)
    ++numHarmless;
  else
    EXPECT_EQ(!faults.empty(), isWrong) << what;
  // A program that runs without a detected fault must compute the right results.
  auto expected = interpret(program(), 1);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  if (outcome.ok())
    for (const auto &[name, value] : *outcome)
      EXPECT_EQ(value.data, expected->at(name).data) << what << ": result " << name;
}

/// Both kinds must be frequent enough to detect a check with a constant verdict.
void ProgramFaults::expectCounts() {
  EXPECT_GE(numWrong, 15);
  EXPECT_GE(numRight, 5);
  EXPECT_LE(numHarmless, 4);
  RecordProperty("last_seed", std::to_string(lastSeed));
  RecordProperty("wrong", std::to_string(numWrong));
  RecordProperty("right", std::to_string(numRight));
  RecordProperty("harmless", std::to_string(numHarmless));
}

TEST_P(ProgramFaults, TheProgramItselfIsRight) {
  auto expanded = expand(program());
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  EXPECT_THAT(interp::checkOrder(*expanded), ::testing::IsEmpty());
  auto results = interpret(program(), kSchedules);
  EXPECT_TRUE(results.ok()) << results.status().message();
}

TEST_P(ProgramFaults, EveryMissingWaitIsNoticed) {
  auto expanded = expand(program());
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  // Removed from the serialized form, so that earlier levels have not seen the fault.
  std::unique_ptr<fb::ProgramT> right(fb::GetProgram(program().data())->UnPack());
  int64_t numWaits = 0;
  for (size_t p = 0; p < right->procedures.size(); ++p)
    for (size_t stream = 0; stream < right->queues.size(); ++stream)
      for (size_t i = 0; i < right->procedures[p]->streams[stream]->commands.size(); ++i) {
        std::unique_ptr<fb::ProgramT> wrong(fb::GetProgram(program().data())->UnPack());
        auto &commands = wrong->procedures[p]->streams[stream]->commands;
        if (commands[i]->op.type != fb::Operation::Await &&
            commands[i]->op.type != fb::Operation::CollectiveWait)
          continue;
        const std::string what = std::string(fb::EnumNameOperation(commands[i]->op.type)) + " '" +
                                 commands[i]->name + "' of @" + wrong->procedures[p]->name;
        commands.erase(commands.begin() + static_cast<int64_t>(i));
        ++numWaits;
        Bytes bytes = serialize(*wrong);
        auto withoutWait = expand(bytes);
        ASSERT_TRUE(withoutWait.ok()) << what << ": " << withoutWait.status().message();
        EXPECT_THAT(interp::checkOrder(*withoutWait), ::testing::Not(::testing::IsEmpty())) << what;
        EXPECT_TRUE(isNoticed(interpret(bytes, kSchedules), what)) << what;
      }
  RecordProperty("last_seed", std::to_string(lastSeed));
  // Each program has two all_reduces, in a procedure that is called twice; each queue awaits each
  // of them.
  EXPECT_EQ(numWaits, 4);
  EXPECT_THAT(interp::findRedundantWaits(*expanded), ::testing::IsEmpty());
}

TEST_P(ProgramFaults, EveryBufferInTheWrongPlaceIsNoticed) {
  // Errors of the check are expected here.
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  for (auto procedure : module->getOps<rt::ProcedureOp>()) {
    SmallVector<rt::AllocOp> allocs(procedure.getBody().front().getOps<rt::AllocOp>());
    rt::FrameAttr frame = procedure.getFrameAttr();
    for (rt::AllocOp moved : allocs)
      for (rt::AllocOp other : allocs) {
        if (moved == other || moved.getSpace() != other.getSpace())
          continue;
        const int64_t frameBytes =
            moved.getSpace() == rt::Space::Local ? frame.getLocal() : frame.getSymmetric();
        const int64_t size = moved.getSizeInBytes();
        const auto right = static_cast<int64_t>(*moved.getOffset());
        const auto there = static_cast<int64_t>(*other.getOffset());
        // At the other buffer's address, or as near as the frame allows, and at its last bytes.
        const int64_t last = (frameBytes - size) / rt::kBufferAlignment * rt::kBufferAlignment;
        const int64_t end =
            there + (other.getSizeInBytes() - 1) / rt::kBufferAlignment * rt::kBufferAlignment;
        llvm::SmallSetVector<int64_t, 2> offsets;
        offsets.insert(std::min(there, last));
        offsets.insert(std::min(end, last));
        for (int64_t offset : offsets) {
          if (offset + size <= there)
            continue;
          moved.setOffset(offset);
          auto number = [&](rt::AllocOp alloc) {
            return std::to_string(std::distance(allocs.begin(), llvm::find(allocs, alloc)));
          };
          const std::string what = "@" + procedure.getSymName().str() + ", buffer " +
                                   number(moved) + " at " + std::to_string(offset) +
                                   ", in the place of " + number(other);
          judge(procedure, what, isArgumentBesideAnother(moved));
          moved.setOffset(right);
        }
      }
  }
  expectCounts();
}

/// Places a callee's frame over a buffer of its caller.
TEST_P(ProgramFaults, EveryFrameInTheWrongPlaceIsNoticed) {
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  for (auto procedure : module->getOps<rt::ProcedureOp>())
    for (auto call : procedure.getBody().front().getOps<rt::CallOp>())
      for (auto other : procedure.getBody().front().getOps<rt::AllocOp>()) {
        const rt::FrameAttr right = call.getBaseAttr(), frame = procedure.getFrameAttr();
        const rt::FrameAttr inner = call.getProcedure().getFrameAttr();
        const auto there = static_cast<int64_t>(*other.getOffset());
        const bool isLocal = other.getSpace() == rt::Space::Local;
        const int64_t local =
            isLocal ? std::min(there, frame.getLocal() - inner.getLocal()) : right.getLocal();
        const int64_t symmetric =
            isLocal ? right.getSymmetric()
                    : std::min(there, frame.getSymmetric() - inner.getSymmetric());
        call.setBaseAttr(rt::FrameAttr::get(context.get(), local, symmetric, right.getEvents()));
        judge(procedure,
              "frame of a call of @" + call.getCallee().str() + " at " + std::to_string(local) +
                  ", " + std::to_string(symmetric),
              /*mayBeHarmless=*/true);
        call.setBaseAttr(right);
      }
  RecordProperty("wrong", std::to_string(numWrong));
  RecordProperty("right", std::to_string(numRight));
  RecordProperty("harmless", std::to_string(numHarmless));
}

INSTANTIATE_TEST_SUITE_P(Models, ProgramFaults, ::testing::Values("Bert", "Branches"),
                         [](const auto &info) { return std::string(info.param); });

/// The programs of examples/programs, whose communication is in flight across chunks, calls and
/// queues.
class ProgramsByHand : public ProgramFaults {
protected:
  /// Whether the compiler refuses the module as it is, for another reason than these rules.
  bool isRefused(ArrayRef<BufferRule> skip = {}) {
    for (auto procedure : module->getOps<rt::ProcedureOp>())
      if (failed(checkBuffers(procedure, skip)))
        return true;
    return false;
  }
  /// The verdict of the proof on the serialized program.
  bool isWrongWhenSerialized(const std::string &what) {
    FailureOr<Bytes> bytes = buildProgram(*module);
    EXPECT_TRUE(succeeded(bytes)) << what;
    auto expanded = expand(*bytes);
    return !expanded.ok() || !interp::checkOrder(*expanded).empty();
  }
};

/// The compiler refuses every program without one of its waits, except where the wait orders
/// nothing; the proof on the serialized program decides that, and shares no code with it.
TEST_P(ProgramsByHand, AMissingWaitIsRefused) {
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  ASSERT_FALSE(isRefused());
  ASSERT_FALSE(isWrongWhenSerialized("the program"));
  SmallVector<Operation *> waits;
  module->walk([&](Operation *op) {
    if (isa<rt::WaitOp, rt::AwaitOp>(op))
      waits.push_back(op);
  });
  int refused = 0;
  for (auto [i, wait] : llvm::enumerate(waits)) {
    Operation *next = wait->getNextNode();
    const std::string what = "wait " + std::to_string(i);
    wait->remove();
    const bool isWrong = isRefused();
    // That an entry ends when all is done orders no accesses: nothing may need the memory of the
    // last message of a stage.
    if (isWrong == isRefused(BufferRule::Joined))
      EXPECT_EQ(isWrongWhenSerialized(what), isWrong) << what;
    refused += isWrong;
    next->getBlock()->getOperations().insert(next->getIterator(), wait);
  }
  RecordProperty("waits", std::to_string(waits.size()));
  RecordProperty("refused", std::to_string(refused));
  EXPECT_GE(refused, 2);
}

/// A command trades places with the one before it: a start with its await, a launch with a wait.
TEST_P(ProgramsByHand, ACommandThatMovesUpIsJudgedAlike) {
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  SmallVector<Operation *> commands;
  module->walk([&](Operation *op) {
    if (isa<rt::StartOp, rt::LaunchOp, rt::WaitOp, rt::AwaitOp, rt::RecordOp>(op))
      commands.push_back(op);
  });
  int refused = 0, accepted = 0;
  for (auto [i, command] : llvm::enumerate(commands)) {
    Operation *before = command->getPrevNode();
    // Values are defined before they are used.
    if (!before || llvm::any_of(command->getOperands(),
                                [&](Value operand) { return operand.getDefiningOp() == before; }))
      continue;
    command->moveBefore(before);
    const bool isWrong = isRefused();
    const std::string what = "command " + std::to_string(i) + " moves up";
    EXPECT_EQ(isWrongWhenSerialized(what), isWrong) << what;
    ++(isWrong ? refused : accepted);
    command->moveAfter(before);
  }
  RecordProperty("refused", std::to_string(refused));
  RecordProperty("accepted", std::to_string(accepted));
  EXPECT_GE(refused, 1);
  EXPECT_GE(refused + accepted, 3);
}

/// A part that begins one element further in a dimension. The compiler refuses what the proof
/// refuses, and results of which a part is never written.
TEST_P(ProgramsByHand, APartThatMovesByARowIsRefused) {
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  SmallVector<rt::SubviewOp> parts;
  module->walk([&](rt::SubviewOp part) { parts.push_back(part); });
  for (auto [i, part] : llvm::enumerate(parts))
    for (int64_t by : {-1, 1})
      for (size_t dim = 0; dim < part.getOffsets().size(); ++dim) {
        const SmallVector<int64_t> right(part.getOffsets());
        SmallVector<int64_t> moved = right;
        moved[dim] += by;
        const MemRefType whole = part.getSource().getType(), own = part.getResult().getType();
        if (moved[dim] < 0 || moved[dim] + own.getDimSize(dim) > whole.getDimSize(dim))
          continue;
        part.setOffsets(moved);
        const bool isWrong = isRefused();
        const std::string what = "part " + std::to_string(i) + " by " + std::to_string(by) +
                                 " in dimension " + std::to_string(dim);
        if (!isWrong)
          EXPECT_FALSE(isWrongWhenSerialized(what)) << what;
        numWrong += isWrong;
        numRight += !isWrong;
        part.setOffsets(right);
      }
  RecordProperty("refused", std::to_string(numWrong));
  RecordProperty("accepted", std::to_string(numRight));
}

INSTANTIATE_TEST_SUITE_P(Examples, ProgramsByHand,
                         ::testing::Values("Accumulate", "Between", "Chunks", "Hierarchical",
                                           "Pipeline", "Slices", "Weights", "WeightsInside"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
