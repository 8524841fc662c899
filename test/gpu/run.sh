#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs what prepare.sh made on a machine with a GPU and without LLVM. First builds the runtime there, unless that was prepared too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: test/gpu/run.sh [--prepared DIR] [--build DIR] [--output FILE] [--repeat K] [--only LIST] [--add]
                       [--time-limit S] [--help]

On a machine with an NVIDIA GPU, its driver, cuBLASLt, a C++ compiler, CMake 3.25, ninja or make, and Python 3.8; it needs no
LLVM and no network, and after prepare.sh --programs nothing to build with either. test/gpu/prepare.sh has made build-gpu/ on
another machine before. Builds the runtime, runs the models of build-gpu/ with 1, 2 and 4 ranks against the CPU's results, runs
programs of encoded collectives against the interpreter's, times kernels and codecs against a copy within the GPU's memory, runs
compute-sanitizer where there is one that works here, times the models in PyTorch where this Python has it, and writes one
results file. What could not be measured is listed in it, with the reason.

  --prepared DIR   what prepare.sh made, instead of build-gpu/
  --build DIR      a folder with a built runtime, which is then used as it is
  --output FILE    the results file; DIR/RESULTS.md of the prepared folder unless given
  --repeat K       runs that are timed; 20 unless given
  --only LIST      some of runs,encoded,kernels,codecs,sanitizers,pytorch, in this order whatever the list's is
  --add            keeps what the results file has of the other parts, from an earlier run on such a machine
  --time-limit S   what is not done after S seconds, without those of building, is left out
  --cuda-library FILE, --kernel-bytes N
                   for tests: what stands in for the driver, cuBLASLt and NCCL, and how much kernels are given

Exit status: 0 what could be run passed; 1 nothing could be run; 2 a check or a run failed.
END
}

args=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --add) args+=("$1"); shift ;;
    --prepared | --build | --output | --repeat | --only | --time-limit | --cuda-library | --kernel-bytes)
      [[ $# -gt 1 ]] || { echo "run: error: $1 expects a value" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    *) echo "run: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

command -v python3 >/dev/null || { echo "run: error: expects python3" >&2; exit 1; }
exec python3 test/gpu/run.py "${args[@]+"${args[@]}"}"
