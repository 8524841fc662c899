//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "StrategyOptions.h"

#include "braid/Analysis/MeshLayouts.h"
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"
#include "dialects/NN/IR/NN.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_STOREPARAMETERS
#include "braid/Transforms/Passes.h.inc"

namespace {

struct StoreParameters : impl::StoreParametersBase<StoreParameters> {
  using Base::Base;

  void runOnOperation() override {
    if (strategy == "auto")
      return;
    FailureOr<SmallVector<const StrategyComponent *>> components =
        parseStrategy(getOperation(), strategy);
    if (failed(components))
      return signalPassFailure();
    if (llvm::none_of(*components, [](const StrategyComponent *c) { return c->name == "fsdp"; }))
      return;
    FailureOr<MeshOp> mesh = getModuleMesh(getOperation());
    if (failed(mesh))
      return signalPassFailure();
    if (!llvm::is_contained(mesh->getAxisNames().getAsValueRange<StringAttr>(), kDataAxis)) {
      mesh->emitOpError("has no axis '") << kDataAxis << "' for strategy '" << strategy << "'";
      return signalPassFailure();
    }
    const MeshLayouts layouts(*mesh);
    const SubAxis data = layouts.subAxis(AxisAttr::get(&getContext(), kDataAxis));
    if (data.size() == 1)
      return;
    WalkResult result = getOperation().walk([&](nn::ParameterOp parameter) {
      return store(parameter, layouts, data) ? WalkResult::advance() : WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

private:
  /// False on errors.
  bool store(nn::ParameterOp parameter, const MeshLayouts &layouts, const SubAxis &data) {
    const auto type = cast<RankedTensorType>(parameter.getType());
    if (parameter.getStored() || type.getRank() < 2)
      return true;
    ShardingAttr used = getSharding(parameter.getResult());
    if (!used) {
      emitNamedError(parameter) << "has no sharding (braid-propagate-shardings states one)";
      return false;
    }
    Layout layout = layouts.layout(used);
    if (!isFree(layout, data))
      return true;
    for (auto [dim, size] : llvm::zip_equal(layout, type.getShape()))
      if (size % (shards(dim) * data.size()) == 0) {
        appendMerged(dim, data);
        parameter.setStoredAttr(layouts.sharding(layout));
        ++numStored;
        return true;
      }
    remark::missed(parameter.getLoc(), remark::RemarkOpts::name("Storage").category("sharding"))
        << ("'" + parameter.getName() + "': no dimension divides over '" + kDataAxis +
            "' of size " + Twine(data.size()) + ", and it is stored as it is used")
               .str();
    return true;
  }
};

} // namespace
} // namespace braid
