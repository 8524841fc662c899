//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_MESSAGESINFLIGHT_H
#define BRAID_BASE_MESSAGESINFLIGHT_H

#include <cstdint>

namespace braid::runtime {

/// A send does not wait for its receive while fewer than this number of messages from its rank to
/// the target on its tag have been sent and not received. Beyond, it may wait until one is received
/// (dialects/Comm/README.md).
constexpr int64_t kMessagesInFlight = 4;

} // namespace braid::runtime
#endif // BRAID_BASE_MESSAGESINFLIGHT_H
