/*===----------------------------------------------------------------------===*
 * Part of the Braid project, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *===----------------------------------------------------------------------===*
 *
 * The runtime alone, from C: runs the bundle that embed.cpp wrote.
 *
 *   run-bundle FILE.braid
 *
 *===----------------------------------------------------------------------===*/
#include <braid_rt.h>
#include <stdio.h>

enum { kRows = 4, kInner = 64, kColumns = 32 };

int main(int argc, char **argv) {
  static float x[kRows * kInner], y[kRows * kColumns];
  const int64_t shape[2] = {kRows, kInner};
  braid_bundle *bundle = NULL;
  braid_world *world = NULL;
  braid_model *model = NULL;
  braid_execution *execution = NULL;
  braid_error *error = NULL;
  if (argc != 2) {
    fprintf(stderr, "usage: run-bundle FILE.braid\n");
    return 1;
  }
  for (int i = 0; i < kRows * kInner; ++i)
    x[i] = (float)(i % 17) - 8;
  if (braid_bundle_open(argv[1], &bundle, &error) || braid_world_create(NULL, &world, &error) ||
      braid_model_load(world, bundle, &model, &error) ||
      braid_model_random_weights(model, 7, &error) ||
      braid_model_execution(model, NULL, &execution, &error) ||
      braid_execution_set_input(execution, "x", BRAID_F32, shape, 2, x, &error) ||
      braid_execution_run(execution, &error) ||
      braid_execution_get_output(execution, "y", y, sizeof y, &error))
    fprintf(stderr, "run-bundle: error: %s\n", braid_error_message(error));
  else
    printf("y begins with %.9g\n", (double)y[0]);
  int status = error ? (int)braid_error_code(error) : 0;
  braid_error_free(error);
  braid_model_free(model);
  braid_world_free(world);
  braid_bundle_free(bundle);
  return status;
}
