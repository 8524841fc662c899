//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "QuantizedWeights.h"

#include "braid/Base/RowQuantization.h"
#include "braid/Transforms/Passes.h"
#include "lib/Transforms/RolePatterns.h"

#include "mlir/IR/Remarks.h"

using namespace mlir;

namespace braid {
#define GEN_PASS_DEF_QUANTIZEMATMULS
#include "braid/Transforms/Passes.h.inc"

namespace {

/// PATTERN=int8, or PATTERN=none.
struct Choice {
  std::string text; ///< the pattern
  llvm::GlobPattern role;
  bool quantizes;
};

struct QuantizeMatmuls : impl::QuantizeMatmulsBase<QuantizeMatmuls> {
  using QuantizeMatmulsBase::QuantizeMatmulsBase;

  void runOnOperation() override {
    std::vector<Choice> choices;
    if (failed(parse(choices)))
      return signalPassFailure();
    llvm::SmallPtrSet<Operation *, 16> chosen;
    for (const Choice &choice : choices)
      if (failed(apply(choice, chosen)))
        return signalPassFailure();
    QuantizedWeights weights(getOperation());
    DenseMap<std::pair<Value, Block *>, nn::QuantizeRowsOp> inputs;
    SmallVector<nn::LinearOp> inOrder;
    getOperation().walk([&](nn::LinearOp linear) {
      if (chosen.contains(linear))
        inOrder.push_back(linear);
    });
    for (nn::LinearOp linear : inOrder)
      quantize(linear, inputs[{linear.getInput(), linear->getBlock()}], weights);
    numQuantized += inOrder.size();
    weights.eraseUnused();
  }

private:
  LogicalResult parse(std::vector<Choice> &choices) {
    constexpr StringLiteral kExpected = "expects a list of PATTERN=int8 or PATTERN=none to "
                                        "quantize matmuls, such as '*=int8,lm_head=none'";
    return forEachPattern(getOperation(), matmuls, kExpected, [&](const PatternItem &item) {
      if (item.value != "int8" && item.value != "none")
        return LogicalResult(patternError(getOperation(), kExpected, item.text));
      FailureOr<llvm::GlobPattern> role = parseGlob(getOperation(), kExpected, item, item.pattern);
      if (failed(role))
        return failure();
      choices.push_back({item.pattern.str(), std::move(*role), item.value == "int8"});
      return success();
    });
  }

  LogicalResult apply(const Choice &choice, llvm::SmallPtrSetImpl<Operation *> &chosen) {
    bool found = false, done = false;
    std::string lastObstacle;
    WalkResult result = getOperation().walk([&](nn::LinearOp linear) {
      if (!choice.role.match(linear.getRole().value_or("")))
        return WalkResult::advance();
      found = true;
      if (!choice.quantizes) {
        chosen.erase(linear);
        return WalkResult::advance();
      }
      std::string why = obstacle(linear);
      if (why.empty()) {
        chosen.insert(linear);
        done = true;
        remark::passed(linear.getLoc(),
                       remark::RemarkOpts::name("QuantizeMatmuls").category("kernels"))
            << (title(linear) + ": multiplies 8-bit integers, as '" + choice.text + "' says");
        return WalkResult::advance();
      }
      if (isExactPattern(choice.text)) {
        linear.emitOpError("'") << choice.text << "' cannot be quantized: " << why;
        return WalkResult::interrupt();
      }
      remark::missed(linear.getLoc(),
                     remark::RemarkOpts::name("QuantizeMatmuls").category("kernels"))
          << (title(linear) + ": " + why);
      lastObstacle = ("'" + linear.getRole().value_or("") + "': " + why).str();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    if (!found)
      return getOperation().emitError("expects linear operations that '")
             << choice.text << "' names, found none" << known();
    if (choice.quantizes && !done)
      return getOperation().emitError("expects a linear operation that '")
             << choice.text << "' names and that can be quantized, found none: " << lastObstacle;
    return success();
  }

  static std::string title(nn::LinearOp linear) {
    std::string text = "nn.linear";
    if (std::optional<StringRef> role = linear.getRole())
      text += (" '" + *role + "'").str();
    return text;
  }

  /// Why an operation cannot be quantized; empty if it can.
  static std::string obstacle(nn::LinearOp linear) {
    RankedTensorType weight = linear.getWeight().getType();
    std::string text;
    llvm::raw_string_ostream os(text);
    if (!weight.getElementType().isF32())
      os << "it is of " << weight.getElementType() << ", expects f32";
    else if (weight.getDimSize(1) > runtime::kMaxInt8Products)
      os << "it sums " << weight.getDimSize(1) << " products, expects at most "
         << runtime::kMaxInt8Products << ", whose sum is within 32 bits";
    else
      os << weightObstacle(linear.getWeight());
    return text;
  }

  /// `rows` is the quantized input, made by the first operation of a block that takes it.
  static void quantize(nn::LinearOp linear, nn::QuantizeRowsOp &rows, QuantizedWeights &weights) {
    OpBuilder builder(linear);
    if (!rows)
      rows = nn::QuantizeRowsOp::create(builder, named(linear.getLoc(), "/quantize_rows"),
                                        linear.getInput());
    const auto [values, scales] = weights.get(linear.getWeight());
    nn::AddOp biased = linear.getBiasAddition();
    auto product = nn::QuantizedLinearOp::create(
        builder, linear.getLoc(), linear.getType(), rows.getValues(), rows.getScales(), values,
        scales, biased ? biased.getRhs() : Value(), linear.getRoleAttr());
    Operation *last = biased ? biased.getOperation() : linear.getOperation();
    last->replaceAllUsesWith(product);
    last->erase();
    if (biased)
      linear.erase();
  }

  std::string known() {
    SmallVector<StringRef> roles;
    getOperation().walk(
        [&](nn::LinearOp linear) { roles.push_back(linear.getRole().value_or("")); });
    return knownRoles(roles, "; the module has no linear operations");
  }
};

} // namespace
} // namespace braid
