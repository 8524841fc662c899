//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every collective of the runtime, once. Tests of all collectives iterate over this table, so a new
// one needs one row. The interpreter computes the expected results.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_UNIT_RUNTIME_COLLECTIVETABLE_H
#define BRAID_TEST_UNIT_RUNTIME_COLLECTIVETABLE_H

#include "ProgramBuilder.h"
#include "braid/Interpreter/Core/Collectives.h"

#include <algorithm>
#include <numeric>
#include <ostream>

namespace braid::runtime::testing {

/// A collective with its options, over a group of a certain size.
struct Use {
  interp::Collective collective;
  std::vector<Shape> inputs; ///< of each rank
  /// If above 0, the last input holds counts up to this number.
  int64_t capacity = 0;
  bool asSendAndRecv = false; ///< as a send and a recv with the pairs of the permute

  interp::CollectiveKind kind() const {
    return asSendAndRecv ? interp::CollectiveKind::recv : collective.kind;
  }
  DType inputType(size_t input, DType dtype) const {
    return capacity > 0 && input + 1 == inputs.size() ? DType::i64 : dtype;
  }
};

struct Row {
  interp::CollectiveKind kind;
  /// Every option of the kind, on extents that are odd except where the group must divide them.
  std::vector<Use> (*uses)(int64_t groupSize);
};
inline void PrintTo(const Row &row, std::ostream *os) { *os << runtime::name(row.kind); }

namespace detail {
using interp::CollectiveKind;
using interp::ReduceKind;

inline Use use(CollectiveKind kind, std::vector<Shape> inputs) {
  Use u;
  u.collective.kind = kind;
  u.inputs = std::move(inputs);
  return u;
}
inline std::vector<Use> reductions(const Use &u) {
  std::vector<Use> uses;
  for (ReduceKind reduce : {ReduceKind::sum, ReduceKind::max, ReduceKind::min}) {
    uses.push_back(u);
    uses.back().collective.reduce = reduce;
  }
  return uses;
}
inline std::vector<Use> allReduces(int64_t) {
  std::vector<Use> uses = reductions(use(CollectiveKind::allReduce, {{5, 7}}));
  uses.push_back(use(CollectiveKind::allReduce, {{1}, {37, 29}})); // fewer elements than ranks
  return uses;
}
inline std::vector<Use> reduceScatters(int64_t n) {
  Use middle = use(CollectiveKind::reduceScatter, {{3, 5 * n, 7}});
  middle.collective.dim = 1;
  std::vector<Use> uses = reductions(middle);
  uses.push_back(use(CollectiveKind::reduceScatter, {{n}, {3 * n, 11}}));
  return uses;
}
inline std::vector<Use> allGathers(int64_t) {
  std::vector<Use> uses{use(CollectiveKind::allGather, {{1}, {5, 3}})};
  for (int64_t dim : {0, 1, 2}) {
    uses.push_back(use(CollectiveKind::allGather, {{3, 5, 7}}));
    uses.back().collective.dim = dim;
  }
  return uses;
}
inline std::vector<Use> allToAlls(int64_t n) {
  std::vector<Use> uses;
  for (size_t split : {0, 1, 2})
    for (size_t concat : {0, 1, 2}) {
      Shape shape{3, 5, 7};
      shape[split] *= n;
      uses.push_back(use(CollectiveKind::allToAll, {shape}));
      uses.back().collective.dim = static_cast<int64_t>(split);
      uses.back().collective.concatDim = static_cast<int64_t>(concat);
    }
  uses.push_back(use(CollectiveKind::allToAll, {{n}, {n, 5}}));
  return uses;
}
inline std::vector<Use> reduces(int64_t n) {
  std::vector<Use> uses = reductions(use(CollectiveKind::reduce, {{5, 7}}));
  for (Use &u : uses)
    u.collective.root = n / 2;
  uses.push_back(use(CollectiveKind::reduce, {{1}, {37, 29}}));
  return uses;
}
inline std::vector<Use> broadcasts(int64_t n) {
  std::vector<Use> uses{use(CollectiveKind::broadcast, {{5, 7}}),
                        use(CollectiveKind::broadcast, {{1}, {37, 29}})};
  uses[0].collective.root = n - 1;
  return uses;
}
/// Pairs of a ring, of a chain, no pairs, and pairs of each rank with itself.
inline std::vector<Use> permutes(int64_t n) {
  std::vector<Use> uses(4, use(CollectiveKind::permute, {{5, 7}}));
  uses[1].inputs = {{1}, {37, 29}};
  for (int64_t i = 0; i < n; ++i) {
    uses[0].collective.pairs.push_back({i, (i + 1) % n});
    if (i + 1 < n)
      uses[1].collective.pairs.push_back({i, i + 1});
  }
  uses[3].collective.pairs = {{0, 0}};
  return uses;
}
inline std::vector<Use> countedAllToAlls(int64_t n) {
  std::vector<Use> uses{use(CollectiveKind::allToAllV, {{3 * n, 5, 7}, {3 * n}}),
                        use(CollectiveKind::allToAllV, {{n, 3}, {n, 3, 11}, {n}})};
  uses[0].capacity = 5;
  uses[1].capacity = 3;
  return uses;
}
/// The permutes as sends and receives, without pairs of a rank and itself.
inline std::vector<Use> halves(int64_t n) {
  std::vector<Use> uses = permutes(n);
  uses.pop_back();
  if (n == 1)
    uses[0].collective.pairs.clear();
  for (size_t i = 0; i < uses.size(); ++i) {
    uses[i].asSendAndRecv = true;
    uses[i].collective.tag = static_cast<int64_t>(i % 2);
  }
  return uses;
}
} // namespace detail

inline const Row kRows[] = {
    {interp::CollectiveKind::allReduce, detail::allReduces},
    {interp::CollectiveKind::reduceScatter, detail::reduceScatters},
    {interp::CollectiveKind::allGather, detail::allGathers},
    {interp::CollectiveKind::allToAll, detail::allToAlls},
    {interp::CollectiveKind::reduce, detail::reduces},
    {interp::CollectiveKind::broadcast, detail::broadcasts},
    {interp::CollectiveKind::permute, detail::permutes},
    {interp::CollectiveKind::allToAllV, detail::countedAllToAlls},
    {interp::CollectiveKind::recv, detail::halves}, // together with the sends
};

/// A use with buffers of many pages each.
inline Use large(const Row &row, int64_t groupSize) {
  Use use = row.uses(groupSize).front();
  for (size_t i = 0; i < use.inputs.size(); ++i)
    if (use.inputType(i, DType::f32) == DType::f32)
      use.inputs[i].back() *= 4096;
  return use;
}

/// The results of the rank at this position in the group, for the inputs of all its ranks.
inline std::vector<interp::Tensor>
expected(const Use &use, const std::vector<std::vector<interp::Tensor>> &inputs, int64_t position) {
  auto result = interp::applyAll(use.collective, inputs, position);
  EXPECT_OK(result);
  return result.ok() ? *result : std::vector<interp::Tensor>();
}

inline std::vector<Shape> outputShapes(const Use &use, DType dtype, int64_t groupSize) {
  std::vector<interp::Tensor> zeros;
  for (size_t i = 0; i < use.inputs.size(); ++i)
    zeros.push_back(interp::Tensor::zeros(use.inputType(i, dtype), use.inputs[i]));
  std::vector<Shape> shapes;
  for (const interp::Tensor &tensor : expected(
           use, std::vector<std::vector<interp::Tensor>>(static_cast<size_t>(groupSize), zeros), 0))
    shapes.push_back(tensor.shape());
  return shapes;
}

/// Event numbers of one use: its inputs are ready, its outputs are written, and the inputs of a
/// send may be overwritten.
struct Events {
  uint32_t ready = 0, done = 0, sent = 0;
  Events() = default;
  /// The next event numbers after `count`.
  Events(const Use &use, uint32_t &count) {
    ready = count++;
    done = count++;
    sent = use.asSendAndRecv ? count++ : done;
  }
};

inline fb::CollectiveKind programKind(interp::CollectiveKind kind) {
  return static_cast<fb::CollectiveKind>(kind);
}

/// Starts the collective when the compute queue has reached this command.
inline void start(ProcedureBuilder &p, const std::string &name, const Use &use,
                  const std::vector<AxisRef> &axes, const std::vector<V> &inputs,
                  const std::vector<V> &outputs, const Events &events) {
  const interp::Collective &c = use.collective;
  auto complete = [&] {
    fb::CollectiveStartT &op = p.last();
    for (const AxisRef &axis : axes) {
      auto ref = std::make_unique<fb::AxisRefT>();
      ref->name = axis.name;
      ref->pre = axis.pre;
      ref->size = axis.size;
      op.axes.push_back(std::move(ref));
    }
    op.reduce = static_cast<fb::ReduceKind>(c.reduce);
    op.concat_dim = static_cast<uint32_t>(c.concatDim);
    op.root = static_cast<uint32_t>(c.root);
    op.tag = static_cast<uint32_t>(c.tag);
    for (auto [source, target] : c.pairs)
      op.pairs.insert(op.pairs.end(),
                      {static_cast<uint32_t>(source), static_cast<uint32_t>(target)});
  };
  if (!use.asSendAndRecv) {
    p.start(name, programKind(c.kind), {}, inputs, outputs, static_cast<uint32_t>(c.dim),
            events.ready, events.done);
    complete();
    return;
  }
  p.start(name, fb::CollectiveKind::send, {}, inputs, {}, 0, events.ready, events.sent);
  complete();
  fb::CollectiveStartT receive;
  receive.kind = fb::CollectiveKind::recv;
  for (const V &v : outputs)
    receive.outputs.push_back(v.build());
  receive.done = events.done;
  receive.identity = "test";
  p.communication(name, std::move(receive));
  complete();
}
inline void wait(ProcedureBuilder &p, const std::string &name, const Use &use,
                 const Events &events) {
  if (use.asSendAndRecv)
    p.wait(name, events.sent);
  p.wait(name, events.done);
}

/// Assigns consecutive offsets in symmetric memory to values.
class Layout {
public:
  V place(DType dtype, const Shape &shape) {
    V view = symmetric(end, dtype, shape);
    uint64_t bytes = static_cast<uint64_t>(interp::numElements(shape) * byteSize(dtype));
    end += (bytes + 63) / 64 * 64;
    return view;
  }
  /// With dimensions in a random order in memory, and gaps between them.
  template <typename Random> V placeStrided(DType dtype, const Shape &shape, Random &random) {
    V view = symmetric(end, dtype, shape);
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    int64_t stride = 1 + static_cast<int64_t>(random() % 2);
    for (size_t d : order) {
      view.strides[d] = stride;
      stride = stride * shape[d] + static_cast<int64_t>(random() % 3) * stride;
    }
    end += (static_cast<uint64_t>(stride * byteSize(dtype)) + 63) / 64 * 64;
    return view;
  }
  uint64_t bytes() const { return end; }

private:
  uint64_t end = 0;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_UNIT_RUNTIME_COLLECTIVETABLE_H
