//===----------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
/*
 * Braid's runtime for C: loads a bundle (.braid) and runs it on all ranks of its mesh.
 *
 *   braid_bundle *bundle;  braid_session *session;  braid_error *error = NULL;
 *   braid_session_options options;
 *   braid_session_options_init(&options, sizeof options);
 *   if (braid_bundle_open("model.braid", &bundle, &error) ||
 *       braid_session_create(bundle, &options, &session, &error) ||
 *       braid_session_load_safetensors(session, "model.safetensors", &error) ||
 *       braid_session_set_input(session, "input_ids", BRAID_I64, shape, 2, ids, &error) ||
 *       braid_session_run(session, &error))
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
 * sessions may be used by different threads at once; one session by one thread at a time.
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
typedef struct braid_session braid_session;

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
 * meaning. */
#define BRAID_RT_ABI_VERSION 1
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
/* Sessions keep what they need of a bundle, so it may be freed before them. */
void braid_bundle_free(braid_bundle *bundle); /* NULL is allowed */
/* Ranks of the mesh that the bundle was compiled for; 0 for NULL. */
int64_t braid_bundle_ranks(const braid_bundle *bundle);

/* ---- Sessions ---- */

typedef struct braid_session_options {
  size_t size;               /* of this struct; set by braid_session_options_init */
  const char *transport;     /* "threads": every rank is a thread of this process; "shm": every rank
                                is a process, forked from the thread that loads the weights; that
                                thread must live as long as the session, and no other thread may
                                hold a lock during the fork. On target "cuda", "threads": all ranks
                                share the first GPU; "nccl": each rank has a GPU */
  int64_t ranks;             /* must equal the mesh's number of ranks; 0: that number */
  int64_t threads_per_rank;  /* threads that share a rank's computation */
  double time_limit_seconds; /* a run ends after so long without any progress; 0: never */
  int trace;                 /* record the last run for braid_session_write_trace */
  const char *entry;         /* NULL: the only entry, or "main" */
  const char *target;        /* "cpu", or "cuda": ranks on GPUs */
  int cuda_graph;            /* on target "cuda", a run is one graph, captured in the second run */
  int pin;                   /* pins each thread that computes to a core of its own */
  double spin_microseconds;  /* a waiting thread spins so long before it sleeps; negative: 50, or 1
                                where threads outnumber cores */
} braid_session_options;

/* Sets the defaults: threads, 0 ranks, 1 thread, 60 s, no trace, NULL, cpu, no graph, not pinned,
 * spin time by the number of cores.
 * `size` is sizeof(braid_session_options) of the caller: fields that it does not have keep their
 * defaults. Bytes behind the fields of this library are set to 0, and braid_session_create refuses
 * other values there. */
void braid_session_options_init(braid_session_options *options, size_t size);

/* `options` may be NULL for the defaults. */
braid_code braid_session_create(const braid_bundle *bundle, const braid_session_options *options,
                                braid_session **session, braid_error **error);
/* Ends the threads of the ranks and frees all memory except the caller's. NULL is allowed. */
void braid_session_free(braid_session *session);

/* A .safetensors file, the .json index of several, or a directory that holds model.safetensors or
 * model.safetensors.index.json; each rank's shard of each parameter is copied. */
braid_code braid_session_load_safetensors(braid_session *session, const char *path,
                                          braid_error **error);
/* Weights that depend on the seed, the parameter's name and the element's index only. */
braid_code braid_session_random_weights(braid_session *session, uint64_t seed, braid_error **error);

/* Number, name, type and shape of the entry's inputs and outputs. `shape` belongs to the session;
   any out parameter may be NULL. NULL when `index` is not below the number. */
size_t braid_session_num_inputs(const braid_session *session);
size_t braid_session_num_outputs(const braid_session *session);
const char *braid_session_input(const braid_session *session, size_t index, braid_dtype *dtype,
                                const int64_t **shape, size_t *rank);
const char *braid_session_output(const braid_session *session, size_t index, braid_dtype *dtype,
                                 const int64_t **shape, size_t *rank);

/* Gives an input its value. `data` is copied to the ranks that need it; type and shape must be
 * those of the entry. An input with a default, such as attention_mask (ones) and token_type_ids
 * (zeros), keeps it until a value is given. */
braid_code braid_session_set_input(braid_session *session, const char *name, braid_dtype dtype,
                                   const int64_t *shape, size_t rank, const void *data,
                                   braid_error **error);
/* Uses memory of the caller for one rank's shard of an input or output, which saves the copy
   (except where collectives use the value in place, in symmetric memory: see bound_values_copied in
   the report): `bytes` must be the size of the shard, padding included, and `data` aligned to 64
   bytes. The memory stays the caller's, and must live until the session is freed or other memory is
   bound. An input counts as set when it is bound on all ranks. Inputs may overlap each other; an
   output that overlaps an input or another output, of any rank, makes the next run fail with
   BRAID_INVALID. */
braid_code braid_session_bind_input(braid_session *session, int64_t rank, const char *name,
                                    void *data, size_t bytes, braid_error **error);
braid_code braid_session_bind_output(braid_session *session, int64_t rank, const char *name,
                                     void *data, size_t bytes, braid_error **error);

/* Runs the entry once on all ranks and returns when all are done, or were stopped by the first
 * failure. */
braid_code braid_session_run(braid_session *session, braid_error **error);

/* Copies an output of the last run, gathered from the ranks, to `data` of `bytes` bytes (the exact
 * size). */
braid_code braid_session_get_output(const braid_session *session, const char *name, void *data,
                                    size_t bytes, braid_error **error);

/* ---- What a session measured ---- */

/* JSON over the runs since creation or the last reset; freed by braid_string_free. NULL when out of
 * memory. */
char *braid_session_report(const braid_session *session);
void braid_session_reset_statistics(braid_session *session);
void braid_string_free(char *string);
/* Chrome trace event JSON of the last run; written completely or not at all. */
braid_code braid_session_write_trace(const braid_session *session, const char *path,
                                     braid_error **error);

#ifdef __cplusplus
}
#endif
#endif /* BRAID_RT_H */
