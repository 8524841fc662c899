#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs benchmarks and prints their figures. Asserts nothing about them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: test/benchmark/run.sh [--model minilm|smollm2|llama3-405b] [--batch B] [--seq S] [--ranks R] [--strategy S]
                             [--isa host|avx2] [--base DIR] [--rounds N] [--repeat K] [--help]

A model on the CPU, the same weights, inputs and results throughout: Braid on one thread against PyTorch and ONNX Runtime
on one thread and against its own matmuls alone, and on R ranks (tp=R) against one, and against as many copies of the
whole model side by side. Each is run N rounds of K times after warming up, in turn, so that a disturbance of the machine
does not fall on one of them alone. The answers are compared before anything is timed. What a figure means stands beside it.

  --model minilm       MiniLM-L6, 8 x 128 tokens (unless given)
  --model smollm2      SmolLM2-135M, 1 x 512 tokens (a prefill), logits of all of them
  --model llama3-405b  only how long its shapes take to compile: 126 layers, 1 x 2048 tokens, tp=8, no weights
  --isa avx2           keep Braid, oneDNN and PyTorch to AVX2 on a machine that has more (ONNX Runtime has no switch)
  --base DIR           run a tree of another commit too, built in DIR/build, and print before over after
  --batch B, --seq S, --ranks R (2), --strategy S (auto: see braid compile --help), --rounds N (3), --repeat K (10)

ONNX Runtime is put into build/venv when it is not there (test/benchmark/requirements.txt); without it its row is left out.
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
    --isa)
      [[ $# -gt 1 && ( $2 == host || $2 == avx2 ) ]] || { echo "benchmark: error: $1 expects host or avx2" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    --base)
      [[ $# -gt 1 && -d $2 ]] || { echo "benchmark: error: $1 expects a folder" >&2; exit 1; }
      args+=("$1" "$(realpath "$2")"); shift 2 ;;
    --batch | --seq | --ranks | --rounds | --repeat)
      [[ $# -gt 1 && $2 =~ ^[1-9][0-9]*$ ]] || { echo "benchmark: error: $1 expects a positive number" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    *) echo "benchmark: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

scripts/setup.sh
scripts/build.sh
if [[ $model == llama3-405b ]]; then exec build/venv/bin/python test/benchmark/compile_time.py "${args[@]}"; fi
python=build/venv/bin/python
$python -c "import torch" 2>/dev/null && ! $python -c "import onnxruntime, onnx, onnxscript" 2>/dev/null &&
  { $python -m pip install -q -r test/benchmark/requirements.txt ||
    echo "benchmark: ONNX Runtime cannot be had; its row is left out" >&2; }
exec $python test/benchmark/models.py --model "$model" "${args[@]}"
