//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
/*
 * Braid's runtime for C: loads a bundle (.braid) and runs it on all ranks of its mesh.
 *
 *   braid_bundle *bundle;  braid_world *world;  braid_model *model;  braid_execution *decode;
 *   braid_error *error = NULL;
 *   if (braid_bundle_open("model.braid", &bundle, &error) ||
 *       braid_world_create(NULL, &world, &error) ||
 *       braid_model_load(world, bundle, &model, &error) ||
 *       braid_model_load_safetensors(model, "model.safetensors", &error) ||
 *       braid_model_execution(model, "decode", &decode, &error) ||
 *       braid_execution_set_input(decode, "input_ids", BRAID_I64, shape, 2, ids, &error) ||
 *       braid_execution_run(decode, &error))
 *     fprintf(stderr, "%s\n", braid_error_message(error));
 *
 * Rules that hold for every function:
 * - Functions that can fail return a braid_code. When it is not BRAID_OK and `error` is not NULL,
 * *error is set to an object that the caller frees with braid_error_free; else *error is set to
 * NULL. Out parameters are then untouched.
 * - NULL where an object, memory or an out parameter is expected is BRAID_INVALID; functions
 * without a braid_code then return NULL or 0, or do nothing.
 * - Strings are UTF-8 and end in a zero byte. Strings returned as const char * belong to the object
 * they came from.
 * - Tensors are dense and row-major; shapes are in elements, sizes named `bytes` in bytes, times in
 * seconds. Every value is the global one, as for one device, unless a function names a
 * rank.
 * - There is no global state; nothing exits, prints or installs a signal handler. Different
 * models may be used by different threads at once; one model with its executions by one thread at a
 * time.
 * - A bundle contains machine code: running one is trusting who made it.
 */
#ifndef BRAID_RT_H
#define BRAID_RT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct braid_error braid_error;
typedef struct braid_bundle braid_bundle;
typedef struct braid_communicator braid_communicator;
typedef struct braid_world braid_world;
typedef struct braid_model braid_model;
typedef struct braid_execution braid_execution;

/* Values equal the exit status of braid-run. */
typedef enum braid_code {
  BRAID_OK = 0,
  BRAID_INVALID = 1,      /* the input or the request is wrong */
  BRAID_CHECK_FAILED = 2, /* a comparison came out too large */
  BRAID_RANK_FAILED = 3   /* a rank died, stalled or disagreed with the others */
} braid_code;

typedef enum braid_dtype {
  BRAID_F32 = 0,
  BRAID_F16 = 1,
  BRAID_BF16 = 2,
  BRAID_F64 = 3,
  BRAID_I32 = 4,
  BRAID_I64 = 5,
  BRAID_I8 = 6
} braid_dtype;

/* The version of this header. It grows when functions or fields are added; existing ones keep their
 * meaning. Version 2 has worlds, models and executions in place of the sessions of version 1, whose
 * functions are gone. Version 3 has communicators. */
#define BRAID_RT_ABI_VERSION 3
/* The version of the library. It must be at least that of the header that a program was compiled
 * with, or functions may be missing. */
int braid_rt_abi_version(void);

/* "0.1.0" */
const char *braid_version(void);

braid_code braid_error_code(const braid_error *error);
/* One line that names the file, operation or rank and what was expected. */
const char *braid_error_message(const braid_error *error);
void braid_error_free(braid_error *error); /* NULL is allowed */

/* ---- Bundles ---- */

braid_code braid_bundle_open(const char *path, braid_bundle **bundle, braid_error **error);
/* `data` is copied and may be freed afterwards. */
braid_code braid_bundle_open_memory(const void *data, size_t bytes, braid_bundle **bundle,
                                    braid_error **error);
/* Models keep what they need of a bundle, so it may be freed before them. */
void braid_bundle_free(braid_bundle *bundle); /* NULL is allowed */
/* Ranks of the mesh that the bundle was compiled for; 0 for NULL. */
int64_t braid_bundle_ranks(const braid_bundle *bundle);

/* ---- Communicators: processes that serve the ranks of a mesh together ---- */

/* A process makes one to be one of several, on any hosts, which exchange values over UCX. Each
 * serves one rank and makes the same calls in the same order: communicators, worlds and models;
 * braid_execution_scatter_input and braid_model_scatter_state; braid_execution_get_output and
 * braid_model_get_state; braid_execution_gather_report and braid_execution_write_trace; runs. The
 * process of rank 0 has what they put together; others may give NULL for memory, and get nothing.
 * A process that is lost, or stalls, is named on all others. */

/* An exchange of the caller's, such as MPI_Allgather or a store: gives process r's `bytes` bytes at
 * recv + r * bytes, of all processes. All call it with the same number of bytes (some hundred to
 * 64 KiB). Returns 0; anything else ends the start with an error that has the number. Nothing
 * limits how long it takes, so it should have a limit of its own. It is called by the thread that
 * makes the communicator, before that returns, and not later. */
typedef int (*braid_all_gather)(void *context, const void *send, size_t bytes, void *recv);

/* Meets the other processes by an exchange of the caller's: twice `all_gather` is called, which
 * tells all where the others are and what they run. `rank` is this process's of `size`, which must
 * be the bundle's number of ranks. Fails on all of them with one message where they run different
 * bundles, or have different secrets. `secret`: at least 16 bytes, the same for all, with which the
 * frames of control are authenticated; NULL: none. `time_limit_seconds`: for the silence of a
 * process, also while the processes connect; 0: never. */
braid_code braid_communicator_create(const braid_bundle *bundle, int64_t rank, int64_t size,
                                     braid_all_gather all_gather, void *context, const char *secret,
                                     double time_limit_seconds, braid_communicator **communicator,
                                     braid_error **error);
/* The same for processes that braid-run --hosts, torchrun, Slurm, Open MPI or PMI started: rank,
 * size, secret (BRAID_JOB_SECRET, or the file BRAID_JOB_SECRET_FILE) and where rank 0 listens are
 * taken from the launcher's variables; `rendezvous`, unless NULL, says where to meet instead:
 * "tcp://HOST:PORT" or "file:PATH". The limit is also one for the start. */
braid_code braid_communicator_join(const braid_bundle *bundle, const char *rendezvous,
                                   double time_limit_seconds, braid_communicator **communicator,
                                   braid_error **error);
/* Worlds keep what they need of a communicator, so it may be freed before them; once both are gone,
 * this process has left. NULL is allowed. */
void braid_communicator_free(braid_communicator *communicator);
/* The rank of this process; -1 for NULL. */
int64_t braid_communicator_rank(const braid_communicator *communicator);

/* ---- Worlds: where ranks run ---- */

typedef struct braid_world_options {
  size_t size;               /* of this struct; set by braid_world_options_init */
  const char *transport;     /* "threads": every rank is a thread of this process; "shm": every rank
                                is a process, forked from the thread that loads the weights; that
                                thread must live as long as the model, and no other thread may
                                hold a lock during the fork. On target "cuda", "threads": all ranks
                                share the first GPU; "nccl": each rank has a GPU */
  int64_t ranks;             /* must equal the mesh's number of ranks; 0: that number */
  int64_t threads_per_rank;  /* threads that share a rank's computation */
  double time_limit_seconds; /* a run ends after so long without any progress; 0: never */
  int trace;                 /* record the last run, for braid_execution_write_trace */
  const char *target;        /* "cpu", or "cuda": ranks on GPUs */
  int cuda_graph;            /* on target "cuda", a run is one graph, captured in the second run */
  int pin;                   /* pins each thread that computes to a core of its own */
  double spin_microseconds;  /* a waiting thread spins so long before it sleeps; negative: 1000 if
                                the rank has cores and nothing to compute meanwhile, else 50, or 1
                                under a quota that is less than the threads need */
  const char *cuda_library;  /* on target "cuda": a library that stands in for the CUDA driver,
                                cuBLASLt and NCCL, as the null device does in tests; NULL: the
                                system's */
  const braid_communicator *communicator; /* the processes that have the ranks; the transport is its
                                             "ucx". NULL: this process has all ranks */
} braid_world_options;

/* Sets the defaults: threads, 0 ranks, 1 thread, 60 s, no trace, cpu, no graph, not pinned,
 * spin time by the number of cores, no communicator.
 * `size` is sizeof(braid_world_options) of the caller: fields that it does not have keep their
 * defaults. Bytes behind the fields of this library are set to 0, and braid_world_create refuses
 * other values there. */
void braid_world_options_init(braid_world_options *options, size_t size);

/* `options` may be NULL for the defaults. */
braid_code braid_world_create(const braid_world_options *options, braid_world **world,
                              braid_error **error);
/* Models keep what they need of a world, so it may be freed before them. NULL is allowed. */
void braid_world_free(braid_world *world);

/* ---- Models: bundles on the ranks of a world ---- */

/* Prepares all entries of the bundle for all ranks. They share weights and states by name. */
braid_code braid_model_load(const braid_world *world, const braid_bundle *bundle,
                            braid_model **model, braid_error **error);
/* Ends the threads of the ranks and frees all memory except the caller's, and the model's
 * executions. NULL is allowed. */
void braid_model_free(braid_model *model);

/* A .safetensors file, the .json index of several, or a directory that holds model.safetensors or
 * model.safetensors.index.json; each rank's shard of each parameter is copied. */
braid_code braid_model_load_safetensors(braid_model *model, const char *path, braid_error **error);
/* Weights that depend on the seed, the parameter's name and the element's index only. */
braid_code braid_model_random_weights(braid_model *model, uint64_t seed, braid_error **error);

/* Number and names of the entries. NULL when `index` is not below the number. */
size_t braid_model_num_entries(const braid_model *model);
const char *braid_model_entry(const braid_model *model, size_t index);

/* What the model keeps between runs, such as a cache of keys. States are zeros at first; after a
 * run that has failed they are undefined. Number, name, type and shape are as of inputs. */
size_t braid_model_num_states(const braid_model *model);
const char *braid_model_state(const braid_model *model, size_t index, braid_dtype *dtype,
                              const int64_t **shape, size_t *rank);
braid_code braid_model_set_state(braid_model *model, const char *name, braid_dtype dtype,
                                 const int64_t *shape, size_t rank, const void *data,
                                 braid_error **error);
/* As braid_execution_scatter_input. */
braid_code braid_model_scatter_state(braid_model *model, const char *name, braid_dtype dtype,
                                     const int64_t *shape, size_t rank, const void *data,
                                     braid_error **error);
/* Copies a state, gathered from the ranks, to `data` of `bytes` bytes (the exact size). */
braid_code braid_model_get_state(const braid_model *model, const char *name, void *data,
                                 size_t bytes, braid_error **error);
/* Sets all states to zero. */
braid_code braid_model_reset_states(braid_model *model, braid_error **error);
/* Uses memory of the caller for one rank's shard of a state, as braid_execution_bind_input does.
 * The state's value is what the memory holds. */
braid_code braid_model_bind_state(braid_model *model, int64_t rank, const char *name, void *data,
                                  size_t bytes, braid_error **error);

/* The execution of an entry; with NULL as its name, of the only one. It belongs to the model, and
 * is the same one in every call. */
braid_code braid_model_execution(braid_model *model, const char *entry, braid_execution **execution,
                                 braid_error **error);

/* ---- Executions: entries with their inputs and outputs ---- */

/* Number, name, type and shape of the entry's inputs and outputs. `shape` belongs to the model;
   any out parameter may be NULL. NULL when `index` is not below the number. */
size_t braid_execution_num_inputs(const braid_execution *execution);
size_t braid_execution_num_outputs(const braid_execution *execution);
const char *braid_execution_input(const braid_execution *execution, size_t index,
                                  braid_dtype *dtype, const int64_t **shape, size_t *rank);
const char *braid_execution_output(const braid_execution *execution, size_t index,
                                   braid_dtype *dtype, const int64_t **shape, size_t *rank);

/* Gives an input its value. `data` is copied to the ranks that need it; type and shape must be
 * those of the entry. An input with a default, such as attention_mask (ones) and token_type_ids
 * (zeros), keeps it until a value is given. */
braid_code braid_execution_set_input(braid_execution *execution, const char *name,
                                     braid_dtype dtype, const int64_t *shape, size_t rank,
                                     const void *data, braid_error **error);
/* The same where a communicator's processes call it together: the process of rank 0 gives the value
 * to all, and each gets the shard of its rank. On the others `shape` and `data` may be NULL. */
braid_code braid_execution_scatter_input(braid_execution *execution, const char *name,
                                         braid_dtype dtype, const int64_t *shape, size_t rank,
                                         const void *data, braid_error **error);
/* Uses memory of the caller for one rank's shard of an input or output, which saves the copy
   (except where collectives use the value in place, in symmetric memory: see bound_values_copied in
   the report): `bytes` must be the size of the shard, padding included, and `data` aligned to 64
   bytes. The memory stays the caller's, and must live until the model is freed or other memory is
   bound. An input counts as set when it is bound on all ranks. Inputs may overlap each other; an
   output or state that overlaps other bound memory, of any rank, makes the next run fail with
   BRAID_INVALID.
 */
braid_code braid_execution_bind_input(braid_execution *execution, int64_t rank, const char *name,
                                      void *data, size_t bytes, braid_error **error);
braid_code braid_execution_bind_output(braid_execution *execution, int64_t rank, const char *name,
                                       void *data, size_t bytes, braid_error **error);

/* Runs the entry once on all ranks and returns when all are done, or were stopped by the first
 * failure. */
braid_code braid_execution_run(braid_execution *execution, braid_error **error);

/* Copies an output of the last run, gathered from the ranks, to `data` of `bytes` bytes (the exact
 * size). */
braid_code braid_execution_get_output(const braid_execution *execution, const char *name,
                                      void *data, size_t bytes, braid_error **error);

/* ---- What an execution measured ---- */

/* JSON over the runs since loading or the last reset, of this process's ranks; freed by
 * braid_string_free. NULL when out of memory. */
char *braid_execution_report(const braid_execution *execution);
/* The same of all ranks. The processes of a communicator call it together; *report is NULL on those
 * of other ranks than 0. */
braid_code braid_execution_gather_report(const braid_execution *execution, char **report,
                                         braid_error **error);
void braid_execution_reset_statistics(braid_execution *execution);
void braid_string_free(char *string);
/* Chrome trace event JSON of the model's last run, which was one of this entry, of all ranks;
 * written completely or not at all. The processes of a communicator call it together, and that of
 * rank 0 writes, with the times of its clock. */
braid_code braid_execution_write_trace(const braid_execution *execution, const char *path,
                                       braid_error **error);

#ifdef __cplusplus
}
#endif
#endif /* BRAID_RT_H */
