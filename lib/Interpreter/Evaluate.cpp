//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Interpreter/Evaluate.h"

#include "braid/Base/RankSet.h"
#include "braid/Base/StatusMacros.h"
#include "braid/Interpreter/EvaluatorTable.h"

#include "dialects/Comm/IR/Comm.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Support/DebugStringHelper.h"

using namespace mlir;

namespace braid::interp {

namespace {
std::string quoted(llvm::StringRef s) { return "'" + s.str() + "'"; }

/// The attributes of one of the entry's arguments or results.
struct EntryValue {
  std::string name;
  DType dtype = DType::f32;
  Shape globalShape;
  runtime::Sharding sharding;
  runtime::RankSet on = {}; ///< the ranks that have it
  Shape unpadded = {};      ///< of a padded value: the shape that callers see; empty: no padding
  bool isState = false;

  const Shape &seen() const { return unpadded.empty() ? globalShape : unpadded; }
};

Result<EntryValue> describe(std::string name, Type local, Type global, DictionaryAttr attrs) {
  auto tensor = dyn_cast<RankedTensorType>(global);
  if (!tensor || !tensor.hasStaticShape())
    return Status::error("entry value " + quoted(name) +
                         " expects a statically shaped tensor, got " + debugString(global));
  ASSIGN_OR_RETURN(DType dtype, dtypeOf(tensor.getElementType()));
  EntryValue value{
      std::move(name), dtype, {tensor.getShape().begin(), tensor.getShape().end()}, {}, {}, {}};
  if (attrs)
    value.on = comm::toRuntime(attrs.getAs<comm::PlaceAttr>(comm::CommDialect::kOnAttrName));
  // Without a global type the value is unpartitioned: its sharding is not applied yet.
  auto sharding =
      attrs ? attrs.getAs<comm::ShardingAttr>(comm::CommDialect::kShardingAttrName) : nullptr;
  if (local != global) {
    if (!sharding)
      return Status::error("entry value " + quoted(value.name) + " of type " + debugString(local) +
                           " expects a sharding that gives it from " + debugString(global));
    value.sharding = comm::toRuntime(sharding);
  }
  return value;
}

Type globalType(Type local, DictionaryAttr attrs) {
  auto global = attrs ? attrs.getAs<TypeAttr>(comm::CommDialect::kGlobalTypeAttrName) : nullptr;
  return global ? global.getValue() : local;
}

/// The mesh of a partitioned module; null for an unpartitioned one.
class MeshFinder {
public:
  Result<comm::MeshOp> find(func::FuncOp entry, const llvm::StringMap<func::FuncOp> &functions) {
    for (unsigned i = 0; i < entry.getNumArguments(); ++i)
      visitEntryValue(entry, entry.getArgAttrDict(i));
    for (unsigned i = 0; i < entry.getNumResults(); ++i)
      visitEntryValue(entry, entry.getResultAttrDict(i));
    llvm::SmallVector<func::FuncOp> work = {entry};
    llvm::SmallPtrSet<Operation *, 8> seen = {entry};
    while (!work.empty())
      work.pop_back_val().walk([&](Operation *op) {
        if (auto collective = dyn_cast<comm::CollectiveOpInterface>(op))
          visit(op, collective.getGroup().getMesh());
        else if (auto part = dyn_cast<comm::PartOp>(op))
          visit(op, part.getGroup().getMesh());
        else if (auto assemble = dyn_cast<comm::AssembleOp>(op))
          visit(op, assemble.getGroup().getMesh());
        else if (auto parameter = dyn_cast<nn::ParameterOp>(op);
                 parameter && parameter.getGlobalType())
          visit(op, parameter.getSharding()->getMesh());
        else if (auto parameter = dyn_cast<nn::ParameterOp>(op);
                 parameter && parameter.getPlaceAttr())
          visit(op, parameter.getPlaceAttr().getMesh());
        else if (auto call = dyn_cast<func::CallOp>(op)) {
          if (comm::PlaceAttr place = comm::placeOf(call))
            visit(op, place.getMesh());
          if (auto callee = functions.find(call.getCallee());
              callee != functions.end() && seen.insert(callee->second).second)
            work.push_back(callee->second);
        }
      });
    RETURN_IF_ERROR(error);
    return mesh;
  }

private:
  void visitEntryValue(func::FuncOp entry, DictionaryAttr attrs) {
    if (auto place = attrs ? attrs.getAs<comm::PlaceAttr>(comm::CommDialect::kOnAttrName)
                           : comm::PlaceAttr())
      visit(entry, place.getMesh());
    if (!attrs || !attrs.contains(comm::CommDialect::kGlobalTypeAttrName))
      return;
    if (auto sharding = attrs.getAs<comm::ShardingAttr>(comm::CommDialect::kShardingAttrName))
      visit(entry, sharding.getMesh());
  }

  void visit(Operation *op, FlatSymbolRefAttr symbol) {
    comm::MeshOp found = comm::lookupMesh(op, symbol);
    if (!found)
      error = errorAt(op, Status::error("references unknown mesh " + quoted(symbol.getValue())));
    else if (mesh && mesh != found)
      error = errorAt(op, Status::error("expects one mesh in the program, got " +
                                        quoted(mesh.getSymName()) + " and " +
                                        quoted(found.getSymName())));
    else
      mesh = found;
  }

  comm::MeshOp mesh;
  Status error;
};

Shape unpaddedShape(func::FuncOp entry, unsigned result) {
  auto unpadded = entry.getResultAttrOfType<TypeAttr>(result, nn::NNDialect::kUnpaddedAttrName);
  if (!unpadded)
    return {};
  ArrayRef<int64_t> shape = cast<RankedTensorType>(unpadded.getValue()).getShape();
  return {shape.begin(), shape.end()};
}

Result<std::vector<EntryValue>> describeArguments(func::FuncOp entry) {
  std::vector<EntryValue> values;
  for (unsigned i = 0; i < entry.getNumArguments(); ++i) {
    ASSIGN_OR_RETURN(EntryValue value,
                     describe(argumentName(entry, i), entry.getArgumentTypes()[i],
                              globalArgumentType(entry, i), entry.getArgAttrDict(i)));
    if (std::optional<unsigned> result = nn::getStateResult(entry, i)) {
      value.isState = true;
      value.unpadded = unpaddedShape(entry, *result);
    }
    values.push_back(std::move(value));
  }
  return values;
}

Result<std::vector<EntryValue>> describeResults(func::FuncOp entry) {
  std::vector<EntryValue> values;
  for (unsigned i = 0; i < entry.getNumResults(); ++i) {
    DictionaryAttr attrs = entry.getResultAttrDict(i);
    ASSIGN_OR_RETURN(EntryValue value, describe(resultName(entry, i), entry.getResultTypes()[i],
                                                globalResultType(entry, i), attrs));
    if (attrs && attrs.contains(comm::CommDialect::kGlobalTypeAttrName))
      if (auto sharding = attrs.getAs<comm::ShardingAttr>(comm::CommDialect::kShardingAttrName);
          sharding && sharding.isPartial())
        return Status::error("result " + quoted(value.name) +
                             " expects reduced values, got a partial sharding");
    value.unpadded = unpaddedShape(entry, i);
    values.push_back(std::move(value));
  }
  return values;
}

/// The inputs in the order of the arguments.
Result<std::vector<Tensor>> matchInputs(const std::vector<EntryValue> &arguments,
                                        const std::vector<NamedTensor> &inputs) {
  for (const NamedTensor &input : inputs)
    if (llvm::none_of(arguments, [&](const EntryValue &a) { return a.name == input.name; }))
      return Status::error("the entry has no argument named " + quoted(input.name));
  std::vector<Tensor> matched;
  for (const EntryValue &argument : arguments) {
    auto input =
        llvm::find_if(inputs, [&](const NamedTensor &i) { return i.name == argument.name; });
    if (input == inputs.end() && argument.isState) {
      matched.push_back(Tensor::zeros(argument.dtype, argument.globalShape));
      continue;
    }
    const std::string what = (argument.isState ? "state " : "input ") + quoted(argument.name);
    if (input == inputs.end())
      return Status::error(what + " is missing");
    if (input->value.dtype() != argument.dtype || input->value.shape() != argument.seen())
      return Status::error(what + " expects " +
                           Tensor::zeros(argument.dtype, argument.seen()).typeString() + ", got " +
                           input->value.typeString());
    if (argument.unpadded.empty())
      matched.push_back(input->value);
    else
      matched.push_back(
          assemble(argument.dtype, argument.globalShape,
                   {{{Shape(argument.unpadded.size(), 0), argument.unpadded}, input->value}}));
  }
  return matched;
}

/// Assembles a result from the ranks' shards; ranks with the same shard must agree.
Result<Tensor> gatherResult(const runtime::Mesh &mesh, const EntryValue &result,
                            const std::vector<Tensor> &shards) {
  std::vector<PlacedTensor> placed;
  std::map<Shape, size_t> owner;
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    if (!result.on.contains(mesh, static_cast<int64_t>(rank)))
      continue;
    Result<runtime::Box> box =
        runtime::localBox(mesh, static_cast<int64_t>(rank), result.globalShape, result.sharding);
    if (!box.ok())
      return Status::error("result " + quoted(result.name) + ": " + box.status().message());
    auto [first, isNew] = owner.try_emplace(box->offsets, rank);
    if (isNew) {
      placed.push_back({*box, shards[rank]});
      continue;
    }
    if (int64_t i = firstDifference(shards[first->second], shards[rank]); i >= 0) {
      std::string where;
      for (int64_t index : unflatten(i, box->sizes))
        where += (where.empty() ? "" : ", ") + std::to_string(index);
      return Status::error("result " + quoted(result.name) + " expects equal values on ranks " +
                               std::to_string(first->second) + " and " + std::to_string(rank) +
                               ", which differ at [" + where + "]",
                           runtime::Code::rankFailed);
    }
  }
  Tensor full = assemble(result.dtype, result.globalShape, placed);
  if (result.unpadded.empty())
    return full;
  return extractBox(full, {Shape(result.unpadded.size(), 0), result.unpadded});
}
} // namespace

std::string argumentName(func::FuncOp func, unsigned index) {
  if (auto name = func.getArgAttrOfType<StringAttr>(index, nn::NNDialect::kNameAttrName))
    return name.str();
  return "arg" + std::to_string(index);
}

std::string resultName(func::FuncOp func, unsigned index) {
  if (auto name = func.getResultAttrOfType<StringAttr>(index, nn::NNDialect::kNameAttrName))
    return name.str();
  return "result" + std::to_string(index);
}

Type globalArgumentType(func::FuncOp func, unsigned index) {
  return globalType(func.getArgumentTypes()[index], func.getArgAttrDict(index));
}

Type globalResultType(func::FuncOp func, unsigned index) {
  return globalType(func.getResultTypes()[index], func.getResultAttrDict(index));
}

Result<func::FuncOp> findEntry(ModuleOp module, const std::string &name) {
  if (!name.empty()) {
    if (auto func = module.lookupSymbol<func::FuncOp>(name))
      return func;
    return Status::error("the module has no function " + quoted(name));
  }
  func::FuncOp entry;
  bool severalEntries = false;
  std::string names;
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    if (func->hasAttr(nn::NNDialect::kEntryAttrName)) {
      names += (entry ? ", " : "") + quoted(func.getSymName());
      if (entry)
        severalEntries = true;
      entry = func;
    }
  if (severalEntries)
    return Status::error("the module has several entries, name one of " + names);
  if (!entry)
    entry = module.lookupSymbol<func::FuncOp>("main");
  if (!entry)
    return Status::error("the module has no function marked nn.entry and none named 'main'");
  return entry;
}

Result<Evaluation> evaluate(ModuleOp module, const EvaluateOptions &options) {
  ASSIGN_OR_RETURN(func::FuncOp entry, findEntry(module, options.entry));
  const EvaluatorTable evaluators =
      options.evaluators ? EvaluatorTable() : collectEvaluators(module.getContext());
  RankEvaluator::Shared shared{options.evaluators ? *options.evaluators : evaluators,
                               {},
                               options.weights,
                               {},
                               options.roundToStorage};
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    shared.functions[func.getSymName()] = func;
  ASSIGN_OR_RETURN(comm::MeshOp meshOp, MeshFinder().find(entry, shared.functions));
  runtime::Mesh mesh;
  if (meshOp)
    mesh = comm::toRuntime(meshOp);

  ASSIGN_OR_RETURN(std::vector<EntryValue> arguments, describeArguments(entry));
  ASSIGN_OR_RETURN(std::vector<EntryValue> results, describeResults(entry));
  ASSIGN_OR_RETURN(std::vector<Tensor> inputs, matchInputs(arguments, options.inputs));

  Evaluation evaluation;
  evaluation.numRanks = mesh.numRanks();
  // Each rank writes its own row.
  std::vector<std::vector<RuntimeValue>> outputs(static_cast<size_t>(evaluation.numRanks));
  ProcessGrid grid(mesh, options.grid);
  RETURN_IF_ERROR(grid.run([&](Process &process) -> Status {
    std::vector<RuntimeValue> values;
    for (auto [argument, input] : llvm::zip_equal(arguments, inputs)) {
      Result<runtime::Box> box =
          runtime::localBox(mesh, process.rank(), argument.globalShape, argument.sharding);
      if (!box.ok())
        return Status::error("input " + quoted(argument.name) + ": " + box.status().message());
      if (argument.on.contains(mesh, process.rank()))
        values.push_back(extractBox(input, *box));
      else
        values.push_back(Absent{});
    }
    RankEvaluator rank(shared, process);
    std::vector<RuntimeValue> &own = outputs[static_cast<size_t>(process.rank())];
    ASSIGN_OR_RETURN(own, rank.call(entry, std::move(values)));
    for (auto [result, value] : llvm::zip_equal(results, own))
      if (std::holds_alternative<Absent>(value) && result.on.contains(mesh, process.rank()))
        return Status::error("returns result " + quoted(result.name) +
                             ", which this rank does not have");
    if (process.rank() == 0)
      evaluation.executed = std::move(rank.executed);
    return {};
  }));
  for (auto [i, result] : llvm::enumerate(results)) {
    std::vector<Tensor> shards;
    for (std::vector<RuntimeValue> &ofRank : outputs)
      shards.push_back(std::holds_alternative<Tensor>(ofRank[i])
                           ? std::move(std::get<Tensor>(ofRank[i]))
                           : Tensor());
    ASSIGN_OR_RETURN(Tensor full, gatherResult(mesh, result, shards));
    evaluation.results.push_back({result.name, std::move(full)});
  }
  return evaluation;
}

} // namespace braid::interp
