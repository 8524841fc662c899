//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Collectives by NCCL, which takes contiguous memory: there is a call for each run of the values.
// One thread enqueues the calls of all ranks, in a group.
//
//===----------------------------------------------------------------------===//
#include "Exchange.h"
#include "braid/Base/StatusMacros.h"
#include "runtime/lib/Collective/MessageSlots.h"

namespace braid::runtime::cuda {

namespace {

int dataType(DType dtype) {
  constexpr int kTypes[] = {kNcclFloat32, kNcclFloat16, kNcclBfloat16, kNcclFloat64,
                            kNcclInt32,   kNcclInt64,   kNcclInt8};
  static_assert(static_cast<int>(DType::f32) == 0 && static_cast<int>(DType::f16) == 1 &&
                static_cast<int>(DType::bf16) == 2 && static_cast<int>(DType::f64) == 3 &&
                static_cast<int>(DType::i32) == 4 && static_cast<int>(DType::i64) == 5 &&
                static_cast<int>(DType::i8) == 6);
  return kTypes[static_cast<int>(dtype)];
}

int operation(ReduceKind kind) {
  return kind == ReduceKind::sum ? kNcclSum : kind == ReduceKind::max ? kNcclMax : kNcclMin;
}

/// Groups the calls of all ranks, as a single one would wait for the others.
template <typename Calls> Status inGroup(const Nccl &nccl, Calls calls) {
  RETURN_IF_ERROR(nccl.check(nccl.ncclGroupStart(), "ncclGroupStart"));
  Status status = calls();
  // Also after a failure: the group must not stay open.
  Status ended = nccl.check(nccl.ncclGroupEnd(), "ncclGroupEnd");
  return status.ok() ? ended : status;
}

class NcclExchange {
public:
  NcclExchange(const std::vector<Member> &members, std::shared_ptr<Communicators> communicators)
      : members(members), communicators(std::move(communicators)) {}

  /// Makes the commands that each rank runs before and after NCCL's.
  Status prepare() {
    before.resize(members.size());
    after.resize(members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      if (members[m].collective->kind == CollectiveKind::allToAllV)
        RETURN_IF_ERROR(prepareCounted(m));
      RETURN_IF_ERROR(prepareZeros(m));
    }
    return {};
  }

  Status enqueue() const {
    RETURN_IF_ERROR(run(before));
    RETURN_IF_ERROR(inGroup(nccl(), [&]() -> Status {
      for (size_t m = 0; m < members.size(); ++m)
        for (size_t v = 0; v < members[m].collective->values.size(); ++v)
          RETURN_IF_ERROR(value(m, v));
      return {};
    }));
    return run(after);
  }

private:
  const Nccl &nccl() const { return *communicators->nccl; }

  Status value(size_t m, size_t v) const {
    const CollectiveValue &value = members[m].collective->values[v];
    Status status;
    // All ranks have the same runs, and messages between two ranks arrive in the order in which
    // they were sent.
    forEachRun(value.part, [&](int64_t from, int64_t to, int64_t bytes) {
      if (status.ok())
        status = run(m, value, members[m].input(v) + from, members[m].output(v) + to,
                     static_cast<size_t>(bytes / byteSize(value.dtype)));
    });
    return status;
  }

  /// Calls NCCL for `count` elements of the part of each rank.
  Status run(size_t m, const CollectiveValue &value, const std::byte *in, std::byte *out,
             size_t count) const {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const ncclComm_t comm = communicators->members[m];
    const int type = dataType(value.dtype), op = operation(c.reduce);
    const auto bytes = static_cast<int64_t>(count) * byteSize(value.dtype);
    const auto ranks = static_cast<int>(members.size());
    const int root = static_cast<int>(c.root);
    switch (c.kind) {
    case CollectiveKind::allReduce:
      BRAID_CUDA_TRY(nccl(), ncclAllReduce, in, out, count, type, op, comm, member.stream);
      return {};
    case CollectiveKind::reduceScatter:
      if (value.sourceStep == bytes) {
        BRAID_CUDA_TRY(nccl(), ncclReduceScatter, in, out, count, type, op, comm, member.stream);
        return {};
      }
      for (int i = 0; i < ranks; ++i)
        BRAID_CUDA_TRY(nccl(), ncclReduce, in + i * value.sourceStep, out, count, type, op, i, comm,
                       member.stream);
      return {};
    case CollectiveKind::allGather:
      if (value.destStep == bytes) {
        BRAID_CUDA_TRY(nccl(), ncclAllGather, in, out, count, type, comm, member.stream);
        return {};
      }
      for (int i = 0; i < ranks; ++i)
        BRAID_CUDA_TRY(nccl(), ncclBroadcast, in, out + i * value.destStep, count, type, i, comm,
                       member.stream);
      return {};
    case CollectiveKind::reduce:
      BRAID_CUDA_TRY(nccl(), ncclReduce, in, out, count, type, op, root, comm, member.stream);
      return {};
    case CollectiveKind::broadcast:
      BRAID_CUDA_TRY(nccl(), ncclBroadcast, in, out, count, type, root, comm, member.stream);
      return {};
    case CollectiveKind::permute:
      for (auto [from, to] : c.pairs) {
        if (from == c.position)
          BRAID_CUDA_TRY(nccl(), ncclSend, in, count, type, static_cast<int>(to), comm,
                         member.stream);
        if (to == c.position)
          BRAID_CUDA_TRY(nccl(), ncclRecv, out, count, type, static_cast<int>(from), comm,
                         member.stream);
      }
      return {};
    case CollectiveKind::allToAll:
    case CollectiveKind::allToAllV: // the host does not know the counts, so all rows are sent
      for (int i = 0; i < ranks; ++i) {
        BRAID_CUDA_TRY(nccl(), ncclSend, in + i * value.sourceStep, count, type, i, comm,
                       member.stream);
        BRAID_CUDA_TRY(nccl(), ncclRecv, out + i * value.destStep, count, type, i, comm,
                       member.stream);
      }
      return {};
    case CollectiveKind::send:
    case CollectiveKind::recv:
      break; // without a barrier
    }
    return {};
  }

  using CommandLists = std::vector<std::vector<StreamCommand>>; ///< by member

  Status run(const CommandLists &commands) const {
    for (size_t m = 0; m < members.size(); ++m)
      for (const StreamCommand &command : commands[m]) {
        RETURN_IF_ERROR(members[m].device->device->use());
        RETURN_IF_ERROR(command(members[m].stream));
      }
    return {};
  }

  /// The sender checks the counts. Rows beyond them arrive, and become zeros.
  Status prepareCounted(size_t m) {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const CollectiveValue &counts = c.values.back();
    const size_t last = c.values.size() - 1;
    const auto ranks = static_cast<int64_t>(members.size());
    RETURN_IF_ERROR(
        append(before[m], makeCheckCounts(c, member.input(last), member.number, *member.device)));
    for (size_t v = 0; v < last; ++v) {
      const CollectiveValue &value = c.values[v];
      StridedRuns runs = value.part; // in place
      runs.sourceStrides = runs.destStrides;
      const CountedBlocks part = blocksOf(value, ranks);
      for (int64_t i = 0; i < ranks; ++i) {
        std::byte *rows = member.output(v) + i * value.destStep;
        RETURN_IF_ERROR(
            append(after[m], makeCopyCounted(runs, part, rows, rows,
                                             countsFrom(counts.output, counts.dtype,
                                                        member.output(last), i * part.blocks),
                                             *member.device)));
      }
    }
    return {};
  }

  /// A rank that is no target of a permute, or not the root of a reduce, gets zeros.
  Status prepareZeros(size_t m) {
    const Member &member = members[m];
    const Collective &c = *member.collective;
    const bool isTarget = c.kind == CollectiveKind::permute
                              ? sourceOf(c) >= 0
                              : c.kind != CollectiveKind::reduce || c.position == c.root;
    for (size_t v = 0; v < c.values.size() && !isTarget; ++v)
      RETURN_IF_ERROR(append(after[m], makeFill(c.values[v], member.output(v), *member.device)));
    return {};
  }

  std::vector<Member> members;
  std::shared_ptr<Communicators> communicators;
  CommandLists before, after;
};

} // namespace

Result<std::shared_ptr<Communicators>> Communicators::create(std::shared_ptr<const Nccl> library,
                                                             const std::vector<int> &devices) {
  auto result = std::make_shared<Communicators>();
  result->nccl = std::move(library);
  std::vector<ncclComm_t> created(devices.size());
  BRAID_CUDA_TRY(*result->nccl, ncclCommInitAll, created.data(), static_cast<int>(devices.size()),
                 devices.data());
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

Result<Exchange> makeNcclExchange(const std::vector<Member> &members,
                                  const std::shared_ptr<Communicators> &communicators) {
  auto exchange = std::make_shared<NcclExchange>(members, communicators);
  RETURN_IF_ERROR(exchange->prepare());
  return Exchange([exchange] { return exchange->enqueue(); });
}

Exchange makeNcclReceive(const Member &receiver, const DeviceMessage &message,
                         size_t senderPosition, size_t receiverPosition,
                         const std::shared_ptr<Communicators> &communicators) {
  auto transfer = [=, &message]() -> Status {
    const Nccl &nccl = *communicators->nccl;
    const std::byte *in = pointer(message.memory->get());
    for (size_t v = 0; v < receiver.collective->values.size(); ++v) {
      const CollectiveValue &value = receiver.collective->values[v];
      const int type = dataType(value.dtype);
      Status status;
      forEachRun(value.part, [&](int64_t from, int64_t to, int64_t bytes) {
        const auto count = static_cast<size_t>(bytes / byteSize(value.dtype));
        auto move = [&]() -> Status {
          BRAID_CUDA_TRY(nccl, ncclSend, in + from, count, type, static_cast<int>(receiverPosition),
                         communicators->members[senderPosition], message.sender.stream);
          BRAID_CUDA_TRY(nccl, ncclRecv, receiver.output(v) + to, count, type,
                         static_cast<int>(senderPosition), communicators->members[receiverPosition],
                         receiver.stream);
          return {};
        };
        if (status.ok())
          status = move();
      });
      RETURN_IF_ERROR(status);
      in += MessageSlots::roundedBytes(value);
    }
    return {};
  };
  return [communicators, transfer] { return inGroup(*communicators->nccl, transfer); };
}

} // namespace braid::runtime::cuda
