//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "Session.h"

namespace braid::tool {

int runExplain(const ExplainArgs &args) {
  runtime::Result<runtime::Bundle> bundle = runtime::Bundle::read(args.bundle);
  if (!bundle.ok())
    return fail(bundle.status().message());
  runtime::ExplainOptions options;
  options.procedure = args.procedure;
  options.rank = args.rank;
  if (args.json && args.hasSchedule)
    return fail("--schedule prints text, it expects no --json");
  runtime::Result<std::string> text =
      args.hasSchedule ? runtime::explainSchedules(*bundle, options, args.schedule)
      : args.json      ? runtime::explainAsJson(*bundle, options)
                       : runtime::explain(*bundle, options);
  if (!text.ok())
    return fail("'" + args.bundle + "': " + text.status().message());
  llvm::outs() << *text;
  llvm::outs().flush();
  return kDone;
}

} // namespace braid::tool
