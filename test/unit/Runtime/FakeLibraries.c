/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*
 *
 * The functions that `braid doctor` calls, for a library with any of the names that it looks for.
 *
 *===----------------------------------------------------------------------===*/
#include <stddef.h>

int MPI_Get_library_version(char *text, int *length) {
  static const char version[] = "Some MPI v9.8.7, package: anything";
  for (size_t i = 0; i < sizeof version; ++i)
    text[i] = version[i];
  *length = (int)sizeof version - 1;
  return 0;
}
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release) {
  *major = 1, *minor = 99, *release = 7;
}
int cuDriverGetVersion(int *version) { return *version = 13020, 0; }
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
size_t cublasLtGetVersion(void) { return 130002; }
int ncclGetVersion(int *version) { return *version = 22703, 0; }
