//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "braid/Base/Weights.h"

#include "braid/Base/StatusMacros.h"
#include "braid/Base/Support.h"

namespace braid::runtime {

Status loadParameter(WeightSource &source, const Mesh &mesh, int64_t rank,
                     const Parameter &parameter, void *dest) {
  if (!parameter.on.contains(mesh, rank))
    return {};
  ASSIGN_OR_RETURN(Box box, localBox(mesh, rank, parameter.globalShape, parameter.sharding)
                                .within("parameter " + inQuotes(parameter.name)));
  return source.read(parameter, box, dest);
}

Status loadParameters(WeightSource &source, const Mesh &mesh, int64_t rank,
                      const std::vector<Parameter> &parameters,
                      const std::function<void *(size_t)> &place,
                      const std::function<void(size_t, size_t)> &progress) {
  RETURN_IF_ERROR(mesh.verify());
  if (rank < 0 || rank >= mesh.numRanks())
    return Status::error("expects a rank below ", mesh.numRanks(), ", got ", rank);
  for (size_t i = 0; i < parameters.size(); ++i) {
    RETURN_IF_ERROR(loadParameter(source, mesh, rank, parameters[i], place(i)));
    if (progress)
      progress(i + 1, parameters.size());
  }
  return {};
}

} // namespace braid::runtime
