//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Removes a wait from the program of a bundle, for tests of the checks that detect this.
//
// usage: braid-test-spoil-program IN.braid OUT.braid NAME: removes the first wait of this name
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Bundle.h"

// flatc writes a default label into switches over all enumerators.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wcovered-switch-default"
#include "braid/Program/program_generated.h"
#pragma clang diagnostic pop

#include <algorithm>
#include <cstdio>

using namespace braid::runtime;
namespace fb = braid::program;

namespace {

bool removeWait(fb::ProgramT &program, const std::string &name) {
  for (const auto &procedure : program.procedures)
    for (const auto &stream : procedure->streams) {
      auto &commands = stream->commands;
      auto found = std::find_if(commands.begin(), commands.end(), [&](const auto &command) {
        return command->name == name && (command->op.type == fb::Operation::Await ||
                                         command->op.type == fb::Operation::CollectiveWait);
      });
      if (found != commands.end()) {
        commands.erase(found);
        return true;
      }
    }
  return false;
}

Status spoil(const std::string &in, const std::string &out, const std::string &name) {
  Result<Bundle> bundle = Bundle::read(in);
  if (!bundle.ok())
    return bundle.status();
  BundleContents contents = bundle->copyContents();
  Bytes &bytes = contents.members.at(contents.manifest.programMember);
  std::unique_ptr<fb::ProgramT> program(fb::GetProgram(bytes.data())->UnPack());
  if (!removeWait(*program, name))
    return Status::error("no wait '" + name + "'");
  flatbuffers::FlatBufferBuilder builder;
  fb::FinishProgramBuffer(builder, fb::Program::Pack(builder, program.get()));
  const auto *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  bytes = Bytes(begin, begin + builder.GetSize());
  Result<Bundle> spoiled = Bundle::create(std::move(contents));
  return spoiled.ok() ? spoiled->write(out) : spoiled.status();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s IN.braid OUT.braid NAME\n", argv[0]);
    return 1;
  }
  Status status = spoil(argv[1], argv[2], argv[3]);
  if (!status.ok())
    std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
