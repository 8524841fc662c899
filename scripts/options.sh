# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by scripts that pass their options on. Such a script declares with `declare -A expects` what each option takes:
# "value", "number" (a positive one) or "nothing".

# read_options NAME ARGUMENTS...: checks the arguments and stores them in `args`. If --help is among them, it
# calls `usage` and exits.
read_options() {
  local name=$1 arg
  shift
  for arg in "$@"; do
    if [[ $arg == -h || $arg == --help ]]; then usage; exit 0; fi
  done
  args=()
  while [[ $# -gt 0 ]]; do
    case ${1:+${expects[$1]:-}} in
      value) [[ $# -gt 1 ]] || { echo "$name: error: $1 expects a value" >&2; exit 1; } ;;
      number)
        [[ $# -gt 1 && $2 =~ ^[1-9][0-9]*$ ]] || { echo "$name: error: $1 expects a positive number" >&2; exit 1; } ;;
      nothing) args+=("$1"); shift; continue ;;
      *) echo "$name: error: unknown argument '$1' (see --help)" >&2; exit 1 ;;
    esac
    args+=("$1" "$2")
    shift 2
  done
}
