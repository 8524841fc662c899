#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long ranks on test hosts take to start, by `braid run --hosts`: until each has met all others, and in all.

    build/venv/bin/python test/benchmark/start.py --hosts 4 --ranks 4,16,64
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN, WORK = ROOT / "build" / "bin", ROOT / "build" / "benchmark"
sys.path.insert(0, str(ROOT / "test" / "lab"))
from lab import UNAVAILABLE, Lab, LabUnavailable  # noqa: E402


def fail(message):
    sys.exit(f"start: error: {message}")


def bundle_for(ranks):
    """A ring of few commands, which takes next to no time."""
    module, bundle = WORK / f"ring-{ranks}.mlir", WORK / f"ring-{ranks}.braid"
    with open(module, "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, ROOT / "examples/programs/ring.py", str(ranks)], stdout=file, check=True)
    subprocess.run([BIN / "braid", "compile", module, "-o", bundle], check=True)
    return bundle


def start(lab, bundle, ranks):
    """Seconds from the launcher's begin to its end, and the report."""
    places = ",".join(f"{address}:{ranks // lab.shape.hosts}" for address in lab.addresses)
    report = WORK / "start.json"
    command = [BIN / "braid-run", bundle, "--hosts", places, "--agent", lab.agent, "--random-weights", "1", "--random-inputs", "1",
               "--time-limit", "120", "--report", report]
    begin = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    if done.returncode:
        fail(f"{ranks} ranks ended with status {done.returncode}: {done.stderr.strip()}")
    return time.monotonic() - begin, json.loads(report.read_text())


def main():
    parser = argparse.ArgumentParser(prog="start.py", description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=4, help="(default: 4)")
    parser.add_argument("--ranks", default="4,16,64", help="on all hosts together (default: 4,16,64)")
    parser.add_argument("--rounds", type=int, default=3, help="of which the median is taken (default: 3)")
    args = parser.parse_args()
    counts = [int(text) if text.isdigit() else 0 for text in args.ranks.split(",")]
    if args.hosts < 2 or args.rounds < 1 or any(count < args.hosts or count % args.hosts for count in counts):
        fail(f"expects at least 2 hosts, 1 round, and numbers of ranks that are multiples of the hosts', got --hosts {args.hosts} --rounds "
             f"{args.rounds} --ranks {args.ranks}")
    WORK.mkdir(parents=True, exist_ok=True)
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; median of {args.rounds} starts\n\n"
          "| ranks | until all have met | processor time of all, of one | launch to end | memory of a process |\n"
          "| ---: | ---: | ---: | ---: | ---: |", flush=True)
    try:
        with Lab(hosts=args.hosts, rate="1gbit") as lab:
            for ranks in counts:
                bundle = bundle_for(ranks)
                rounds = [start(lab, bundle, ranks) for _ in range(args.rounds)]

                def median(figure):
                    return statistics.median(figure(seconds, report["processes"]) for seconds, report in rounds)
                met = median(lambda _, processes: max(process["start_s"] for process in processes))
                processor = median(lambda _, processes: sum(process["start_processor_s"] for process in processes))
                memory = median(lambda _, processes: statistics.mean(process["process_peak_memory_bytes"] for process in processes))
                print(f"| {ranks} | {met:.2f} s | {processor:.2f} s, {processor / ranks * 1e3:.0f} ms | {median(lambda s, _: s):.2f} s | "
                      f"{memory / 2**20:.0f} MiB |", flush=True)
    except LabUnavailable as error:
        print(f"start: skipped: no test hosts here: {error}", file=sys.stderr)
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
