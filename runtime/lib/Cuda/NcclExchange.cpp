//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives by NCCL. One thread gives them for all ranks, so that they stand in a group.
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/MessageSlots.h"

namespace braid::runtime::cuda {

namespace {

int dataType(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return kNcclFloat32;
  case DType::f16:
    return kNcclFloat16;
  case DType::bf16:
    return kNcclBfloat16;
  case DType::f64:
    return kNcclFloat64;
  case DType::i32:
    return kNcclInt32;
  case DType::i64:
    return kNcclInt64;
  case DType::i8:
    break;
  }
  return kNcclInt8;
}

int operation(ReduceKind kind) {
  return kind == ReduceKind::sum ? kNcclSum : kind == ReduceKind::max ? kNcclMax : kNcclMin;
}

#define BRAID_NCCL_TRY(function, ...)                                                              \
  RETURN_IF_ERROR(nccl().check(nccl().function(__VA_ARGS__), #function))

/// Calls of all ranks, of which none may come alone.
template <typename Calls> Status inGroup(const Nccl &nccl, Calls calls) {
  RETURN_IF_ERROR(nccl.check(nccl.ncclGroupStart(), "ncclGroupStart"));
  Status status = calls();
  // Also after a failure: the group must not stay open.
  Status ended = nccl.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
  return status.ok() ? ended : status;
}

class NcclExchange : public ExchangeCommand {
public:
  NcclExchange(const std::vector<Member> &members, std::shared_ptr<Communicators> communicators)
      : members(members), communicators(std::move(communicators)) {}

  /// Work of each rank beside NCCL's.
  Status prepare() {
    before.resize(members.size());
    after.resize(members.size());
    for (size_t m = 0; m < members.size(); ++m)
      if (members[m].collective->kind == CollectiveKind::allToAllV)
        RETURN_IF_ERROR(prepareCounted(m));
    return {};
  }

  Status enqueue() const override {
    Status status = run(before);
    RETURN_IF_ERROR(status);
    status = inGroup(nccl(), [&]() -> Status {
      for (size_t m = 0; m < members.size(); ++m)
        for (size_t v = 0; v < members[m].collective->values.size(); ++v)
          RETURN_IF_ERROR(value(m, v));
      return {};
    });
    if (status.ok())
      status = run(after);
    return status.ok() ? zeros() : status;
  }

private:
  const Nccl &nccl() const { return *communicators->nccl; }

  Status value(size_t m, size_t v) const {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const CollectiveValue &value = c.values[v];
    const ncclComm_t comm = communicators->members[m];
    const std::byte *in = member.heap.peer(member.heap.rank, value.inputOffset);
    std::byte *out = member.heap.peer(member.heap.rank, value.outputOffset);
    const int type = dataType(value.dtype), op = operation(c.reduce);
    const auto count = static_cast<size_t>(value.numElements());
    const auto inner = static_cast<size_t>(value.inner);
    const int64_t chunk = value.inner * byteSize(value.dtype);
    const auto ranks = static_cast<int64_t>(members.size());
    const int root = static_cast<int>(c.root);
    if (count == 0)
      return {};
    switch (c.kind) {
    case CollectiveKind::allReduce:
      BRAID_NCCL_TRY(ncclAllReduce, in, out, count, type, op, comm, member.stream);
      return {};
    case CollectiveKind::reduceScatter:
      for (int64_t o = 0; o < value.outer; ++o)
        BRAID_NCCL_TRY(ncclReduceScatter, in + o * ranks * chunk, out + o * chunk, inner, type, op,
                       comm, member.stream);
      return {};
    case CollectiveKind::allGather:
      for (int64_t o = 0; o < value.outer; ++o)
        BRAID_NCCL_TRY(ncclAllGather, in + o * chunk, out + o * ranks * chunk, inner, type, comm,
                       member.stream);
      return {};
    case CollectiveKind::allToAll:
      return allToAll(m, v, in, out);
    case CollectiveKind::reduce:
      BRAID_NCCL_TRY(ncclReduce, in, out, count, type, op, root, comm, member.stream);
      return {};
    case CollectiveKind::broadcast:
      BRAID_NCCL_TRY(ncclBroadcast, in, out, count, type, root, comm, member.stream);
      return {};
    case CollectiveKind::permute:
      for (auto [from, to] : c.pairs) {
        if (from == c.position)
          BRAID_NCCL_TRY(ncclSend, in, count, type, static_cast<int>(to), comm, member.stream);
        if (to == c.position)
          BRAID_NCCL_TRY(ncclRecv, out, count, type, static_cast<int>(from), comm, member.stream);
      }
      return {};
    case CollectiveKind::allToAllV: // NCCL is told by the host how many rows there are: all
      for (int64_t i = 0; i < ranks; ++i) {
        const int64_t at = i * static_cast<int64_t>(count) * byteSize(value.dtype);
        BRAID_NCCL_TRY(ncclSend, in + at, count, type, static_cast<int>(i), comm, member.stream);
        BRAID_NCCL_TRY(ncclRecv, out + at, count, type, static_cast<int>(i), comm, member.stream);
      }
      return {};
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break; // do not meet
    }
    return {};
  }

  using CommandLists = std::vector<std::vector<StreamCommandPtr>>; ///< by member

  Status run(const CommandLists &commands) const {
    for (size_t m = 0; m < members.size(); ++m)
      for (const StreamCommandPtr &work : commands[m]) {
        Status status = members[m].device->device->use();
        if (status.ok())
          status = work->enqueue(members[m].stream);
        RETURN_IF_ERROR(status);
      }
    return {};
  }

  /// Counts are checked by who sends them. Rows beyond them arrive, and become zeros.
  Status prepareCounted(size_t m) {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const CollectiveValue &counts = c.values.back();
    const auto blocks = static_cast<int64_t>(members.size()) * counts.outer;
    auto add = [](std::vector<StreamCommandPtr> &commands, Result<StreamCommandPtr> work) {
      if (work.ok() && *work)
        commands.push_back(std::move(*work));
      return work.status();
    };
    Status status =
        add(before[m], makeCheckCounts(c, member.heap.peer(member.heap.rank, counts.inputOffset),
                                       blocks, member.number, *member.device));
    for (size_t v = 0; v + 1 < c.values.size() && status.ok(); ++v) {
      std::byte *rows = member.heap.peer(member.heap.rank, c.values[v].outputOffset);
      status =
          add(after[m], makeCopyCounted(c.values[v], rows, rows, blocks,
                                        member.heap.peer(member.heap.rank, counts.outputOffset),
                                        counts.dtype, *member.device));
    }
    return status;
  }

  /// Both sides of a pair give their rows in the same order, and what is sent between two ranks
  /// arrives in the order in which it was sent.
  Status allToAll(size_t m, size_t v, const std::byte *in, std::byte *out) const {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const CollectiveValue &value = c.values[v];
    const auto ranks = static_cast<int64_t>(members.size());
    const int64_t inner = value.inner * byteSize(value.dtype);
    const bool same = c.dim == c.concatDim;
    const bool cutFirst = same || c.dim < c.concatDim, joinFirst = same || !cutFirst;
    auto row = [&](bool alongFirst, int64_t index, int64_t o, int64_t f, int64_t b) {
      const int64_t firsts = alongFirst ? ranks * value.first : value.first;
      const int64_t seconds = alongFirst ? value.second : ranks * value.second;
      const int64_t atFirst = alongFirst ? index * value.first + f : f;
      const int64_t atSecond = alongFirst ? 0 : index * value.second;
      return (((o * firsts + atFirst) * value.between + b) * seconds + atSecond) * inner;
    };
    const auto count = static_cast<size_t>(value.second * value.inner);
    const int type = dataType(value.dtype);
    const ncclComm_t comm = communicators->members[m];
    for (int64_t i = 0; i < ranks; ++i)
      for (int64_t o = 0; o < value.outer; ++o)
        for (int64_t f = 0; f < value.first; ++f)
          for (int64_t b = 0; b < value.between; ++b) {
            BRAID_NCCL_TRY(ncclSend, in + row(cutFirst, i, o, f, b), count, type,
                           static_cast<int>(i), comm, member.stream);
            BRAID_NCCL_TRY(ncclRecv, out + row(joinFirst, i, o, f, b), count, type,
                           static_cast<int>(i), comm, member.stream);
          }
    return {};
  }

  /// Who is nobody's target, and not the root of a reduce, has zeros.
  Status zeros() const {
    for (const Member &member : members) {
      const Collective &c = *member.collective;
      bool empty = c.kind == CollectiveKind::reduce && c.position != c.root;
      if (c.kind == CollectiveKind::permute) {
        empty = true;
        for (auto [from, to] : c.pairs)
          empty &= to != c.position;
      }
      if (!empty)
        continue;
      RETURN_IF_ERROR(member.device->device->use());
      for (const CollectiveValue &value : c.values)
        if (StreamCommandPtr fill =
                makeFill(member.heap.peer(member.heap.rank, value.outputOffset),
                         value.numElements() * byteSize(value.dtype), *member.device))
          RETURN_IF_ERROR(fill->enqueue(member.stream));
    }
    return {};
  }

  std::vector<Member> members;
  std::shared_ptr<Communicators> communicators;
  CommandLists before, after;
};

/// A send's values to their receive. The sender's stream has put them into the message.
class NcclReceive : public ExchangeCommand {
public:
  NcclReceive(const Member &receiver, const DeviceMessage &message, size_t senderPosition,
              size_t receiverPosition, std::shared_ptr<Communicators> communicators)
      : receiver(receiver), message(message), from(senderPosition), to(receiverPosition),
        communicators(std::move(communicators)) {}

  Status enqueue() const override {
    return inGroup(nccl(), [&] { return transfer(); });
  }

private:
  const Nccl &nccl() const { return *communicators->nccl; }

  Status transfer() const {
    const std::byte *in = pointer(message.memory.get());
    for (const CollectiveValue &value : receiver.collective->values) {
      const auto count = static_cast<size_t>(value.numElements());
      std::byte *out = receiver.heap.peer(receiver.heap.rank, value.outputOffset);
      const int type = dataType(value.dtype);
      if (count > 0) {
        BRAID_NCCL_TRY(ncclSend, in, count, type, static_cast<int>(to),
                       communicators->members[from], message.sender.stream);
        BRAID_NCCL_TRY(ncclRecv, out, count, type, static_cast<int>(from),
                       communicators->members[to], receiver.stream);
      }
      in += MessageSlots::roundedBytes(value);
    }
    return {};
  }

  Member receiver;
  const DeviceMessage &message;
  size_t from, to;
  std::shared_ptr<Communicators> communicators;
};

} // namespace

Result<std::shared_ptr<Communicators>> Communicators::create(std::shared_ptr<const Nccl> library,
                                                             const std::vector<int> &devices) {
  auto result = std::make_shared<Communicators>();
  result->nccl = std::move(library);
  std::vector<ncclComm_t> created(devices.size());
  RETURN_IF_ERROR(
      result->nccl->check(result->nccl->ncclCommInitAll(
                              created.data(), static_cast<int>(devices.size()), devices.data()),
                          "ncclCommInitAll"));
  result->members = std::move(created);
  return result;
}

Status Communicators::check() const {
  for (ncclComm_t comm : members) {
    ncclResult_t error = 0;
    nccl->ncclCommGetAsyncError(comm, &error);
    RETURN_IF_ERROR(nccl->check(error, "a collective"));
  }
  return {};
}

Communicators::~Communicators() {
  for (ncclComm_t comm : members)
    lost ? nccl->ncclCommAbort(comm) : nccl->ncclCommDestroy(comm);
}

Result<ExchangePtr> makeNcclExchange(const std::vector<Member> &members,
                                     const std::shared_ptr<Communicators> &communicators) {
  auto exchange = std::make_unique<NcclExchange>(members, communicators);
  RETURN_IF_ERROR(exchange->prepare());
  return ExchangePtr(std::move(exchange));
}

ExchangePtr makeNcclReceive(const Member &receiver, const DeviceMessage &message,
                            size_t senderPosition, size_t receiverPosition,
                            const std::shared_ptr<Communicators> &communicators) {
  return std::make_unique<NcclReceive>(receiver, message, senderPosition, receiverPosition,
                                       communicators);
}

} // namespace braid::runtime::cuda
