#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Prepares the files that test/gpu/run.sh needs on a machine with a GPU. First installs what is missing and builds.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: test/gpu/prepare.sh [--output DIR] [--small] [--models LIST] [--ranks LIST] [--architectures LIST]
                           [--programs | --no-libraries] [--help]

Installs what is missing, builds, and then writes into build-gpu/ what a machine with a GPU and without LLVM needs beside the
tree: bundles of MiniLM, SmolLM2 and a layer of LLaMA 3 8B's shapes for 1, 2 and 4 ranks with machine code for sm_80, sm_90a
and sm_100; inputs; what the CPU computes of them with weights drawn from a seed; programs of encoded collectives for 2 and 4
ranks with the interpreter's results; and the libraries and headers that the runtime is built with. Says how much that is with
the tree, and fails beyond 64 MB. No GPU is needed.

  --output DIR     another folder
  --small          tiny models of the same families, for sm_90a only: to test this folder's scripts
  --models LIST    some of minilm,smollm2,llama-layer
  --ranks LIST     some of 1,2,4
  --architectures LIST
                   some of sm_80,sm_90a,sm_100: most of the time goes into them
  --programs       the programs that run.sh starts, as built here, with the shared libraries that they load, instead of libraries and
                   headers: for a machine without a compiler, whose glibc is not older than this one's
  --no-libraries   no libraries and headers: for a machine that has them, or a runtime that is built
END
}

args=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --small | --programs | --no-libraries) args+=("$1"); shift ;;
    --output | --models | --ranks | --architectures)
      [[ $# -gt 1 ]] || { echo "prepare: error: $1 expects a value" >&2; exit 1; }
      args+=("$1" "$2"); shift 2 ;;
    *) echo "prepare: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

scripts/setup.sh
scripts/build.sh
exec build/venv/bin/python test/gpu/prepare.py "${args[@]}"
