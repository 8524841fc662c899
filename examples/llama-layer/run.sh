#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A layer of LLaMA 3 8B's shapes, sharded in several ways; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/llama-layer/run.sh [--ranks N] [--tokens S] [--repeat K] [--no-check] [--help]

Installs missing packages, builds, and then takes one layer of LLaMA 3 8B's shapes (218 million random weights, made from
examples/llama-layer/config.json alone): writes its IR at every level, runs it with plain tensor parallelism and in two
sequence-parallel forms, checks each against the unpartitioned layer, and prints the communication and the time of each.
Needs about 5 GB of memory.

  --ranks N    ranks to split it over; 2 unless given
  --tokens S   tokens of the one sequence; 64 unless given
  --repeat K   the number of runs of each form, of which the median time is taken; 5 unless given
  --no-check   omit the check, which takes most of the time
END
}

source scripts/options.sh
declare -A expects=([--ranks]=number [--tokens]=number [--repeat]=number [--no-check]=nothing)
read_options llama-layer "$@"

scripts/setup.sh
scripts/build.sh braid
exec build/venv/bin/python examples/llama-layer/layer.py "${args[@]}"
