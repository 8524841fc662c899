#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Runs every test: on a fresh machine, installs what is missing and builds first.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

stages=(setup build lint unit lit asan tsan fuzz integration)

usage() {
  cat <<END
usage: test/run.sh [--long] [--stage NAME]... [--help]

Installs what is missing (scripts/setup.sh), builds, and runs every test. The last line says how many passed,
failed and were skipped; the exit status is 0 only if none failed.

  --long        more of everything: clang-tidy with its analyzer over all sources, every integration test, eight random
                schedules and the system's own under the thread sanitizer, ranks killed at every moment
  --stage NAME  only this stage (may be repeated); one of: ${stages[*]}

  lint         clang-format; clang-tidy over     unit         GoogleTest
               what changed, in CI (CI=1) over
               100 sources, others in turn
  lit          FileCheck tests of the IR         asan, tsan   unit tests of the runtime and of the interpreter's
  integration  the tools against PyTorch,                     core under address + undefined, and thread sanitizers
               bad input, stalled ranks, reports
  fuzz         every fuzzer for some seconds; for longer: test/fuzz/run.sh
END
}

long=
chosen=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --long) long=1; shift ;;
    --stage)
      [[ $# -gt 1 && " ${stages[*]} " == *" $2 "* ]] || { echo "run.sh: --stage expects one of: ${stages[*]}" >&2; exit 1; }
      chosen+=("$2"); shift 2 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "run.sh: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${stages[@]}")

results=$PWD/build/test-results
rm -rf "$results"
mkdir -p "$results"
export BRAID_VENV_PYTHON=$PWD/build/venv/bin/python
# Reports of a sanitizer must end the test that caused them.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
# Which moments a sample has, of those at which something happens to a rank: others with every commit.
export BRAID_MOMENT_SEED=${BRAID_MOMENT_SEED:-$(git rev-list --count HEAD)}

stage_setup() { scripts/setup.sh; }
stage_build() { scripts/build.sh; }

stage_lint() {
  local args=()
  if [[ -n $long ]]; then
    args=(--all --analyzer)
  elif [[ -n ${CI:-} ]]; then
    # On main itself, what its last commits changed.
    args=(--at-most 100)
    [[ $(git rev-parse -q --verify origin/main) != $(git rev-parse HEAD) ]] || args+=(--base HEAD~20)
  fi
  scripts/lint.sh "${args[@]}"
}

run_ctest() { # name of the results, directory, further arguments
  local name=$results/ctest-$1 dir=$2
  shift 2
  # Many tests wait for a time limit, so one more than there are processors.
  ctest --test-dir "$dir" --output-on-failure --no-tests=error --timeout 300 -j "$(($(nproc) + 1))" \
    --output-junit "$name.xml" "$@" >"$name.log" 2>&1
  local status=$?
  if [[ $status -ne 0 ]]; then cat "$name.log"; else tail -n 4 "$name.log"; fi
  return $status
}

stage_unit() { BRAID_TEST_LONG=$long run_ctest build build -E '^lit$'; }

stage_lit() {
  timeout 1800 /usr/lib/llvm-22/bin/lit -sv --xunit-xml-output "$results/lit.xml" build/test
}

stage_asan() { scripts/build.sh --preset asan unittests fuzzers braid-run && run_ctest build-asan build-asan; }

# The executor and the transports with threads held up at random (test/unit/Runtime/RandomSchedules.cpp).
stage_tsan() {
  scripts/build.sh --preset tsan unittests || return 1
  local status=0 seeds others=(-LE schedules) seed
  # Another one with every commit.
  seeds=($(($(git rev-list --count HEAD) % 8 + 1)))
  if [[ -n $long ]]; then
    seeds=(1 2 3 4 5 6 7 8)
    others=()
    export BRAID_EVERY_MOMENT=1
  fi
  run_ctest build-tsan build-tsan "${others[@]}" || status=1
  for seed in "${seeds[@]}"; do
    echo "random schedules, BRAID_SCHEDULE_SEED=$seed"
    BRAID_SCHEDULE_SEED=$seed run_ctest "build-tsan-schedule-$seed" build-tsan -L schedules || status=1
  done
  return $status
}

stage_fuzz() { test/fuzz/run.sh --minutes 0.2 --jobs "$(nproc)"; }

stage_integration() {
  # PyTorch's own tests of a backend need a package that no part of Braid does; without it they say so.
  if [[ -n $long ]]; then
    build/venv/bin/python -m pip install -q -r test/Integration/requirements-pytorch-suite.txt || true
  fi
  # Files side by side, as most of what they start has one thread. What --long adds measures speed, so it runs alone.
  local args=(-n "$(nproc)" --dist loadfile)
  [[ -z $long ]] || args=(--long)
  "$BRAID_VENV_PYTHON" -m pytest -q -ra -p no:cacheprovider --junit-xml "$results/integration.xml" "${args[@]}" test/Integration
}

outcomes=()
timing=()
all_start=$SECONDS
for stage in "${stages[@]}"; do
  [[ " ${chosen[*]} " == *" $stage "* ]] || continue
  echo "==== $stage"
  start=$SECONDS
  if "stage_$stage"; then outcome=ok; else outcome=FAILED; fi
  outcomes+=("$stage=$outcome")
  timing+=("$(printf '  %-12s %-7s %5d s' "$stage" "$outcome" $((SECONDS - start)))")
  # Without packages or without a build there is nothing to test.
  if [[ $outcome == FAILED && ($stage == setup || $stage == build) ]]; then break; fi
done

echo "==== summary"
printf '%s\n' "${timing[@]}"
printf '  %-12s %-7s %5d s\n' total "" $((SECONDS - all_start))
python3 test/summary.py "$results" "${outcomes[@]}"
