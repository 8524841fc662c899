//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CommandViews.h"
#include "braid/Base/Support.h"

#include "braid/Base/HostTensor.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Program/Program.h"

namespace braid::runtime {

namespace {

/// Checks a launch of a library kernel against its descriptor.
Status verifyLibraryLaunch(const program::Launch &op, const program::Kernel &kernel,
                           const Mesh &mesh, Views &views) {
  const program::LibraryCall &library = *kernel.library();
  LibraryCall call;
  call.kernel = findLibraryKernel(library.name()->str()); // not null: verifyKernels has checked it
  call.operands.resize(call.kernel->operands.size());
  unsigned next = 0;
  for (size_t i : call.kernel->given(library.optional())) {
    const LibraryOperand &operand = call.kernel->operands[i];
    call.operands[i] = views.take(*op.operands()->Get(next++), operand.name, operand.access);
    if (!views.ok())
      return views.status;
  }
  if (library.integers())
    call.integers.assign(library.integers()->begin(), library.integers()->end());
  if (library.numbers())
    call.numbers.assign(library.numbers()->begin(), library.numbers()->end());
  using Group = LibraryKernel::Group;
  if (library.axes() ? call.kernel->group == Group::none : call.kernel->group == Group::required)
    return Status::error("expects ", library.axes() ? "no mesh axes" : "at least one mesh axis");
  if (library.axes()) {
    ASSIGN_OR_RETURN(int64_t parts, groupSize(*library.axes(), mesh));
    call.parts = parts;
  }
  RETURN_IF_ERROR(call.check());
  if (op.rows() != call.rows())
    return Status::error("expects ", call.rows(), " rows, got ", op.rows());
  return {};
}

Status verifyLaunch(const program::Launch &op, const program::Program &program, const Mesh &mesh,
                    Views &views) {
  if (op.kernel() >= program.kernels()->size())
    return Status::error("expects a kernel below ", program.kernels()->size(), ", got ",
                         op.kernel());
  const program::Kernel &kernel = *program.kernels()->Get(op.kernel());
  size_t count = op.operands()->size();
  if (count != kernel.num_operands())
    return Status::error("kernel ", inQuotes(kernel.symbol()->str()), " expects ",
                         kernel.num_operands(), " operands, got ", count);
  if (kernel.library())
    return verifyLibraryLaunch(op, kernel, mesh, views);
  const size_t marked = op.row_operand() ? op.row_operand()->size() : 0;
  if (marked != count)
    return Status::error("expects 'row_operand' for ", count, " operands, got ", marked);
  auto roleOf = [](unsigned i) { return "operand " + std::to_string(i); };
  std::vector<CheckedView> taken;
  for (unsigned i = 0; i < count; ++i) {
    Access access = i < count - kernel.num_outputs() ? Access::read : Access::write;
    taken.push_back(views.take(*op.operands()->Get(i), roleOf(i), access));
    if (!views.ok())
      return views.status;
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::string role = roleOf(i);
    const CheckedView &view = taken[i];
    if (const program::OperandCodec *codec = codecOf(kernel, i)) {
      if (op.row_operand()->Get(i))
        return Status::error(role, ": expects a payload to be no row operand");
      std::optional<OperandType> own;
      int64_t parts = 1;
      if (codec->codec()->axes()) {
        ASSIGN_OR_RETURN(parts, groupSize(*codec->codec()->axes(), mesh));
      }
      if (codec->own() >= 0) {
        const auto place = static_cast<unsigned>(codec->own());
        own = taken[place];
        const int64_t senders = *codec->codec()->integers()->rbegin();
        if (!op.row_operand()->Get(place))
          return Status::error(role, ": expects its own rows, ", roleOf(place),
                               ", to be a row operand");
        if (parts != senders)
          return Status::error(role, ": expects a group of ", senders,
                               " ranks, as many as senders, got ", parts);
      }
      RETURN_IF_ERROR(verifyPayload(*codec, op.rows(), view, std::move(own), parts).within(role));
      continue;
    }
    if (op.row_operand()->Get(i) && (view.rank() == 0 || view.shape[0] != op.rows()))
      return Status::error(role, ": expects ", op.rows(), " rows, got shape ",
                           shapeString(view.shape));
  }
  return {};
}

Status verifyCopy(const program::Copy &op, Views &views) {
  CheckedView source = views.take(*op.source(), "source", Access::read);
  CheckedView dest = views.take(*op.dest(), "dest", Access::write);
  if (!views.ok())
    return views.status;
  return firstOf({expectShape("dest", dest, source.shape), expectType("dest", dest, source.dtype)});
}

/// Checks that a callee's frame or events lie inside the caller's.
Status expectInside(const char *what, uint64_t base, uint64_t size, uint64_t available) {
  std::optional<uint64_t> end = checkedAdd(base, size);
  if (end && *end <= available)
    return {};
  return Status::error("expects ", what, " of the callee below ", available, ", got ", size,
                       " from ", base);
}

Status verifyCall(const program::Call &op, const program::Program &program,
                  const program::Procedure &procedure, const std::vector<ArgumentUses> &callees,
                  Views &views) {
  const program::Procedure &callee = *program.procedures()->Get(op.procedure());
  Status status = firstOf(
      {expectInside("local bytes", op.local_base_bytes(), callee.local_bytes(),
                    procedure.local_bytes()),
       expectInside("symmetric bytes", op.symmetric_base_bytes(), callee.symmetric_bytes(),
                    procedure.symmetric_bytes()),
       expectInside("events", op.event_base(), callee.num_events(), procedure.num_events())});
  RETURN_IF_ERROR(status);
  const uint32_t numGiven = op.event_arguments() ? op.event_arguments()->size() : 0;
  if (numGiven != callee.num_event_arguments())
    return Status::error("expects ", callee.num_event_arguments(), " event arguments, got ",
                         numGiven);
  for (uint32_t i = 0; i < numGiven; ++i)
    if (Status event = verifyEvent(op.event_arguments()->Get(i), procedure); !event.ok())
      return event.within("event argument " + std::to_string(i));
  for (uint64_t base : {op.local_base_bytes(), op.symmetric_base_bytes()})
    if (base % kFrameAlignment != 0)
      return Status::error("expects a callee's frame at a multiple of ", kFrameAlignment,
                           " bytes, got ", base);
  if (op.arguments()->size() != callee.num_arguments())
    return Status::error("expects ", callee.num_arguments(), " arguments, got ",
                         op.arguments()->size());
  const ArgumentUses &uses = callees[op.procedure()];
  for (unsigned i = 0; i < op.arguments()->size(); ++i) {
    std::string role = "argument " + std::to_string(i);
    auto use = uses.find(i);
    bool used = use != uses.end();
    Access access = used && use->second.written ? Access::write : Access::read;
    CheckedView view =
        views.take(*op.arguments()->Get(i), role, access, isSymmetricArgument(callee, i));
    if (!views.ok())
      return views.status;
    if (!used)
      continue;
    if (view.dtype != use->second.dtype)
      return Status::error(role, ": the callee expects ", name(use->second.dtype), ", got ",
                           name(view.dtype));
    if (view.bytes < use->second.bytes)
      return Status::error(role, ": the callee expects ", use->second.bytes, " bytes, got ",
                           view.bytes);
    // The callee's frame must not overlap its arguments, which its plan does not know.
    bool local = view.space == program::Space::local;
    uint64_t base = local ? op.local_base_bytes() : op.symmetric_base_bytes();
    uint64_t size = local ? callee.local_bytes() : callee.symmetric_bytes();
    if (view.space != program::Space::argument && view.begin < base + size && base < view.end)
      return Status::error(role, ": lies in the callee's frame");
  }
  return {};
}

} // namespace

Status CommandVerifier::verify(const program::Command &command, const program::Procedure &procedure,
                               Queue queue, ArgumentUses &uses) const {
  Views views(procedure, mesh, uses);
  switch (command.op_type()) {
  case program::Operation::Launch:
    return verifyLaunch(*command.op_as_Launch(), program, mesh, views);
  case program::Operation::Copy:
    return verifyCopy(*command.op_as_Copy(), views);
  case program::Operation::CollectiveStart:
    if (program.queues()->Get(static_cast<unsigned>(queue))->kind() !=
        program::QueueKind::communication)
      return Status::error("expects a collective on a communication queue");
    return verifyCollective(*command.op_as_CollectiveStart(), procedure, mesh, views);
  case program::Operation::CollectiveWait:
    return verifyEvent(command.op_as_CollectiveWait()->event(), procedure);
  case program::Operation::Record:
    return verifySetEvent(command.op_as_Record()->event(), procedure);
  case program::Operation::Await:
    return verifyEvent(command.op_as_Await()->event(), procedure);
  case program::Operation::Call:
    return verifyCall(*command.op_as_Call(), program, procedure, callees, views);
  case program::Operation::NONE:
    break;
  }
  return Status::error("unknown operation ", int(command.op_type()));
}

} // namespace braid::runtime
