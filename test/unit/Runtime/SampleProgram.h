//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A small valid program with everything that the verifier checks, for tests that make it invalid: y
// = layer(layer(x)), layer(x) = kernel(all_reduce_tp(slice_tp(x) * w^T)), on a mesh of tp = 2.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_SAMPLEPROGRAM_H
#define BRAID_TEST_UNIT_RUNTIME_SAMPLEPROGRAM_H

#include "LibraryLaunches.h"
#include "Streams.h"
#include "Testing.h"
#include "braid/Program/Program.h"
#include "braid/Program/program_generated.h"
#include "braid/Runtime/Bundle.h"

#include <memory>

namespace braid::runtime::testing {

inline std::unique_ptr<program::ViewT> view(program::Space space, uint64_t offset,
                                            std::vector<int64_t> shape, uint32_t index = 0,
                                            program::DType dtype = program::DType::f32) {
  auto result = std::make_unique<program::ViewT>();
  result->space = space;
  result->index = index;
  result->offset_bytes = offset;
  result->dtype = dtype;
  result->shape = shape;
  result->strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    result->strides[d - 1] = result->strides[d] * shape[d];
  return result;
}
inline std::unique_ptr<program::ViewT> argument(uint32_t index, std::vector<int64_t> shape,
                                                program::DType dtype = program::DType::f32) {
  return view(program::Space::argument, 0, std::move(shape), index, dtype);
}
inline std::unique_ptr<program::ViewT> local(uint64_t offset, std::vector<int64_t> shape,
                                             program::DType dtype = program::DType::f32) {
  return view(program::Space::local, offset, std::move(shape), 0, dtype);
}
inline std::unique_ptr<program::ViewT> symmetric(uint64_t offset, std::vector<int64_t> shape) {
  return view(program::Space::symmetric, offset, std::move(shape));
}

template <typename Op>
std::unique_ptr<program::CommandT> command(Op op, const std::string &name = "") {
  auto result = std::make_unique<program::CommandT>();
  result->name = name;
  result->op.Set(std::move(op));
  return result;
}

inline std::vector<std::unique_ptr<program::AxisRefT>> tensorParallel() {
  std::vector<std::unique_ptr<program::AxisRefT>> axes;
  axes.push_back(std::make_unique<program::AxisRefT>());
  axes.back()->name = "tp";
  return axes;
}

template <typename Op> std::unique_ptr<program::CommandT> eventCommand(uint32_t event) {
  Op op;
  op.event = event;
  return command(std::move(op));
}

inline std::unique_ptr<program::ProcedureT> sampleLayer(program::ProgramT &program) {
  auto layer = std::make_unique<program::ProcedureT>();
  layer->name = "layer";
  layer->num_arguments = 3; // x [2, 8], w [8, 4], y [2, 8]
  layer->local_bytes = 64;
  layer->symmetric_bytes = 64;
  layer->num_events = 2;
  addStreams(program, *layer);

  PartLaunch slice;
  slice.source = argument(0, {2, 8});
  slice.dest = local(0, {2, 4});
  slice.dim = 1;
  slice.axes = tensorParallel();
  computeOf(*layer).push_back(command(launchIn(program, slice.launch()), "slice"));
  MatmulLaunch matmul;
  matmul.lhs = local(0, {2, 4});
  matmul.rhs = argument(1, {8, 4});
  matmul.out = symmetric(0, {2, 8});
  computeOf(*layer).push_back(command(launchIn(program, matmul.launch()), "linear"));
  computeOf(*layer).push_back(eventCommand<program::RecordT>(0));
  computeOf(*layer).push_back(eventCommand<program::CollectiveWaitT>(1));
  program::LaunchT launch;
  launch.kernel = 0;
  launch.operands.push_back(symmetric(0, {2, 8}));
  launch.operands.push_back(argument(2, {2, 8}));
  launch.row_operand = {true, true};
  launch.rows = 2;
  computeOf(*layer).push_back(command(std::move(launch), "gelu"));

  communicationOf(*layer).push_back(eventCommand<program::AwaitT>(0));
  program::CollectiveStartT reduce;
  reduce.kind = program::CollectiveKind::all_reduce;
  reduce.axes = tensorParallel();
  reduce.inputs.push_back(symmetric(0, {2, 8}));
  reduce.outputs.push_back(symmetric(0, {2, 8}));
  reduce.done = 1;
  communicationOf(*layer).push_back(command(std::move(reduce), "all_reduce"));
  return layer;
}

inline program::ProgramT sampleProgram() {
  program::ProgramT program;
  program.version = kProgramVersion;
  program.mesh = std::make_unique<program::MeshT>();
  program.mesh->axes.push_back(std::make_unique<program::MeshAxisT>());
  program.mesh->axes[0]->name = "tp";
  program.mesh->axes[0]->size = 2;
  addQueues(program);
  program.kernels.push_back(std::make_unique<program::KernelT>());
  program.kernels[0]->symbol = "gelu";
  program.kernels[0]->num_operands = 2;
  program.procedures.push_back(sampleLayer(program));

  auto main = std::make_unique<program::ProcedureT>();
  main->name = "main";
  main->num_arguments = 3; // w, x, y
  main->local_bytes = 192;
  main->symmetric_bytes = 64;
  main->num_events = 4;
  addStreams(program, *main);
  for (auto *queue : {&computeOf(*main), &communicationOf(*main)})
    for (uint32_t i = 0; i < 2; ++i) {
      program::CallT call;
      call.procedure = 0;
      call.arguments.push_back(i == 0 ? argument(1, {2, 8}) : local(128, {2, 8}));
      call.arguments.push_back(argument(0, {8, 4}));
      call.arguments.push_back(i == 0 ? local(128, {2, 8}) : argument(2, {2, 8}));
      call.local_base_bytes = 64;
      call.event_base = 2 * i;
      queue->push_back(command(std::move(call), "layer." + std::to_string(i)));
    }
  program.procedures.push_back(std::move(main));
  program.entries.push_back(std::make_unique<program::EntryT>());
  program.entries[0]->name = "main";
  program.entries[0]->procedure = 1;
  return program;
}

inline Manifest sampleManifest() {
  Manifest manifest;
  manifest.producer = "braid 0.1.0";
  manifest.modelName = "sample";
  manifest.mesh.axes = {{"tp", 2}};
  manifest.transports = {"threads"};
  Entry entry;
  entry.name = "main";
  Parameter w;
  w.name = "w";
  w.globalShape = {8, 8};
  w.sharding.dims = {{}, {{"tp"}}};
  w.slices.push_back({"layer.weight", {8, 8}, {1, 0}, {0, 0}, {0, 0}, {8, 8}});
  entry.parameters.push_back(w);
  entry.operands.push_back({"x", DType::f32, {2, 8}, {}});
  entry.results.push_back({"y", DType::f32, {2, 8}, {}});
  manifest.entries.push_back(entry);
  manifest.kernels.push_back({"cpu",
                              "x86_64-unknown-linux-gnu",
                              "x86-64-v3",
                              {"avx2", "fma"},
                              "kernels/cpu-x86_64-unknown-linux-gnu-x86-64-v3/kernels.so"});
  return manifest;
}

inline Bytes serialized(const program::ProgramT &program) {
  flatbuffers::FlatBufferBuilder builder;
  program::FinishProgramBuffer(builder, program::Program::Pack(builder, &program));
  const std::byte *begin = reinterpret_cast<const std::byte *>(builder.GetBufferPointer());
  return Bytes(begin, begin + builder.GetSize());
}

inline BundleContents sampleContents() {
  BundleContents bundle;
  bundle.manifest = sampleManifest();
  bundle.members[bundle.manifest.programMember] = serialized(sampleProgram());
  Bytes library(1000);
  for (size_t i = 0; i < library.size(); ++i)
    library[i] = static_cast<std::byte>(i * 31);
  bundle.members[bundle.manifest.kernels[0].member] = library;
  return bundle;
}
inline std::shared_ptr<const Bundle> sampleBundle() { return bundleOf(sampleContents()); }

} // namespace braid::runtime::testing

#endif // BRAID_TEST_UNIT_RUNTIME_SAMPLEPROGRAM_H
