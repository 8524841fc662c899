//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Early returns of errors, in functions that return Status or Result<T>. Only source files
// include this header: its names have no prefix, so it is not installed.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_BASE_STATUSMACROS_H
#define BRAID_BASE_STATUSMACROS_H

#include "braid/Base/Status.h"

/// Returns the Status that the expression gives, unless it is ok.
#define RETURN_IF_ERROR(...)                                                                       \
  do {                                                                                             \
    if (::braid::runtime::Status braidStatus = (__VA_ARGS__); !braidStatus.ok())                   \
      return braidStatus;                                                                          \
  } while (false)

/// Assigns or declares `target` from the value of an expression of type Result<T>; returns its
/// Status if there is no value. Two statements: an `if` around it needs braces.
#define ASSIGN_OR_RETURN(target, ...)                                                              \
  BRAID_ASSIGN_OR_RETURN(BRAID_CONCAT(braidResult, __LINE__), target, __VA_ARGS__)
#define BRAID_ASSIGN_OR_RETURN(result, target, ...)                                                \
  auto result = (__VA_ARGS__);                                                                     \
  if (!result.ok())                                                                                \
    return result.status();                                                                        \
  target = std::move(*result)
#define BRAID_CONCAT(a, b) BRAID_CONCAT_EXPANDED(a, b)
#define BRAID_CONCAT_EXPANDED(a, b) a##b

#endif // BRAID_BASE_STATUSMACROS_H
