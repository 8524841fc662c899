//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a machine file. An accepted one is the same after it was written and read, and times of
// operations on it are finite and not negative.
//
//===----------------------------------------------------------------------===//
#include "braid/Cost/Machine.h"
#include "Fuzz.h"
#include "braid/Cost/EncodedTime.h"

#include <cmath>

using namespace braid::cost;
using braid::runtime::ScheduleRequest;
using namespace braid::fuzz;
using braid::runtime::DType;
using braid::runtime::Encoding;
using braid::runtime::LibraryCall;
using braid::runtime::OperandType;
using braid::runtime::PayloadLayout;

namespace {

void expectTime(const Result<double> &seconds) {
  if (seconds.ok())
    require(std::isfinite(*seconds) && *seconds >= 0, "a time is finite and not negative");
}

OperandType matrix(int64_t rows, int64_t columns) {
  return {DType::f32, {rows, columns}, {columns, 1}};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<Machine> machine = machineFromJson({reinterpret_cast<const char *>(data), size});
  if (!machine.ok())
    return 0;
  const std::string json = machineToJson(*machine);
  Result<Machine> back = machineFromJson(json);
  require(back.ok(), "what was written can be read: " + back.status().message());
  require(machineToJson(*back) == json, "a machine is the same after it was written and read");
  (void)differenceFrom(*machine, Processor{"host", 2, "avx2", {}});
  LibraryCall matmul;
  matmul.kernel = braid::runtime::findLibraryKernel("matmul");
  matmul.operands.resize(matmul.kernel->operands.size());
  matmul.operands[0] = matrix(33, 100);
  matmul.operands[1] = matrix(700, 100);
  matmul.operands[6] = matrix(33, 700);
  matmul.integers = {0, 1, 0};
  LibraryCall encode;
  encode.kernel = braid::runtime::findLibraryKernel("encode");
  const Encoding encoding = *Encoding::parse("int8:64+spikes+hadamard32");
  encode.integers = {encoding.code(), 0};
  encode.operands = {
      matrix(33, 100),
      OperandType{
          DType::i8, {1, PayloadLayout::of(encoding, DType::f32, 33, 100, 1)->partBytes}, {1, 1}}};
  for (const int64_t cores : {1, 2, 64})
    for (const int64_t threads : {1, 3}) {
      const OperationTimes times(*machine, {cores, threads});
      expectTime(times.ofLibrary(matmul));
      expectTime(times.ofLibrary(encode));
      expectTime(times.ofRows({{"simple", 10}, {"exp", 1}}, 100, 4096, 4096, {encode}));
      expectTime(times.ofCopy(1e6));
    }
  // A collective on each transport, of one host and of two.
  ScheduleRequest sum;
  sum.values = {{70000, 4, false}};
  for (const Transport &transport : machine->transports)
    for (const int64_t hosts : {1, 2}) {
      sum.ranks = hosts * std::min<int64_t>(transport.ranks, 4);
      sum.topology.places.clear();
      for (int64_t rank = 0; rank < sum.ranks; ++rank)
        sum.topology.places.push_back({rank % hosts, 0});
      const Result<Network> network = networkOf(*machine, transport.name, sum.ranks, sum.topology);
      if (!network.ok())
        continue;
      for (const double between : {0.0, 4096.0, 1e9})
        expectTime(coldSeconds(sum, *network, between));
      const Result<ScheduleChoice> choice = leastTime(sum, *network);
      if (choice.ok())
        expectTime(choice->seconds);
      EncodableCollective encodable;
      encodable.values = {{DType::f32, {3, 1024}}};
      encodable.ranks = sum.ranks;
      encodable.topology = sum.topology;
      encodable.groupsOfHost = hosts;
      const EncodedTimes encoded(std::make_shared<const Machine>(*machine), transport.name,
                                 transport.ranks);
      expectTime(encoded.plain(encodable));
      const Result<EncodedTime> time = encoded.encoded(encodable, {encoding, encoding}, {256, 4});
      if (time.ok())
        expectTime(time->seconds);
    }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Random random(seed);
  std::string text = mutateJson(std::string(reinterpret_cast<const char *>(data), size), random);
  return put(text.data(), text.size(), data, size, maxSize);
}
