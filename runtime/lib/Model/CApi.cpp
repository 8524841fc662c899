//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The C ABI over Model.h. No exception leaves this file.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Model.h"
#include "braid/Runtime/Safetensors.h"
#include "braid/Runtime/Version.h"
#include "braid_rt.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>

using namespace braid::runtime;

struct braid_error {
  braid_code code;
  std::string message;
};
struct braid_bundle {
  std::shared_ptr<const Bundle> bundle;
};
struct braid_communicator {
  std::shared_ptr<Communicator> communicator;
};
struct braid_execution {
  Execution *execution;
};
struct braid_world {
  std::shared_ptr<const World> world;
};
struct braid_model {
  std::unique_ptr<Model> model;
  std::vector<EntryValue> states;
  std::vector<std::unique_ptr<braid_execution>> executions; ///< by entry
};

static_assert(static_cast<int>(Code::invalid) == BRAID_INVALID &&
              static_cast<int>(Code::checkFailed) == BRAID_CHECK_FAILED &&
              static_cast<int>(Code::rankFailed) == BRAID_RANK_FAILED);
static_assert(static_cast<int>(DType::f32) == BRAID_F32 &&
              static_cast<int>(DType::f16) == BRAID_F16 &&
              static_cast<int>(DType::bf16) == BRAID_BF16 &&
              static_cast<int>(DType::f64) == BRAID_F64 &&
              static_cast<int>(DType::i32) == BRAID_I32 &&
              static_cast<int>(DType::i64) == BRAID_I64 && static_cast<int>(DType::i8) == BRAID_I8);

static braid_code failure(braid_error **error, braid_code code, const std::string &message) {
  if (error)
    *error = new (std::nothrow) braid_error{code, message};
  return code;
}

/// Runs `work`, which returns a Status, and turns its outcome into a code and an error object.
template <typename Work> static braid_code guarded(braid_error **error, Work work) {
  if (error)
    *error = nullptr;
  try {
    Status status = work();
    return status.ok() ? BRAID_OK
                       : failure(error, static_cast<braid_code>(status.code()), status.message());
  } catch (const std::exception &e) {
    try {
      return failure(error, BRAID_INVALID, e.what());
    } catch (...) { // no memory for the message
      return BRAID_INVALID;
    }
  }
}

/// A pointer that must not be null, and a name for it.
using Required = std::pair<const void *, const char *>;

/// The same for functions whose `required` pointers must not be null.
template <typename Work>
static braid_code guarded(braid_error **error, std::initializer_list<Required> required,
                          Work work) {
  return guarded(error, [&]() -> Status {
    for (auto [pointer, what] : required)
      if (!pointer)
        return Status::error(std::string("expects ") + what + ", got NULL");
    return work();
  });
}

int braid_rt_abi_version(void) { return BRAID_RT_ABI_VERSION; }
const char *braid_version(void) { return version(); }

braid_code braid_error_code(const braid_error *error) { return error ? error->code : BRAID_OK; }
const char *braid_error_message(const braid_error *error) {
  return error ? error->message.c_str() : "";
}
void braid_error_free(braid_error *error) { delete error; }

static Status give(Result<Bundle> opened, braid_bundle **bundle) {
  RETURN_IF_ERROR(opened.status());
  *bundle = new braid_bundle{std::make_shared<const Bundle>(std::move(*opened))};
  return {};
}

braid_code braid_bundle_open(const char *path, braid_bundle **bundle, braid_error **error) {
  return guarded(error, {{path, "a path"}, {bundle, "a place for the bundle"}},
                 [&] { return give(Bundle::read(path), bundle); });
}

braid_code braid_bundle_open_memory(const void *data, size_t bytes, braid_bundle **bundle,
                                    braid_error **error) {
  return guarded(error, {{data, "a bundle"}, {bundle, "a place for the bundle"}}, [&] {
    if (bytes > static_cast<size_t>(PTRDIFF_MAX))
      return Status::error("a bundle in memory has at most 2^63 - 1 bytes, got " +
                           std::to_string(bytes));
    return give(Bundle::parse(data, bytes, "bundle in memory"), bundle);
  });
}

void braid_bundle_free(braid_bundle *bundle) { delete bundle; }
int64_t braid_bundle_ranks(const braid_bundle *bundle) {
  return bundle ? bundle->bundle->manifest().mesh.numRanks() : 0;
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

static Status create(const braid_bundle *bundle, UcxOptions options, double timeLimitSeconds,
                     braid_communicator **communicator) {
  if (!(timeLimitSeconds >= 0) || timeLimitSeconds > 1e9)
    return Status::error("expects a time limit of 0 to 1e9 seconds, got ", timeLimitSeconds);
  options.timeLimitSeconds = timeLimitSeconds;
  ASSIGN_OR_RETURN(std::shared_ptr<Communicator> created,
                   createUcxCommunicator(*bundle->bundle, options));
  *communicator = new braid_communicator{std::move(created)};
  return {};
}

braid_code braid_communicator_create(const braid_bundle *bundle, int64_t rank, int64_t size,
                                     braid_all_gather all_gather, void *context, const char *secret,
                                     double time_limit_seconds, braid_communicator **communicator,
                                     braid_error **error) {
  return guarded(error,
                 {{bundle, "a bundle"},
                  {reinterpret_cast<const void *>(all_gather), "an all_gather"},
                  {communicator, "a place for the communicator"}},
                 [&]() -> Status {
                   if (size < 1 || size > kMaxLaunchedRanks || rank < 0 || rank >= size)
                     return Status::error("expects a rank of 0 to SIZE - 1 and a size of 1 to ",
                                          kMaxLaunchedRanks, ", got rank ", rank, " and size ",
                                          size);
                   UcxOptions options;
                   options.launch.rank = rank;
                   options.launch.size = size;
                   options.launch.secret = secret ? secret : "";
                   options.allGather = [&](const void *send, size_t bytes, void *receive) {
                     return all_gather(context, send, bytes, receive);
                   };
                   return create(bundle, std::move(options), time_limit_seconds, communicator);
                 });
}

braid_code braid_communicator_join(const braid_bundle *bundle, const char *rendezvous,
                                   double time_limit_seconds, braid_communicator **communicator,
                                   braid_error **error) {
  return guarded(error, {{bundle, "a bundle"}, {communicator, "a place for the communicator"}},
                 [&]() -> Status {
                   ASSIGN_OR_RETURN(const std::optional<LaunchInfo> info,
                                    launchInfo(processEnvironment(), rendezvous ? rendezvous : ""));
                   if (!info)
                     return Status::error(
                         "no launcher started this process, as braid-run --hosts, torchrun, "
                         "Slurm, Open MPI or PMI do");
                   UcxOptions options;
                   options.launch = *info;
                   return create(bundle, std::move(options), time_limit_seconds, communicator);
                 });
}

void braid_communicator_free(braid_communicator *communicator) { delete communicator; }
int64_t braid_communicator_rank(const braid_communicator *communicator) {
  return communicator ? communicator->communicator->local().first : -1;
}

//===----------------------------------------------------------------------===//
// Worlds
//===----------------------------------------------------------------------===//

/// Where the fields of the options begin and end. Between them is padding.
static constexpr std::pair<size_t, size_t> kFields[] = {
#define BRAID_FIELD(name)                                                                          \
  {offsetof(braid_world_options, name),                                                            \
   offsetof(braid_world_options, name) + sizeof(decltype(braid_world_options::name))}
    BRAID_FIELD(size),
    BRAID_FIELD(transport),
    BRAID_FIELD(ranks),
    BRAID_FIELD(threads_per_rank),
    BRAID_FIELD(time_limit_seconds),
    BRAID_FIELD(trace),
    BRAID_FIELD(target),
    BRAID_FIELD(cuda_graph),
    BRAID_FIELD(pin),
    BRAID_FIELD(spin_microseconds),
    BRAID_FIELD(cuda_library),
    BRAID_FIELD(communicator),
#undef BRAID_FIELD
};

/// The caller's options, with defaults for the fields that an older caller does not have.
static Result<braid_world_options> readOptions(const braid_world_options *options) {
  constexpr size_t kKnown = sizeof(braid_world_options), kLargest = 4096;
  braid_world_options given;
  braid_world_options_init(&given, sizeof given);
  if (!options)
    return given;
  const size_t size = options->size;
  bool splits = false;
  for (auto [begin, end] : kFields)
    splits = splits || (begin < size && size < end);
  if (size < sizeof(size_t) || size > kLargest || splits)
    return Status::error("expects options prepared by braid_world_options_init, got options of " +
                         std::to_string(size) + " bytes");
  const auto *bytes = reinterpret_cast<const std::byte *>(options);
  for (size_t i = kKnown; i < size; ++i)
    if (bytes[i] != std::byte{0})
      return Status::error("braid_world_options of " + std::to_string(size) +
                           " bytes set a field at byte " + std::to_string(i) + ", this library (" +
                           version() + ", ABI version " + std::to_string(BRAID_RT_ABI_VERSION) +
                           ") knows " + std::to_string(kKnown) + " bytes");
  std::memcpy(&given, options, std::min(size, kKnown));
  return given;
}

void braid_world_options_init(braid_world_options *options, size_t size) {
  if (!options)
    return;
  WorldOptions defaults;
  braid_world_options values = {};
  values.size = size;
  values.transport = "threads";
  values.target = "cpu";
  values.ranks = defaults.ranks;
  values.threads_per_rank = defaults.threadsPerRank;
  values.time_limit_seconds = defaults.timeLimitSeconds;
  values.spin_microseconds = -1;
  std::memset(options, 0, size);
  std::memcpy(options, &values, std::min(size, sizeof values));
}

braid_code braid_world_create(const braid_world_options *options, braid_world **world,
                              braid_error **error) {
  return guarded(error, {{world, "a place for the world"}}, [&]() -> Status {
    ASSIGN_OR_RETURN(braid_world_options given, readOptions(options));
    WorldOptions o;
    o.transport = given.transport ? given.transport : "threads";
    o.ranks = given.ranks;
    o.threadsPerRank = given.threads_per_rank;
    o.timeLimitSeconds = given.time_limit_seconds;
    o.trace = given.trace != 0;
    o.target = given.target ? given.target : "cpu";
    o.cudaGraph = given.cuda_graph != 0;
    o.pin = given.pin != 0;
    if (!(given.spin_microseconds < 0))
      o.spinMicroseconds = given.spin_microseconds;
    o.cudaLibrary = given.cuda_library ? given.cuda_library : "";
    if (given.communicator) {
      o.communicator = given.communicator->communicator;
      if (o.transport == "threads") // it was not chosen
        o.transport = o.communicator->transportName();
    }
    ASSIGN_OR_RETURN(std::shared_ptr<const World> created, World::create(o));
    *world = new braid_world{std::move(created)};
    return {};
  });
}

void braid_world_free(braid_world *world) { delete world; }

braid_code braid_model_load(const braid_world *world, const braid_bundle *bundle,
                            braid_model **model, braid_error **error) {
  return guarded(
      error, {{world, "a world"}, {bundle, "a bundle"}, {model, "a place for the model"}},
      [&]() -> Status {
        ASSIGN_OR_RETURN(std::unique_ptr<Model> loaded, Model::load(world->world, bundle->bundle));
        auto created = std::make_unique<braid_model>();
        created->states = loaded->states();
        for (const Entry &entry : loaded->manifest().entries) {
          ASSIGN_OR_RETURN(Execution * execution, loaded->execution(entry.name));
          created->executions.push_back(
              std::make_unique<braid_execution>(braid_execution{execution}));
        }
        created->model = std::move(loaded);
        *model = created.release();
        return {};
      });
}

void braid_model_free(braid_model *model) { delete model; }

braid_code braid_model_load_safetensors(braid_model *model, const char *path, braid_error **error) {
  return guarded(error, {{model, "a model"}, {path, "a path"}}, [&] {
    Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
    return source.ok() ? model->model->loadWeights(**source) : source.status();
  });
}

braid_code braid_model_random_weights(braid_model *model, uint64_t seed, braid_error **error) {
  return guarded(error, {{model, "a model"}},
                 [&] { return model->model->loadWeights(*WeightSource::random(seed)); });
}

size_t braid_model_num_entries(const braid_model *model) {
  return model ? model->executions.size() : 0;
}

const char *braid_model_entry(const braid_model *model, size_t index) {
  return index < braid_model_num_entries(model)
             ? model->model->manifest().entries[index].name.c_str()
             : nullptr;
}

braid_code braid_model_execution(braid_model *model, const char *entry, braid_execution **execution,
                                 braid_error **error) {
  return guarded(error, {{model, "a model"}, {execution, "a place for the execution"}},
                 [&]() -> Status {
                   ASSIGN_OR_RETURN(Execution * found, model->model->execution(entry ? entry : ""));
                   for (const auto &own : model->executions)
                     if (own->execution == found)
                       *execution = own.get();
                   return {};
                 });
}

static const char *describeValue(const std::vector<EntryValue> &values, size_t index,
                                 braid_dtype *dtype, const int64_t **shape, size_t *rank) {
  if (index >= values.size())
    return nullptr;
  const EntryValue &value = values[index];
  if (dtype)
    *dtype = static_cast<braid_dtype>(value.dtype);
  if (shape)
    *shape = value.globalShape.data();
  if (rank)
    *rank = value.globalShape.size();
  return value.name.c_str();
}

size_t braid_model_num_states(const braid_model *model) { return model ? model->states.size() : 0; }

const char *braid_model_state(const braid_model *model, size_t index, braid_dtype *dtype,
                              const int64_t **shape, size_t *rank) {
  return model ? describeValue(model->states, index, dtype, shape, rank) : nullptr;
}

size_t braid_execution_num_inputs(const braid_execution *execution) {
  return execution ? execution->execution->entry().operands.size() : 0;
}
size_t braid_execution_num_outputs(const braid_execution *execution) {
  return execution ? execution->execution->entry().results.size() : 0;
}

const char *braid_execution_input(const braid_execution *execution, size_t index,
                                  braid_dtype *dtype, const int64_t **shape, size_t *rank) {
  return execution
             ? describeValue(execution->execution->entry().operands, index, dtype, shape, rank)
             : nullptr;
}

const char *braid_execution_output(const braid_execution *execution, size_t index,
                                   braid_dtype *dtype, const int64_t **shape, size_t *rank) {
  return execution ? describeValue(execution->execution->entry().results, index, dtype, shape, rank)
                   : nullptr;
}

/// Calls `set` with a value that C has given; `what` and `object` are what it is set in. Where
/// another process may give it, it may be missing.
template <typename Set>
static braid_code setValue(braid_error **error, const void *object, const char *what,
                           const char *name, const braid_dtype &dtype, const int64_t *shape,
                           size_t rank, const void *data, Set set, bool mayBeMissing = false) {
  constexpr size_t kLargestRank = 1024;
  if (mayBeMissing && !data)
    return guarded(error, {{object, what}, {name, "a name"}},
                   [&] { return set(DType::f32, std::vector<int64_t>()); });
  return guarded(
      error,
      {{object, what}, {name, "a name"}, {data, "data"}, {rank > 0 ? shape : data, "a shape"}},
      [&]() -> Status {
        if (rank > kLargestRank)
          return Status::error("expects at most " + std::to_string(kLargestRank) +
                               " dimensions, got " + std::to_string(rank));
        // Reading a value that is no enumerator is undefined in C++, but not in C.
        int number = 0;
        static_assert(sizeof number == sizeof dtype);
        std::memcpy(&number, &dtype, sizeof number);
        if (number < BRAID_F32 || number > BRAID_I8)
          return Status::error("expects a braid_dtype, got " + std::to_string(number));
        return set(static_cast<DType>(number), std::vector<int64_t>(shape, shape + rank));
      });
}

braid_code braid_model_set_state(braid_model *model, const char *name, braid_dtype dtype,
                                 const int64_t *shape, size_t rank, const void *data,
                                 braid_error **error) {
  return setValue(error, model, "a model", name, dtype, shape, rank, data,
                  [&](DType type, const std::vector<int64_t> &sizes) {
                    return model->model->setState(name, type, sizes, data);
                  });
}

braid_code braid_model_scatter_state(braid_model *model, const char *name, braid_dtype dtype,
                                     const int64_t *shape, size_t rank, const void *data,
                                     braid_error **error) {
  return setValue(
      error, model, "a model", name, dtype, shape, rank, data,
      [&](DType type, const std::vector<int64_t> &sizes) {
        return model->model->scatterState(name, type, sizes, data);
      },
      /*mayBeMissing=*/true);
}

braid_code braid_model_get_state(const braid_model *model, const char *name, void *data,
                                 size_t bytes, braid_error **error) {
  return guarded(error, {{model, "a model"}, {name, "a name"}},
                 [&] { return model->model->readState(name, data, bytes); });
}

braid_code braid_model_reset_states(braid_model *model, braid_error **error) {
  return guarded(error, {{model, "a model"}}, [&] { return model->model->resetStates(); });
}

braid_code braid_model_bind_state(braid_model *model, int64_t rank, const char *name, void *data,
                                  size_t bytes, braid_error **error) {
  return guarded(error, {{model, "a model"}, {name, "a name"}},
                 [&] { return model->model->bindState(rank, name, data, bytes); });
}

braid_code braid_execution_set_input(braid_execution *execution, const char *name,
                                     braid_dtype dtype, const int64_t *shape, size_t rank,
                                     const void *data, braid_error **error) {
  return setValue(error, execution, "an execution", name, dtype, shape, rank, data,
                  [&](DType type, const std::vector<int64_t> &sizes) {
                    return execution->execution->setInput(name, type, sizes, data);
                  });
}

braid_code braid_execution_scatter_input(braid_execution *execution, const char *name,
                                         braid_dtype dtype, const int64_t *shape, size_t rank,
                                         const void *data, braid_error **error) {
  return setValue(
      error, execution, "an execution", name, dtype, shape, rank, data,
      [&](DType type, const std::vector<int64_t> &sizes) {
        return execution->execution->scatterInput(name, type, sizes, data);
      },
      /*mayBeMissing=*/true);
}

braid_code braid_execution_bind_input(braid_execution *execution, int64_t rank, const char *name,
                                      void *data, size_t bytes, braid_error **error) {
  return guarded(error, {{execution, "an execution"}, {name, "a name"}},
                 [&] { return execution->execution->bindInput(rank, name, data, bytes); });
}

braid_code braid_execution_bind_output(braid_execution *execution, int64_t rank, const char *name,
                                       void *data, size_t bytes, braid_error **error) {
  return guarded(error, {{execution, "an execution"}, {name, "a name"}},
                 [&] { return execution->execution->bindOutput(rank, name, data, bytes); });
}

braid_code braid_execution_run(braid_execution *execution, braid_error **error) {
  return guarded(error, {{execution, "an execution"}}, [&] { return execution->execution->run(); });
}

braid_code braid_execution_get_output(const braid_execution *execution, const char *name,
                                      void *data, size_t bytes, braid_error **error) {
  return guarded(error, {{execution, "an execution"}, {name, "a name"}},
                 [&] { return execution->execution->readOutput(name, data, bytes); });
}

char *braid_execution_report(const braid_execution *execution) {
  if (!execution)
    return nullptr;
  try {
    return strdup(execution->execution->report().c_str());
  } catch (const std::exception &) {
    return nullptr;
  }
}

braid_code braid_execution_gather_report(const braid_execution *execution, char **report,
                                         braid_error **error) {
  return guarded(
      error, {{execution, "an execution"}, {report, "a place for the report"}}, [&]() -> Status {
        ASSIGN_OR_RETURN(const std::string text, execution->execution->gatherReport());
        char *copy = text.empty() ? nullptr : strdup(text.c_str());
        if (!text.empty() && !copy)
          return Status::error("too little memory for a report of ", text.size(), " bytes");
        *report = copy;
        return {};
      });
}

void braid_execution_reset_statistics(braid_execution *execution) {
  if (execution)
    execution->execution->resetStatistics();
}
void braid_string_free(char *string) { std::free(string); }

braid_code braid_execution_write_trace(const braid_execution *execution, const char *path,
                                       braid_error **error) {
  return guarded(error, {{execution, "an execution"}, {path, "a path"}},
                 [&] { return execution->execution->writeTrace(path); });
}
