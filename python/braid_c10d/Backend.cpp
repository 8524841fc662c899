//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How a process group starts and ends, and what its collectives have in common.
//
//===----------------------------------------------------------------------===//
#include "Backend.h"
#include "Work.h"

#include <Python.h>

#include <cstdlib>

namespace braid::c10d_backend {

using runtime::CollectiveKind;
using runtime::Status;

/// For what was asked for when a process group is destroyed.
static constexpr int64_t kShutdownNs = 10000000000;

static void raise(const Status &status) {
  if (!status.ok())
    C10_THROW_ERROR(DistBackendError, "braid: " + status.message());
}

/// As other jobs of Braid take it.
static runtime::net::JobSecret jobSecret() {
  const char *text = std::getenv("BRAID_JOB_SECRET"), *file = std::getenv("BRAID_JOB_SECRET_FILE");
  TORCH_CHECK_VALUE(!text || !file, "braid: the variables BRAID_JOB_SECRET and "
                                    "BRAID_JOB_SECRET_FILE are both set");
  using runtime::net::JobSecret;
  const runtime::Result<JobSecret> secret =
      file ? JobSecret::fromFile(file) : JobSecret::fromText(text ? text : "");
  raise(secret.status().within(file ? "BRAID_JOB_SECRET_FILE" : "BRAID_JOB_SECRET"));
  return *secret;
}

Backend::Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                 std::chrono::milliseconds timeout, const std::string &name,
                 std::vector<int64_t> jobRanks)
    : c10d::Backend(rank, size), defaultTimeout(timeout) {
  runtime::GroupOptions options;
  options.rank = rank;
  options.size = size;
  options.name = name;
  options.jobRanks = std::move(jobRanks);
  options.secret = jobSecret();
  if (timeout != kNoTimeout)
    options.timeLimitSeconds = std::chrono::duration<double>(timeout).count();
  if (const char *transports = std::getenv("UCX_TLS"))
    options.transports = transports;
  runtime::Result<std::unique_ptr<runtime::Group>> created = runtime::Group::create(options);
  raise(created.status());
  group = std::move(*created);
  meet(store, timeout);
}

void Backend::meet(const c10::intrusive_ptr<c10d::Store> &store,
                   std::chrono::milliseconds timeout) {
  // A store may outlive a group, and have another one with this name: ranks count how many they
  // were in.
  const std::string own = std::to_string(getRank());
  const std::string start = "braid/" + std::to_string(store->add("braid/starts/" + own, 1)) + "/";
  store->set(start + own, group->introduction());
  std::vector<std::string> introductions;
  for (int rank = 0; rank < getSize(); ++rank) {
    const std::string key = start + std::to_string(rank);
    try {
      store->wait({key}, timeout == kNoTimeout ? kBackendDefaultTimeout : timeout);
    } catch (const std::exception &error) {
      std::string missing;
      for (int other = rank; other < getSize(); ++other)
        if (!store->check({start + std::to_string(other)}))
          missing += (missing.empty() ? "" : ", ") + std::to_string(other);
      C10_THROW_ERROR(DistBackendError, "braid: these ranks of " + std::to_string(getSize()) +
                                            " have not come to the store within " +
                                            std::to_string(timeout.count()) + " ms: " + missing +
                                            " (" + error.what() + ")");
    }
    introductions.push_back(store->get_to_str(key));
  }
  raise(group->connect(introductions));
}

/// Callbacks of the group may need Python's lock, which the thread that waits for them must not
/// hold.
template <typename Wait> static void withoutPython(Wait wait) {
  if (Py_IsInitialized() == 0 || PyGILState_Check() == 0)
    return wait();
  PyThreadState *state = PyEval_SaveThread();
  wait();
  PyEval_RestoreThread(state);
}

Backend::~Backend() {
  // A callback may have had the last reference; the group then ends behind it.
  if (group && group->isOnOwnThread())
    std::thread([last = std::move(group)]() mutable { last.reset(); }).detach();
  else
    withoutPython([&] { group.reset(); });
}

void Backend::shutdown() {
  TORCH_CHECK(!group->isOnOwnThread(),
              "braid: a callback of a work cannot destroy its process group");
  withoutPython([&] { group->close(kShutdownNs); });
}

void Backend::abort() { group->end(group->describe(getRank()) + " has aborted it"); }

c10d::ErrorType Backend::getError() {
  return group->state().ok() ? c10d::ErrorType::SUCCESS : c10d::ErrorType::COMM_ERROR;
}

c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions() {
  return c10::make_intrusive<Options>("braid", defaultTimeout);
}

int64_t Backend::limitNs(std::chrono::milliseconds timeout) const {
  const std::chrono::milliseconds limit = timeout == c10d::kUnsetTimeout ? defaultTimeout : timeout;
  return std::chrono::nanoseconds(limit).count();
}

void Backend::checkRank(const char *operation, const char *what, int64_t rank) const {
  TORCH_CHECK_VALUE(rank >= 0 && rank < getSize(), "braid: ", operation, " expects ", what,
                    " in [0, ", getSize(), "), got ", rank);
}

Backend::WorkPointer Backend::start(Request request) {
  auto work = c10::make_intrusive<Work>(getRank(), request.type, request.title, request.inputs,
                                        std::move(request.outputs), request.signature, ++numbers);
  auto done = [work, kept = std::move(request.kept),
               finish = std::move(request.finish)](const Status &status) {
    if (!status.ok() || !finish)
      return work->end(status);
    try {
      finish();
      work->end({});
    } catch (const std::exception &error) {
      work->end(Status::error(error.what()));
    }
  };
  const int64_t limit = limitNs(request.timeout);
  if (request.isExchange)
    group->exchange(std::move(request.signature), std::move(request.messages), limit,
                    std::move(done));
  else
    group->run(std::move(request.signature), std::move(request.collective), limit, std::move(done));
  return work;
}

/// As bytes, which are only copied.
static runtime::GroupValue bytesOf(const at::Tensor &input, const at::Tensor &output,
                                   int64_t bytes) {
  return {runtime::DType::i8, input.data_ptr(), output.data_ptr(), bytes};
}

Backend::WorkPointer Backend::startReduction(Request request, const Reduction &reduction,
                                             const Tensors &inputs, const Tensors &outputs) {
  const bool isSplit = request.collective.kind == CollectiveKind::reduceScatter;
  const int64_t parts = isSplit ? getSize() : 1;
  if (reduction.isGathered()) {
    request.collective.kind = isSplit ? CollectiveKind::allToAll : CollectiveKind::allGather;
    Tensors all;
    for (const at::Tensor &tensor : inputs) {
      const at::Tensor input = packed(tensor);
      const int64_t elements = input.numel() / parts;
      all.push_back(at::empty({getSize(), elements}, input.options()));
      request.collective.values.push_back(
          bytesOf(input, all.back(), elements * static_cast<int64_t>(input.element_size())));
      request.kept.push_back(input);
    }
    request.finish = [all, outputs, op = reduction.gathered] {
      for (size_t i = 0; i < outputs.size(); ++i)
        combine(all[i], op, outputs[i]);
    };
    return start(std::move(request));
  }
  request.collective.reduce = reduction.kind;
  auto operands = std::make_shared<Operands>(reduction, getSize());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor input = operands->input(inputs[i]);
    // Only the root of a reduce has an output.
    const at::Tensor output = i < outputs.size() ? operands->output(outputs[i]) : at::Tensor();
    request.collective.values.push_back({operands->type(input.scalar_type()), input.data_ptr(),
                                         output.defined() ? output.data_ptr() : nullptr,
                                         input.numel() / parts});
    request.kept.push_back(input);
  }
  request.finish = [operands] { operands->finish(); };
  return start(std::move(request));
}

//===----------------------------------------------------------------------===//
// Collectives of schedules
//===----------------------------------------------------------------------===//

static void checkOne(const char *operation, size_t tensors) {
  TORCH_CHECK_VALUE(tensors == 1, "braid: ", operation, " expects one tensor, got ", tensors);
}

Backend::WorkPointer Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) {
  checkOne("all_reduce", tensors.size());
  c10d::AllreduceCoalescedOptions all;
  static_cast<c10d::AllreduceOptions &>(all) = options;
  return allreduce_coalesced(tensors, all);
}

Backend::WorkPointer Backend::allreduce_coalesced(Tensors &tensors,
                                                  const c10d::AllreduceCoalescedOptions &options) {
  check("all_reduce", tensors);
  TORCH_CHECK_VALUE(!tensors.empty(), "braid: all_reduce expects a tensor");
  Request request;
  request.type = tensors.size() == 1 ? c10d::OpType::ALLREDUCE : c10d::OpType::ALLREDUCE_COALESCED;
  request.title = "braid:all_reduce";
  request.timeout = options.timeout;
  request.inputs = request.outputs = tensors;
  Reduction reduction;
  for (const at::Tensor &tensor : tensors) {
    TORCH_CHECK_TYPE(tensor.scalar_type() == tensors[0].scalar_type(),
                     "braid: all_reduce expects tensors of one type, got ",
                     nameOf(tensors[0].scalar_type()), " and ", nameOf(tensor.scalar_type()));
    reduction = reductionOf("all_reduce", options.reduceOp, tensor.scalar_type());
  }
  request.signature = "all_reduce (" + reduction.name + ", " + describe(tensors) + ")";
  request.collective.kind = CollectiveKind::allReduce;
  return startReduction(std::move(request), reduction, tensors, tensors);
}

Backend::WorkPointer Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &options) {
  checkOne("reduce", tensors.size());
  check("reduce", tensors);
  checkRank("reduce", "a root", options.rootRank);
  const Reduction reduction = reductionOf("reduce", options.reduceOp, tensors[0].scalar_type());
  Request request;
  request.type = c10d::OpType::REDUCE;
  request.title = "braid:reduce";
  request.timeout = options.timeout;
  request.inputs = request.outputs = tensors;
  request.signature = "reduce (" + reduction.name + ", to " + std::to_string(options.rootRank) +
                      ", " + describe(tensors) + ")";
  request.collective.kind = CollectiveKind::reduce;
  request.collective.root = options.rootRank;
  return startReduction(std::move(request), reduction, tensors,
                        getRank() == options.rootRank ? tensors : Tensors());
}

Backend::WorkPointer Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) {
  checkOne("broadcast", tensors.size());
  check("broadcast", tensors);
  checkRank("broadcast", "a root", options.rootRank);
  Request request;
  request.type = c10d::OpType::BROADCAST;
  request.title = "braid:broadcast";
  request.timeout = options.timeout;
  request.inputs = request.outputs = tensors;
  request.signature =
      "broadcast (from " + std::to_string(options.rootRank) + ", " + describe(tensors) + ")";
  request.collective.kind = CollectiveKind::broadcast;
  request.collective.root = options.rootRank;
  const bool isRoot = getRank() == options.rootRank;
  Targets targets;
  const at::Tensor memory = isRoot ? packed(tensors[0]) : targets.add(tensors[0]);
  request.collective.values.push_back(
      bytesOf(memory, memory, static_cast<int64_t>(memory.nbytes())));
  request.kept = {memory};
  request.finish = [targets] { targets.finish(); };
  return start(std::move(request));
}

Backend::WorkPointer Backend::barrier(const c10d::BarrierOptions &options) {
  Request request;
  request.type = c10d::OpType::BARRIER;
  request.title = "braid:barrier";
  request.timeout = options.timeout;
  request.signature = "barrier";
  const at::Tensor token = at::zeros({1}, at::kChar);
  request.collective.kind = CollectiveKind::allReduce;
  request.collective.reduce = runtime::ReduceKind::max;
  request.collective.values.push_back(bytesOf(token, token, 1));
  request.kept = {token};
  return start(std::move(request));
}

/// Refuses pairs of which one is not `times` as large as the other, or of another type.
static void checkPairs(const char *operation, const Backend::Tensors &large,
                       const Backend::Tensors &small, int64_t times) {
  check(operation, large);
  check(operation, small);
  TORCH_CHECK_VALUE(large.size() == small.size() && !large.empty(), "braid: ", operation,
                    " expects as many inputs as outputs, got ", large.size(), " and ",
                    small.size());
  for (size_t i = 0; i < large.size(); ++i) {
    TORCH_CHECK_TYPE(large[i].scalar_type() == small[i].scalar_type(), "braid: ", operation,
                     " expects an input and an output of one type, got ",
                     nameOf(large[i].scalar_type()), " and ", nameOf(small[i].scalar_type()));
    TORCH_CHECK_VALUE(large[i].numel() == small[i].numel() * times, "braid: ", operation, " of ",
                      times, " ranks expects a tensor of ", small[i].numel() * times,
                      " elements for one of ", small[i].numel(), ", got ", large[i].numel());
  }
}

Backend::WorkPointer Backend::allGatherInto(const char *operation, c10d::OpType type,
                                            const Tensors &outputs, const Tensors &inputs,
                                            const c10d::AllgatherOptions &options) {
  checkPairs(operation, outputs, inputs, getSize());
  Request request;
  request.type = type;
  request.title = "braid:all_gather";
  request.timeout = options.timeout;
  request.inputs = inputs;
  request.outputs = outputs;
  request.signature = "all_gather (" + describe(inputs) + ")";
  request.collective.kind = CollectiveKind::allGather;
  Targets targets;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor input = packed(inputs[i]), output = targets.add(outputs[i]);
    request.collective.values.push_back(
        bytesOf(input, output, static_cast<int64_t>(input.nbytes())));
    request.kept.push_back(input);
    request.kept.push_back(output);
  }
  request.finish = [targets] { targets.finish(); };
  return start(std::move(request));
}

Backend::WorkPointer Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                              const c10d::AllgatherOptions &options) {
  return allGatherInto("all_gather_into_tensor", c10d::OpType::_ALLGATHER_BASE, {output}, {input},
                       options);
}

Backend::WorkPointer
Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                         const c10d::AllgatherOptions &options) {
  return allGatherInto("all_gather_into_tensor", c10d::OpType::COALESCED, outputs, inputs, options);
}

Backend::WorkPointer Backend::reduceScatter(const char *operation, c10d::OpType type,
                                            const Tensors &outputs, const Tensors &inputs,
                                            const c10d::ReduceScatterOptions &options) {
  checkPairs(operation, inputs, outputs, getSize());
  Reduction reduction;
  for (const at::Tensor &tensor : inputs)
    reduction = reductionOf("reduce_scatter", options.reduceOp, tensor.scalar_type());
  Request request;
  request.type = type;
  request.title = "braid:reduce_scatter";
  request.timeout = options.timeout;
  request.inputs = inputs;
  request.outputs = outputs;
  request.signature = "reduce_scatter (" + reduction.name + ", " + describe(outputs) + ")";
  request.collective.kind = CollectiveKind::reduceScatter;
  return startReduction(std::move(request), reduction, inputs, outputs);
}

Backend::WorkPointer Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                                   const c10d::ReduceScatterOptions &options) {
  return reduceScatter("reduce_scatter_tensor", c10d::OpType::_REDUCE_SCATTER_BASE, {output},
                       {input}, options);
}

Backend::WorkPointer
Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                         const c10d::ReduceScatterOptions &options) {
  return reduceScatter("reduce_scatter_tensor", c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED,
                       outputs, inputs, options);
}

Backend::WorkPointer Backend::reduce_scatter(Tensors &outputs, Lists &inputs,
                                             const c10d::ReduceScatterOptions &options) {
  checkOne("reduce_scatter", outputs.size());
  TORCH_CHECK_VALUE(inputs.size() == 1 && static_cast<int>(inputs[0].size()) == getSize(),
                    "braid: reduce_scatter expects a list of ", getSize(), " inputs");
  check("reduce_scatter", inputs[0]);
  check("reduce_scatter", outputs);
  Tensors flat;
  for (const at::Tensor &input : inputs[0]) {
    TORCH_CHECK_VALUE(input.numel() == outputs[0].numel() &&
                          input.scalar_type() == outputs[0].scalar_type(),
                      "braid: reduce_scatter expects inputs like the output, ", describe(outputs),
                      ", got ", describe({input}));
    flat.push_back(input.detach().reshape({-1}));
  }
  return reduceScatter("reduce_scatter", c10d::OpType::REDUCE_SCATTER, outputs, {at::cat(flat)},
                       options);
}

} // namespace braid::c10d_backend
