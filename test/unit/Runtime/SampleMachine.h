//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A measured machine with round numbers, which has everything that a machine file may hold except a
// GPU.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_SAMPLEMACHINE_H
#define BRAID_TEST_SAMPLEMACHINE_H

#include "braid/Cost/Machine.h"

namespace braid::cost::testing {

/// Two cores; with both busy, each computes at half the rate.
inline Machine sampleMachine() {
  Machine machine;
  machine.name = "sample";
  machine.measurement = Measurement{
      "2026-01-02T03:04:05Z",        40,          "0.1.0", "oneDNN 2.6.3", 5, 0.01, 1.02, 1.03,
      {{"ucx", "not measured yet"}}, std::nullopt};
  machine.processor = Processor{"Sample Processor", 2, "avx2", {{1, 32768, 1}, {2, 1048576, 2}}};
  for (const int64_t busy : {1, 2}) {
    ComputeRates rates;
    rates.busyCores = busy;
    const double part = 1.0 / static_cast<double>(busy);
    for (const int64_t m : {16, 64})
      for (const int64_t n : {64, 256})
        for (const int64_t k : {64, 256})
          rates.matmul.push_back({m, n, k, part * (m == 16 ? 1e10 : 4e10)});
    for (const int64_t rows : {1, 100})
      for (const int64_t keys : {128})
        for (const int64_t dim : {32})
          for (const bool causal : {false, true})
            rates.attention.push_back({rows, keys, dim, causal, part * (causal ? 2e10 : 1e10)});
    rates.rowOperations = {{"simple", part * 1e9}, {"exp", part * 1e8}, {"rotary", part * 1e9}};
    rates.memory = {{4096, part * 4e10, part * 4e10, part * 4e10},
                    {409600, part * 2e10, part * 1e10, part * 1e10}};
    for (const int64_t elements : {1000, 100000}) {
      const double far = elements == 1000 ? part : part / 2;
      rates.codecs.push_back({"int8:128", elements, far * 1e9, far * 2e9, far * 4e9});
      rates.codecs.push_back({"int8:32", elements, far * 5e8, far * 5e8, far * 5e8});
      rates.codecs.push_back({"int8:128+spikes", elements, far * 2.5e8, far * 1e9, far * 2e9});
      rates.codecs.push_back({"int8:128+hadamard64", elements, far * 5e8, far * 1e9, far * 2e9});
      rates.codecs.push_back({"bf16", elements, far * 2e9, far * 2e9, far * 2e9});
    }
    machine.compute.push_back(rates);
  }
  machine.overheads = Overheads{1e-6, 2e-6, 5e-6};
  Transport threads;
  threads.name = "threads";
  threads.ranks = 2;
  threads.startSeconds = 4e-6;
  threads.messageSeconds = 1e-6;
  threads.transfers = {{1000, 1e-6, 1.5e-6, 2e-6, 1e-7}, {100000, 1e-5, 1.5e-5, 4e-5, 1e-6}};
  // The same, and collectives as such.
  Transport shm = threads;
  shm.name = "shm";
  shm.coreToCoreSeconds = 3e-8;
  shm.collectives = {
      {"all_reduce", 1000, 1e-5}, {"all_reduce", 101000, 1.1e-4}, {"permute", 2000, 2e-5}};
  shm.cold = {{1000, 100, 1e-6}, {1000, 1000, 3e-6}, {100000, 100, 5e-6}, {100000, 1000, 1e-5}};
  machine.transports = {threads, shm};
  machine.interference = {{"threads", 2, "matmul", 1.5, 2}, {"threads", 2, "memory", 3, 4}};
  machine.links = {{"ethernet",
                    5e-5,
                    1.25e8,
                    1e8,
                    2e8,
                    3e9,
                    {{1024, 6e-5}, {1 << 20, 1e-2}},
                    {{8, 7e-5}, {4096, 9e-5}},
                    1.25,
                    1.5,
                    {{1 << 20, 8, 2e-5}, {1 << 24, 8, 6e-5}}}};
  return machine;
}

} // namespace braid::cost::testing
#endif // BRAID_TEST_SAMPLEMACHINE_H
