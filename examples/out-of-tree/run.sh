#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs Braid into build/install and builds this folder's project against the installation.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/out-of-tree/run.sh [--help]

Installs missing packages, builds, installs Braid into build/install with `cmake --install`, and builds the project in
examples/out-of-tree against it: plugins with a pass each; a plugin with an operation, which is partitioned and run; a program
that compiles a model, runs it and checks the numbers; and a C program that runs the bundle with the runtime alone.
END
}

source scripts/options.sh
declare -A expects=()
read_options out-of-tree "$@"

scripts/setup.sh
scripts/build.sh
prefix=$PWD/build/install work=$PWD/build/examples/out-of-tree source=examples/out-of-tree
# Files of an earlier installation must not be found.
rm -rf "$prefix"
cmake --install build --prefix "$prefix" --strip >/dev/null
compiler=(-DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22)
if command -v ccache >/dev/null; then compiler+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$source" -B "$work" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$prefix" "${compiler[@]}" >/dev/null
ninja -C "$work" --quiet
export PATH=$prefix/bin:$PATH

echo "== a pass in a plugin"
braid compile examples/write-your-own/model.mlir --emit=comm -o "$work/comm.mlir"
braid-opt "$work/comm.mlir" --load-pass-plugin="$work/report-costs.so" --pass-pipeline='builtin.module(report-costs)' \
  --mlir-print-op-on-diagnostic=false -o "$work/same.mlir" 2>&1 | grep remark

echo
echo "== an overlap pass in a plugin: matmuls and all_reduces in two halves"
sliced=(--load-pass-plugin "$work/slice-matmul.so" --passes slice-matmul)
braid compile examples/write-your-own/model.mlir "${sliced[@]}" --emit=scheduled --remarks communication -o "$work/sliced.mlir" 2>&1
grep -E 'comm\.(start|wait)|@matmul' "$work/sliced.mlir" | grep -v rt.kernel
braid run examples/write-your-own/model.mlir "${sliced[@]}" --random-weights 1 --random-inputs 1 --check reference

echo
echo "== an operation in a plugin: its partitioned form and its cost"
model=$source/own-operation/model.mlir
plugin=(--load-dialect-plugin "$work/own-operation/group-norm.so")
braid compile "$model" "${plugin[@]}" --load-pass-plugin "$work/report-costs.so" --passes report-costs --emit=comm \
  -o "$work/own-operation/comm.mlir" 2>&1 | grep remark
grep -E 'group\.|comm\.[a-z_]+ ' "$work/own-operation/comm.mlir"

echo
echo "== ... run on two ranks, against the unpartitioned model"
build/venv/bin/python - "$work/x.npy" <<'END'
import sys
import numpy as np
np.save(sys.argv[1], np.random.default_rng(0).standard_normal((2, 16, 64), np.float32))
END
braid compile "$model" "${plugin[@]}" -o "$work/own-operation/model.braid"
braid run "$work/own-operation/model.braid" "${plugin[@]}" --threads 2 --random-weights 1 --input x="$work/x.npy" \
  --check reference --output "$work/own-operation/out"

echo
echo "== ... and by the runtime alone, without the plugin"
braid-run "$work/own-operation/model.braid" --random-weights 1 --input x="$work/x.npy" \
  --check "$work/own-operation/out/y.npy"

echo
echo "== compiler and runtime embedded in a program"
"$work/embed" "$work/model.braid"

echo
echo "== the runtime alone, from C"
"$work/run-bundle" "$work/model.braid"
"$work/run-bundle-static" "$work/model.braid"
