#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A layer of LLaMA 3 8B's shapes, cut in several ways; installs what is missing and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/llama-layer/run.sh [--ranks N] [--tokens S] [--repeat K] [--no-check] [--help]

Installs what is missing, builds, and then takes one layer of LLaMA 3 8B's shapes (218 million random weights, made from
examples/llama-layer/config.json alone): writes its IR at every level, runs it with plain tensor parallelism and in two
sequence-parallel forms, checks each against the unpartitioned layer, and prints what each communicates and how long it
takes. Needs some 5 GB of memory.

  --ranks N    ranks to split it over; 2 unless given
  --tokens S   tokens of the one sequence; 64 unless given
  --repeat K   how often each form is run to take the median time; 5 unless given
  --no-check   leave out the check, which takes most of the time
END
}

for arg in "$@"; do
  case $arg in
    -h | --help) usage; exit 0 ;;
  esac
done
args=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --ranks | --tokens | --repeat)
      [[ $# -gt 1 && $2 =~ ^[1-9][0-9]*$ ]] || { echo "llama-layer: error: $1 expects a positive number" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    --no-check) args+=("$1"); shift ;;
    *) echo "llama-layer: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

scripts/setup.sh
scripts/build.sh
exec build/venv/bin/python examples/llama-layer/layer.py "${args[@]}"
