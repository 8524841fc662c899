#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Embeds sentences with MiniLM, partitioned over ranks; installs missing packages and builds first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: examples/embed-sentences/run.sh [--ranks N | --mesh AXES] [--transport T] [--sentences FILE] [--repeat K] [--help]

Installs missing packages, builds, and then: imports the MiniLM-L6 sentence encoder, partitions and compiles it for
several ranks, runs it on a few sentences, checks the result against the unpartitioned model and against PyTorch,
and prints the similarities of the sentences, the time and the communication.

  --ranks N         split every layer over N ranks (tensor parallel); 2 unless given
  --mesh AXES       a mesh instead, as dp=2,tp=2: batch over dp, layers over tp
  --transport T     threads: ranks are threads; shm: each is a process; threads unless given
  --sentences FILE  one sentence a line instead of examples/embed-sentences/sentences.txt
  --repeat K        the number of runs, of which the median time is taken; 5 unless given
END
}

source scripts/options.sh
declare -A expects=([--ranks]=value [--mesh]=value [--transport]=value [--sentences]=value [--repeat]=value)
read_options embed-sentences "$@"
# A relative path is relative to the caller's directory.
for i in "${!args[@]}"; do
  [[ $i == 0 || ${args[i - 1]} != --sentences || ${args[i]} == /* ]] || args[i]=$OLDPWD/${args[i]}
done

scripts/setup.sh
scripts/build.sh braid
exec build/venv/bin/python examples/embed-sentences/embed.py "${args[@]}"
