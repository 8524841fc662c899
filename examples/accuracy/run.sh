#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What encoded collectives cost real models in accuracy; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/accuracy/run.sh [--long] [--model smollm2|minilm] [--simulate] [--help]

Installs missing packages, builds, and then evaluates SmolLM2-135M on three ranks and MiniLM-L6 on four under encodings of their
collectives, on English text from Debian's documentation: bytes, errors and perplexity as a table, JSON and charts. It then
lets Braid choose encodings under a budget, and tests the choice on text that it has not seen.

  --long      the size of the figures in docs/quantized-collectives.md, which takes more than an hour on two cores; less data,
              which shows that it works, unless given
  --model M   only smollm2, or only minilm
  --simulate  puts what a simulation in PyTorch without Braid loses beside what SmolLM2 loses in long contexts; with --long this
              takes half an hour more
END
}

source scripts/options.sh
declare -A expects=([--long]=nothing [--model]=value [--simulate]=nothing)
read_options accuracy "$@"
for ((i = 0; i < ${#args[@]}; ++i)); do
  if [[ ${args[i]} == --model && ! ${args[i + 1]} =~ ^(smollm2|minilm)$ ]]; then
    echo "accuracy: error: --model expects smollm2 or minilm, got '${args[i + 1]}'" >&2
    exit 1
  fi
done

scripts/setup.sh
scripts/build.sh braid
exec build/venv/bin/python examples/accuracy/accuracy.py "${args[@]}"
