//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every collective, with every option, over groups of all kinds, in every type, on all transports
// of the CPU and of CUDA (on the null device), on contiguous and on strided memory: many in flight
// at once, started and waited for in random orders.
//
//===----------------------------------------------------------------------===//
#include "CollectiveTable.h"
#include "CudaTesting.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

using namespace braid::runtime;
using namespace braid::runtime::testing;
using braid::interp::Tensor;

namespace {

using AxisList = std::vector<AxisRef>;

/// Over how many of a grid's groups, on average, a use of a collective is tested at a time. Where
/// code is instrumented few suffice: types and transports draw others.
#ifdef BRAID_SCHEDULE_POINTS
constexpr size_t kGroupsOfAUse = 1;
#else
constexpr size_t kGroupsOfAUse = SIZE_MAX;
#endif

struct Grid {
  const char *name;
  std::vector<Mesh::Axis> axes;
  std::vector<AxisList> groups;
};
/// Made on first use, since the constructors may throw.
const std::array<Grid, 3> &grids() {
  static const std::array<Grid, 3> made{{
      {"OneAxis", {{"x", 5}}, {{{"x"}}}},
      {"SubAxes",
       {{"x", 6}},
       {{{"x"}}, {{"x", 1, 2}}, {{"x", 2, 3}}, {{"x", 1, 3}}, {{"x", 3, 2}}}},
      {"SeveralAxes",
       {{"dp", 2}, {"one", 1}, {"tp", 2}},
       {{{"tp"}}, {{"dp"}}, {{"dp"}, {"tp"}}, {{"tp"}, {"dp"}}, {{"one"}}}},
  }};
  return made;
}

/// A rank's input: small integers, so that every type and every order of sums is exact.
Tensor contribution(const Use &use, size_t input, DType valueType, int64_t rank, int64_t run) {
  const Shape &shape = use.inputs[input];
  const DType dtype = use.inputType(input, valueType);
  const bool counts = use.capacity > 0 && input + 1 == use.inputs.size();
  std::vector<double> floats;
  std::vector<int64_t> ints;
  for (int64_t i = 0; i < braid::interp::numElements(shape); ++i) {
    const int64_t number = rank * 7 + i * 3 + run * 5;
    ints.push_back(counts ? number % (use.capacity + 1) : number % 11 - 5);
    floats.push_back(static_cast<double>(ints.back()));
  }
  return braid::interp::isFloat(dtype) ? Tensor::ofFloats(dtype, shape, floats)
                                       : Tensor::ofInts(dtype, shape, ints);
}

/// One collective of the program, and the indices of its values among the entry's.
struct Step {
  Use use;
  AxisList axes;
  std::string name;
  std::vector<V> inputs, outputs;
  size_t firstOperand, firstResult;
  Events events;
};

class Matrix : public ::testing::TestWithParam<std::tuple<Where, int, DType, bool>> {
protected:
  Matrix()
      : where(std::get<0>(GetParam())), grid(grids()[static_cast<size_t>(std::get<1>(GetParam()))]),
        dtype(std::get<2>(GetParam())), strided(std::get<3>(GetParam())) {
    mesh.axes = grid.axes;
    ranks = mesh.numRanks();
  }

  void addStep(const Use &use, const AxisList &axes, std::mt19937 &random) {
    Step step;
    step.use = use;
    step.axes = axes;
    step.name = braid::runtime::name(use.kind()) + std::string(".") + std::to_string(steps.size());
    std::vector<Shape> outputs = outputShapes(use, dtype, *mesh.numShards(axes));
    for (size_t i = 0; i < use.inputs.size(); ++i) { // there are as many outputs, of the same types
      const DType type = use.inputType(i, dtype);
      auto place = [&](const Shape &shape) {
        return strided ? layout.placeStrided(type, shape, random) : layout.place(type, shape);
      };
      step.inputs.push_back(place(use.inputs[i]));
      step.outputs.push_back(place(outputs[i]));
    }
    step.events = Events(use, numEvents);
    step.firstOperand = numOperands;
    step.firstResult = numResults;
    numOperands += step.inputs.size();
    numResults += step.outputs.size();
    steps.push_back(std::move(step));
  }

  /// The values of all ranks, concatenated.
  Shape global(const Shape &shape) const {
    Shape result{ranks};
    result.insert(result.end(), shape.begin(), shape.end());
    return result;
  }
  static std::string operand(size_t i) { return "in." + std::to_string(i); }
  static std::string result(size_t i) { return "out." + std::to_string(i); }

  /// All steps, in a random order, each waited for at a random time after its start.
  ProgramBuilder program(std::mt19937 &random) {
    ProgramBuilder b(grid.axes);
    Axes all;
    for (const Mesh::Axis &axis : grid.axes)
      all.push_back(axis.name);
    auto sharded = [&](const V &v) {
      std::vector<Axes> dims(v.shape.size() + 1);
      dims[0] = all;
      return dims;
    };
    for (const Step &step : steps) {
      for (size_t i = 0; i < step.inputs.size(); ++i)
        b.operand(operand(step.firstOperand + i), step.inputs[i].dtype,
                  global(step.inputs[i].shape), sharded(step.inputs[i]));
      for (size_t i = 0; i < step.outputs.size(); ++i)
        b.result(result(step.firstResult + i), step.outputs[i].dtype, global(step.outputs[i].shape),
                 sharded(step.outputs[i]));
    }
    auto p = b.procedure("main", static_cast<uint32_t>(numOperands + numResults), 0, layout.bytes(),
                         numEvents);
    std::vector<size_t> order(steps.size()), inFlight;
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    auto finish = [&] {
      std::swap(inFlight[random() % inFlight.size()], inFlight.back());
      size_t i = inFlight.back();
      inFlight.pop_back();
      const Step &step = steps[i];
      wait(p, step.name, step.use, step.events);
      for (size_t k = 0; k < step.outputs.size(); ++k)
        p.copy("out", step.outputs[k],
               argument(static_cast<uint32_t>(numOperands + step.firstResult + k),
                        step.outputs[k].dtype, step.outputs[k].shape));
    };
    for (size_t i : order) {
      const Step &step = steps[i];
      for (size_t k = 0; k < step.inputs.size(); ++k)
        p.copy("in",
               argument(static_cast<uint32_t>(step.firstOperand + k), step.inputs[k].dtype,
                        step.inputs[k].shape),
               step.inputs[k]);
      start(p, step.name, step.use, step.axes, step.inputs, step.outputs, step.events);
      inFlight.push_back(i);
      while (!inFlight.empty() && random() % 8 < inFlight.size())
        finish();
    }
    while (!inFlight.empty())
      finish();
    return b;
  }

  Status setInputs(Session &session, int64_t run) const {
    for (const Step &step : steps)
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        const Shape &shape = step.inputs[k].shape;
        HostTensor value = HostTensor::zeros(step.inputs[k].dtype, global(shape));
        for (int64_t rank = 0; rank < ranks; ++rank) {
          HostTensor part = contribution(step.use, k, dtype, rank, run).toHost();
          std::copy(part.data.begin(), part.data.end(),
                    value.data.begin() + static_cast<std::ptrdiff_t>(part.data.size()) * rank);
        }
        if (Status s = session.setInput(operand(step.firstOperand + k), value); !s.ok())
          return s;
      }
    return {};
  }

  void check(const Session &session, const Step &step, int64_t run) const {
    std::vector<Tensor> outputs;
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      auto output = session.output(result(step.firstResult + k));
      ASSERT_OK(output);
      outputs.push_back(Tensor::fromHost(*output));
    }
    for (int64_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::vector<Tensor>> contributions;
      const std::vector<int64_t> group = *mesh.group(rank, step.axes);
      for (int64_t member : group) {
        contributions.emplace_back();
        for (size_t k = 0; k < step.inputs.size(); ++k)
          contributions.back().push_back(contribution(step.use, k, dtype, member, run));
      }
      std::vector<Tensor> want =
          expected(step.use, contributions, *mesh.groupPosition(rank, step.axes));
      for (size_t k = 0; k < want.size(); ++k) {
        Tensor got =
            braid::interp::sliceShard(outputs[k], 0, rank, ranks)->reshaped(want[k].shape());
        ASSERT_EQ(braid::interp::firstDifference(got, want[k]), -1)
            << step.name << " over a group of " << group.size() << ", value " << k << " of rank "
            << rank << " in run " << run;
      }
    }
  }

  const Where where;
  const Grid &grid;
  DType dtype;
  bool strided;
  Mesh mesh;
  int64_t ranks;
  Layout layout;
  std::vector<Step> steps;
  size_t numOperands = 0, numResults = 0;
  uint32_t numEvents = 0;
};

TEST_P(Matrix, GivesWhatTheInterpreterSays) {
  const char *given = std::getenv("BRAID_TEST_SEED");
  const uint32_t seed =
      given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device()();
  SCOPED_TRACE("BRAID_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (const AxisList &axes : grid.groups)
    for (const Row &row : kRows)
      for (const Use &use : row.uses(*mesh.numShards(axes)))
        if (random() % grid.groups.size() < kGroupsOfAUse)
          addStep(use, axes, random);
  ProgramBuilder b = program(random);
  auto session = where.session(b);
  ASSERT_OK(session);
  for (int64_t run = 0; run < 3; ++run) {
    ASSERT_OK(setInputs(**session, run));
    ASSERT_OK((*session)->run());
    for (const Step &step : steps)
      check(**session, step, run);
  }
}

std::string nameOf(const ::testing::TestParamInfo<Matrix::ParamType> &info) {
  return std::get<0>(info.param).name + std::string("_") +
         grids()[static_cast<size_t>(std::get<1>(info.param))].name + "_" +
         name(std::get<2>(info.param));
}
/// Graphs repeat what streams do, for any type alike, and strided memory takes the null device
/// long: it looks at each row. Where memory is instrumented, one type of each size finds what can
/// be wrong with it; sums are of the uninstrumented build.
std::vector<Matrix::ParamType> cases(bool strided) {
#ifdef BRAID_SCHEDULE_POINTS
  const std::vector<DType> all{DType::f64, DType::f32, DType::bf16, DType::i8};
  const std::vector<DType> some{DType::bf16}, stridedOnHost = some;
#else
  const std::vector<DType> all{DType::f32, DType::f16, DType::bf16, DType::f64,
                               DType::i32, DType::i64, DType::i8};
  const std::vector<DType> some{DType::bf16, DType::i64}, stridedOnHost{DType::f32, DType::bf16};
#endif
  std::vector<Matrix::ParamType> made;
  for (const Where &where : kEverywhere) {
    const bool isGraph = std::string(where.name).find("Graph") != std::string::npos;
    const bool isDevice = !where.onCpu();
    if (strided && isGraph)
      continue;
    const std::vector<DType> types =
        !strided ? (isGraph ? some : all)
                 : (isDevice ? std::vector<DType>{DType::bf16} : stridedOnHost);
    for (size_t grid = 0; grid < grids().size(); ++grid)
      for (DType dtype : types)
        made.emplace_back(where, static_cast<int>(grid), dtype, strided);
  }
  return made;
}
INSTANTIATE_TEST_SUITE_P(Of, Matrix, ::testing::ValuesIn(cases(false)), nameOf);
INSTANTIATE_TEST_SUITE_P(Strided, Matrix, ::testing::ValuesIn(cases(true)), nameOf);

/// Sums that round: strided memory gives the same bits as contiguous memory, also where two
/// collectives work on interleaved columns of one matrix, the first one in place.
TEST(StridedCollectives, OfColumnsGiveTheBitsOfContiguousOnes) {
  constexpr DType f32 = DType::f32;
  constexpr int64_t kRows = 37, kColumns = 5, kRanks = 4;
  for (const Where &where : kEverywhere) {
    SCOPED_TRACE(where.name);
    ProgramBuilder b({{"tp", kRanks}});
    const Shape shape{kRows, kColumns}, global{kRanks * kRows, kColumns};
    const uint64_t bytes = kRows * kColumns * 4;
    for (const char *name : {"x", "y"})
      b.operand(name, f32, global, {{"tp"}, {}});
    for (const char *name : {"x.columns", "y.columns", "x.sum", "y.sum"})
      b.result(name, f32, global, {{"tp"}, {}});
    auto p = b.procedure("main", 6, 0, 8 * 1024, 8);
    // One matrix of 15 columns: x is summed in place, y from the middle to the last columns.
    auto columns = [&](int64_t first) {
      V view = symmetric(static_cast<uint64_t>(first) * 4, f32, shape);
      view.strides = {3 * kColumns, 1};
      return view;
    };
    const uint64_t rest = 3 * bytes;
    const V x = symmetric(rest, f32, shape), y = symmetric(rest + bytes, f32, shape),
            ySum = symmetric(rest + 2 * bytes, f32, shape);
    const V inputs[] = {columns(0), columns(kColumns), x, y};
    const V outputs[] = {columns(0), columns(2 * kColumns), x, ySum};
    for (uint32_t i = 0; i < 4; ++i)
      p.copy("in", argument(i % 2, f32, shape), inputs[i]);
    for (uint32_t i = 0; i < 4; ++i)
      p.start("sum." + std::to_string(i), fb::CollectiveKind::all_reduce, {"tp"}, {inputs[i]},
              {outputs[i]}, 0, 2 * i, 2 * i + 1);
    for (uint32_t i = 0; i < 4; ++i) {
      p.wait("sum." + std::to_string(i), 2 * i + 1);
      p.copy("out", outputs[i], argument(2 + i, f32, shape));
    }
    auto session = where.session(b);
    ASSERT_OK(session);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (const char *name : {"x", "y"}) {
      HostTensor value = HostTensor::zeros(f32, global);
      for (int64_t i = 0; i < value.numElements(); ++i)
        value.as<float>()[i] = normal(random);
      ASSERT_OK((*session)->setInput(name, value));
    }
    ASSERT_OK((*session)->run());
    for (const char *name : {"x", "y"}) {
      auto got = (*session)->output(name + std::string(".columns"));
      auto want = (*session)->output(name + std::string(".sum"));
      ASSERT_OK(got);
      ASSERT_OK(want);
      EXPECT_EQ(got->data, want->data) << name;
      EXPECT_NE(want->as<float>()[0], 0);
    }
  }
}

/// Columns that share elements are refused, as are those of the same place with other strides.
TEST(StridedCollectives, ThatOverlapAreRefused) {
  struct Case {
    uint64_t offset;
    Shape strides;
    bool refused;
  };
  for (const Case &c : {Case{16, {8, 1}, false}, Case{12, {8, 1}, true}, Case{0, {8, 1}, false},
                        Case{0, {4, 1}, true}}) {
    ProgramBuilder b({{"tp", 2}});
    auto p = b.procedure("main", 0, 0, 1024, 2);
    V in = symmetric(0, DType::f32, {4, 4}), out = in;
    in.strides = {8, 1};
    out.strides = c.strides;
    out.offset = c.offset;
    p.start("sum", fb::CollectiveKind::all_reduce, {"tp"}, {in}, {out}, 0, 0, 1);
    p.wait("sum", 1);
    auto session = b.session();
    if (c.refused)
      EXPECT_EQ(session.status().message(),
                "all_reduce 'sum' in @main on the communication queue expects output 0 not to "
                "overlap input 0")
          << c.offset;
    else
      EXPECT_OK(session);
  }
}

/// A collective that the runtime adds must also be in the table.
TEST(CollectiveTable, HasEveryKindOfTheProgram) {
  for (fb::CollectiveKind kind : fb::EnumValuesCollectiveKind())
    EXPECT_TRUE(kind == fb::CollectiveKind::send || // is in the row of recv
                std::any_of(std::begin(kRows), std::end(kRows),
                            [&](const Row &row) {
                              return std::string(fb::EnumNameCollectiveKind(kind)) ==
                                     braid::runtime::name(row.kind);
                            }))
        << fb::EnumNameCollectiveKind(kind);
}

} // namespace
