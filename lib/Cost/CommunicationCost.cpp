//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Cost/CommunicationCost.h"

#include "braid/Base/Algorithm.h"

namespace braid {

CommunicationCost collectiveCost(runtime::CollectiveKind kind, SaturatingCount bytes,
                                 int64_t ranks) {
  return {runtime::bytesSent(runtime::Algorithm::direct, kind, bytes.getValue(), ranks), ranks > 1,
          0};
}

} // namespace braid
