#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# A model written by hand: sharded by hand, run, rewritten by chosen passes, and a test of those passes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/write-your-own/run.sh [--help]

Installs missing packages, builds, and then takes examples/write-your-own/model.mlir, whose shardings are written by
hand: partitions it over two ranks, runs it and checks it against the unpartitioned model; does the same with the
passes of examples/write-your-own/passes.txt, which turn its reductions into the sequence-parallel form; and runs the
FileCheck test of those passes. Then it runs examples/write-your-own/pipeline.mlir, the program of every rank of a pipeline,
with ranks as threads and as processes, and once more from level scheduled.
END
}

source scripts/options.sh
declare -A expects=()
read_options write-your-own "$@"

scripts/setup.sh
scripts/build.sh braid braid-opt
example=examples/write-your-own
export WORK=$PWD/build/$example PATH=$PWD/build/bin:/usr/lib/llvm-22/bin:$PATH
mkdir -p "$WORK"
build/venv/bin/python - "$WORK/x.npy" "$WORK/%s.npy" <<'END'
import sys
import numpy as np
np.save(sys.argv[1], np.random.default_rng(0).standard_normal((2, 64, 256), np.float32))
for name, seed in (("first", 1), ("second", 2)):
    np.save(sys.argv[2] % name, np.random.default_rng(seed).standard_normal((32, 64), np.float32))
END

collectives() {
  echo "collectives of a block:"
  sed -n '/func.func private @block/,/^  }/p' "$1" |
    sed -nE 's/.*(comm\.[a-z_]+)( [a-z]+)?\(.*/\1/p' | sort | uniq -c
}

run() { # further arguments
  braid run "$example/model.mlir" --random-weights 1 --input x="$WORK/x.npy" --check reference "$@"
}

echo "== with its own shardings"
braid compile "$example/model.mlir" --emit=comm -o "$WORK/plain.mlir"
collectives "$WORK/plain.mlir"
run

passes=$(<"$example/passes.txt")
echo
echo "== with --passes $passes"
braid compile "$example/model.mlir" --passes "$passes" --emit=comm -o "$WORK/sequence-parallel.mlir"
collectives "$WORK/sequence-parallel.mlir"
run --passes "$passes"

echo
echo "== test of the passes"
lit -v "$example/test"

program() { # module, further arguments
  braid run "$@" --random-weights 1 --input first="$WORK/first.npy" --input second="$WORK/second.npy" --check reference
}

echo
echo "== a program of ranks"
program "$example/pipeline.mlir"
program "$example/pipeline.mlir" --transport shm
braid compile "$example/pipeline.mlir" --emit=scheduled -o "$WORK/scheduled.mlir"
program "$WORK/scheduled.mlir"
