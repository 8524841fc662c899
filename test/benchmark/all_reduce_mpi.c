/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*
 *
 * Times MPI_Allreduce of f32 by size, in the way of AllReduceTimes.cpp.
 *
 *===----------------------------------------------------------------------===*/
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  double *times = malloc(sizeof(double) * (size_t)rounds);
  for (int i = 2; i < argc; ++i) {
    const long bytes = atol(argv[i]) / 4 * 4;
    long repetitions = (64L << 20) / bytes;
    repetitions = repetitions < 4 ? 4 : repetitions > 1000 ? 1000 : repetitions;
    float *input = calloc(1, (size_t)bytes), *sum = calloc(1, (size_t)bytes);
    for (int round = -2; round < rounds; ++round) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      for (long r = 0; r < repetitions; ++r)
        MPI_Allreduce(input, sum, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (round >= 0)
        times[round] = (MPI_Wtime() - begin) / (double)repetitions;
    }
    qsort(times, (size_t)rounds, sizeof(double), compare);
    if (rank == 0) {
      printf("%ld %.3f %.3f\n", bytes, times[rounds / 2] * 1e6, times[0] * 1e6);
      fflush(stdout);
    }
    free(input);
    free(sum);
  }
  free(times);
  MPI_Finalize();
  return 0;
}
