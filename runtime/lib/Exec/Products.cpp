//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Products.h"

#include <dnnl.hpp>

#include <dlfcn.h>
#include <map>
#include <tuple>
#include <vector>

namespace braid::runtime {

namespace {

using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, bool>;

class DnnlProduct : public Product {
public:
  DnnlProduct(const dnnl::engine &engine, const ProductShape &s) : engine(engine) {
    using dnnl::memory;
    constexpr auto f32 = memory::data_type::f32;
    lhsDesc = memory::desc({s.m, s.k}, f32, memory::dims{s.lhsStride, 1});
    rhsDesc = memory::desc({s.k, s.n}, f32, memory::dims{1, s.rhsStride});
    biasDesc = memory::desc({1, s.n}, f32, memory::dims{s.n, 1});
    outDesc = memory::desc({s.m, s.n}, f32, memory::dims{s.outStride, 1});
    dnnl::primitive_attr attributes;
    // The library's own scratch memory is shared by all users of a primitive.
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    auto desc = s.bias ? dnnl::matmul::desc(lhsDesc, rhsDesc, biasDesc, outDesc)
                       : dnnl::matmul::desc(lhsDesc, rhsDesc, outDesc);
    dnnl::matmul::primitive_desc primitiveDesc(desc, attributes, engine);
    scratchDesc = primitiveDesc.scratchpad_desc();
    primitive = dnnl::matmul(primitiveDesc);
    hasBias = s.bias;
  }

  void run(const float *lhs, const float *rhs, const float *bias, float *out) const override {
    using dnnl::memory;
    thread_local std::vector<char> scratch;
    dnnl::stream stream(engine); // nothing but a handle on the cpu
    if (scratch.size() < scratchDesc.get_size() + 64)
      scratch.resize(scratchDesc.get_size() + 64);
    auto aligned = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) & ~uintptr_t(63);
    auto wrap = [&](const memory::desc &desc, const void *data) {
      return memory(desc, engine, const_cast<void *>(data));
    };
    std::unordered_map<int, memory> arguments{
        {DNNL_ARG_SRC, wrap(lhsDesc, lhs)},
        {DNNL_ARG_WEIGHTS, wrap(rhsDesc, rhs)},
        {DNNL_ARG_DST, wrap(outDesc, out)},
        {DNNL_ARG_SCRATCHPAD, memory(scratchDesc, engine, reinterpret_cast<void *>(aligned))}};
    if (hasBias)
      arguments.emplace(DNNL_ARG_BIAS, wrap(biasDesc, bias));
    primitive.execute(stream, arguments);
  }

private:
  dnnl::engine engine;
  dnnl::memory::desc lhsDesc, rhsDesc, biasDesc, outDesc, scratchDesc;
  dnnl::matmul primitive;
  bool hasBias;
};

} // namespace

struct ProductCache::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::map<Key, std::shared_ptr<const Product>> products;
};

ProductCache::ProductCache() : impl(std::make_unique<Impl>()) {}
ProductCache::~ProductCache() = default;

Result<std::shared_ptr<const Product>> ProductCache::get(const ProductShape &s) {
  std::shared_ptr<const Product> &slot =
      impl->products[Key(s.m, s.n, s.k, s.lhsStride, s.rhsStride, s.outStride, s.bias)];
  if (!slot) {
    try {
      slot = std::make_shared<DnnlProduct>(impl->engine, s);
    } catch (const dnnl::error &e) {
      return Status::error("oneDNN has no product [" + std::to_string(s.m) + ", " +
                           std::to_string(s.k) + "] x [" + std::to_string(s.n) + ", " +
                           std::to_string(s.k) + "]: " + e.what());
    }
  }
  return slot;
}

void useOneThread() {
  // oneDNN runs on OpenMP; which library provides it, and whether its development files are there,
  // does not matter.
  using SetThreads = void (*)(int);
  if (auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")))
    set(1);
}

} // namespace braid::runtime
