#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Benchmarks; prints figures as they come out, asserts nothing about them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: test/benchmark/run.sh [--model minilm|smollm2|llama3-405b] [--batch B] [--seq S] [--ranks R] [--strategy S]
                             [--rounds N] [--repeat K] [--help]

A model on the CPU, the same weights and inputs throughout: Braid on one thread against PyTorch on one thread, and Braid
on R ranks (tp=R) against one, and against as many copies of the whole model side by side. Each is run N rounds of K
times after warming up, in turn, so that a disturbance of the machine does not fall on one of them alone. The answers
are compared before anything is timed.

  --model minilm       MiniLM-L6, 8 x 128 tokens (unless given)
  --model smollm2      SmolLM2-135M, 1 x 512 tokens (a prefill)
  --model llama3-405b  only how long its shapes take to compile: 126 layers, 1 x 2048 tokens, tp=8, no weights
  --batch B, --seq S, --ranks R (2), --strategy S (auto: see braid compile --help), --rounds N (3), --repeat K (10)
END
}

args=()
model=minilm
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --model)
      [[ $# -gt 1 && ( $2 == minilm || $2 == smollm2 || $2 == llama3-405b ) ]] ||
        { echo "benchmark: error: $1 expects minilm, smollm2 or llama3-405b" >&2; exit 1; }
      model=$2; shift 2 ;;
    --strategy)
      [[ $# -gt 1 && $2 =~ ^[a-z] ]] || { echo "benchmark: error: $1 expects a strategy of braid compile" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    --batch | --seq | --ranks | --rounds | --repeat)
      [[ $# -gt 1 && $2 =~ ^[1-9][0-9]*$ ]] || { echo "benchmark: error: $1 expects a positive number" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    *) echo "benchmark: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

scripts/setup.sh
scripts/build.sh
if [[ $model == llama3-405b ]]; then exec build/venv/bin/python test/benchmark/compile_time.py "${args[@]}"; fi
exec build/venv/bin/python test/benchmark/models.py --model "$model" "${args[@]}"
