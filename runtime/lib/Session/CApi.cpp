//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The C ABI over Session.h. No exception leaves this file.
//
//===----------------------------------------------------------------------===//
#include "braid/Base/StatusMacros.h"
#include "braid/Runtime/Safetensors.h"
#include "braid/Runtime/Session.h"
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
struct braid_session {
  std::unique_ptr<Session> session;
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

/// Where the fields of the options begin and end. Between them is padding.
static constexpr std::pair<size_t, size_t> kFields[] = {
#define BRAID_FIELD(name)                                                                          \
  {offsetof(braid_session_options, name),                                                          \
   offsetof(braid_session_options, name) + sizeof braid_session_options::name}
    BRAID_FIELD(size),
    BRAID_FIELD(transport),
    BRAID_FIELD(ranks),
    BRAID_FIELD(threads_per_rank),
    BRAID_FIELD(time_limit_seconds),
    BRAID_FIELD(trace),
    BRAID_FIELD(entry),
    BRAID_FIELD(target),
    BRAID_FIELD(cuda_graph),
    BRAID_FIELD(pin),
    BRAID_FIELD(spin_microseconds),
#undef BRAID_FIELD
};

/// The caller's options, with defaults for the fields that an older caller does not have.
static Result<braid_session_options> readOptions(const braid_session_options *options) {
  constexpr size_t kKnown = sizeof(braid_session_options), kLargest = 4096;
  braid_session_options given;
  braid_session_options_init(&given, sizeof given);
  if (!options)
    return given;
  const size_t size = options->size;
  bool splits = false;
  for (auto [begin, end] : kFields)
    splits = splits || (begin < size && size < end);
  if (size < sizeof(size_t) || size > kLargest || splits)
    return Status::error("expects options prepared by braid_session_options_init, got options of " +
                         std::to_string(size) + " bytes");
  const auto *bytes = reinterpret_cast<const std::byte *>(options);
  for (size_t i = kKnown; i < size; ++i)
    if (bytes[i] != std::byte{0})
      return Status::error("braid_session_options of " + std::to_string(size) +
                           " bytes set a field at byte " + std::to_string(i) + ", this library (" +
                           version() + ", ABI version " + std::to_string(BRAID_RT_ABI_VERSION) +
                           ") knows " + std::to_string(kKnown) + " bytes");
  std::memcpy(&given, options, std::min(size, kKnown));
  return given;
}

void braid_session_options_init(braid_session_options *options, size_t size) {
  if (!options)
    return;
  SessionOptions defaults;
  braid_session_options values = {};
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

braid_code braid_session_create(const braid_bundle *bundle, const braid_session_options *options,
                                braid_session **session, braid_error **error) {
  return guarded(
      error, {{bundle, "a bundle"}, {session, "a place for the session"}}, [&]() -> Status {
        ASSIGN_OR_RETURN(braid_session_options given, readOptions(options));
        SessionOptions o;
        o.transport = given.transport ? given.transport : "threads";
        o.ranks = given.ranks;
        o.threadsPerRank = given.threads_per_rank;
        o.timeLimitSeconds = given.time_limit_seconds;
        o.trace = given.trace != 0;
        o.entry = given.entry ? given.entry : "";
        o.target = given.target ? given.target : "cpu";
        o.cudaGraph = given.cuda_graph != 0;
        o.pin = given.pin != 0;
        if (!(given.spin_microseconds < 0))
          o.spinMicroseconds = given.spin_microseconds;
        ASSIGN_OR_RETURN(std::unique_ptr<Session> created, Session::create(bundle->bundle, o));
        *session = new braid_session{std::move(created)};
        return {};
      });
}

void braid_session_free(braid_session *session) { delete session; }

braid_code braid_session_load_safetensors(braid_session *session, const char *path,
                                          braid_error **error) {
  return guarded(error, {{session, "a session"}, {path, "a path"}}, [&] {
    Result<std::unique_ptr<WeightSource>> source = openSafetensors(path);
    return source.ok() ? session->session->loadWeights(**source) : source.status();
  });
}

braid_code braid_session_random_weights(braid_session *session, uint64_t seed,
                                        braid_error **error) {
  return guarded(error, {{session, "a session"}},
                 [&] { return session->session->loadWeights(*WeightSource::random(seed)); });
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

size_t braid_session_num_inputs(const braid_session *session) {
  return session ? session->session->entry().operands.size() : 0;
}
size_t braid_session_num_outputs(const braid_session *session) {
  return session ? session->session->entry().results.size() : 0;
}

const char *braid_session_input(const braid_session *session, size_t index, braid_dtype *dtype,
                                const int64_t **shape, size_t *rank) {
  return session ? describeValue(session->session->entry().operands, index, dtype, shape, rank)
                 : nullptr;
}

const char *braid_session_output(const braid_session *session, size_t index, braid_dtype *dtype,
                                 const int64_t **shape, size_t *rank) {
  return session ? describeValue(session->session->entry().results, index, dtype, shape, rank)
                 : nullptr;
}

braid_code braid_session_set_input(braid_session *session, const char *name, braid_dtype dtype,
                                   const int64_t *shape, size_t rank, const void *data,
                                   braid_error **error) {
  constexpr size_t kLargestRank = 1024;
  const void *anything = data;
  return guarded(error,
                 {{session, "a session"},
                  {name, "a name"},
                  {data, "data"},
                  {rank > 0 ? shape : anything, "a shape"}},
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
                   return session->session->setInput(name, static_cast<DType>(number),
                                                     std::vector<int64_t>(shape, shape + rank),
                                                     data);
                 });
}

braid_code braid_session_bind_input(braid_session *session, int64_t rank, const char *name,
                                    void *data, size_t bytes, braid_error **error) {
  return guarded(error, {{session, "a session"}, {name, "a name"}},
                 [&] { return session->session->bindInput(rank, name, data, bytes); });
}

braid_code braid_session_bind_output(braid_session *session, int64_t rank, const char *name,
                                     void *data, size_t bytes, braid_error **error) {
  return guarded(error, {{session, "a session"}, {name, "a name"}},
                 [&] { return session->session->bindOutput(rank, name, data, bytes); });
}

braid_code braid_session_run(braid_session *session, braid_error **error) {
  return guarded(error, {{session, "a session"}}, [&] { return session->session->run(); });
}

braid_code braid_session_get_output(const braid_session *session, const char *name, void *data,
                                    size_t bytes, braid_error **error) {
  return guarded(error, {{session, "a session"}, {name, "a name"}, {data, "memory"}},
                 [&] { return session->session->readOutput(name, data, bytes); });
}

char *braid_session_report(const braid_session *session) {
  if (!session)
    return nullptr;
  try {
    return strdup(session->session->report().c_str());
  } catch (const std::exception &) {
    return nullptr;
  }
}

void braid_session_reset_statistics(braid_session *session) {
  if (session)
    session->session->resetStatistics();
}
void braid_string_free(char *string) { std::free(string); }

braid_code braid_session_write_trace(const braid_session *session, const char *path,
                                     braid_error **error) {
  return guarded(error, {{session, "a session"}, {path, "a path"}},
                 [&] { return session->session->writeTrace(path); });
}
