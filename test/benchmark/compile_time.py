#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the compile time of a model of many large layers, from its config.json alone. Started by run.sh."""
import argparse
import json
import resource
import statistics
import time

from models import BIN, WORK, checked, machine

# The shapes of LLaMA 3.1 405B.
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 16384, "intermediate_size": 53248,
    "num_hidden_layers": 126, "num_attention_heads": 128, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
}


def main():
    parser = argparse.ArgumentParser()
    for option, default in (("--batch", 1), ("--seq", 2048), ("--rounds", 5), ("--ranks", 8)):
        parser.add_argument(option, type=int, default=default)
    args = parser.parse_args()
    directory = WORK / "llama3-405b"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    module, bundle, report = (directory / name for name in ("model.mlir", "model.braid", "report.json"))
    imports, walls, phases = [], [], {}
    for _ in range(args.rounds):
        begin = time.perf_counter()
        checked([BIN / "braid", "import", directory / "config.json", "--batch", args.batch, "--seq", args.seq, "-o", module], "braid import")
        imports.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        checked([BIN / "braid", "compile", module, "--mesh", f"tp={args.ranks}", "-o", bundle, "--report", report], "braid compile")
        walls.append(time.perf_counter() - begin)
        for name, seconds in json.loads(report.read_text())["phases"].items():
            phases.setdefault(name, []).append(seconds)
    text = checked([BIN / "braid", "compile", module, "--mesh", f"tp={args.ranks}", "--emit=rt"], "braid compile --emit=rt")
    procedures = sum(line.lstrip().startswith("rt.procedure ") for line in text.splitlines())
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"\nLLaMA 3.1 405B's shapes, {CONFIG['num_hidden_layers']} layers, config.json alone, batch {args.batch} x {args.seq} "
          f"tokens, tp={args.ranks}\nmachine  {machine()}\ncommand  test/benchmark/run.sh --model llama3-405b --batch {args.batch} "
          f"--seq {args.seq} --rounds {args.rounds}\n")
    print(f"{'':<24}{'median':>10}{'fastest':>10}{'slowest':>10}")
    for name, times in [("braid import", imports), ("braid compile", walls), *(("  " + n.removesuffix("_s"), t) for n, t in phases.items())]:
        print(f"{name:<24}" + "".join(f"{1e3 * f(times):>7.1f} ms" for f in (statistics.median, min, max)))
    print(f"\n{procedures} procedures, {bundle.stat().st_size / 1e6:.2f} MB of bundle, at most {peak / 1024:.0f} MB of memory")


if __name__ == "__main__":
    main()
