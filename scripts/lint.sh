#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Checks format, the ids of constraints, and clang-tidy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
usage: scripts/lint.sh [--all] [--analyzer] [--base REF] [--fix] [--format-only] [--help]

Checks that every tracked C++ file is formatted by clang-format-22 and that every constraint of a dialect has an id, a
verifier and a test (scripts/constraints.py), and runs clang-tidy-22 (.clang-tidy) over the sources that changed: those
that differ from the merge base with REF, uncommitted changes included. REF defaults to origin/main, or to the parent
of HEAD where HEAD is origin/main. A changed header is checked through one source that includes it. A source that was
clean and has not changed since, nor its headers, is skipped.
Needs a built build/ (scripts/build.sh): clang-tidy reads generated headers. Exits with 1 if anything is found.

  --all          clang-tidy over every source
  --at-most N    clang-tidy over N sources: those that changed, then others, which come in turn with every commit
  --analyzer     its path-sensitive checks as well, which take four times as long
  --fix          write the format instead of checking it
  --format-only  no clang-tidy
END
}

all= base= fix= format_only=
tidy=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) all=1; shift ;;
    --at-most)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "lint: --at-most expects a positive number" >&2; exit 1; }
      tidy+=(--at-most "$2" --turn "$(git rev-list --count HEAD)"); shift 2 ;;
    --analyzer) tidy+=(--analyzer); shift ;;
    --base) base=${2:?--base needs a git revision}; shift 2 ;;
    --fix) fix=1; shift ;;
    --format-only) format_only=1; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "lint: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done

status=0
mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' '*.c' | sort -u |
  while read -r f; do [[ -f $f ]] && echo "$f"; done)
if [[ -n $fix ]]; then
  clang-format-22 -i "${files[@]}"
else
  mapfile -t bad < <(clang-format-22 --dry-run "${files[@]}" 2>&1 | sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: warning: code should be clang-formatted.*/\1/p' | sort -u)
  if [[ ${#bad[@]} -gt 0 ]]; then
    echo "lint: these files are not formatted (scripts/lint.sh --fix writes them as they should be):"
    printf '  %s\n' "${bad[@]}"
    status=1
  else
    echo "lint: format of ${#files[@]} files is right"
  fi
fi
python3 scripts/constraints.py || status=1
[[ -z $format_only ]] || exit $status

if [[ -z $all ]]; then
  if [[ -z $base ]]; then
    base=origin/main
    git rev-parse -q --verify "$base^{commit}" >/dev/null || base=main
    git rev-parse -q --verify "$base^{commit}" >/dev/null || base=HEAD
    [[ $(git rev-parse "$base") != $(git rev-parse HEAD) ]] || base=HEAD~1
  fi
  if ! git rev-parse -q --verify "$base^{commit}" >/dev/null; then
    echo "lint: there is no revision '$base' to compare with; checking every source"
    all=1
  fi
fi
if [[ -n $all ]]; then
  python3 scripts/tidy.py --all "${tidy[@]}" || status=1
else
  merge_base=$(git merge-base "$base" HEAD)
  { git diff --name-only --diff-filter=d "$merge_base" -- '*.cpp' '*.h' '*.c'
    git ls-files --others --exclude-standard -- '*.cpp' '*.h' '*.c'; } | sort -u | python3 scripts/tidy.py "${tidy[@]}" || status=1
fi
exit $status
