//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `braid smooth`: moves the range of activations' channels into weights. The factors are powers of
// two, so that the model computes the same numbers as before.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Session.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Pipelines/Compile.h"
#include "braid/Runtime/Model.h"
#include "braid/Runtime/Npy.h"
#include "braid/Runtime/Safetensors.h"
#include "braid/Transforms/ChannelMaxima.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;

namespace braid::tool {

namespace {

using runtime::Status;
using Values = std::vector<float>;

runtime::Parameter wholeTensor(const std::string &name, const std::vector<int64_t> &shape) {
  const std::vector<int64_t> zeros(shape.size(), 0);
  runtime::Parameter parameter;
  parameter.name = name;
  parameter.globalShape = shape;
  parameter.slices.push_back({name, shape, {}, zeros, zeros, shape});
  return parameter;
}

runtime::Result<Values> read(runtime::WeightSource &source, const runtime::Parameter &parameter) {
  const std::vector<int64_t> &shape = parameter.globalShape;
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  Values values(static_cast<size_t>(count));
  RETURN_IF_ERROR(
      source.read(parameter, {std::vector<int64_t>(shape.size(), 0), shape}, values.data()));
  return values;
}

runtime::Parameter described(nn::ParameterOp parameter) {
  ArrayRef<int64_t> shape = parameter.getParameterType().getShape();
  runtime::Parameter result;
  result.name = parameter.getName().str();
  result.globalShape.assign(shape.begin(), shape.end());
  for (auto slice : parameter.getSlices().getAsRange<nn::SliceAttr>())
    result.slices.push_back(nn::toRuntime(slice));
  return result;
}

/// The tensors of a checkpoint, some of them scaled.
class Tensors {
public:
  explicit Tensors(runtime::WeightSource &source) : source(source) {}

  using ByName = std::map<std::string, Values>;

  /// Multiplies what the parameter's slices read by 2^exponents[position in `dim`], in `changed`.
  /// False where a number would lose digits.
  runtime::Result<bool> scale(nn::ParameterOp parameter, size_t dim,
                              const std::vector<int> &exponents, ByName &changed) {
    for (auto attr : parameter.getSlices().getAsRange<nn::SliceAttr>()) {
      const runtime::Slice slice = nn::toRuntime(attr);
      auto it = changed.find(slice.tensor);
      if (it == changed.end()) {
        ASSIGN_OR_RETURN(Values values, tensor(slice));
        it = changed.emplace(slice.tensor, std::move(values)).first;
      }
      if (!scale(slice, dim, exponents, it->second))
        return false;
    }
    return true;
  }
  void replace(ByName changed) {
    for (auto &[name, values] : changed)
      scaled[name] = std::move(values);
  }

  Status write(const std::string &path) {
    llvm::json::Object header;
    uint64_t end = 0;
    std::vector<runtime::TensorInfo> written;
    for (const runtime::TensorInfo &info : source.tensors()) {
      if (info.dtype != "F32" && info.dtype != "F16" && info.dtype != "BF16")
        continue;
      uint64_t bytes = sizeof(float);
      for (int64_t size : info.shape)
        bytes *= static_cast<uint64_t>(size);
      header[info.name] = llvm::json::Object{{"dtype", "F32"},
                                             {"shape", llvm::json::Array(info.shape)},
                                             {"data_offsets", llvm::json::Array{end, end + bytes}}};
      end += bytes;
      written.push_back(info);
    }
    Status status;
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(header));
    text.resize(llvm::alignTo(text.size(), 8), ' ');
    const bool done = writeText(path, [&](llvm::raw_ostream &os) {
      char length[8];
      llvm::support::endian::write64le(length, text.size());
      os.write(length, sizeof length);
      os << text;
      for (const runtime::TensorInfo &info : written) {
        runtime::Result<Values> values = valuesOf(info);
        if (!values.ok()) {
          status = values.status();
          return;
        }
        os.write(reinterpret_cast<const char *>(values->data()), values->size() * sizeof(float));
      }
    });
    return status.ok() && !done ? Status::error("cannot write '", path, "'") : status;
  }

private:
  runtime::Result<Values> tensor(const runtime::Slice &slice) {
    if (auto it = scaled.find(slice.tensor); it != scaled.end())
      return it->second;
    return read(source, wholeTensor(slice.tensor, slice.tensorShape));
  }
  runtime::Result<Values> valuesOf(const runtime::TensorInfo &info) {
    if (auto it = scaled.find(info.name); it != scaled.end())
      return it->second;
    return read(source, wholeTensor(info.name, info.shape));
  }

  static bool scale(const runtime::Slice &slice, size_t dim, const std::vector<int> &exponents,
                    Values &values) {
    const size_t rank = slice.sizes.size();
    std::vector<int64_t> strides(rank, 1), at(rank, 0);
    for (size_t d = rank; d-- > 1;)
      strides[d - 1] = strides[d] * slice.tensorShape[d];
    for (bool more = true; more;) {
      int64_t place = 0;
      for (size_t d = 0; d < rank; ++d)
        place += (slice.sourceOffsets[d] + at[d]) *
                 strides[slice.permutation.empty() ? d : static_cast<size_t>(slice.permutation[d])];
      float &value = values[static_cast<size_t>(place)];
      const int exponent = exponents[static_cast<size_t>(slice.destOffsets[dim] + at[dim])];
      const float before = value;
      value = std::ldexp(before, exponent);
      if (std::ldexp(value, -exponent) != before)
        return false;
      more = false;
      for (size_t d = rank; d-- > 0 && !more;)
        if (++at[d] < slice.sizes[d])
          more = true;
        else
          at[d] = 0;
    }
    return true;
  }

  runtime::WeightSource &source;
  ByName scaled;
};

class Smoother {
public:
  explicit Smoother(const SmoothArgs &args) : args(args) {}

  Status run() {
    OwningOpRef<ModuleOp> module = session.readModule(args.model);
    if (!module)
      return Status::error("cannot read '", args.model, "'");
    if (FailureOr<Level> level = detectLevel(*module); failed(level) || *level != Level::NN)
      return Status::error("'", args.model,
                           "' expects to be of level nn, as `braid import` writes it");
    ASSIGN_OR_RETURN(std::unique_ptr<runtime::WeightSource> source,
                     runtime::openSafetensors(args.weights));
    OwningOpRef<ModuleOp> recording = module->clone();
    FailureOr<std::vector<ChannelGroup>> found = recordChannelMaxima(*recording);
    if (failed(found))
      return Status::error("cannot smooth '", args.model, "'");
    // Compiling changes the module that the groups' parameters are in.
    OwningOpRef<ModuleOp> compiled = recording->clone();
    RETURN_IF_ERROR(measure(*compiled, *source, *found));
    Tensors tensors(*source);
    size_t done = 0;
    for (const ChannelGroup &group : *found) {
      ASSIGN_OR_RETURN(const std::string obstacle, smooth(group, *source, tensors));
      if (obstacle.empty())
        ++done;
      else
        llvm::errs() << "not smoothed: " << group.name << ": " << obstacle << "\n";
    }
    if (done == 0)
      return Status::error("'", args.model, "' has no activations that can be smoothed");
    RETURN_IF_ERROR(tensors.write(args.output));
    llvm::outs() << "smoothed " << done << " of " << found->size() << " activations in '"
                 << args.output << "'\n";
    return {};
  }

private:
  /// Runs the model on the inputs.
  Status measure(ModuleOp module, runtime::WeightSource &source,
                 const std::vector<ChannelGroup> &groups) {
    CompileOptions options;
    options.isas = {"host"};
    options.stripModule = true;
    FailureOr<runtime::Bundle> bundle = compileToBundle(module, options);
    if (failed(bundle))
      return Status::error("cannot compile '", args.model, "'");
    ASSIGN_OR_RETURN(auto world, runtime::World::create({}));
    ASSIGN_OR_RETURN(
        auto model,
        runtime::Model::load(world, std::make_shared<const runtime::Bundle>(std::move(*bundle))));
    RETURN_IF_ERROR(model->loadWeights(source));
    ASSIGN_OR_RETURN(runtime::Execution * execution, model->execution());
    for (const std::string &input : args.inputs) {
      auto [name, path] = StringRef(input).split('=');
      if (name.empty() || path.empty())
        return Status::error("--input expects NAME=FILE.npy, got '", input, "'");
      ASSIGN_OR_RETURN(runtime::HostTensor value, runtime::readNpy(path.str()));
      RETURN_IF_ERROR(execution->setInput(name.str(), value));
    }
    RETURN_IF_ERROR(execution->run());
    for (const ChannelGroup &group : groups) {
      ASSIGN_OR_RETURN(runtime::HostTensor value, execution->output(group.result));
      const auto *floats = value.as<float>();
      maxima[group.result].assign(floats, floats + value.numElements());
    }
    return {};
  }

  /// Scales the weights of a group; why not, or nothing.
  runtime::Result<std::string> smooth(const ChannelGroup &group, runtime::WeightSource &source,
                                      Tensors &tensors) {
    if (!group.obstacle.empty())
      return group.obstacle;
    const Values &activations = maxima[group.result];
    Values weights(activations.size());
    for (nn::ParameterOp parameter : group.multiplied) {
      ASSIGN_OR_RETURN(const Values values, read(source, described(parameter)));
      for (size_t i = 0; i < values.size(); ++i)
        weights[i % weights.size()] = std::max(weights[i % weights.size()], std::fabs(values[i]));
    }
    std::vector<int> exponents, inverse;
    for (size_t j = 0; j < weights.size(); ++j) {
      const double factor = args.alpha * std::log2(double(activations[j])) -
                            (1 - args.alpha) * std::log2(double(weights[j]));
      exponents.push_back(std::isfinite(factor)
                              ? static_cast<int>(std::lround(std::clamp(factor, -20.0, 20.0)))
                              : 0);
      inverse.push_back(-exponents.back());
    }
    Tensors::ByName changed;
    bool exact = true;
    for (nn::ParameterOp parameter : group.divided) {
      ASSIGN_OR_RETURN(const bool kept, tensors.scale(parameter, 0, inverse, changed));
      exact &= kept;
    }
    for (nn::ParameterOp parameter : group.multiplied) {
      ASSIGN_OR_RETURN(const bool kept, tensors.scale(parameter, 1, exponents, changed));
      exact &= kept;
    }
    if (!exact)
      return std::string("a weight would lose digits");
    tensors.replace(std::move(changed));
    return std::string();
  }

  const SmoothArgs &args;
  CompilerSession session;
  std::map<std::string, Values> maxima; ///< by result
};

} // namespace

int runSmooth(const SmoothArgs &args) {
  if (Status status = Smoother(args).run(); !status.ok())
    return fail(status.message());
  return kDone;
}

} // namespace braid::tool
