//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
/*
 * The C ABI from C: braid_rt.h must compile as C, and its whole life cycle must work. Called by
 * CApiTest.cpp, which makes the bundle. Returns 0, or the line of the first thing that went wrong.
 */
#include "braid_rt.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition))                                                                              \
      return __LINE__;                                                                             \
  } while (0)

int braidTestCApi(const void *data, size_t bytes, float *result);
int braidTestCApiMisuse(const void *data, size_t bytes);

/* `call` fails with BRAID_INVALID and this message, also if the caller wants no message. */
#define CHECK_REFUSED(call, text)                                                                  \
  do {                                                                                             \
    braid_error *error = NULL, **errorOut = &error;                                                \
    CHECK((call) == BRAID_INVALID && braid_error_code(error) == BRAID_INVALID);                    \
    CHECK(strcmp(braid_error_message(error), text) == 0);                                          \
    braid_error_free(error);                                                                       \
    errorOut = NULL;                                                                               \
    CHECK((call) == BRAID_INVALID);                                                                \
  } while (0)

/* A world with these options, the bundle in it, and the execution of its only entry. */
static braid_code load(const braid_bundle *bundle, const braid_world_options *options,
                       braid_model **model, braid_execution **execution, braid_error **error) {
  braid_world *world = NULL;
  braid_code code = braid_world_create(options, &world, error);
  if (code == BRAID_OK)
    code = braid_model_load(world, bundle, model, error);
  if (code == BRAID_OK)
    code = braid_model_execution(*model, NULL, execution, error);
  braid_world_free(world); /* a model outlives its world */
  return code;
}

/* Never called: what is refused is refused before processes meet. */
static int allGather(void *context, const void *send, size_t bytes, void *recv) {
  (void)context, (void)send, (void)bytes, (void)recv;
  return 1;
}

/* A later version of the struct. */
typedef struct {
  braid_world_options known;
  void *later;
} LaterOptions;

int braidTestCApiMisuse(const void *data, size_t bytes) {
  braid_bundle *bundle = NULL;
  braid_communicator *communicator = NULL;
  braid_world *world = NULL;
  braid_model *model = NULL;
  braid_execution *execution = NULL;
  braid_world_options options;
  LaterOptions later;
  const int64_t shape[2] = {4, 16};
  float x[64] = {0};
  size_t size, refused = 0;
  char text[256];

  CHECK(braid_rt_abi_version() == BRAID_RT_ABI_VERSION);
  CHECK_REFUSED(braid_bundle_open("a", NULL, errorOut), "expects a place for the bundle, got NULL");
  CHECK_REFUSED(braid_bundle_open(NULL, &bundle, errorOut), "expects a path, got NULL");
  CHECK_REFUSED(braid_bundle_open_memory(data, bytes, NULL, errorOut),
                "expects a place for the bundle, got NULL");
  CHECK_REFUSED(braid_bundle_open_memory(NULL, bytes, &bundle, errorOut),
                "expects a bundle, got NULL");
  CHECK(braid_bundle_open_memory(data, (size_t)-1, &bundle, NULL) == BRAID_INVALID);
  CHECK(braid_bundle_ranks(NULL) == 0 && !bundle);
  CHECK(braid_bundle_open_memory(data, bytes, &bundle, NULL) == BRAID_OK);

  CHECK_REFUSED(
      braid_communicator_create(NULL, 0, 1, allGather, NULL, NULL, 1, &communicator, errorOut),
      "expects a bundle, got NULL");
  CHECK_REFUSED(
      braid_communicator_create(bundle, 0, 1, NULL, NULL, NULL, 1, &communicator, errorOut),
      "expects an all_gather, got NULL");
  CHECK_REFUSED(braid_communicator_create(bundle, 0, 1, allGather, NULL, NULL, 1, NULL, errorOut),
                "expects a place for the communicator, got NULL");
  CHECK_REFUSED(
      braid_communicator_create(bundle, 2, 2, allGather, NULL, NULL, 1, &communicator, errorOut),
      "expects a rank of 0 to SIZE - 1 and a size of 1 to 65536, got rank 2 and size 2");
  CHECK_REFUSED(
      braid_communicator_create(bundle, 0, 2, allGather, NULL, NULL, -1, &communicator, errorOut),
      "expects a time limit of 0 to 1e9 seconds, got -1.000000");
  CHECK_REFUSED(braid_communicator_join(NULL, NULL, 1, &communicator, errorOut),
                "expects a bundle, got NULL");
  CHECK_REFUSED(braid_communicator_join(bundle, "nowhere", 1, &communicator, errorOut),
                "expects a rendezvous as tcp://HOST:PORT, tcp://[ADDRESS]:PORT or file:PATH, got "
                "'nowhere'");
  CHECK(braid_communicator_rank(NULL) == -1);
  braid_communicator_free(NULL);
  CHECK_REFUSED(braid_world_create(NULL, NULL, errorOut),
                "expects a place for the world, got NULL");
  CHECK(braid_world_create(NULL, &world, NULL) == BRAID_OK);
  CHECK_REFUSED(braid_model_load(NULL, bundle, &model, errorOut), "expects a world, got NULL");
  CHECK_REFUSED(braid_model_load(world, NULL, &model, errorOut), "expects a bundle, got NULL");
  CHECK_REFUSED(braid_model_load(world, bundle, NULL, errorOut),
                "expects a place for the model, got NULL");
  CHECK(braid_model_load(world, bundle, &model, NULL) == BRAID_OK);
  CHECK_REFUSED(braid_model_execution(NULL, NULL, &execution, errorOut),
                "expects a model, got NULL");
  CHECK_REFUSED(braid_model_execution(model, NULL, NULL, errorOut),
                "expects a place for the execution, got NULL");
  CHECK_REFUSED(braid_model_execution(model, "decode", &execution, errorOut),
                "the bundle has no entry 'decode', it has 'main'");
  CHECK(braid_model_num_entries(model) == 1 && braid_model_num_entries(NULL) == 0);
  CHECK(strcmp(braid_model_entry(model, 0), "main") == 0 && !braid_model_entry(model, 1));
  CHECK(!braid_model_entry(NULL, 0));
  CHECK_REFUSED(braid_model_set_state(model, "keys", BRAID_F32, shape, 2, x, errorOut),
                "no state 'keys', the model has none");
  CHECK(braid_model_num_states(model) == 0 && braid_model_num_states(NULL) == 0);
  CHECK(!braid_model_state(model, 0, NULL, NULL, NULL));
  CHECK(!braid_model_state(NULL, 0, NULL, NULL, NULL));
  CHECK_REFUSED(braid_model_get_state(NULL, "keys", x, 4, errorOut), "expects a model, got NULL");
  CHECK_REFUSED(braid_model_reset_states(NULL, errorOut), "expects a model, got NULL");
  CHECK_REFUSED(braid_model_bind_state(NULL, 0, "keys", x, 4, errorOut),
                "expects a model, got NULL");
  braid_model_free(model);
  braid_world_free(world);
  braid_world_free(NULL);
  model = NULL;
  braid_world_options_init(NULL, sizeof options);
  /* All sizes: some are those of older versions of the struct, the others are refused. */
  for (size = 0; size <= sizeof options; ++size) {
    braid_world_options_init(&options, sizeof options);
    options.size = size;
    if (load(bundle, &options, &model, &execution, NULL) == BRAID_OK) {
      CHECK(size >= sizeof(size_t));
      braid_model_free(model);
    } else {
      ++refused;
    }
  }
  /* Refused: ends within a pointer or number of 8 bytes or an int of 4, but not in padding. */
  CHECK(refused == 8 + 4 * 7 + 3 + 7 + 2 * 3 + 3 * 7);
  model = NULL;
  braid_world_options_init(&options, sizeof options);
  options.size = offsetof(braid_world_options, transport) + 4;
  CHECK_REFUSED(load(bundle, &options, &model, &execution, errorOut),
                "expects options prepared by braid_world_options_init, got options of 12 bytes");
  options.size = (size_t)-1;
  CHECK(load(bundle, &options, &model, &execution, NULL) == BRAID_INVALID);
  braid_world_options_init(&later.known, sizeof later);
  CHECK(later.known.size == sizeof later && later.later == NULL);
  CHECK(load(bundle, &later.known, &model, &execution, NULL) == BRAID_OK);
  braid_model_free(model);
  model = NULL;
  memset((void *)&later.later, 1, sizeof later.later);
  sprintf(text,
          "braid_world_options of %zu bytes set a field at byte %zu, this library (%s, ABI "
          "version 3) knows %zu bytes",
          sizeof later, sizeof options, braid_version(), sizeof options);
  CHECK_REFUSED(load(bundle, &later.known, &model, &execution, errorOut), text);
  CHECK(!model);

  CHECK_REFUSED(braid_model_load_safetensors(NULL, "a", errorOut), "expects a model, got NULL");
  CHECK_REFUSED(braid_model_random_weights(NULL, 1, errorOut), "expects a model, got NULL");
  CHECK(braid_execution_num_inputs(NULL) == 0 && braid_execution_num_outputs(NULL) == 0);
  CHECK(!braid_execution_input(NULL, 0, NULL, NULL, NULL));
  CHECK(!braid_execution_output(NULL, 0, NULL, NULL, NULL));
  CHECK_REFUSED(braid_execution_set_input(NULL, "x", BRAID_F32, shape, 2, x, errorOut),
                "expects an execution, got NULL");
  CHECK_REFUSED(braid_execution_bind_input(NULL, 0, "x", x, 128, errorOut),
                "expects an execution, got NULL");
  CHECK_REFUSED(braid_execution_bind_output(NULL, 0, "y", x, 128, errorOut),
                "expects an execution, got NULL");
  CHECK_REFUSED(braid_execution_run(NULL, errorOut), "expects an execution, got NULL");
  CHECK_REFUSED(braid_execution_get_output(NULL, "y", x, 128, errorOut),
                "expects an execution, got NULL");
  CHECK(!braid_execution_report(NULL));
  braid_execution_reset_statistics(NULL);
  braid_string_free(NULL);
  CHECK_REFUSED(braid_execution_write_trace(NULL, "a", errorOut), "expects an execution, got NULL");

  CHECK(load(bundle, NULL, &model, &execution, NULL) == BRAID_OK);
  CHECK_REFUSED(braid_model_load_safetensors(model, NULL, errorOut), "expects a path, got NULL");
  CHECK_REFUSED(braid_execution_set_input(execution, NULL, BRAID_F32, shape, 2, x, errorOut),
                "expects a name, got NULL");
  CHECK_REFUSED(braid_execution_set_input(execution, "x", BRAID_F32, NULL, 2, x, errorOut),
                "expects a shape, got NULL");
  CHECK_REFUSED(braid_execution_set_input(execution, "x", BRAID_F32, shape, 2, NULL, errorOut),
                "expects data, got NULL");
  CHECK_REFUSED(braid_execution_set_input(execution, "x", (braid_dtype)99, shape, 2, x, errorOut),
                "expects a braid_dtype, got 99");
  CHECK_REFUSED(
      braid_execution_set_input(execution, "x", BRAID_F32, shape, (size_t)-1, x, errorOut),
      "expects at most 1024 dimensions, got 18446744073709551615");
  CHECK_REFUSED(braid_execution_set_input(execution, "x", BRAID_F32, NULL, 0, x, errorOut),
                "input 'x' expects f32 [4, 16], got f32 []");
  CHECK_REFUSED(braid_execution_bind_input(execution, 0, "x", NULL, 128, errorOut),
                "input 'x' of rank 0 expects memory aligned to 64 bytes");
  CHECK_REFUSED(braid_execution_bind_output(execution, 2, "y", x, 128, errorOut),
                "expects a rank of 0 to 1, got 2");
  CHECK_REFUSED(braid_execution_get_output(execution, NULL, x, 128, errorOut),
                "expects a name, got NULL");
  CHECK_REFUSED(braid_execution_get_output(execution, "y", NULL, 128, errorOut),
                "expects memory, got NULL");
  CHECK_REFUSED(braid_execution_write_trace(execution, NULL, errorOut), "expects a path, got NULL");
  CHECK(!braid_execution_input(execution, 1, NULL, NULL, NULL));
  braid_model_free(model);
  braid_bundle_free(bundle);
  return 0;
}

int braidTestCApi(const void *data, size_t bytes, float *result) {
  braid_bundle *bundle = NULL;
  braid_model *model = NULL;
  braid_execution *execution = NULL;
  braid_error *error = NULL;
  braid_world_options options;
  braid_dtype dtype;
  const int64_t *shape;
  size_t rank, i;
  float x[64];
  /* of the two ranks: their columns of twice x, and their results */
  static _Alignas(64) float parts[2][32], results[2][32];
  int64_t wrongShape[2] = {4, 15};
  char *report;

  CHECK(strlen(braid_version()) >= 5);
  CHECK(braid_bundle_open("/nonexistent.braid", &bundle, &error) == BRAID_INVALID);
  CHECK(braid_error_code(error) == BRAID_INVALID &&
        strstr(braid_error_message(error), "/nonexistent.braid"));
  braid_error_free(error);
  CHECK(braid_bundle_open(NULL, &bundle, NULL) == BRAID_INVALID);
  CHECK(braid_bundle_open_memory(data, bytes / 2, &bundle, NULL) == BRAID_INVALID);
  CHECK(braid_bundle_open_memory(data, bytes, &bundle, &error) == BRAID_OK && error == NULL);
  CHECK(braid_bundle_ranks(bundle) == 2);

  braid_world_options_init(&options, sizeof options);
  options.ranks = 3;
  CHECK(load(bundle, &options, &model, &execution, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "bundle is for mesh <tp = 2> (2 ranks), got 3 ranks") ==
        0);
  braid_error_free(error);
  options.ranks = 2;
  options.time_limit_seconds = 30;
  options.target = "tpu";
  CHECK(load(bundle, &options, &model, &execution, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "expects target 'cpu' or 'cuda', got 'tpu'") == 0);
  braid_error_free(error);
  options.target = "cpu";
  options.cuda_graph = 1;
  CHECK(load(bundle, &options, &model, &execution, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "a run as one graph expects target 'cuda', got 'cpu'") ==
        0);
  braid_error_free(error);
  options.cuda_graph = 0;
  options.cuda_library = "libcuda.so.1";
  CHECK_REFUSED(load(bundle, &options, &model, &execution, errorOut),
                "a library in place of the CUDA driver expects target 'cuda', got 'cpu'");
  options.cuda_library = NULL;
  options.spin_microseconds = 2e6;
  CHECK_REFUSED(load(bundle, &options, &model, &execution, errorOut),
                "expects to spin for 0 to 1e6 microseconds, got 2000000.000000");
  options.spin_microseconds = 5;
  CHECK(load(bundle, &options, &model, &execution, &error) == BRAID_OK);
  braid_bundle_free(bundle); /* a model outlives its bundle */

  CHECK(braid_execution_num_inputs(execution) == 1 && braid_execution_num_outputs(execution) == 1);
  CHECK(strcmp(braid_execution_input(execution, 0, &dtype, &shape, &rank), "x") == 0);
  CHECK(dtype == BRAID_F32 && rank == 2 && shape[0] == 4 && shape[1] == 16);
  CHECK(strcmp(braid_execution_output(execution, 0, NULL, NULL, NULL), "y") == 0);
  CHECK(braid_execution_output(execution, 1, NULL, NULL, NULL) == NULL);

  for (i = 0; i < 64; ++i)
    x[i] = (float)(i % 7) - 3;
  CHECK(braid_execution_set_input(execution, "x", BRAID_F32, wrongShape, 2, x, &error) ==
        BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "input 'x' expects f32 [4, 16], got f32 [4, 15]") == 0);
  braid_error_free(error);
  CHECK(braid_execution_run(execution, NULL) == BRAID_INVALID);
  CHECK(braid_execution_set_input(execution, "x", BRAID_F32, shape, rank, x, NULL) == BRAID_OK);
  CHECK(braid_model_load_safetensors(model, "/nonexistent", NULL) == BRAID_INVALID);
  CHECK(braid_model_random_weights(model, 5, &error) == BRAID_OK);
  CHECK(braid_execution_get_output(execution, "y", result, 32 * sizeof(float), NULL) ==
        BRAID_INVALID); /* not run yet */
  for (i = 0; i < 3; ++i)
    CHECK(braid_execution_run(execution, &error) == BRAID_OK);
  CHECK(braid_execution_get_output(execution, "y", result, 31 * sizeof(float), NULL) ==
        BRAID_INVALID);
  CHECK(braid_execution_get_output(execution, "y", result, 32 * sizeof(float), &error) == BRAID_OK);
  report = braid_execution_report(execution);
  CHECK(report && strstr(report, "\"runs\": 3"));
  braid_string_free(report);
  braid_execution_reset_statistics(execution);
  CHECK(braid_execution_write_trace(execution, "/tmp/never", NULL) == BRAID_INVALID);

  for (i = 0; i < 64; ++i)
    parts[i % 16 / 8][i / 16 * 8 + i % 8] = 2 * x[i];
  CHECK(braid_execution_bind_input(execution, 0, "x", parts[0], 127, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error),
               "input 'x' of rank 0 expects 128 bytes [4, 8], got 127") == 0);
  braid_error_free(error);
  CHECK(braid_execution_bind_output(execution, 1, "z", results[1], 128, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "no output 'z', the entry has 'y' f32 [4, 8]") == 0);
  braid_error_free(error);
  CHECK(braid_execution_bind_input(execution, 0, NULL, parts[0], 128, NULL) == BRAID_INVALID);
  CHECK(braid_execution_bind_output(execution, 0, NULL, results[0], 128, NULL) == BRAID_INVALID);
  for (i = 0; i < 2; ++i) {
    CHECK(braid_execution_bind_input(execution, (int64_t)i, "x", parts[i], 128, &error) ==
          BRAID_OK);
    CHECK(braid_execution_bind_output(execution, (int64_t)i, "y", results[i], 128, &error) ==
          BRAID_OK);
  }
  CHECK(braid_execution_run(execution, &error) == BRAID_OK);
  for (i = 0; i < 64; ++i)
    CHECK(results[i / 32][i % 32] == 2 * result[i % 32]);
  CHECK(braid_execution_bind_output(execution, 1, "y", parts[0], 128, &error) == BRAID_OK);
  CHECK(braid_execution_run(execution, &error) == BRAID_INVALID);
  CHECK(strcmp(braid_error_message(error), "output 'y' of rank 1 expects memory that does not "
                                           "overlap that of input 'x' of rank 0") == 0);
  braid_error_free(error);
  braid_model_free(model);
  braid_model_free(NULL);
  braid_bundle_free(NULL);
  braid_error_free(NULL);
  return 0;
}
