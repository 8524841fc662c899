#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Configures and builds one of the presets.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
usage: scripts/build.sh [--preset NAME] [TARGET...]

Configures and builds a preset of CMakePresets.json (default: default, into build/). Progress is shown when the
output is a terminal; otherwise only what goes wrong is.

  presets: default (release, everything) | dev (quick to build, with assertions) | runtime (no LLVM needed)
           asan (tests and fuzzers of the runtime and the interpreter's core), tsan (their tests): under sanitizers
           fuzz-compiler (fuzzers of the compiler)
END
}

preset=default
targets=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    -h | --help) usage; exit 0 ;;
    -*) echo "build: unknown argument '$1' (see --help)" >&2; exit 1 ;;
    *) targets+=("$1"); shift ;;
  esac
done

if ! command -v cmake >/dev/null || ! command -v ninja >/dev/null || ! command -v clang++-22 >/dev/null; then
  echo "build: error: cmake, ninja or clang++-22 is missing; run scripts/setup.sh first" >&2
  exit 1
fi

dir=build
[[ $preset == default ]] || dir=build-$preset
log=$dir/configure.log
mkdir -p "$dir"
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  echo "build: error: 'cmake --preset $preset' failed" >&2
  exit 1
fi
start=$SECONDS
if [[ -t 1 ]]; then
  ninja -C "$dir" "${targets[@]}"
else
  echo "build: building preset '$preset' in $dir"
  ninja -C "$dir" --quiet -j "$(nproc)" "${targets[@]}"
fi
echo "build: $dir is up to date ($((SECONDS - start)) s)"
