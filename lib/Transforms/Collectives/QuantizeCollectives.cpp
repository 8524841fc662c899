//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "CollectiveUtils.h"

#include "braid/Cost/CollectiveTimes.h"
#include "braid/Transforms/Identity.h"
#include "braid/Transforms/Passes.h"
#include "braid/Transforms/ShardingUtils.h"
#include "lib/Transforms/RolePatterns.h"

using namespace mlir;
using namespace braid::comm;

namespace braid {
#define GEN_PASS_DEF_QUANTIZECOLLECTIVES
#include "braid/Transforms/Passes.h.inc"

namespace {

/// PATTERN=ENCODING or PATTERN=ENCODING!.
struct Choice {
  std::string text;                       ///< the pattern
  SmallVector<llvm::GlobPattern> callers; ///< of a path: the function, and calls from there
  std::optional<llvm::GlobPattern> role;
  std::optional<runtime::EncodingPair> encoding; ///< none: as it is
  bool isForced = false;                         ///< whatever the machine is
};

/// Why a collective cannot be encoded; empty if it can.
std::string obstacle(CollectiveOpInterface op) {
  return isStarted(op) ? "it is in a comm.start" : encodingObstacle(op);
}

/// The half that a collective takes.
EncodingAttr encodingOf(CollectiveOpInterface op, const runtime::EncodingPair &pair) {
  if (isa<AllReduceOp>(op))
    return EncodingAttr::get(op.getContext(), pair);
  const runtime::Encoding &half = isa<ReduceScatterOp>(op) ? pair.reduce : pair.gather;
  return EncodingAttr::get(op.getContext(), runtime::EncodingPair{half, half});
}

struct QuantizeCollectives : impl::QuantizeCollectivesBase<QuantizeCollectives> {
  using QuantizeCollectivesBase::QuantizeCollectivesBase;

  void runOnOperation() override {
    identify(getOperation());
    std::vector<Choice> choices;
    if (failed(parse(choices)) || failed(openMachine()))
      return signalPassFailure();
    for (const Choice &choice : choices)
      if (failed(apply(choice)))
        return signalPassFailure();
    getOperation().walk([&](CollectiveOpInterface op) {
      numEncoded += op->hasAttr(CommDialect::kEncodingAttrName);
    });
  }

private:
  LogicalResult openMachine() {
    if (machine.empty()) {
      if (!transport.empty() || !hosts.empty())
        return getOperation().emitError("a transport or hosts to quantize for expect a machine");
      return success();
    }
    if (!transport.empty() && transport != "threads" && transport != "shm" && transport != "ucx")
      return getOperation().emitError("expects a transport threads, shm or ucx, got '")
             << transport << "'";
    if (!transport.empty() && transport != "ucx" && hosts.size() > 1)
      return getOperation().emitError("expects transport ucx over ")
             << hosts.size() << " hosts, got '" << transport << "'";
    if (threads < 1 || llvm::any_of(hosts, [](int64_t ranks) { return ranks < 1; }))
      return getOperation().emitError("expects at least 1 thread, and 1 rank on each host");
    auto opened = cost::openMachine(machine);
    if (!opened.ok())
      return getOperation().emitError() << opened.status().message();
    times = std::make_shared<CollectiveTimes>(
        RunPlace{std::make_shared<const cost::Machine>(std::move(*opened)),
                 transport,
                 {hosts.begin(), hosts.end()},
                 threads});
    return success();
  }

  /// Whether the machine says that it is faster; `why` gets both times. Without a machine it is
  /// done as it was asked for.
  FailureOr<bool> isWorthwhile(CollectiveOpInterface op, const Choice &choice, std::string &why) {
    if (!times)
      return true;
    auto error = [&](const std::string &message) {
      return op->emitOpError("'") << op.getRoleName() << "': no time of it as "
                                  << choice.encoding->str() << " is known: " << message
                                  << " ('!' behind the encoding takes it without one)";
    };
    const auto placed = times->locate(op);
    if (!placed.ok())
      return error(placed.status().message());
    const auto plain = times->plain(*placed);
    if (!plain.ok() && !choice.isForced)
      return error(plain.status().message());
    const auto encoded = times->encoded(*placed, encodingOf(op, *choice.encoding).getPair());
    if (!encoded.ok() && !choice.isForced)
      return error(encoded.status().message());
    if (!plain.ok() || !encoded.ok())
      return true;
    why = timeText(*plain) + " as it is, " + timeText(encoded->seconds) + " encoded as " +
          choice.encoding->str();
    return choice.isForced || cost::EncodedTimes::isWorthwhile(*plain, encoded->seconds);
  }

  static constexpr StringLiteral kExpected =
      "expects a list of PATTERN=ENCODING to quantize, such as '*=int8:128'";

  LogicalResult parse(std::vector<Choice> &choices) {
    return forEachPattern(getOperation(), encodings, kExpected, [&](const PatternItem &item) {
      choices.emplace_back();
      return parse(item, choices.back());
    });
  }

  LogicalResult parse(const PatternItem &item, Choice &choice) {
    auto error = [&] { return patternError(getOperation(), kExpected, item.text); };
    choice.text = item.pattern.str();
    StringRef encoding = item.value;
    choice.isForced = encoding.consume_back("!");
    if (encoding != "none") {
      const auto pair = runtime::EncodingPair::parse(encoding.str());
      if (!pair.ok())
        return error() << ": " << pair.status().message();
      choice.encoding = *pair;
    }
    StringRef rest = item.pattern;
    while (rest.consume_front("@")) {
      auto [caller, after] = rest.split('/');
      FailureOr<llvm::GlobPattern> made = parseGlob(getOperation(), kExpected, item, caller);
      if (failed(made))
        return failure();
      if (caller.empty() || after.empty())
        return error() << ": expects a path such as '@main/@layer#3/mlp.down'";
      choice.callers.push_back(std::move(*made));
      rest = after;
    }
    FailureOr<llvm::GlobPattern> made = parseGlob(getOperation(), kExpected, item, rest);
    if (failed(made))
      return failure();
    choice.role = std::move(*made);
    return success();
  }

  LogicalResult apply(const Choice &choice) {
    SmallVector<CollectiveOpInterface> matching;
    auto collect = [&](func::FuncOp function) {
      function.walk([&](CollectiveOpInterface op) {
        if (choice.role->match(op.getRoleName()))
          matching.push_back(op);
      });
    };
    SymbolTable symbols(getOperation());
    if (choice.callers.empty())
      for (auto function : getOperation().getOps<func::FuncOp>())
        collect(function);
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (!choice.callers.empty() && choice.callers.front().match(function.getSymName()))
        descend(function, ArrayRef(choice.callers).drop_front(), *choice.role, symbols, collect);
    if (matching.empty())
      return getOperation().emitError("expects collectives that '")
             << choice.text << "' names, found none" << known();
    unsigned numDone = 0;
    std::string lastObstacle;
    for (CollectiveOpInterface op : matching) {
      std::string why = choice.encoding ? obstacle(op) : "";
      if (why.empty()) {
        ++numDone;
        std::string compared;
        const FailureOr<bool> encode =
            choice.encoding ? isWorthwhile(op, choice, compared) : FailureOr<bool>(false);
        if (failed(encode))
          return failure();
        if (*encode)
          op->setAttr(CommDialect::kEncodingAttrName, encodingOf(op, *choice.encoding));
        else
          op->removeAttr(CommDialect::kEncodingAttrName);
        // The reason is the pattern's, or the machine's.
        if (choice.encoding && !*encode)
          remarkMissed(op, "QuantizeCollectives", "not encoded: " + compared);
        else
          remarkDone(op, "QuantizeCollectives",
                     (choice.encoding ? "encoded as " + choice.encoding->str() : "not encoded") +
                         ", as '" + choice.text + "' says" +
                         (compared.empty() ? "" : ": " + compared));
        continue;
      }
      if (isExactPattern(choice.text))
        return op->emitOpError("'") << op.getRoleName() << "' cannot be encoded as "
                                    << choice.encoding->str() << ": " << why;
      remarkMissed(op, "QuantizeCollectives", why);
      lastObstacle = "'" + op.getRoleName().str() + "': " + why;
    }
    if (numDone == 0)
      return getOperation().emitError("expects a collective that '")
             << choice.text << "' names and that can be encoded, found none: " << lastObstacle;
    return success();
  }

  /// Calls `collect` for the functions at the end of the path, which get clones where they have
  /// other callers too.
  void descend(func::FuncOp function, ArrayRef<llvm::GlobPattern> path,
               const llvm::GlobPattern &role, SymbolTable &symbols,
               llvm::function_ref<void(func::FuncOp)> collect) {
    if (path.empty())
      return collect(function);
    SmallVector<func::CallOp> calls;
    function.walk([&](func::CallOp call) {
      func::FuncOp callee = calleeOf(call);
      if (path.front().match(callName(call)) && !callee.isExternal() &&
          leadsTo(callee, path.drop_front(), role))
        calls.push_back(call);
    });
    for (func::CallOp call : calls) {
      specialize(call, symbols);
      descend(calleeOf(call), path.drop_front(), role, symbols, collect);
    }
  }

  static bool leadsTo(func::FuncOp function, ArrayRef<llvm::GlobPattern> path,
                      const llvm::GlobPattern &role) {
    return function
        .walk([&](Operation *op) {
          bool found = false;
          if (auto call = dyn_cast<func::CallOp>(op); call && !path.empty())
            found = path.front().match(callName(call)) && !calleeOf(call).isExternal() &&
                    leadsTo(calleeOf(call), path.drop_front(), role);
          if (auto collective = dyn_cast<CollectiveOpInterface>(op); collective && path.empty())
            found = role.match(collective.getRoleName());
          return found ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  std::shared_ptr<CollectiveTimes> times; ///< of the machine, if one is given

  std::string known() {
    SmallVector<StringRef> roles;
    getOperation().walk([&](CollectiveOpInterface op) { roles.push_back(op.getRoleName()); });
    return knownRoles(roles, "; the module has no collectives");
  }
};

} // namespace
} // namespace braid
