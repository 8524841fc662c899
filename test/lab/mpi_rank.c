/*===---------------------------------------------------------------------===//
// Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank of the table's rows for MPI: mpi_rank OPERATION:BYTES:RUNS:CALLS...
// Prints a line of JSON for each case: the median over RUNS of the mean of CALLS, one after
// another, and the share of a processor that they took.
//
//===----------------------------------------------------------------------===*/
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static float *whole, *part;
static int rank, size;

static void call(char operation, int count) {
  if (operation == 'r') /* all_reduce */
    MPI_Allreduce(MPI_IN_PLACE, whole, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  else if (operation == 'g') /* all_gather */
    MPI_Allgather(part, count / size, MPI_FLOAT, whole, count / size, MPI_FLOAT, MPI_COMM_WORLD);
  else /* reduce_scatter */
    MPI_Reduce_scatter_block(whole, part, count / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void fill(float value, int count) {
  for (int i = 0; i < count; ++i)
    whole[i] = value;
  for (int i = 0; i < count / size; ++i)
    part[i] = value;
}

static void check(char operation, int count, const char *name) {
  const float *result = operation == 's' ? part : whole;
  for (int i = 0; i < (operation == 's' ? count / size : count); ++i) {
    const float sum = (float)(size * (size + 1)) / 2;
    if (result[i] != (operation == 'g' ? (float)(i / (count / size) + 1) : sum)) {
      fprintf(stderr, "%s is wrong on rank %d\n", name, rank);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
}

static int compare(const void *a, const void *b) {
  const double difference = *(const double *)a - *(const double *)b;
  return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i < argc; ++i) {
    char name[32] = "";
    long bytes = 0;
    int runs = 0, calls = 0;
    if (sscanf(argv[i], "%31[a-z_]:%ld:%d:%d", name, &bytes, &runs, &calls) != 4)
      MPI_Abort(MPI_COMM_WORLD, 1);
    const char operation = strcmp(name, "all_reduce") == 0   ? 'r'
                           : strcmp(name, "all_gather") == 0 ? 'g'
                                                             : 's';
    const int count = (int)(bytes / 4);
    whole = malloc((size_t)bytes);
    part = malloc((size_t)bytes);
    double *times = malloc((size_t)runs * sizeof(double));
    fill((float)(rank + 1), count);
    call(operation, count);
    check(operation, count, argv[i]);
    fill(1e-30f, count);
    double begin = MPI_Wtime();
    const clock_t processor = clock();
    for (int k = 0; k < runs; ++k) {
      for (int j = 0; j < calls; ++j)
        call(operation, count);
      const double end = MPI_Wtime();
      times[k] = end - begin;
      begin = end;
    }
    const double used = (double)(clock() - processor) / CLOCKS_PER_SEC;
    double total = 0;
    for (int k = 0; k < runs; ++k)
      total += times[k];
    qsort(times, (size_t)runs, sizeof(double), compare);
    printf("{\"case\": \"%s\", \"rank\": %d, \"median_s\": %.9f, \"processor_share\": %.6f}\n",
           argv[i], rank, times[runs / 2] / calls, used / total);
    fflush(stdout);
    free(whole);
    free(part);
    free(times);
  }
  MPI_Finalize();
  return 0;
}
