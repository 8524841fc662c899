//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs written by hand, for tests of the executor.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_PROGRAMBUILDER_H
#define BRAID_TEST_PROGRAMBUILDER_H

#include "LibraryLaunches.h"
#include "Session.h"
#include "Streams.h"
#include "Testing.h"
#include "braid/Base/StridedCopy.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"

#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace braid::runtime::testing {

namespace fb = braid::program;
using Shape = std::vector<int64_t>;
using Axes = std::vector<std::string>;

/// A description of memory that becomes a view of a program when used.
struct V {
  /// The view's place depends on the rank's position (program.fbs, Position).
  struct Place {
    Axes axes;
    int64_t shift = 0, count = 1;
    uint64_t stride = 0;
  };
  fb::Space space;
  uint32_t index;
  uint64_t offset;
  DType dtype;
  Shape shape, strides;
  int32_t buffer = -1;
  std::optional<Place> place = {};

  /// The same memory in one of the procedure's buffers.
  V of(int32_t number) const {
    V result = *this;
    result.buffer = number;
    return result;
  }
  /// The part of this memory at (position + shift) mod count, where `stride` bytes lie between two.
  V at(const Axes &axes, int64_t shift, int64_t count, uint64_t stride) const {
    V result = *this;
    result.place = Place{axes, shift, count, stride};
    return result;
  }
  std::unique_ptr<fb::ViewT> build() const {
    auto view = std::make_unique<fb::ViewT>();
    view->space = space;
    view->index = index;
    view->offset_bytes = offset;
    view->dtype = static_cast<fb::DType>(dtype);
    view->shape = shape;
    view->strides = strides;
    view->buffer = buffer;
    if (place) {
      view->position = std::make_unique<fb::PositionT>();
      view->position->shift = place->shift;
      view->position->count = place->count;
      view->position->stride_bytes = place->stride;
      for (const std::string &axis : place->axes) {
        view->position->axes.push_back(std::make_unique<fb::AxisRefT>());
        view->position->axes.back()->name = axis;
      }
    }
    return view;
  }
};

inline V argument(uint32_t index, DType dtype, const Shape &shape, uint64_t offset = 0) {
  return {fb::Space::argument, index, offset, dtype, shape, rowMajorStrides(shape)};
}
inline V local(uint64_t offset, DType dtype, const Shape &shape) {
  return {fb::Space::local, 0, offset, dtype, shape, rowMajorStrides(shape)};
}
inline V symmetric(uint64_t offset, DType dtype, const Shape &shape) {
  return {fb::Space::symmetric, 0, offset, dtype, shape, rowMajorStrides(shape)};
}

/// Commands of one procedure.
class ProcedureBuilder {
public:
  ProcedureBuilder(fb::ProgramT &program, fb::ProcedureT &procedure)
      : program(program), procedure(procedure) {}

  template <typename Op> void compute(const std::string &name, Op op) {
    on(kComputeQueue, name, std::move(op));
  }
  template <typename Op> void communication(const std::string &name, Op op) {
    on(kCommunicationQueue, name, std::move(op));
  }
  template <typename Op> void on(Queue queue, const std::string &name, Op op) {
    add(queue, name, operationIn(program, std::move(op)));
  }

  /// A buffer of the frame; gives its number.
  int32_t buffer(const std::string &name, fb::Space space, uint64_t offset, uint64_t bytes) {
    auto b = std::make_unique<fb::BufferT>();
    b->name = name;
    b->space = space;
    b->offset_bytes = offset;
    b->size_bytes = bytes;
    procedure.buffers.push_back(std::move(b));
    return static_cast<int32_t>(procedure.buffers.size() - 1);
  }

  void copy(const std::string &name, const V &from, const V &to) {
    fb::CopyT op;
    op.source = from.build();
    op.dest = to.build();
    compute(name, std::move(op));
  }
  void matmul(const std::string &name, const V &lhs, const V &rhs, const V *bias, const V &out) {
    MatmulLaunch op;
    op.lhs = lhs.build();
    op.rhs = rhs.build();
    if (bias)
      op.bias = bias->build();
    op.out = out.build();
    compute(name, std::move(op));
  }
  void launch(const std::string &name, uint32_t kernel, const std::vector<V> &operands,
              const std::vector<bool> &rowOperand, int64_t rows) {
    fb::LaunchT op;
    op.kernel = kernel;
    for (const V &v : operands)
      op.operands.push_back(v.build());
    op.row_operand = rowOperand;
    op.rows = rows;
    compute(name, std::move(op));
  }
  void record(Queue queue, uint32_t event, const std::string &name = "record") {
    fb::RecordT op;
    op.event = event;
    on(queue, name, std::move(op));
  }
  void await(Queue queue, uint32_t event, const std::string &name = "await") {
    fb::AwaitT op;
    op.event = event;
    on(queue, name, std::move(op));
  }
  /// Appends a record to the compute queue, an await and a start to the communication queue: the
  /// input is ready when event `ready` is recorded, the output when `done` is.
  void start(const std::string &name, fb::CollectiveKind kind, const Axes &axes,
             const std::vector<V> &inputs, const std::vector<V> &outputs, uint32_t dim,
             uint32_t ready, uint32_t done, const std::string &role = "test",
             Queue queue = kCommunicationQueue) {
    record(kComputeQueue, ready, name);
    await(queue, ready, name);
    collective(queue, name, kind, axes, inputs, outputs, dim, done, role);
  }
  /// Appends a collective alone.
  void collective(Queue queue, const std::string &name, fb::CollectiveKind kind, const Axes &axes,
                  const std::vector<V> &inputs, const std::vector<V> &outputs, uint32_t dim,
                  uint32_t done, const std::string &role = "test") {
    fb::CollectiveStartT op;
    op.kind = kind;
    op.axes = axisRefs(axes);
    for (const V &v : inputs)
      op.inputs.push_back(v.build());
    for (const V &v : outputs)
      op.outputs.push_back(v.build());
    op.dim = dim;
    op.done = done;
    op.identity = role;
    on(queue, name, std::move(op));
  }
  /// The collective started last on a queue.
  fb::CollectiveStartT &last(Queue queue = kCommunicationQueue) {
    return *streamOf(procedure, queue).back()->op.AsCollectiveStart();
  }
  void wait(const std::string &name, uint32_t done, Queue queue = kComputeQueue) {
    fb::CollectiveWaitT op;
    op.event = done;
    on(queue, name, std::move(op));
  }
  void call(const std::string &name, uint32_t callee, const std::vector<V> &arguments,
            uint64_t localBase, uint64_t symmetricBase, uint32_t eventBase,
            const std::vector<uint32_t> &eventArguments = {}) {
    for (Queue queue = 0; queue < program.queues.size(); ++queue) {
      fb::CallT op;
      op.procedure = callee;
      for (const V &v : arguments)
        op.arguments.push_back(v.build());
      op.local_base_bytes = localBase;
      op.symmetric_base_bytes = symmetricBase;
      op.event_base = eventBase;
      op.event_arguments = eventArguments;
      add(queue, name, std::move(op));
    }
  }

  static std::vector<std::unique_ptr<fb::AxisRefT>> axisRefs(const Axes &axes) {
    std::vector<std::unique_ptr<fb::AxisRefT>> refs;
    for (const std::string &axis : axes) {
      refs.push_back(std::make_unique<fb::AxisRefT>());
      refs.back()->name = axis;
    }
    return refs;
  }

private:
  template <typename Op> void add(Queue queue, const std::string &name, Op op) {
    auto command = std::make_unique<fb::CommandT>();
    command->name = name;
    command->op.Set(std::move(op));
    streamOf(procedure, queue).push_back(std::move(command));
  }
  fb::ProgramT &program;
  fb::ProcedureT &procedure;
};

/// A bundle without kernel libraries; kernels come from the table in the session's options.
class ProgramBuilder {
public:
  explicit ProgramBuilder(const std::vector<Mesh::Axis> &axes) {
    manifest.producer = "test";
    manifest.modelName = "by hand";
    manifest.mesh.axes = axes;
    manifest.transports = {"threads", "shm"};
    manifest.entries.resize(1);
    manifest.entries[0].name = "main";
    program.version = kProgramVersion;
    addQueues(program);
  }

  /// Adds a communication queue after the first one.
  Queue queue(const std::string &name) {
    return addQueue(program, fb::QueueKind::communication, name);
  }

  /// Adds a procedure; the first one is the entry's. Frame sizes include those of callees.
  ProcedureBuilder procedure(const std::string &name, uint32_t arguments, uint64_t localBytes,
                             uint64_t symmetricBytes, uint32_t events) {
    auto p = std::make_unique<fb::ProcedureT>();
    p->name = name;
    p->num_arguments = arguments;
    p->local_bytes = localBytes;
    p->symmetric_bytes = symmetricBytes;
    p->num_events = events;
    addStreams(program, *p);
    program.procedures.push_back(std::move(p));
    return ProcedureBuilder(program, *program.procedures.back());
  }
  uint32_t kernel(const std::string &symbol, uint32_t operands, KernelFunction function) {
    auto k = std::make_unique<fb::KernelT>();
    k->symbol = symbol;
    k->num_operands = operands;
    program.kernels.push_back(std::move(k));
    kernels[symbol] = function;
    return static_cast<uint32_t>(program.kernels.size() - 1);
  }
  static Sharding sharding(const std::vector<Axes> &dims) {
    Sharding s;
    for (const Axes &axes : dims) {
      s.dims.emplace_back();
      for (const std::string &axis : axes)
        s.dims.back().push_back({axis});
    }
    return s;
  }
  void parameter(const std::string &name, const Shape &shape, const std::vector<Axes> &dims = {},
                 DType dtype = DType::f32) {
    Parameter p;
    p.name = name;
    p.dtype = dtype;
    p.globalShape = shape;
    p.sharding = sharding(dims);
    Shape zero(shape.size(), 0);
    p.slices.push_back({name, shape, {}, zero, zero, shape});
    manifest.entries[0].parameters.push_back(p);
  }
  void operand(const std::string &name, DType dtype, const Shape &shape,
               const std::vector<Axes> &dims = {}) {
    manifest.entries[0].operands.push_back({name, dtype, shape, sharding(dims)});
  }
  void result(const std::string &name, DType dtype, const Shape &shape,
              const std::vector<Axes> &dims = {}) {
    manifest.entries[0].results.push_back({name, dtype, shape, sharding(dims)});
  }

  /// Not verified.
  BundleContents contents() {
    program.mesh = std::make_unique<fb::MeshT>();
    program.mesh->name = manifest.mesh.name;
    for (const Mesh::Axis &axis : manifest.mesh.axes) {
      program.mesh->axes.push_back(std::make_unique<fb::MeshAxisT>());
      program.mesh->axes.back()->name = axis.name;
      program.mesh->axes.back()->size = axis.size;
    }
    if (program.entries.empty()) {
      program.entries.push_back(std::make_unique<fb::EntryT>());
      program.entries[0]->name = "main";
    }
    flatbuffers::FlatBufferBuilder buffer;
    fb::FinishProgramBuffer(buffer, fb::Program::Pack(buffer, &program));
    auto *data = reinterpret_cast<const std::byte *>(buffer.GetBufferPointer());
    BundleContents result{manifest,
                          {{manifest.programMember, Bytes(data, data + buffer.GetSize())}}};
    for (const KernelLibrary &library : manifest.kernels)
      result.members[library.member]; // empty
    return result;
  }
  std::shared_ptr<const Bundle> bundle() { return bundleOf(contents()); }
  Result<std::unique_ptr<Session>> session(WorldOptions options = {}) {
    options.kernels = &kernels;
    Result<std::shared_ptr<const Bundle>> bundle = makeBundle(contents());
    return bundle.ok() ? Session::create(*bundle, options) : bundle.status();
  }

  fb::ProgramT program;
  Manifest manifest;
  std::map<std::string, KernelFunction> kernels;
};

/// y = all_reduce over tp of x W^T; W is sharded along its columns.
inline ProgramBuilder projection() {
  constexpr DType f32 = DType::f32;
  ProgramBuilder b({{"tp", 2}});
  b.parameter("proj.weight", {8, 16}, {{}, {"tp"}});
  b.operand("x", f32, {4, 16}, {{}, {"tp"}});
  b.result("y", f32, {4, 8});
  auto p = b.procedure("main", 3, 0, 256, 2);
  V part = symmetric(0, f32, {4, 8}), sum = symmetric(128, f32, {4, 8});
  p.matmul("proj", argument(1, f32, {4, 8}), argument(0, f32, {8, 8}), nullptr, part);
  p.start("proj.sum", fb::CollectiveKind::all_reduce, {"tp"}, {part}, {sum}, 0, 0, 1, "proj");
  p.wait("proj.sum", 1);
  p.copy("result", sum, argument(2, f32, {4, 8}));
  return b;
}

} // namespace braid::runtime::testing
#endif // BRAID_TEST_PROGRAMBUILDER_H
