#!/bin/bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Starts the compiler by ccache, so that what one checkout of the project has compiled is found by all others.
set -euo pipefail
CCACHE_BASEDIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export CCACHE_BASEDIR CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
[[ " $* " == *" -emit-pch "* ]] || exec ccache "$@"

ccache "$@"
# The precompiled header has the path of this checkout in it. What is compiled with it depends on its headers and options alone,
# so ccache is told to look at a sum of those in its place.
options=${*//"$CCACHE_BASEDIR"/}
while [[ $1 != -o ]]; do shift; done
{
  echo "$options"
  sed -e 's/^[^:]*://' -e 's/\\$//' "$2.d" | xargs cat --
} | sha256sum >"$2.sum"
