//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Program/Program.h"

#include "CommandOrder.h"
#include "ExpandedQueue.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

#include <set>

namespace braid::runtime {

const char *name(QueueKind kind) {
  switch (kind) {
  case QueueKind::compute:
    return "compute";
  case QueueKind::communication:
    return "communication";
  case QueueKind::copy:
    return "copy";
  }
  return "unknown";
}

std::vector<QueueInfo> queuesOf(const program::ProgramT &program) {
  std::vector<QueueInfo> queues;
  for (const auto &queue : program.queues)
    queues.push_back({static_cast<QueueKind>(queue->kind), queue->name, queue->priority});
  return queues;
}

namespace {

/// Checks the version before the rest, whose form depends on it. Data that is no program passes.
Status verifyVersion(const Bytes &bytes, flatbuffers::Verifier &verifier) {
  if (bytes.size() < sizeof(uint32_t) * 2 || !program::ProgramBufferHasIdentifier(bytes.data()) ||
      verifier.VerifyOffset(0) == 0)
    return {};
  const program::Program &program = *program::GetProgram(bytes.data());
  const auto &table = reinterpret_cast<const flatbuffers::Table &>(program);
  if (!table.VerifyTableStart(verifier) ||
      !table.VerifyField<uint32_t>(verifier, program::Program::VT_VERSION, sizeof(uint32_t)) ||
      program.version() == kProgramVersion)
    return {};
  return Status::error("expects program version ", kProgramVersion, ", got ", program.version(),
                       " (compile the model with this version of Braid)");
}

/// Checks the list of queues, and that every procedure has a stream for each.
Status verifyQueues(const program::Program &program) {
  const auto *queues = program.queues();
  const size_t count = queues ? queues->size() : 0;
  if (count == 0)
    return Status::error("expects at least one queue");
  std::set<std::string> names;
  size_t communication = 0, copy = 0;
  for (unsigned q = 0; q < count; ++q) {
    const program::Queue &queue = *queues->Get(q);
    const std::string name = queue.name()->str(), which = "queue " + std::to_string(q);
    if (queue.kind() < program::QueueKind::compute || queue.kind() > program::QueueKind::copy)
      return Status::error(which, ": unknown kind ", int(queue.kind()));
    if ((q == 0) != (queue.kind() == program::QueueKind::compute))
      return Status::error(which,
                           ": expects the first queue and no other to be of kind compute, "
                           "got kind ",
                           runtime::name(static_cast<QueueKind>(queue.kind())));
    communication += queue.kind() == program::QueueKind::communication;
    copy += queue.kind() == program::QueueKind::copy;
    if (communication > kMaxCommunicationQueues || copy > 1)
      return Status::error(which, ": expects at most ", kMaxCommunicationQueues,
                           " communication queues and one copy queue");
    if (name.empty() || !names.insert(name).second)
      return Status::error(which, ": expects a name of its own, got ", inQuotes(name));
  }
  for (const program::Procedure *procedure : *program.procedures())
    if (procedure->streams()->size() != count)
      return Status::error("procedure ", inQuotes(procedure->name()->str()),
                           ": expects a stream for each of ", count, " queues, got ",
                           procedure->streams()->size());
  return {};
}

Status verifyMesh(const program::Mesh &mesh, const Mesh &expected) {
  Mesh got;
  got.name = expected.name;
  for (const program::MeshAxis *axis : *mesh.axes())
    got.axes.push_back({axis->name()->str(), axis->size()});
  if (mesh.order() && !isAligned(*mesh.order()))
    return Status::error("the mesh's order does not stand at a multiple of 8 bytes");
  if (mesh.order())
    got.order.assign(mesh.order()->begin(), mesh.order()->end());
  bool same = got.axes.size() == expected.axes.size() && got.order == expected.order;
  for (size_t i = 0; i < got.axes.size() && same; ++i)
    same = got.axes[i].name == expected.axes[i].name && got.axes[i].size == expected.axes[i].size;
  if (!same)
    return Status::error("expects the mesh of the manifest, got another one");
  return {};
}

/// Checks the pairs of a read and a written operand.
Status verifyInPlace(const program::Kernel &kernel) {
  if (!kernel.in_place())
    return {};
  const auto &pairs = *kernel.in_place();
  const uint32_t numInputs = kernel.num_operands() - kernel.num_outputs();
  if (pairs.size() % 2 != 0)
    return Status::error("expects 'in_place' to hold pairs, got ", pairs.size(), " operands");
  for (unsigned i = 0; i < pairs.size(); ++i) {
    const bool isInput = i % 2 == 0;
    const uint32_t operand = pairs.Get(i);
    if (isInput ? operand >= numInputs : operand < numInputs || operand >= kernel.num_operands())
      return Status::error("expects 'in_place' to pair a read with a written operand, "
                           "got ",
                           operand, " as the ", isInput ? "read" : "written", " one");
  }
  return {};
}

Status verifyLibraryCall(const program::Kernel &kernel) {
  const program::LibraryCall &call = *kernel.library();
  const LibraryKernel *library = findLibraryKernel(call.name()->str());
  if (!library)
    return Status::error("expects a kernel of the library, got ", inQuotes(call.name()->str()));
  if (call.optional() >> library->numOptional() != 0)
    return Status::error("expects bits of ", library->numOptional(), " optional operands, got ",
                         call.optional());
  const size_t operands = library->given(call.optional()).size(),
               outputs = library->numOutputs(call.optional());
  if (kernel.num_operands() != operands || kernel.num_outputs() != outputs)
    return Status::error("expects ", operands, " operands with ", outputs, " outputs, got ",
                         kernel.num_operands(), " with ", kernel.num_outputs());
  if ((call.integers() && !isAligned(*call.integers())) ||
      (call.numbers() && !isAligned(*call.numbers())))
    return Status::error("expects integers and numbers that are aligned");
  if (kernel.in_place())
    return Status::error("expects no 'in_place' of a kernel of the library");
  return {};
}

Status verifyKernels(const program::Program &program) {
  std::set<std::string> symbols;
  for (const program::Kernel *kernel : *program.kernels()) {
    std::string symbol = kernel->symbol()->str();
    if (symbol.empty() || symbol.find('\0') != std::string::npos)
      return Status::error("expects the symbol of a kernel, got ", inQuotes(symbol));
    if (kernel->num_outputs() < 1 || kernel->num_outputs() > kernel->num_operands())
      return Status::error("kernel ", inQuotes(symbol), " of ", kernel->num_operands(),
                           " operands expects at least 1 and no more outputs, got ",
                           kernel->num_outputs());
    RETURN_IF_ERROR(verifyInPlace(*kernel).within("kernel " + inQuotes(symbol)));
    if (kernel->library())
      RETURN_IF_ERROR(verifyLibraryCall(*kernel).within("kernel " + inQuotes(symbol)));
    RETURN_IF_ERROR(verifyCodecs(*kernel).within("kernel " + inQuotes(symbol)));
    if (kernel->row_work())
      for (const program::RowWork *work : *kernel->row_work())
        if (work->operation()->size() == 0)
          return Status::error("kernel ", inQuotes(symbol),
                               " expects a name for each operation of its rows");
    if (!symbols.insert(symbol).second)
      return Status::error("kernel ", inQuotes(symbol), " occurs twice");
  }
  return {};
}

/// Checks that the ranks of commands are those of the mesh.
Status verifyRanks(const program::Program &program, const Mesh &mesh) {
  for (const program::Procedure *procedure : *program.procedures())
    for (Queue queue = 0; queue < numQueues(program); ++queue) {
      const Commands &all = commands(*procedure, queue);
      for (unsigned i = 0; i < all.size(); ++i) {
        const program::Command &command = *all.Get(i);
        if (!command.on())
          continue;
        Status status = ranksOf(command).verify(mesh);
        if (status.ok() && !command.op_as_Call() && !command.op_as_Copy())
          status = Status::error("expects ranks of a call or a copy only");
        RETURN_IF_ERROR(status.within(describe(program, *procedure, queue, i)));
      }
    }
  return {};
}

/// Checks the commands of a procedure that a rank runs.
Status verifyProcedure(const program::Program &program, const program::Procedure &procedure,
                       const CommandVerifier &verifier, RankInMesh rank, ArgumentUses &uses) {
  RETURN_IF_ERROR(firstOf({checkSymmetricArguments(procedure), checkBuffers(procedure)})
                      .within("procedure " + inQuotes(procedure.name()->str())));
  for (Queue queue = 0; queue < numQueues(program); ++queue) {
    const Commands &all = commands(procedure, queue);
    for (unsigned i = 0; i < all.size(); ++i)
      if (!all.Get(i)->on() || ranksOf(*all.Get(i)).contains(*rank.mesh, rank.rank))
        RETURN_IF_ERROR(verifier.verify(*all.Get(i), procedure, queue, uses)
                            .within(describe(program, procedure, queue, i)));
  }
  return {};
}

/// Checks one parameter, state, operand or result of an entry against the procedure's use of the
/// argument.
template <typename Value>
Status verifyArgument(const char *kind, const Value &value, RankInMesh rank, uint32_t index,
                      const ArgumentUses &uses) {
  std::string which = std::string(kind) + " " + inQuotes(value.name);
  Result<Box> box = localBox(*rank.mesh, 0, value.shardedShape(), value.sharding);
  std::optional<int64_t> count = box.ok() ? checkedNumElements(box->sizes) : std::nullopt;
  std::optional<int64_t> bytes = count ? checkedMul(*count, byteSize(value.dtype)) : std::nullopt;
  if (!bytes)
    return Status::error(which, ": expects a shape that its sharding divides");
  auto use = uses.find(index);
  if (use == uses.end())
    return {};
  if (!value.on.contains(*rank.mesh, rank.rank))
    return Status::error(which, " is on ", rankSetString(value.on), ", but rank ", rank.rank,
                         " uses it");
  if (use->second.dtype != value.dtype)
    return Status::error(which, " has type ", name(value.dtype), ", but the program uses it as ",
                         name(use->second.dtype));
  if (use->second.bytes > static_cast<uint64_t>(*bytes))
    return Status::error(which, " has ", *bytes, " bytes on a rank, but the program uses ",
                         use->second.bytes);
  return {};
}

/// Checks an entry's values against what a rank does with them.
Status verifyEntry(const Entry &entry, RankInMesh rank, const program::Procedure &procedure,
                   const ArgumentUses &uses) {
  const size_t numInputs = entry.parameters.size() + entry.states.size() + entry.operands.size();
  if (procedure.num_arguments() != numInputs + entry.results.size())
    return Status::error("expects a procedure of ", numInputs,
                         " parameters, states and operands and ", entry.results.size(),
                         " results, got ", procedure.num_arguments(), " arguments");
  auto isWritten = [&](uint32_t index) {
    auto use = uses.find(index);
    return use != uses.end() && use->second.written;
  };
  uint32_t index = 0;
  for (const Parameter &parameter : entry.parameters) {
    RETURN_IF_ERROR(verifyArgument("parameter", parameter, rank, index, uses));
    if (isWritten(index++))
      return Status::error("parameter ", inQuotes(parameter.name),
                           " is read-only, but the program writes it");
  }
  for (const EntryValue &state : entry.states)
    RETURN_IF_ERROR(verifyArgument("state", state, rank, index++, uses));
  for (const EntryValue &operand : entry.operands) {
    RETURN_IF_ERROR(verifyArgument("operand", operand, rank, index, uses));
    if (isWritten(index++))
      return Status::error("operand ", inQuotes(operand.name),
                           " is no state, but the program writes it");
  }
  for (const EntryValue &result : entry.results) {
    RETURN_IF_ERROR(verifyArgument("result", result, rank, index, uses));
    if (!isWritten(index++) && result.on.contains(*rank.mesh, rank.rank))
      return Status::error("result ", inQuotes(result.name), " is never written",
                           rank.rank == 0 ? "" : " on rank " + std::to_string(rank.rank));
  }
  return {};
}

/// `uses`: of each role, by procedure.
Status verifyEntries(const program::Program &program, const Manifest &manifest,
                     const RankRoles &roles, const std::vector<std::vector<ArgumentUses>> &uses,
                     const std::vector<uint64_t> &numCommands) {
  if (program.entries()->size() != manifest.entries.size())
    return Status::error("expects the ", manifest.entries.size(), " entries of the manifest, got ",
                         program.entries()->size());
  uint64_t total = 0;
  for (const Entry &expected : manifest.entries) {
    const program::Entry *entry = nullptr;
    for (const program::Entry *candidate : *program.entries())
      if (candidate->name()->str() == expected.name)
        entry = candidate;
    std::string which = "entry " + inQuotes(expected.name);
    if (!entry)
      return Status::error(which, " of the manifest is missing");
    if (entry->procedure() >= program.procedures()->size())
      return Status::error(which, ": expects a procedure below ", program.procedures()->size(),
                           ", got ", entry->procedure());
    const program::Procedure &procedure = *program.procedures()->Get(entry->procedure());
    if (procedure.num_event_arguments() != 0)
      return Status::error(which, ": expects a procedure without event arguments, got ",
                           procedure.num_event_arguments());
    for (size_t role = 0; role < roles.count(); ++role)
      RETURN_IF_ERROR(verifyEntry(expected, {&manifest.mesh, roles.rank(role)}, procedure,
                                  uses[role][entry->procedure()])
                          .within(which));
    total = checkedAdd(total, numCommands[entry->procedure()]).value_or(UINT64_MAX);
    if (total > kMaxExpandedCommands)
      return Status::error(which, ": expects at most ", kMaxExpandedCommands,
                           " commands with all calls expanded");
    RETURN_IF_ERROR(verifyEvents(program, entry->procedure(), numCommands[entry->procedure()],
                                 manifest.mesh, roles)
                        .within(which));
    RETURN_IF_ERROR(verifyOrder(program, entry->procedure(), manifest.mesh, roles).within(which));
  }
  return {};
}

} // namespace

Status verifyProgram(const Bytes &bytes, const Manifest &manifest) {
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return Status::error("expects a program of less than 2 GiB, got ", bytes.size(), " bytes");
  constexpr unsigned kMaxDepth = 16, kMaxTables = 1 << 24;
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
                                 kMaxDepth, kMaxTables);
  RETURN_IF_ERROR(verifyVersion(bytes, verifier));
  if (!program::VerifyProgramBuffer(verifier))
    return Status::error("not a Braid program, or a damaged one");
  const program::Program &program = *program::GetProgram(bytes.data());
  RETURN_IF_ERROR(manifest.mesh.verify());
  RETURN_IF_ERROR(verifyMesh(*program.mesh(), manifest.mesh));
  RETURN_IF_ERROR(verifyKernels(program));
  RETURN_IF_ERROR(verifyQueues(program));
  ASSIGN_OR_RETURN(std::vector<uint32_t> calleesFirst, verifyCalls(program));
  RETURN_IF_ERROR(verifyRanks(program, manifest.mesh));
  ASSIGN_OR_RETURN(RankRoles roles, RankRoles::of(manifest.mesh, rankSetsOf(program, manifest)));
  std::vector<std::vector<ArgumentUses>> uses;
  for (size_t role = 0; role < roles.count(); ++role) {
    std::vector<ArgumentUses> &own = uses.emplace_back(program.procedures()->size());
    CommandVerifier commandVerifier(program, manifest.mesh, own);
    for (uint32_t p : calleesFirst) {
      RETURN_IF_ERROR(verifyProcedure(program, *program.procedures()->Get(p), commandVerifier,
                                      {&manifest.mesh, roles.rank(role)}, own[p]));
    }
  }
  return verifyEntries(program, manifest, roles, uses, expandedCommands(program, calleesFirst));
}

const LibraryKernel *libraryKernelOf(const program::KernelT &kernel) {
  return kernel.library ? findLibraryKernel(kernel.library->name) : nullptr;
}

std::vector<std::string> operandNames(const program::KernelT &kernel) {
  std::vector<std::string> names;
  if (const LibraryKernel *library = libraryKernelOf(kernel))
    for (size_t i : library->given(kernel.library->optional))
      names.emplace_back(library->operands[i].name);
  else
    for (uint32_t i = 0; i < kernel.num_operands; ++i)
      names.push_back("operand " + std::to_string(i));
  return names;
}

std::vector<AxisRef> axesOf(const std::vector<std::unique_ptr<program::AxisRefT>> &axes) {
  std::vector<AxisRef> refs;
  for (const auto &axis : axes)
    refs.push_back({axis->name, axis->pre, axis->size});
  return refs;
}

} // namespace braid::runtime
