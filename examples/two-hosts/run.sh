#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs MiniLM and SmolLM2 with their ranks on two hosts; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/two-hosts/run.sh [--hosts A,B] [--agent PROGRAM] [--port N] [--models NAMES] [--help]

Installs missing packages, builds, and then, for each model: compiles it for two ranks; runs a rank on each of two hosts,
started by `braid run --hosts` and by torchrun; checks the results against the unpartitioned model; and shows the trace of
both ranks on one clock. Without --hosts the hosts are two test hosts on this machine (test/lab), which need root;
the exit status is 77 where they cannot be had.

  --hosts A,B       two hosts; A is this one, by the name by which B finds it, and B has this folder at the same path
  --agent PROGRAM   runs a command on a host; "ssh -x -o BatchMode=yes" unless given
  --port N          on which torchrun's processes meet on host A, and with N + 1 the ranks; 29500 unless given
  --models NAMES    minilm, smollm2, or both with a comma between them, as unless given
END
}

source scripts/options.sh
declare -A expects=([--hosts]=value [--agent]=value [--port]=number [--models]=value)
read_options two-hosts "$@"

scripts/setup.sh
scripts/build.sh braid
exec build/venv/bin/python examples/two-hosts/hosts.py "${args[@]}"
