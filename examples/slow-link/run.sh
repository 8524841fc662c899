#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs MiniLM over a slow link, plain and with collectives in fewer bits; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/slow-link/run.sh [--hosts A,B] [--agent PROGRAM] [--rate RATE] [--quantize LIST] [--batch N] [--help]

Installs missing packages, builds, and then: compiles MiniLM for two ranks, plain and with collectives in fewer bits; runs
both with a rank on each of two hosts; checks the results against the unpartitioned model; prints how long a run takes, what
a rank sends and how long it waits; and draws both runs, to one scale. Without --hosts the hosts are two test hosts on this
machine (test/lab), which need root; the exit status is 77 where they cannot be had.

  --hosts A,B       two hosts; A is this one, by the name by which B finds it, and B has this folder at the same path
  --agent PROGRAM   runs a command on a host; "ssh -x -o BatchMode=yes" unless given
  --rate RATE       of the test hosts' links, such as 1gbit; 100mbit unless given
  --quantize LIST   what braid compile --quantize takes; "*=int5:128+spikes" unless given
  --batch N         sentences of 128 tokens; 8 unless given
END
}

source scripts/options.sh
declare -A expects=([--hosts]=value [--agent]=value [--rate]=value [--quantize]=value [--batch]=number)
read_options slow-link "$@"

scripts/setup.sh
scripts/build.sh braid braid-run
exec build/venv/bin/python examples/slow-link/slow_link.py "${args[@]}"
