//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every fault of two kinds that the program of a BERT can have: a wait is missing, or a buffer lies
// where another one does. Three judges must agree on each: the check of procedures (rt), the check
// of the serialized program's order, and a hundred runs of the program interpreter.
//
//===----------------------------------------------------------------------===//
#include "../Import/Testing.h"
#include "braid/Conversion/BufferCheck.h"
#include "braid/InitAll.h"
#include "braid/Interpreter/Core/ProgramInterpreter.h"
#include "braid/Interpreter/Core/ProgramOrder.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/KernelLibrary.h"
#include "braid/Runtime/Weights.h"
#include "braid/Target/Bundle/Bundle.h"

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Runtime/program_generated.h"
#pragma clang diagnostic pop

#include <algorithm>

using namespace mlir;
using namespace braid;

namespace {

namespace fb = braid::program;
using runtime::Bytes;
using runtime::HostTensor;

constexpr int64_t kSchedules = 100;

/// A BERT of two layers on tp=2, compiled.
class BertFaults : public ::testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    braid::testing::BertDirectory directory;
    directory.write();
    ImportOptions request;
    request.path = directory.path();
    request.batch = 2;
    request.seq = 4;
    auto imported = importHuggingFace(context.get(), request,
                                      [](const std::string &message) { FAIL() << message; });
    ASSERT_TRUE(succeeded(imported));
    module = std::move(*imported);
    CompileOptions options;
    options.mesh = "tp=2";
    options.isas = {"host"};
    auto compiled = compileToBundle(*module, options);
    ASSERT_TRUE(succeeded(compiled));
    bundle = std::move(*compiled);
    auto loaded = runtime::KernelLibraryHandle::load(bundle);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    kernels = std::move(*loaded);
  }

  const Bytes &program() const { return bundle.members.at(bundle.manifest.programMember); }

  /// Bits of the result of `count` orders, or what was noticed.
  runtime::Result<interp::ProgramResults> interpret(const Bytes &bytes, int64_t count) const {
    auto interpreter = interp::ProgramInterpreter::create(
        bytes, bundle.manifest, bundle.manifest.entries[0],
        [&](const std::string &symbol) { return kernels->find(symbol); });
    if (!interpreter.ok())
      return interpreter.status();
    auto weights = runtime::WeightSource::random(3);
    if (runtime::Status status = (*interpreter)->loadWeights(*weights); !status.ok())
      return status;
    for (const runtime::EntryValue &operand : bundle.manifest.entries[0].operands) {
      HostTensor value = HostTensor::zeros(operand.dtype, operand.globalShape);
      for (int64_t i = 0; i < value.numElements(); ++i)
        value.as<int64_t>()[i] = operand.name == "input_ids" ? i : 1;
      if (runtime::Status status = (*interpreter)->setInput(operand.name, value); !status.ok())
        return status;
    }
    return (*interpreter)->runSchedules(1, count);
  }

  runtime::Result<interp::ExpandedProgram> expand(const Bytes &bytes) const {
    return interp::ExpandedProgram::expand(bytes, bundle.manifest, bundle.manifest.entries[0]);
  }

  /// That a fault was noticed at all; anything but a failed check is an error of the test.
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

  long long lastSeed = 0; ///< that it took to notice a fault
  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  runtime::Bundle bundle;
  std::unique_ptr<runtime::KernelLibraryHandle> kernels;
};

Bytes serialize(const fb::ProgramT &program) {
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, &program));
  const auto *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  return Bytes(begin, begin + builder.GetSize());
}

/// Some call takes this buffer and another one.
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

TEST_F(BertFaults, TheProgramItselfIsRight) {
  auto expanded = expand(program());
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  EXPECT_THAT(interp::checkOrder(*expanded), ::testing::IsEmpty());
  auto results = interpret(program(), kSchedules);
  EXPECT_TRUE(results.ok()) << results.status().message();
}

TEST_F(BertFaults, EveryMissingWaitIsNoticed) {
  auto expanded = expand(program());
  ASSERT_TRUE(expanded.ok()) << expanded.status().message();
  // Taken out of the serialized form, so that the next levels have not seen the fault.
  std::unique_ptr<fb::ProgramT> right(fb::GetProgram(program().data())->UnPack());
  int64_t numWaits = 0;
  for (size_t p = 0; p < right->procedures.size(); ++p)
    for (auto stream : {&fb::ProcedureT::compute, &fb::ProcedureT::communication})
      for (size_t i = 0; i < ((*right->procedures[p]).*stream).size(); ++i) {
        std::unique_ptr<fb::ProgramT> wrong(fb::GetProgram(program().data())->UnPack());
        auto &commands = (*wrong->procedures[p]).*stream;
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
  // Two all_reduces in the one procedure that both layers call, each awaited by either queue.
  EXPECT_EQ(numWaits, 4);
  EXPECT_THAT(interp::findRedundantWaits(*expanded), ::testing::IsEmpty());
}

TEST_F(BertFaults, EveryBufferInTheWrongPlaceIsNoticed) {
  // Errors of the check are what is asked for here.
  ScopedDiagnosticHandler quiet(context.get(), [](Diagnostic &) { return success(); });
  int64_t numWrong = 0, numRight = 0, numHarmless = 0;
  auto expected = interpret(program(), 1);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
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
        // At the other one's place, or as near as the frame allows.
        const int64_t last = (frameBytes - size) / rt::kBufferAlignment * rt::kBufferAlignment;
        const int64_t offset = std::min(there, last);
        if (offset + size <= there)
          continue;
        moved.setOffset(offset);
        auto number = [&](rt::AllocOp alloc) {
          return std::to_string(std::distance(allocs.begin(), llvm::find(allocs, alloc)));
        };
        const std::string what = "@" + procedure.getSymName().str() + ", buffer " + number(moved) +
                                 " at the place of " + number(other);
        const bool isWrong = failed(checkBuffers(procedure));
        ++(isWrong ? numWrong : numRight);
        FailureOr<Bytes> bytes = buildProgram(*module);
        ASSERT_TRUE(succeeded(bytes)) << what;
        moved.setOffset(right);
        auto expanded = expand(*bytes);
        if (!expanded.ok()) { // noticed before it runs
          EXPECT_THAT(expanded.status().message(),
                      ::testing::EndsWith("lies in the callee's frame"));
          EXPECT_TRUE(isWrong) << what;
          continue;
        }
        std::vector<std::string> faults = interp::checkOrder(*expanded);
        auto outcome = interpret(*bytes, kSchedules);
        EXPECT_EQ(isNoticed(outcome, what), !faults.empty())
            << what << ": " << ::testing::PrintToString(faults);
        if (faults.empty() && isWrong) {
          // A call counts as one command for the check of procedures, which does not look inside.
          EXPECT_TRUE(isArgumentBesideAnother(moved)) << what;
          ++numHarmless;
        } else {
          EXPECT_EQ(!faults.empty(), isWrong) << what;
        }
        // What nobody notices does no harm.
        if (outcome.ok())
          for (const auto &[name, value] : *outcome)
            EXPECT_EQ(value.data, expected->at(name).data) << what << ": result " << name;
      }
  }
  // Of both kinds there are enough to tell a judge that always says the same.
  EXPECT_GE(numWrong, 20);
  EXPECT_GE(numRight, 10);
  EXPECT_LE(numHarmless, 2);
  RecordProperty("last_seed", std::to_string(lastSeed));
  RecordProperty("wrong", std::to_string(numWrong));
  RecordProperty("right", std::to_string(numRight));
}

} // namespace
