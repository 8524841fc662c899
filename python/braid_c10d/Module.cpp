//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What braid_c10d/__init__.py uses.
//
//===----------------------------------------------------------------------===//
#include "Backend.h"

#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

PYBIND11_MODULE(_braid_c10d, module) {
  using braid::c10d_backend::Backend;
  pybind11::class_<Backend, c10::intrusive_ptr<Backend>, c10d::Backend>(module, "Backend")
      .def(pybind11::init([](const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                             std::chrono::milliseconds timeout, const std::string &name,
                             std::vector<int64_t> ranks) {
             return c10::make_intrusive<Backend>(store, rank, size, timeout, name,
                                                 std::move(ranks));
           }),
           pybind11::call_guard<pybind11::gil_scoped_release>());
}
