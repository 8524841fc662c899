#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs missing Debian packages and creates the Python virtual environment build/venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

usage() {
  cat <<'END'
usage: scripts/setup.sh [--check] [--no-python] [--help]

Installs the Debian packages of scripts/packages.txt that are missing (with apt-get, as root or through sudo), those of
scripts/packages-optional.txt as far as they can be had, and makes the virtual environment build/venv with the Python
packages of scripts/requirements*.txt. Nothing goes into the system's Python. Does nothing, in under a second, when
everything is there.

  --check      install nothing; say what is missing and exit with 1 if anything is
  --no-python  leave the virtual environment alone

  BRAID_PYTHON=PATH           the interpreter to make the environment with (3.11 or newer)
  BRAID_TORCH_INDEX=URL       a further package index to look for PyTorch's CPU build in
END
}

check_only=
with_python=1
for arg in "$@"; do
  case $arg in
    --check) check_only=1 ;;
    --no-python) with_python= ;;
    -h | --help) usage; exit 0 ;;
    *) echo "setup: unknown argument '$arg' (see --help)" >&2; exit 1 ;;
  esac
done

say() { echo "setup: $*"; }
fail() {
  echo "setup: error: $1" >&2
  shift
  for line in "$@"; do echo "setup:   $line" >&2; done
  exit 1
}

# --- Debian packages ---------------------------------------------------------------------------------------------

wanted_packages() { sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$1"; }

# Of the packages named in its input. One query for all: dpkg-query prints a line for each one that it knows and an error
# for the others.
missing_packages() {
  local wanted installed
  wanted=$(sort -u)
  installed=$(xargs dpkg-query -W -f='${db:Status-Status} ${Package}\n' <<<"$wanted" 2>/dev/null |
    sed -n 's/^installed //p' || true)
  comm -23 <(echo "$wanted") <(sort -u <<<"$installed")
}

install_packages() {
  local missing=("$@") as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      fail "these packages are missing, and installing them needs root (there is no sudo here):" "${missing[*]}" \
        "run as root: apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    elif sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    elif [[ -t 0 ]]; then
      as_root=(sudo)
    else
      fail "these packages are missing, and sudo asks for a password that nobody is here to type:" "${missing[*]}" \
        "run: sudo apt-get update && sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
  fi
  say "installing ${#missing[@]} packages: ${missing[*]}"
  # This fails if any configured source does not answer, also one that we do not need. What counts is whether the
  # packages are available afterwards.
  "${as_root[@]}" apt-get -q update </dev/null || true
  local without
  mapfile -t without < <(comm -23 <(printf '%s\n' "${missing[@]}" | sort -u) \
    <(apt-cache policy "${missing[@]}" 2>/dev/null | awk '/^[^ ]/ { name = $1; sub(/:$/, "", name) } /^  Candidate: [^(]/ { print name }' | sort -u))
  if [[ ${#without[@]} -gt 0 ]]; then
    fail "no package source of this machine has:" "${without[*]}" \
      "(LLVM 22 is in Debian 12's bookworm-security; see /etc/apt/sources.list and whether it can be reached)"
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" </dev/null ||
    fail "apt-get could not install:" "$(printf '%s\n' "${missing[@]}" | missing_packages | xargs)"
  local left
  left=$(printf '%s\n' "${missing[@]}" | missing_packages | xargs)
  [[ -z $left ]] || fail "still missing after apt-get install:" "$left"
}

setup_packages() {
  command -v dpkg-query >/dev/null ||
    fail "this is not a Debian system, so its packages cannot be checked" \
      "install by hand what scripts/packages.txt lists, then build with: scripts/build.sh"
  local missing
  mapfile -t missing < <(wanted_packages scripts/packages.txt | missing_packages)
  [[ ${#missing[@]} -eq 0 ]] && return 0
  [[ -n $check_only ]] && fail "missing packages:" "${missing[*]}"
  install_packages "${missing[@]}"
}

# Packages that tests can do without: one attempt for each that is missing, and no error.
setup_optional_packages() {
  local missing package stamp=build/optional-packages
  mapfile -t missing < <(wanted_packages scripts/packages-optional.txt | missing_packages)
  if [[ ${#missing[@]} -eq 0 || -n $check_only || $(cat "$stamp" 2>/dev/null) == "${missing[*]}" ]]; then return 0; fi
  if [[ $(id -u) -eq 0 ]] || sudo -n true 2>/dev/null; then
    for package in "${missing[@]}"; do (install_packages "$package") || true; done
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | missing_packages)
  fi
  mkdir -p build
  echo "${missing[*]}" >"$stamp"
  [[ ${#missing[@]} -eq 0 ]] || say "without these packages some tests are skipped: ${missing[*]}"
}

# --- Python ------------------------------------------------------------------------------------------------------

venv=$root/build/venv

# PyTorch's CPU build exists for particular versions of Python, so 3.11, which is Debian 12's, is tried first.
find_python() {
  local candidate
  for candidate in ${BRAID_PYTHON:-} python3.11 /usr/bin/python3 python3; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      "$candidate" -c 'import sys; print(sys.executable)'
      return 0
    fi
    if [[ -n ${BRAID_PYTHON:-} ]]; then break; fi
  done
  return 1
}

# -qq prints errors only.
pip() { "$venv/bin/python" -m pip --disable-pip-version-check --no-input --retries 2 --timeout 30 -qq "$@"; }

# Resolves without installing; the report lists the packages. The pinned "+cpu" already excludes the CUDA build; this
# guards against CUDA packages that another requirement may bring in.
torch_can_be_had() {
  local report=$venv/torch-report.json log=$venv/torch-resolve.log
  local index=()
  [[ -z ${BRAID_TORCH_INDEX:-} ]] || index=(--extra-index-url "$BRAID_TORCH_INDEX")
  if ! pip install --dry-run --only-binary :all: --report "$report" "${index[@]}" -r scripts/requirements.txt \
    -r scripts/requirements-torch.txt >"$log" 2>&1; then
    torch_why=$(grep -m1 '^ERROR' "$log" | sed 's, (from versions.*,,' || echo "pip could not resolve it; see $log")
    return 1
  fi
  torch_why=$("$venv/bin/python" - "$report" <<'END'
import json, sys
names = [p["metadata"]["name"].lower() for p in json.load(open(sys.argv[1]))["install"]]
print(" ".join(n for n in names if n.startswith(("nvidia", "cuda")) or n == "triton"))
END
  )
  [[ -z $torch_why ]] || { torch_why="it would bring in $torch_why"; return 1; }
  pip install --only-binary :all: "${index[@]}" -r scripts/requirements.txt -r scripts/requirements-torch.txt
}

setup_python() {
  local python key stamp=$venv/braid-stamp
  python=$(find_python) ||
    fail "no Python 3.11 or newer with the venv module was found" "Debian's packages: python3 python3-venv"
  key=$({ cat scripts/requirements*.txt; echo "$python ${BRAID_TORCH_INDEX:-}"; } | sha256sum | cut -d' ' -f1)
  [[ -f $stamp && $(head -n1 "$stamp") == "$key" ]] && return 0
  [[ -n $check_only ]] && fail "the virtual environment build/venv is missing or out of date; run scripts/setup.sh"
  say "making the virtual environment build/venv with $python"
  rm -rf "$venv"
  mkdir -p "$root/build"
  "$python" -m venv "$venv" || fail "'$python -m venv' failed"
  local hint="a package index must be reachable; see above for what pip says"
  pip install --only-binary :all: -r scripts/requirements.txt ||
    fail "these Python packages could not be installed:" "$(grep -v '^#' scripts/requirements.txt | xargs)" "$hint"
  pip install --only-binary :all: --no-deps -r scripts/requirements-nodeps.txt ||
    fail "these Python packages could not be installed:" "$(grep -v '^#' scripts/requirements-nodeps.txt | xargs)" "$hint"
  local torch_why=
  if torch_can_be_had; then
    say "PyTorch: $("$venv/bin/python" -c 'import torch; print(torch.__version__)')"
    printf '%s\ntorch\n' "$key" >"$stamp"
  else
    say "PyTorch's CPU build cannot be had here: $torch_why"
    say "comparisons use the goldens kept in test/Integration/golden instead (BRAID_TORCH_INDEX=URL names a further index)"
    printf '%s\nno torch\n' "$key" >"$stamp"
  fi
}

setup_packages
setup_optional_packages
[[ -z $with_python ]] || setup_python
