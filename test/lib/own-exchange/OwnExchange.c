/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*
 *
 * For tests: a program whose processes meet by an exchange of its own: files of a folder, or, when
 * it is compiled with MPI (mpicc -DUSE_MPI), MPI_Allgather.
 *
 *   braid-test-own-exchange BUNDLE FOLDER [RANK SIZE] [WHAT]
 *
 * Rank 0 has the inputs, and writes the outputs, a report and a trace to FOLDER. Without RANK, one
 * process has all ranks, as threads. WHAT is what goes wrong: `fails`: the exchange; `swaps`: it
 * mixes up processes; `forgets`: it gives back something else; `secret`: rank 1 has another one;
 * `join`: nothing, but processes meet as a launcher says.
 *
 *===----------------------------------------------------------------------===*/
#include <braid_rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef USE_MPI
#include <mpi.h>
#endif

typedef struct {
  const char *folder, *what;
  int64_t rank, size;
  int calls;
} Exchange;

static char *pathOf(const char *folder, const char *name) {
  char *path = malloc(strlen(folder) + strlen(name) + 32);
  sprintf(path, "%s/%s", folder, name);
  return path;
}

static int writeFile(const char *folder, const char *name, const void *data, size_t bytes) {
  char *path = pathOf(folder, name), *fresh = pathOf(folder, name);
  strcat(fresh, ".new");
  FILE *file = fopen(fresh, "wb");
  int failed = !file || fwrite(data, 1, bytes, file) != bytes;
  failed = (file && fclose(file) != 0) || failed || rename(fresh, path) != 0;
  free(path);
  free(fresh);
  return failed;
}

#ifndef USE_MPI
/* Waits for the file, for a minute. */
static int readFile(const char *folder, const char *name, void *data, size_t bytes) {
  char *path = pathOf(folder, name);
  FILE *file = NULL;
  for (int i = 0; i < 6000 && !file; ++i) {
    const struct timespec moment = {0, 10000000};
    file = fopen(path, "rb");
    if (!file)
      nanosleep(&moment, NULL);
  }
  free(path);
  if (!file)
    return 1;
  const int failed = fread(data, 1, bytes, file) != bytes || fgetc(file) != EOF;
  fclose(file);
  return failed;
}
#endif

static int allGather(void *context, const void *send, size_t bytes, void *recv) {
  Exchange *exchange = context;
  ++exchange->calls;
  if (strcmp(exchange->what, "fails") == 0)
    return 7;
#ifdef USE_MPI
  return MPI_Allgather(send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, MPI_COMM_WORLD) !=
         MPI_SUCCESS;
#else
  char name[64];
  sprintf(name, "call%d-%d", exchange->calls, (int)exchange->rank);
  if (writeFile(exchange->folder, name, send, bytes))
    return 1;
  for (int64_t rank = 0; rank < exchange->size; ++rank) {
    int64_t from = rank;
    if (strcmp(exchange->what, "swaps") == 0 && rank != exchange->rank)
      from = exchange->rank; /* others' places have this process's bytes */
    sprintf(name, "call%d-%d", exchange->calls, (int)from);
    if (readFile(exchange->folder, name, (char *)recv + (size_t)rank * bytes, bytes))
      return 2;
  }
  if (strcmp(exchange->what, "forgets") == 0)
    memset((char *)recv + (size_t)exchange->rank * bytes, 0, bytes);
  return 0;
#endif
}

static size_t bytesOf(braid_dtype dtype, const int64_t *shape, size_t rank) {
  static const size_t kBytes[] = {4, 2, 2, 8, 4, 8, 1};
  size_t bytes = kBytes[dtype];
  for (size_t d = 0; d < rank; ++d)
    bytes *= (size_t)shape[d];
  return bytes;
}

/* Inputs from rank 0, a run, outputs for rank 0. */
static braid_code use(braid_execution *execution, const Exchange *exchange, braid_error **error) {
  const int isFirst = exchange->rank == 0;
  braid_dtype dtype;
  const int64_t *shape;
  size_t rank;
  braid_code code;
  for (size_t i = 0; i < braid_execution_num_inputs(execution); ++i) {
    const char *name = braid_execution_input(execution, i, &dtype, &shape, &rank);
    const size_t bytes = bytesOf(dtype, shape, rank);
    float *values = isFirst ? calloc(1, bytes + 8) : NULL;
    if (isFirst && dtype == BRAID_F32)
      for (size_t n = 0; n < bytes / 4; ++n)
        values[n] = (float)(n % 23) / 16 - (float)(n % 7) / 8;
    code = braid_execution_scatter_input(execution, name, dtype, shape, rank, values, error);
    free(values);
    if (code)
      return code;
  }
  for (int run = 0; run < 3; ++run) {
    code = braid_execution_run(execution, error);
    if (code)
      return code;
  }
  for (size_t i = 0; i < braid_execution_num_outputs(execution); ++i) {
    const char *name = braid_execution_output(execution, i, &dtype, &shape, &rank);
    const size_t bytes = bytesOf(dtype, shape, rank);
    void *values = isFirst ? malloc(bytes + 1) : NULL;
    code = braid_execution_get_output(execution, name, values, isFirst ? bytes : 0, error);
    if (!code && isFirst && writeFile(exchange->folder, name, values, bytes))
      fprintf(stderr, "cannot write output '%s'\n", name);
    free(values);
    if (code)
      return code;
  }
  char *report = NULL;
  code = braid_execution_gather_report(execution, &report, error);
  if (code)
    return code;
  if (isFirst != (report != NULL))
    fprintf(stderr, "a report on another process than rank 0's\n");
  if (report && writeFile(exchange->folder, "report.json", report, strlen(report)))
    fprintf(stderr, "cannot write the report\n");
  braid_string_free(report);
  char *trace = pathOf(exchange->folder, "trace.json");
  code = braid_execution_write_trace(execution, trace, error);
  free(trace);
  return code;
}

int main(int argc, char **argv) {
  braid_bundle *bundle = NULL;
  braid_communicator *communicator = NULL;
  braid_world *world = NULL;
  braid_model *model = NULL;
  braid_execution *execution = NULL;
  braid_error *error = NULL;
  Exchange exchange = {NULL, "", 0, 0, 0};
  const double limit = 20;
  if (argc < 3)
    return 64;
  exchange.folder = argv[2];
#ifdef USE_MPI
  int number, count;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  exchange.rank = number;
  exchange.size = count;
#else
  if (argc > 4) {
    exchange.rank = strtol(argv[3], NULL, 10);
    exchange.size = strtol(argv[4], NULL, 10);
  }
  if (argc > 5)
    exchange.what = argv[5];
#endif
  const char *secret = strcmp(exchange.what, "secret") == 0 && exchange.rank == 1
                           ? "the secret of another job"
                           : "the secret of this job";
  braid_world_options options;
  braid_world_options_init(&options, sizeof options);
  options.trace = 1;
  braid_code code = braid_bundle_open(argv[1], &bundle, &error);
  if (!code && strcmp(exchange.what, "join") == 0)
    code = braid_communicator_join(bundle, NULL, limit, &communicator, &error);
  else if (!code && exchange.size > 0)
    code = braid_communicator_create(bundle, exchange.rank, exchange.size, allGather, &exchange,
                                     secret, limit, &communicator, &error);
  if (communicator)
    exchange.rank = braid_communicator_rank(communicator);
  options.communicator = communicator;
  if (!code)
    code = braid_world_create(&options, &world, &error);
  if (!code)
    code = braid_model_load(world, bundle, &model, &error);
  if (!code)
    code = braid_model_random_weights(model, 7, &error);
  if (!code)
    code = braid_model_execution(model, NULL, &execution, &error);
  if (!code)
    code = use(execution, &exchange, &error);
  if (error)
    fprintf(stderr, "%s\n", braid_error_message(error));
  braid_error_free(error);
  braid_model_free(model);
  braid_world_free(world);
  braid_communicator_free(communicator);
  braid_bundle_free(bundle);
#ifdef USE_MPI
  MPI_Finalize();
#endif
  return (int)code;
}
