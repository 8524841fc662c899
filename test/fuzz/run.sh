#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the fuzzers and runs each for a while.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Every program that a CMakeLists.txt adds as a fuzzer.
targets_of() { sed -nE 's/^braid_add(_mlir)?_fuzzer\((\w+) .*/\2/p' "$1"; }
mapfile -t runtime < <(targets_of test/fuzz/CMakeLists.txt)
mapfile -t compiler < <(targets_of test/fuzz/Compiler/CMakeLists.txt)

usage() {
  cat <<END
usage: test/fuzz/run.sh [--minutes M] [--target NAME]... [--all] [--seed N] [--jobs N] [--help]

Builds the fuzzers and runs each for M minutes (default 1; 60 is the long form), N at a time. Inputs that reach
something new are kept in build-asan/fuzz/corpus and are where the next run begins. An input that ends a fuzzer is kept in
build-asan/fuzz/findings; the command that repeats it is shown, and the exit status is 1. Once mended, it belongs into
test/fuzz/inputs/NAME, which ordinary test runs go through.

  --minutes M    for each target; may be a fraction
  --target NAME  only this one (may be repeated). Of the runtime: ${runtime[*]}.
                 Of the compiler, which is then built once more (preset fuzz-compiler): ${compiler[*]}
  --all          those of the compiler too; otherwise only the runtime's
  --seed N       of libFuzzer's choices (default 1); it is shown
  --jobs N       how many fuzzers run at once (default 1); more than there are processors makes each of them slower
END
}

minutes=1
seed=1
jobs=1
chosen=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --minutes)
      [[ ${2:-} =~ ^[0-9]+(\.[0-9]+)?$ ]] || { echo "fuzz: --minutes expects a number" >&2; exit 1; }
      minutes=$2; shift 2 ;;
    --seed)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: --seed expects a number above 0" >&2; exit 1; }
      seed=$2; shift 2 ;;
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: --jobs expects a number above 0" >&2; exit 1; }
      jobs=$2; shift 2 ;;
    --target)
      [[ $# -gt 1 && " ${runtime[*]} ${compiler[*]} " == *" $2 "* ]] ||
        { echo "fuzz: --target expects one of: ${runtime[*]} ${compiler[*]}" >&2; exit 1; }
      chosen+=("$2"); shift 2 ;;
    --all) chosen=("${runtime[@]}" "${compiler[@]}"); shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "fuzz: unknown argument '$1' (see --help)" >&2; exit 1 ;;
  esac
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${runtime[@]}")
seconds=$(awk "BEGIN { s = int($minutes * 60); print (s > 0 ? s : 1) }")

is_compiler() { [[ " ${compiler[*]} " == *" $1 "* ]]; }
of_runtime=() of_compiler=()
for target in "${chosen[@]}"; do
  if is_compiler "$target"; then of_compiler+=("BraidFuzz$target"); else of_runtime+=("BraidFuzz$target"); fi
done
scripts/build.sh --preset asan BraidFuzzSeeds "${of_runtime[@]}" || exit 1
[[ ${#of_compiler[@]} -eq 0 ]] || scripts/build.sh --preset fuzz-compiler "${of_compiler[@]}" || exit 1

dir=build-asan/fuzz
mkdir -p "$dir"
rm -rf "$dir/seeds"
build-asan/bin/BraidFuzzSeeds "$dir/seeds" test || { echo "fuzz: error: the seeds could not be made" >&2; exit 1; }
mkdir -p "$dir/findings" "$dir/logs"
# allow_user_poisoning=0: libMLIR's allocators are not instrumented, so their memory would look
# poisoned.
export ASAN_OPTIONS=detect_leaks=1:allow_user_poisoning=0
export UBSAN_OPTIONS=print_stacktrace=1

# Fuzzes one target and writes its exit status and number of executions to the log folder.
fuzz() {
  local target=$1 program=build-asan/bin/BraidFuzz$1 corpus=$dir/corpus/$1 log=$dir/logs/$1.log
  ! is_compiler "$target" || program=build-fuzz-compiler/bin/BraidFuzz$target
  mkdir -p "$corpus"
  local folders=("$corpus" "$dir/seeds/$target")
  [[ ! -d test/fuzz/inputs/$target ]] || folders+=("test/fuzz/inputs/$target")
  local options=(-max_total_time="$seconds" -seed="$seed" -timeout=30 -rss_limit_mb=2560 -max_len=65536 -len_control=0
    -print_final_stats=1 -artifact_prefix="$dir/findings/$target-")
  [[ ! -f test/fuzz/$target.dict ]] || options+=(-dict="test/fuzz/$target.dict")
  echo "fuzz: $target for $seconds s, seed $seed (log: $log)"
  touch "$dir/logs/$target.started"
  "$program" "${options[@]}" "${folders[@]}" >"$log" 2>&1 &
  local pid=$! status=0 used
  trap 'kill "$pid"' TERM
  wait "$pid" || status=$?
  times >"$dir/logs/$target.times"
  used=$(sed -n '2s/ .*//p' "$dir/logs/$target.times")
  local executions rate
  executions=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)/\1/p' "$log")
  rate=$(sed -nE 's/^stat::average_exec_per_sec: *([0-9]+)/\1/p' "$log")
  echo "$status ${executions:-0}" >"$dir/logs/$target.outcome"
  echo "fuzz: $target: ${executions:-?} executions, ${rate:-?} a second, $used of a processor," \
    "$(find "$corpus" -type f | wc -l) inputs kept"
  [[ $status -ne 0 ]] || return 0
  grep -m1 -E "^(==[0-9]+== ?ERROR|property violated|.*: runtime error:)" "$log" || tail -n 5 "$log"
  local inputs input
  mapfile -t inputs < <(find "$dir/findings" -name "$target-*" -newer "$dir/logs/$target.started")
  for input in "${inputs[@]}"; do
    echo "fuzz: $target ended (exit status $status); again: $program $input"
  done
  [[ ${#inputs[@]} -gt 0 ]] || echo "fuzz: $target ended (exit status $status) without an input; see $log"
}

rm -f "$dir"/logs/*.outcome
trap 'kill $(jobs -p); exit 130' INT TERM
for target in "${chosen[@]}"; do
  while [[ $(jobs -rp | wc -l) -ge $jobs ]]; do wait -n; done
  fuzz "$target" &
done
wait

found=()
total=0
for target in "${chosen[@]}"; do
  read -r status executions <"$dir/logs/$target.outcome" || status=1 executions=0
  total=$((total + executions))
  [[ $status -eq 0 ]] || found+=("$target")
done
if [[ ${#found[@]} -gt 0 ]]; then
  echo "fuzz: FAILED: ${#found[@]} of ${#chosen[@]} targets ended early (${found[*]}); $total executions"
  exit 1
fi
echo "fuzz: ${#chosen[@]} targets clean, $total executions"
