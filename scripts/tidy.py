#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs clang-tidy-22 over sources named on standard input (or --all) and remembers which were clean.

A source is looked at again when its compile command, .clang-tidy, or the content of a file of ours that it includes
has changed; the files it includes are those that ninja recorded when it was built.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build")
CACHE = os.path.join(BUILD, "tidy-cache")


def recorded_headers():
    """object path (relative to build/) -> the files it was made from that are inside the project or its build tree."""
    text = subprocess.run(["ninja", "-C", BUILD, "-t", "deps"], capture_output=True, text=True).stdout
    deps, current = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            path = os.path.normpath(os.path.join(BUILD, line.strip()))
            if path.startswith(ROOT + os.sep) and not path.endswith(".pch"):
                deps[current].append(path)
        elif ": #deps" in line:
            current = line.split(": #deps")[0]
            deps[current] = []
    return deps


def digest_of(command, paths, memo={}):
    h = hashlib.sha256(command.encode())
    for path in sorted(paths):
        if path not in memo:
            try:
                with open(path, "rb") as f:
                    memo[path] = hashlib.sha256(f.read()).hexdigest()
            except OSError:
                memo[path] = "missing"
        h.update(f"{path} {memo[path]}\n".encode())
    return h.hexdigest()


# core and cplusplus are left out: their findings in LLVM's data structures are wrong too often. Padding is left out, since
# members are ordered for the reader and no structure is large.
ANALYZER = ("--checks=clang-analyzer-*,-clang-analyzer-core.*,-clang-analyzer-cplusplus.*,"
            "-clang-analyzer-optin.performance.Padding")


def tidy(source, options):
    run = subprocess.run(["clang-tidy-22", "--quiet", "-p", BUILD, *options, source], capture_output=True, text=True)
    return run.returncode, run.stdout + ("" if run.returncode == 0 else run.stderr)


def in_turn(paths, count, turn):
    """`count` of the paths; over successive turns every one of them."""
    paths = sorted(paths, key=lambda path: zlib.crc32(os.path.relpath(path, ROOT).encode()))
    first = turn * count % max(len(paths), 1)
    return (paths[first:] + paths[:first])[:count]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every source of the build, not those on standard input")
    parser.add_argument("--at-most", type=int, metavar="N", help="so many: named ones first, then others in turn")
    parser.add_argument("--turn", type=int, default=0, help="whose turn it is: the next N with every number")
    parser.add_argument("--analyzer", action="store_true", help="the path-sensitive analyzer's checks as well")
    args = parser.parse_args()
    options = [ANALYZER] if args.analyzer else []
    try:
        with open(os.path.join(BUILD, "compile_commands.json")) as f:
            database = json.load(f)
    except OSError:
        sys.exit("lint: error: build/compile_commands.json is missing; run scripts/build.sh first")
    entries = {}
    for entry in database:
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if path.startswith(ROOT + os.sep) and not path.startswith(BUILD + os.sep):
            entries.setdefault(path, entry)
    headers = recorded_headers()
    config = os.path.join(ROOT, ".clang-tidy")
    files_of = {}
    for path, entry in entries.items():
        output = re.search(r" -o (\S+)", entry["command"])
        files_of[path] = set(headers.get(output.group(1), ()) if output else ()) | {path, config}

    if args.all and args.at_most is None:
        chosen = sorted(entries)
    else:
        named = set() if args.all else {os.path.join(ROOT, line.strip()) for line in sys.stdin if line.strip()}
        chosen = {p for p in entries if p in named}
        # Findings in a header are the same in all sources that include it; one report is enough.
        for header in (n for n in named if n.endswith(".h")):
            including = sorted(p for p in entries if header in files_of[p])
            if including and not chosen.intersection(including):
                chosen.add(including[0])
        if args.at_most is not None:
            chosen = in_turn(chosen, args.at_most, args.turn) + in_turn(
                entries.keys() - chosen, max(args.at_most - len(chosen), 0), args.turn)
        chosen = sorted(chosen)

    os.makedirs(CACHE, exist_ok=True)
    todo = []
    for path in chosen:
        entry = entries[path]
        stamp = os.path.join(CACHE, digest_of(" ".join([entry["command"], *options]), files_of[path]))
        if not os.path.exists(stamp):
            todo.append((path, stamp))
    print(f"lint: clang-tidy over {len(todo)} sources ({len(chosen) - len(todo)} more were clean before and are unchanged)", flush=True)
    bad = []
    show = sys.stdout.isatty()
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = {pool.submit(tidy, path, options): (path, stamp) for path, stamp in todo}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            path, stamp = futures[future]
            code, text = future.result()
            if show:
                print(f"\r\033[Klint: [{done}/{len(todo)}] {os.path.relpath(path, ROOT)}", end="", flush=True)
            if code == 0:
                open(stamp, "w").close()
            else:
                bad.append(os.path.relpath(path, ROOT))
                print(("\n" if show else "") + text.strip(), flush=True)
    if show and todo:
        print()
    if bad:
        print("lint: clang-tidy found something in:")
        for path in sorted(bad):
            print("  " + path)
        return 1
    print("lint: clang-tidy found nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
