//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "ProgramChanges.h"

#include "Testing.h"
#include "braid/Base/CollectiveKind.h"

using namespace braid::runtime;
using namespace braid::runtime::testing;
namespace program = braid::program;
using program::ProgramT;

namespace {

TEST(Program, AcceptsTheSample) {
  EXPECT_OK(verifyAfter([](ProgramT &) {}));
}

TEST(Program, HasTheNumbersOfTheRuntimesOwnEnumerators) {
  for (program::DType type : program::EnumValuesDType())
    EXPECT_STREQ(program::EnumNameDType(type), name(static_cast<DType>(type)));
  for (program::CollectiveKind kind : program::EnumValuesCollectiveKind())
    EXPECT_STREQ(program::EnumNameCollectiveKind(kind), name(static_cast<CollectiveKind>(kind)));
  for (program::ReduceKind kind : program::EnumValuesReduceKind())
    EXPECT_STREQ(program::EnumNameReduceKind(kind), name(static_cast<ReduceKind>(kind)));
}

TEST(Program, RefusesOtherBytes) {
  EXPECT_ERROR(verifyProgram({}, sampleManifest()), "not a Braid program, or a damaged one");
  EXPECT_ERROR(verifyProgram(toBytes("not a program at all, but long enough for a header"),
                             sampleManifest()),
               "not a Braid program, or a damaged one");
  Bytes truncated = serialized(sampleProgram());
  truncated.resize(truncated.size() / 2);
  EXPECT_ERROR(verifyProgram(truncated, sampleManifest()), "not a Braid program, or a damaged one");
}

/// With any flipped bit, the checks neither crash nor read out of bounds (which the address
/// sanitizer detects).
TEST(Program, SurvivesEveryFlippedBit) {
  const Bytes good = serialized(sampleProgram());
  const Manifest manifest = sampleManifest();
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      Bytes bad = good;
      bad[i] ^= static_cast<std::byte>(1 << bit);
      Status status = verifyProgram(bad, manifest);
      refused += status.ok() ? 0 : 1;
      if (!status.ok())
        EXPECT_FALSE(status.message().empty());
    }
  EXPECT_GT(refused, good.size()) << "most bits matter";
}

TEST(Program, SurvivesEveryTruncation) {
  const Bytes good = serialized(sampleProgram());
  // There may be padding at the end.
  for (size_t size = 0; size + 8 < good.size(); ++size)
    EXPECT_FALSE(
        verifyProgram(Bytes(good.begin(), good.begin() + static_cast<long>(size)), sampleManifest())
            .ok())
        << size;
}

TEST(Program, RefusesWhatDoesNotFitTheManifest) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->axes[0]->size = 4; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->axes[0]->name = "dp"; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.mesh->order = {1, 0}; }),
               "expects the mesh of the manifest, got another one");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries.clear(); }),
               "expects the 1 entries of the manifest, got 0");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries[0]->name = "other"; }),
               "entry 'main' of the manifest is missing");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) { p.entries[0]->procedure = 2; }),
               "entry 'main': expects a procedure below 2, got 2");
  Manifest manifest = sampleManifest();
  manifest.entries[0].operands.push_back({"z", braid::runtime::DType::f32, {1}, {}});
  EXPECT_ERROR(
      verifyAfter([](ProgramT &) {}, manifest),
      "entry 'main': expects a procedure of 3 parameters, states and operands and 1 results, got "
      "3 arguments");
  manifest = sampleManifest();
  manifest.entries[0].operands[0].dtype = braid::runtime::DType::i32;
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': operand 'x' has type i32, but the program uses it as f32");
  manifest = sampleManifest();
  manifest.entries[0].results[0].globalShape = {2, 4};
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': result 'y' has 32 bytes on a rank, but the program uses 64");
  manifest = sampleManifest();
  manifest.entries[0].parameters[0].sharding.dims = {{{"tp"}}, {{"tp"}}};
  EXPECT_ERROR(verifyAfter([](ProgramT &) {}, manifest),
               "entry 'main': parameter 'w': expects a shape that its sharding divides");
}

TEST(Program, RefusesArgumentsUsedAgainstTheirKind) {
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT copy;
                 copy.source = local(0, {2, 4});
                 copy.dest = argument(0, {2, 4});
                 computeOf(mainOf(p)).push_back(command(std::move(copy)));
               }),
               "entry 'main': parameter 'w' is read-only, but the program writes it");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 program::CopyT copy;
                 copy.source = local(0, {2, 4});
                 copy.dest = argument(1, {2, 4});
                 computeOf(mainOf(p)).push_back(command(std::move(copy)));
               }),
               "entry 'main': operand 'x' is no state, but the program writes "
               "it");
  Manifest keeping = sampleManifest(); // x as a state
  std::swap(keeping.entries[0].states, keeping.entries[0].operands);
  EXPECT_OK(verifyAfter(
      [](ProgramT &p) {
        program::CopyT copy;
        copy.source = local(0, {2, 4});
        copy.dest = argument(1, {2, 4});
        computeOf(mainOf(p)).push_back(command(std::move(copy)));
      },
      keeping));
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 eachCall(p, 1, [](program::CallT &c) { c.arguments[2] = local(128, {2, 8}); });
               }),
               "entry 'main': result 'y' is never written");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures[0]->symmetric_arguments = {0};
                 collective(p).inputs[0] = argument(0, {2, 8});
                 eachCall(p, 1, [](program::CallT &c) { c.arguments[0] = argument(1, {2, 8}); });
               }),
               call0Place() + "argument 0: expects symmetric memory, got argument 1, which may lie "
                              "anywhere");
  EXPECT_ERROR(verifyAfter([](ProgramT &p) {
                 p.procedures[0]->symmetric_arguments = {0};
                 mainOf(p).symmetric_arguments = {1};
               }),
               call1Place() + "argument 0: expects symmetric memory, got local");
}

} // namespace
