//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Matmul.h"
#include "braid/Base/StatusMacros.h"

#include <dnnl.hpp>

#include <dlfcn.h>
#include <map>
#include <tuple>
#include <vector>

namespace braid::runtime {

namespace {

using Key =
    std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool, bool, bool, bool>;

class DnnlMatmulCall : public MatmulCall {
public:
  DnnlMatmulCall(const dnnl::matmul &primitive, const dnnl::engine &engine,
                 const std::vector<std::pair<int, dnnl::memory>> &operands,
                 const dnnl::memory::desc &scratch)
      : primitive(primitive), stream(engine), scratch(scratch, engine, nullptr),
        scratchBytes(scratch.get_size()) {
    for (const auto &[argument, memory] : operands) {
      memories.push_back(memory);
      arguments.push_back({argument, memory.get()});
    }
    arguments.push_back({DNNL_ARG_SCRATCHPAD, this->scratch.get()});
  }

  void run() override {
    // Each thread has one buffer for all calls, which then stays in the cache.
    thread_local std::vector<char> bytes;
    if (bytes.size() < scratchBytes + 64)
      bytes.resize(scratchBytes + 64);
    scratch.set_data_handle(reinterpret_cast<void *>(
        (reinterpret_cast<uintptr_t>(bytes.data()) + 63) & ~uintptr_t(63)));
    // The C++ interface would copy the arguments into a vector.
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), stream.get(),
                                                   static_cast<int>(arguments.size()),
                                                   arguments.data()),
                            "oneDNN cannot execute a matmul");
  }

private:
  dnnl::matmul primitive;
  dnnl::stream stream; ///< nothing but a handle on the CPU
  dnnl::memory scratch;
  size_t scratchBytes;
  std::vector<dnnl::memory> memories; ///< the operands of `arguments`
  std::vector<dnnl_exec_arg_t> arguments;
};

class DnnlMatmul : public Matmul {
public:
  DnnlMatmul(const dnnl::engine &engine, const MatmulShape &s) : engine(engine) {
    using dnnl::memory;
    constexpr auto f32 = memory::data_type::f32;
    auto strides = [](int64_t stride, bool transposed) {
      return transposed ? memory::dims{1, stride} : memory::dims{stride, 1};
    };
    lhsDesc = memory::desc({s.m, s.k}, f32, strides(s.lhsStride, s.transposeLhs));
    rhsDesc = memory::desc({s.k, s.n}, f32, strides(s.rhsStride, s.transposeRhs));
    biasDesc = memory::desc({1, s.n}, f32, memory::dims{s.n, 1});
    outDesc = memory::desc({s.m, s.n}, f32, memory::dims{s.outStride, 1});
    dnnl::primitive_attr attributes;
    // The library's own scratch memory is shared by all users of a primitive.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (s.accumulate) {
      dnnl::post_ops sum;
      sum.append_sum();
      attributes.set_post_ops(sum);
    }
    auto desc = s.bias ? dnnl::matmul::desc(lhsDesc, rhsDesc, biasDesc, outDesc)
                       : dnnl::matmul::desc(lhsDesc, rhsDesc, outDesc);
    dnnl::matmul::primitive_desc primitiveDesc(desc, attributes, engine);
    scratchDesc = primitiveDesc.scratchpad_desc();
    primitive = dnnl::matmul(primitiveDesc);
    hasBias = s.bias;
  }

  std::unique_ptr<MatmulCall> bind(const float *lhs, const float *rhs, const float *bias,
                                   float *out) const override {
    auto wrap = [&](const dnnl::memory::desc &desc, const float *data) {
      return dnnl::memory(desc, engine, const_cast<float *>(data));
    };
    std::vector<std::pair<int, dnnl::memory>> operands{{DNNL_ARG_SRC, wrap(lhsDesc, lhs)},
                                                       {DNNL_ARG_WEIGHTS, wrap(rhsDesc, rhs)},
                                                       {DNNL_ARG_DST, wrap(outDesc, out)}};
    if (hasBias)
      operands.emplace_back(DNNL_ARG_BIAS, wrap(biasDesc, bias));
    return std::make_unique<DnnlMatmulCall>(primitive, engine, operands, scratchDesc);
  }

private:
  dnnl::engine engine;
  dnnl::memory::desc lhsDesc, rhsDesc, biasDesc, outDesc, scratchDesc;
  dnnl::matmul primitive;
  bool hasBias;
};

} // namespace

struct MatmulCache::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, std::shared_ptr<const Matmul>> matmuls;
};

MatmulCache::MatmulCache() : impl(std::make_unique<Impl>()) {}
MatmulCache::~MatmulCache() = default;

// oneDNN runs on OpenMP, whichever library provides it; this needs no development files.
using SetThreads = void (*)(int);
static SetThreads findSetThreads() {
  return reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
}

Result<std::shared_ptr<const Matmul>> MatmulCache::get(const MatmulShape &s) {
  std::shared_ptr<const Matmul> &slot =
      impl->matmuls[Key(s.m, s.n, s.k, s.lhsStride, s.rhsStride, s.outStride, s.bias,
                        s.transposeLhs, s.transposeRhs, s.accumulate)];
  if (!slot) {
    RETURN_IF_ERROR(checkOneThread(dnnl_version()->cpu_runtime, findSetThreads() != nullptr));
    try {
      slot = std::make_shared<DnnlMatmul>(impl->engine, s);
    } catch (const dnnl::error &e) {
      return Status::error("oneDNN has no matmul [", s.m, ", ", s.k, "] x [", s.k, ", ", s.n,
                           "]: ", e.what());
    }
  }
  return slot;
}

void useOneThread() {
  if (auto set = findSetThreads())
    set(1);
}

Status checkOneThread(unsigned cpuRuntime, bool hasOpenMP) {
  const std::string expects = "matmul expects a oneDNN that computes on one thread, got one that ";
  switch (cpuRuntime) {
  case DNNL_RUNTIME_SEQ:
    return {};
  case DNNL_RUNTIME_OMP:
    return hasOpenMP ? Status() : Status::error(expects, "lacks omp_set_num_threads");
  case DNNL_RUNTIME_TBB:
    return Status::error(expects, "was built for TBB");
  default:
    return Status::error(expects, "was built for a pool of threads");
  }
}

} // namespace braid::runtime
