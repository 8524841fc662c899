#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One layer of LLaMA 3 8B's shapes under several plans. Started by run.sh, whose --help lists the options."""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BIN = ROOT / "build" / "bin"
WORK = ROOT / "build" / "examples" / "llama-layer"
LEVELS = ("nn", "comm", "kernels", "scheduled", "rt", "llvm")
# The name and the options of each plan.
PLANS = (
    ("tensor parallel", ["--strategy", "tp"]),
    ("the same, rewritten by passes", ["--strategy", "tp", "--passes", "braid-split-all-reduce,braid-sink-all-gathers"]),
    ("sequence parallel", ["--strategy", "tp-sp"]),
)


def tool(name, *args):
    command = [str(BIN / name), *map(str, args)]
    print("$ " + " ".join([name, *command[1:]]).replace(str(ROOT) + os.sep, ""), flush=True)
    done = subprocess.run(command)
    if done.returncode:
        sys.exit(f"llama-layer: error: '{name}' ended with status {done.returncode}; see above")


def collectives(report):
    counts = {}
    for entry in report["collectives"]:
        counts[entry["kind"]] = counts.get(entry["kind"], 0) + 1
    return " + ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"


def main():
    parser = argparse.ArgumentParser()
    for option, default in (("--ranks", 2), ("--tokens", 64), ("--repeat", 5)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--no-check", action="store_true")
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    module, mesh = WORK / "layer.mlir", f"tp={args.ranks}"
    tool("braid", "import", HERE / "config.json", "--layers", 1, "--seq", args.tokens, "--result", "last_hidden_state", "-o", module)
    for level in LEVELS:
        tool("braid", "compile", module, "--mesh", mesh, f"--emit={level}", "-o", WORK / f"layer-{level}.mlir")

    np.save(WORK / "ids.npy", np.random.default_rng(0).integers(0, 256, (1, args.tokens)))
    np.save(WORK / "mask.npy", np.ones((1, args.tokens), np.int64))
    rows = []
    for number, (title, options) in enumerate(PLANS):
        print(f"\n{title}", flush=True)
        report, trace = WORK / f"report-{number}.json", WORK / f"trace-{number}.json"
        tool("braid", "run", module, "--mesh", mesh, *options, "--random-weights", 1, "--input", f"input_ids={WORK / 'ids.npy'}",
             "--input", f"attention_mask={WORK / 'mask.npy'}", "--warmup", 1, "--repeat", args.repeat, "--report", report,
             "--trace", trace, *([] if args.no_check else ["--check", "reference"]))
        rows.append((title, json.loads(report.read_text())))

    print(f"\n{'plan':<32}{'median':>10}{'sent per rank':>16}{'exposed':>11}{'hidden':>10}  collectives")
    for title, report in rows:
        print(f"{title:<32}{1e3 * report['median_run_s']:>7.1f} ms{report['bytes_sent_per_rank'] / 1e6:>13.2f} MB"
              f"{1e3 * report['exposed_comm_s']:>8.2f} ms{1e3 * report['hidden_comm_s']:>7.2f} ms  {collectives(report)}")
    print(f"\nThe levels are in {WORK.relative_to(ROOT)}/layer-LEVEL.mlir; trace-N.json there opens in https://ui.perfetto.dev.")


if __name__ == "__main__":
    main()
