//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Analysis/PlacementCheck.h"

#include "PlacementContext.h"
#include "PlacementRings.h"
#include "braid/Base/RankSet.h"

#include "dialects/NN/IR/NN.h"
#include "dialects/RT/IR/RT.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
namespace {

/// How often a program is followed until it is known what its receives give.
constexpr int kMaxRounds = 8;

size_t rankOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? static_cast<size_t>(tensor.getRank()) : 0;
}

/// The values that a type stands for: those of a handle, or one.
SmallVector<Type> valuesOf(Type type) {
  if (auto handle = dyn_cast<HandleType>(type))
    return SmallVector<Type>(handle.getValueTypes());
  return {type};
}

/// The sends and receives that match each other: of a group and a tag.
using Channel = std::pair<const void *, int64_t>;

class Checker {
public:
  Checker(ModuleOp module, MeshOp mesh, SkippedRules skip) : mesh(mesh), layouts(mesh), skip(skip) {
    findStages(module);
  }

  LogicalResult run(ArrayRef<func::FuncOp> entries) {
    // A receive gives, along axes other than its own, what is sent. It may stand before the send.
    for (int round = 0; hasReceives && round < kMaxRounds; ++round) {
      auto before = sent;
      for (func::FuncOp entry : entries)
        (void)runEntry(entry);
      contexts.clear();
      if (sent == before)
        break;
      if (round + 1 == kMaxRounds)
        for (auto &[channel, placed] : sent)
          for (Placements &placements : placed)
            placements = {unknown(placements.front().dims.size())};
    }
    report = true;
    for (func::FuncOp entry : entries)
      if (failed(runEntry(entry)))
        return failure();
    return success();
  }

private:
  void findStages(ModuleOp module);
  LogicalResult runEntry(func::FuncOp entry);
  LogicalResult follow(const Frame &frame);
  LogicalResult followCall(const Frame &frame, func::CallOp call);
  LogicalResult followCollective(const Frame &frame, CollectiveOpInterface op,
                                 OperandRange operands, Placed &results);
  LogicalResult checkResults(const Frame &frame, func::ReturnOp end);
  bool checkResult(const Frame &frame, func::ReturnOp end, unsigned i);
  /// Whether this is an error. What a skipped rule lets through has no placement.
  bool isRefused(const Contradiction *contradiction) {
    return contradiction && isRefused(contradiction->rule);
  }
  bool isRefused(PlacementRule rule) {
    if (report && llvm::is_contained(skip, rule))
      skipped = true;
    return report && !llvm::is_contained(skip, rule);
  }
  LogicalResult refuse(const Frame &frame, Operation *op, OperandRange operands,
                       const Contradiction &contradiction);
  FunctionContext *contextOf(func::FuncOp func, std::vector<Placed> arguments);

  /// As declared; along an axis of stages a shard is the rank's own value.
  Placement declared(ShardingAttr sharding, Type type) const;
  Placement unknown(size_t rank) const {
    Placement placement = samePlacement(rank);
    for (auto [i, size] : llvm::enumerate(layouts.sizes()))
      if (size != 1)
        placement.varying.push_back({static_cast<int>(i), 1, size});
    return placement;
  }
  Placed unknownValue(Type type) const {
    Placed placed;
    for (Type value : valuesOf(type))
      placed.push_back({unknown(rankOf(value))});
    return placed;
  }
  void send(SendOp op, ArrayRef<Placements> inputs);
  Placed receive(RecvOp op) const;
  std::vector<Placements> inputsOf(const Frame &frame, OperandRange operands) const {
    std::vector<Placements> inputs;
    for (Value operand : operands)
      inputs.push_back(frame.context->values.at(operand).front());
    return inputs;
  }

  MeshOp mesh;
  MeshLayouts layouts;
  SubAxes stages;
  bool hasReceives = false;
  bool report = false; ///< whether a contradiction is an error, rather than followed over
  SkippedRules skip;
  bool skipped = false; ///< whether a skipped rule has let something through
  std::map<Channel, Placed> sent;
  std::map<std::pair<Operation *, std::vector<Placed>>, std::unique_ptr<FunctionContext>> contexts;
};

/// An axis over which ranks send to some of the others only is one of stages: what a rank holds
/// along it belongs to its own stage. A group over which parts are assembled passes on parts of one
/// value instead.
void Checker::findStages(ModuleOp module) {
  auto add = [&](GroupAttr group) { llvm::append_range(stages, layouts.subAxes(group.getAxes())); };
  llvm::SmallDenseSet<GroupAttr> assembled;
  module.walk([&](AssembleOp op) { assembled.insert(op.getGroup()); });
  module.walk([&](Operation *op) {
    if (auto send = dyn_cast<SendOp>(op))
      add(send.getGroup());
    if (auto receive = dyn_cast<RecvOp>(op)) {
      hasReceives = true;
      add(receive.getGroup());
    }
    if (auto permute = dyn_cast<PermuteOp>(op); permute && !assembled.contains(permute.getGroup()))
      if (static_cast<int64_t>(permute.getPairs().size()) !=
          2 * shards(layouts.subAxes(permute.getGroup().getAxes())))
        add(permute.getGroup());
  });
}

Placement Checker::declared(ShardingAttr sharding, Type type) const {
  Placement placement = samePlacement(rankOf(type));
  if (!sharding)
    return placement;
  placement.dims = layouts.layout(sharding);
  for (PartialAttr partial : sharding.getPartials())
    if (SubAxis axis = layouts.subAxis(partial.getAxis()); axis.size() != 1)
      placement.addends.push_back({axis, kindOf(partial.getKind())});
  Digits digits(layouts.sizes());
  digits.add(placement);
  digits.add(stages);
  placement = digits.split(placement);
  for (const SubAxis &axis : digits.split(stages))
    if (placement.heldOn(axis) == Held::Part)
      placement.makeVarying(axis);
  placement.normalize();
  return placement;
}

FunctionContext *Checker::contextOf(func::FuncOp func, std::vector<Placed> arguments) {
  std::unique_ptr<FunctionContext> &context = contexts[{func, arguments}];
  if (!context) {
    context = std::make_unique<FunctionContext>();
    context->func = func;
    context->arguments = std::move(arguments);
  }
  return context.get();
}

LogicalResult Checker::runEntry(func::FuncOp entry) {
  std::vector<Placed> arguments;
  for (auto [i, type] : llvm::enumerate(entry.getArgumentTypes())) {
    auto sharding = entry.getArgAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName);
    arguments.push_back(isa<HandleType>(type) ? unknownValue(type)
                                              : Placed{{declared(sharding, type)}});
  }
  Frame frame{contextOf(entry, std::move(arguments))};
  if (failed(follow(frame)))
    return failure();
  if (!report)
    return success();
  return checkResults(frame, cast<func::ReturnOp>(entry.getBody().front().getTerminator()));
}

LogicalResult Checker::follow(const Frame &frame) {
  FunctionContext &context = *frame.context;
  if (context.done)
    return success();
  Block &body = context.func.getBody().front();
  for (auto [argument, placed] : llvm::zip_equal(body.getArguments(), context.arguments))
    context.values[argument] = placed;
  SmallVector<std::pair<Operation *, Contradiction>> steps; // of rings, until they are assembled
  for (Operation &op : body) {
    if (auto call = dyn_cast<func::CallOp>(op)) {
      if (failed(followCall(frame, call)))
        return failure();
      continue;
    }
    if (auto start = dyn_cast<StartOp>(op)) {
      Placed results;
      if (failed(followCollective(frame, start.getCollective(), op.getOperands(), results)))
        return failure();
      context.values[start.getHandle()] = std::move(results);
      continue;
    }
    if (auto wait = dyn_cast<WaitOp>(op)) {
      Placed handle = context.values.at(wait.getHandle());
      for (auto [result, placements] : llvm::zip_equal(wait.getOutputs(), handle))
        context.values[result] = {placements};
      continue;
    }
    if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
      Placed results;
      if (failed(followCollective(frame, collective, op.getOperands(), results)))
        return failure();
      for (auto [result, placements] : llvm::zip_equal(op.getResults(), results))
        context.values[result] = {placements};
      continue;
    }
    if (isa<func::ReturnOp>(op)) {
      for (Value operand : op.getOperands())
        context.results.push_back(context.values.at(operand));
      break;
    }
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      context.values[parameter] = {{declared(parameter.getShardingAttr(), parameter.getType())}};
      continue;
    }
    auto part = dyn_cast<PartOp>(op);
    // What ranks hold of parts at other positions has no placement.
    if (part && part.getShift() != 0) {
      context.values[part] = unknownValue(part.getType());
      continue;
    }
    if (auto assemble = dyn_cast<AssembleOp>(op)) {
      auto whole = assembledByRing(layouts, assemble, context);
      if (whole && isRefused(std::get_if<Contradiction>(&*whole)))
        return refuse(frame, &op, op.getOperands(), std::get<Contradiction>(*whole));
      // What contradicts itself outside of a ring is wrong.
      for (auto &[step, contradiction] : steps)
        if (!whole && isRefused(&contradiction))
          return refuse(frame, step, step->getOperands(), contradiction);
      steps.clear();
      auto *placements = whole ? std::get_if<Placements>(&*whole) : nullptr;
      context.values[assemble] =
          placements ? Placed{*placements} : unknownValue(assemble.getType());
      continue;
    }
    // A kernel that knows the rank's position may give every rank something else.
    if (auto launch = dyn_cast<rt::LaunchOp>(op); launch && launch.getKernelOp().getGroup()) {
      for (Value result : op.getResults())
        context.values[result] = unknownValue(result.getType());
      continue;
    }
    Transfer transfer;
    std::vector<Placements> inputs = inputsOf(frame, op.getOperands());
    if (part && !isOwnAddend(&op)) {
      transfer = transferSlice(layouts, part, inputs.front());
    } else {
      llvm::SetVector<Value> used;
      getUsedValuesDefinedAbove(op.getRegions(), used);
      std::vector<Placements> captured;
      for (Value value : used)
        captured.push_back(context.values.at(value).front());
      transfer = transferComputation(layouts, &op, inputs, captured);
    }
    if (auto *contradiction = std::get_if<Contradiction>(&transfer)) {
      // A step of a ring is no value of its own; what it is assembled to is.
      if (isOfRing(&op))
        steps.emplace_back(&op, *contradiction);
      else if (isRefused(contradiction))
        return refuse(frame, &op, op.getOperands(), *contradiction);
      for (Value result : op.getResults())
        context.values[result] = unknownValue(result.getType());
      continue;
    }
    for (auto [result, placements] :
         llvm::zip_equal(op.getResults(), std::get<ResultPlacements>(transfer)))
      context.values[result] = {placements};
  }
  context.done = true;
  return success();
}

LogicalResult Checker::followCall(const Frame &frame, func::CallOp call) {
  auto callee = dyn_cast_or_null<func::FuncOp>(call.resolveCallable());
  bool recursive = false;
  for (const Frame *outer = &frame; outer; outer = outer->caller)
    recursive |= outer->context->func == callee;
  if (!callee || callee.isExternal() || recursive) {
    for (Value result : call.getResults())
      frame.context->values[result] = unknownValue(result.getType());
    return success();
  }
  std::vector<Placed> arguments;
  for (Value operand : call.getOperands())
    arguments.push_back(frame.context->values.at(operand));
  FunctionContext *context = contextOf(callee, std::move(arguments));
  frame.context->callees[call] = context;
  if (failed(follow({context, call, &frame})))
    return failure();
  for (auto [result, placed] : llvm::zip_equal(call.getResults(), context->results))
    frame.context->values[result] = placed;
  return success();
}

LogicalResult Checker::followCollective(const Frame &frame, CollectiveOpInterface op,
                                        OperandRange operands, Placed &results) {
  std::vector<Placements> inputs = inputsOf(frame, operands);
  if (auto sending = dyn_cast<SendOp>(*op)) {
    send(sending, inputs);
    return success();
  }
  if (auto receiving = dyn_cast<RecvOp>(*op)) {
    results = receive(receiving);
    return success();
  }
  Transfer transfer = transferCollective(layouts, op, inputs);
  if (auto *contradiction = std::get_if<Contradiction>(&transfer)) {
    if (isRefused(contradiction))
      return refuse(frame, op, operands, *contradiction);
    for (Value result : op->getResults())
      results.push_back({unknown(rankOf(result.getType()))});
    return success();
  }
  auto &placements = std::get<ResultPlacements>(transfer);
  results.assign(placements.begin(), placements.end());
  return success();
}

void Checker::send(SendOp op, ArrayRef<Placements> inputs) {
  auto [it, first] = sent.try_emplace(Channel(op.getGroup().getAsOpaquePointer(), op.getTag()),
                                      Placed(inputs.begin(), inputs.end()));
  if (first)
    return;
  // Sends of one channel may differ; only what they have in common is known of a receive.
  for (auto [placements, input] : llvm::zip(it->second, inputs)) {
    if (placements == input)
      continue;
    size_t rank = placements.front().dims.size();
    bool fits = rank == input.front().dims.size();
    Digits digits(layouts.sizes());
    digits.add(placements.front());
    if (fits)
      digits.add(input.front());
    Placement joined = digits.split(placements.front());
    Placement other = fits ? digits.split(input.front()) : unknown(rank);
    for (const SubAxis &axis : digits.split(unknown(rank).varying)) {
      size_t dim = 0, otherDim = 0;
      Held held = joined.heldOn(axis, &dim);
      if (held != other.heldOn(axis, &otherDim) || dim != otherDim)
        joined.makeVarying(axis);
    }
    joined.normalize();
    placements = {joined};
  }
}

Placed Checker::receive(RecvOp op) const {
  auto it = sent.find(Channel(op.getGroup().getAsOpaquePointer(), op.getTag()));
  Placed results;
  for (auto [i, output] : llvm::enumerate(op.getOutputs())) {
    Placement placement = samePlacement(rankOf(output.getType()));
    if (it != sent.end()) {
      bool fits =
          i < it->second.size() && it->second[i].front().dims.size() == placement.dims.size();
      placement = fits ? it->second[i].front() : unknown(placement.dims.size());
    }
    SubAxes group = layouts.subAxes(op.getGroup().getAxes());
    Digits digits(layouts.sizes());
    digits.add(placement);
    digits.add(group);
    placement = digits.split(placement);
    for (const SubAxis &axis : digits.split(group))
      placement.makeVarying(axis);
    placement.normalize();
    results.push_back({placement});
  }
  return results;
}

LogicalResult Checker::refuse(const Frame &frame, Operation *op, OperandRange operands,
                              const Contradiction &contradiction) {
  InFlightDiagnostic diag = op->emitOpError(contradiction.message);
  if (!contradiction.note.empty())
    diag.attachNote(op->getLoc()) << contradiction.note;
  for (const Blame &blame : contradiction.blames)
    noteOrigin(diag, layouts, frame, operands[blame.operand], blame);
  for (const Frame *at = &frame; at->caller; at = at->caller)
    diag.attachNote(at->call->getLoc())
        << "'" << at->context->func.getSymName() << "' is called here";
  return diag;
}

LogicalResult Checker::checkResults(const Frame &frame, func::ReturnOp end) {
  for (unsigned i = 0; i < end.getNumOperands(); ++i)
    if (!isa<HandleType>(end.getOperand(i).getType()) && !checkResult(frame, end, i))
      return failure();
  return success();
}

/// Whether a result may be what its declaration says; an error where it is not.
bool Checker::checkResult(const Frame &frame, func::ReturnOp end, unsigned i) {
  func::FuncOp func = frame.context->func;
  auto sharding = func.getResultAttrOfType<ShardingAttr>(i, CommDialect::kShardingAttrName);
  Value value = end.getOperand(i);
  Placement stated = samePlacement(rankOf(value.getType()));
  if (sharding) {
    stated.dims = layouts.layout(sharding);
    for (PartialAttr partial : sharding.getPartials())
      if (SubAxis axis = layouts.subAxis(partial.getAxis()); axis.size() != 1)
        stated.addends.push_back({axis, kindOf(partial.getKind())});
  }
  const runtime::RankSet owners =
      toRuntime(func.getResultAttrOfType<PlaceAttr>(i, CommDialect::kOnAttrName));
  // Along such an axis there is one value.
  auto isOfOneRank = [&](const SubAxis &axis) {
    const auto *listed =
        owners.along(layouts.axis({axis.axis, 1, layouts.sizes()[axis.axis]}).getName().str());
    return listed && listed->size() == 1;
  };
  std::optional<std::tuple<PlacementRule, SubAxis, std::string, std::string, Held>> first;
  auto fail = [&](PlacementRule rule, const SubAxis &axis, std::string want, std::string got,
                  Held held) {
    if (!first)
      first = {rule, axis, std::move(want), std::move(got), held};
  };
  for (const Placement &alternative : frame.context->values.at(value).front()) {
    Digits digits(layouts.sizes());
    digits.add(alternative);
    digits.add(stated);
    Placement want = digits.split(stated), got = digits.split(alternative);
    bool agrees = true;
    for (const SubAxis &axis : digits.split(unknown(0).varying)) {
      size_t wantDim = 0, gotDim = 0;
      AddendKind wantKind{}, gotKind{};
      Held wanted = want.heldOn(axis, &wantDim, &wantKind);
      Held held = got.heldOn(axis, &gotDim, &gotKind);
      if (isOfOneRank(axis))
        continue;
      bool same = (wanted == held && wantDim == gotDim && wantKind == gotKind) ||
                  (wanted == Held::Part && held == Held::Same && got.uniform[wantDim]);
      if (same || (held == Held::Varies && (wanted != Held::Same || skipped)))
        continue;
      fail(PlacementRule::Declared, axis, describeHeld(want, axis), describeHeld(got, axis), held);
      agrees = false;
      break;
    }
    if (!agrees)
      continue;
    // The order of the axes of a dimension.
    for (auto [d, wanted, held] : llvm::enumerate(want.dims, got.dims)) {
      SubAxes known;
      for (const SubAxis &axis : wanted)
        if (got.heldOn(axis) != Held::Varies)
          known.push_back(axis);
      if (known != held && agrees && !got.uniform[d]) {
        fail(PlacementRule::DeclaredAxes, held.front(), describeHeld(want, held.front()),
             "them in another order", Held::Part);
        agrees = false;
      }
    }
    if (agrees)
      return true;
  }
  auto &[rule, axis, want, got, held] = *first;
  if (!isRefused(rule))
    return true;
  InFlightDiagnostic diag = end.emitOpError("expects ")
                            << want << " over " << nameOf(layouts, axis) << " in result " << i;
  if (auto name = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kNameAttrName))
    diag << " ('" << name.getValue() << "')";
  diag << ", as '" << func.getSymName() << "' declares, got " << got;
  noteOrigin(diag, layouts, frame, value, {i, axis, held});
  return false;
}

} // namespace

LogicalResult checkPlacements(ModuleOp module, MeshOp mesh, ArrayRef<func::FuncOp> entries,
                              SkippedRules skip) {
  return Checker(module, mesh, skip).run(entries);
}

} // namespace braid
