#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Trains a model with DistributedDataParallel over Braid's collectives, and over Gloo's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/c10d/run.sh [--ranks N] [--steps N] [--help]

Installs missing packages, builds the backend "braid" of torch.distributed, trains a small model with it on N ranks of this host
(2 unless given) and prints the losses; then the same with Gloo. With two ranks the losses must be the same.
END
}

source scripts/options.sh
declare -A expects=([--ranks]=number [--steps]=number)
read_options c10d "$@"
ranks=2 steps=20
for ((i = 0; i < ${#args[@]}; i += 2)); do
  case ${args[i]} in
    --ranks) ranks=${args[i + 1]} ;;
    --steps) steps=${args[i + 1]} ;;
  esac
done

scripts/setup.sh
scripts/build.sh BraidRuntime
if ! build/venv/bin/python -c 'import torch' 2>/dev/null; then
  echo "c10d: error: build/venv has no PyTorch, which this example is about (scripts/setup.sh says why)" >&2
  exit 1
fi
scripts/build.sh BraidC10d
export PYTHONPATH=$PWD/build/lib/python OMP_NUM_THREADS=1
work=$PWD/build/examples/c10d
mkdir -p "$work"
for backend in braid gloo; do
  echo "== $backend, $ranks ranks"
  build/venv/bin/python -W ignore -m torch.distributed.run --standalone --nproc-per-node "$ranks" examples/c10d/train.py \
    --backend "$backend" --steps "$steps" | tee "$work/$backend.txt"
done
if [[ $ranks -le 2 ]]; then
  cmp "$work/braid.txt" "$work/gloo.txt"
  echo "the losses are the same"
fi
