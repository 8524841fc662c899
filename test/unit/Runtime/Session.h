//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A world, a model and the execution of one entry in one object, which is all that most tests need.
//
//===----------------------------------------------------------------------===//
#ifndef BRAID_TEST_SESSION_H
#define BRAID_TEST_SESSION_H

#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Model.h"

namespace braid::runtime::testing {

class Session {
public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<const Bundle> bundle,
                                                 const WorldOptions &options,
                                                 const std::string &entry = {}) {
    ASSIGN_OR_RETURN(std::shared_ptr<const World> world, World::create(options));
    std::unique_ptr<Session> session(new Session);
    ASSIGN_OR_RETURN(session->loaded, Model::load(std::move(world), std::move(bundle)));
    ASSIGN_OR_RETURN(session->execution, session->loaded->execution(entry));
    return session;
  }

  Model &model() { return *loaded; }
  const Manifest &manifest() const { return loaded->manifest(); }
  Status loadWeights(WeightSource &source,
                     const std::function<void(size_t, size_t)> &progress = {}) {
    return loaded->loadWeights(source, progress);
  }
  const Entry &entry() const { return execution->entry(); }
  Status setInput(const std::string &name, const HostTensor &value) {
    return execution->setInput(name, value);
  }
  Status setInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                  const void *data) {
    return execution->setInput(name, dtype, shape, data);
  }
  Status bindInput(int64_t rank, const std::string &name, void *data, size_t bytes) {
    return execution->bindInput(rank, name, data, bytes);
  }
  Status bindOutput(int64_t rank, const std::string &name, void *data, size_t bytes) {
    return execution->bindOutput(rank, name, data, bytes);
  }
  Status run() { return execution->run(); }
  Result<HostTensor> output(const std::string &name) const { return execution->output(name); }
  Status readOutput(const std::string &name, void *data, size_t bytes) const {
    return execution->readOutput(name, data, bytes);
  }
  void resetStatistics() { execution->resetStatistics(); }
  std::string report() const { return execution->report(); }
  Result<std::string> gatherReport() const { return execution->gatherReport(); }
  Result<std::string> trace() const { return execution->trace(); }
  Status scatterInput(const std::string &name, DType dtype, const std::vector<int64_t> &shape,
                      const void *data) {
    return execution->scatterInput(name, dtype, shape, data);
  }
  Status writeTrace(const std::string &path) const { return execution->writeTrace(path); }

private:
  std::unique_ptr<Model> loaded;
  Execution *execution = nullptr;
};

} // namespace braid::runtime::testing
#endif // BRAID_TEST_SESSION_H
