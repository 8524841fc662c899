//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The C ABI over Session.h. No exception leaves this file.
//
//===----------------------------------------------------------------------===//
#include "braid/Runtime/Session.h"
#include "braid/Runtime/Version.h"
#include "braid_rt.h"

#include <algorithm>
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

static Status required(const void *pointer, const char *what) {
  return pointer ? Status() : Status::error(std::string("expects ") + what + ", got NULL");
}

const char *braid_version(void) { return version(); }

braid_code braid_error_code(const braid_error *error) { return error ? error->code : BRAID_OK; }
const char *braid_error_message(const braid_error *error) {
  return error ? error->message.c_str() : "";
}
void braid_error_free(braid_error *error) { delete error; }

static Status give(Result<Bundle> opened, braid_bundle **bundle) {
  if (!opened.ok())
    return opened.status();
  *bundle = new braid_bundle{std::make_shared<const Bundle>(std::move(*opened))};
  return {};
}

braid_code braid_bundle_open(const char *path, braid_bundle **bundle, braid_error **error) {
  return guarded(error, [&] {
    Status status = required(path, "a path");
    return status.ok() ? give(Bundle::read(path), bundle) : status;
  });
}

braid_code braid_bundle_open_memory(const void *data, size_t bytes, braid_bundle **bundle,
                                    braid_error **error) {
  return guarded(error, [&] {
    if (Status status = required(data, "a bundle"); !status.ok())
      return status;
    auto *begin = static_cast<const std::byte *>(data);
    return give(Bundle::parse(Bytes(begin, begin + bytes), "bundle in memory"), bundle);
  });
}

void braid_bundle_free(braid_bundle *bundle) { delete bundle; }
int64_t braid_bundle_ranks(const braid_bundle *bundle) {
  return bundle->bundle->manifest.mesh.numRanks();
}

void braid_session_options_init(braid_session_options *options, size_t size) {
  SessionOptions defaults;
  braid_session_options values = {};
  values.size = std::min(size, sizeof values);
  values.transport = "threads";
  values.target = "cpu";
  values.ranks = defaults.ranks;
  values.threads_per_rank = defaults.threadsPerRank;
  values.time_limit_seconds = defaults.timeLimitSeconds;
  std::memcpy(options, &values, values.size);
}

braid_code braid_session_create(const braid_bundle *bundle, const braid_session_options *options,
                                braid_session **session, braid_error **error) {
  return guarded(error, [&]() -> Status {
    if (Status status = required(bundle, "a bundle"); !status.ok())
      return status;
    // A caller compiled against an older, shorter struct leaves the later fields at their defaults.
    braid_session_options given;
    braid_session_options_init(&given, sizeof given);
    if (options) {
      if (options->size < sizeof(size_t) || options->size > sizeof given)
        return Status::error("expects options prepared by braid_session_options_init");
      std::memcpy(&given, options, options->size);
    }
    SessionOptions o;
    o.transport = given.transport ? given.transport : "threads";
    o.ranks = given.ranks;
    o.threadsPerRank = given.threads_per_rank;
    o.timeLimitSeconds = given.time_limit_seconds;
    o.trace = given.trace != 0;
    o.entry = given.entry ? given.entry : "";
    o.target = given.target ? given.target : "cpu";
    o.cudaGraph = given.cuda_graph != 0;
    Result<std::unique_ptr<Session>> created = Session::create(bundle->bundle, o);
    if (!created.ok())
      return created.status();
    *session = new braid_session{std::move(*created)};
    return {};
  });
}

void braid_session_free(braid_session *session) { delete session; }

braid_code braid_session_load_safetensors(braid_session *session, const char *path,
                                          braid_error **error) {
  return guarded(error, [&] {
    if (Status status = required(path, "a path"); !status.ok())
      return status;
    Result<std::unique_ptr<WeightSource>> source = WeightSource::safetensors(path);
    return source.ok() ? session->session->loadWeights(**source) : source.status();
  });
}

braid_code braid_session_random_weights(braid_session *session, uint64_t seed,
                                        braid_error **error) {
  return guarded(error, [&] { return session->session->loadWeights(*WeightSource::random(seed)); });
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
  return session->session->entry().operands.size();
}
size_t braid_session_num_outputs(const braid_session *session) {
  return session->session->entry().results.size();
}

const char *braid_session_input(const braid_session *session, size_t index, braid_dtype *dtype,
                                const int64_t **shape, size_t *rank) {
  return describeValue(session->session->entry().operands, index, dtype, shape, rank);
}

const char *braid_session_output(const braid_session *session, size_t index, braid_dtype *dtype,
                                 const int64_t **shape, size_t *rank) {
  return describeValue(session->session->entry().results, index, dtype, shape, rank);
}

braid_code braid_session_set_input(braid_session *session, const char *name, braid_dtype dtype,
                                   const int64_t *shape, size_t rank, const void *data,
                                   braid_error **error) {
  return guarded(error, [&]() -> Status {
    if (Status status = required(name, "a name"); !status.ok())
      return status;
    if (Status status = required(data, "data"); !status.ok())
      return status;
    if (rank > 0)
      if (Status status = required(shape, "a shape"); !status.ok())
        return status;
    if (dtype < BRAID_F32 || dtype > BRAID_I8)
      return Status::error("expects a braid_dtype, got " + std::to_string(static_cast<int>(dtype)));
    return session->session->setInput(name, static_cast<DType>(dtype),
                                      std::vector<int64_t>(shape, shape + rank), data);
  });
}

braid_code braid_session_bind_input(braid_session *session, int64_t rank, const char *name,
                                    void *data, size_t bytes, braid_error **error) {
  return guarded(error, [&] {
    Status status = required(name, "a name");
    return status.ok() ? session->session->bindInput(rank, name, data, bytes) : status;
  });
}

braid_code braid_session_bind_output(braid_session *session, int64_t rank, const char *name,
                                     void *data, size_t bytes, braid_error **error) {
  return guarded(error, [&] {
    Status status = required(name, "a name");
    return status.ok() ? session->session->bindOutput(rank, name, data, bytes) : status;
  });
}

braid_code braid_session_run(braid_session *session, braid_error **error) {
  return guarded(error, [&] { return session->session->run(); });
}

braid_code braid_session_get_output(const braid_session *session, const char *name, void *data,
                                    size_t bytes, braid_error **error) {
  return guarded(error, [&] {
    if (Status status = required(name, "a name"); !status.ok())
      return status;
    Status status = required(data, "memory");
    return status.ok() ? session->session->readOutput(name, data, bytes) : status;
  });
}

char *braid_session_report(const braid_session *session) {
  try {
    std::string report = session->session->report();
    char *copy = static_cast<char *>(std::malloc(report.size() + 1));
    if (copy)
      std::memcpy(copy, report.c_str(), report.size() + 1);
    return copy;
  } catch (const std::exception &) {
    return nullptr;
  }
}

void braid_session_reset_statistics(braid_session *session) { session->session->resetStatistics(); }
void braid_string_free(char *string) { std::free(string); }

braid_code braid_session_write_trace(const braid_session *session, const char *path,
                                     braid_error **error) {
  return guarded(error, [&] {
    Status status = required(path, "a path");
    return status.ok() ? session->session->writeTrace(path) : status;
  });
}
