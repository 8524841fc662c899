//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_LIB_SCHEDULE_TESTPOLICY_H
#define BRAID_TEST_LIB_SCHEDULE_TESTPOLICY_H

namespace braid::test {

/// test-place-collectives: places collectives by a policy that only tests have.
void registerTestPolicyPass();

} // namespace braid::test
#endif // BRAID_TEST_LIB_SCHEDULE_TESTPOLICY_H
