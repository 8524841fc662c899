#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted beside measured times: of the collectives of this host by kind, size, transport and number of ranks, and of the
layers of models at shapes that no calibration measures.

Calibrates first, unless a machine file is given. A collective's time is the least, over several loads of a program, of the
median over its repetitions, behind a copy that writes its input; a layer's that of the fastest run. Errors are predicted /
measured - 1. Needs build/bin/braid and build/bin/BraidCollectiveTimes (ninja -C build braid BraidCollectiveTimes).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "bin"
# Configurations as published by the models' authors, with fewer layers, which are all alike. (batch, sequence) are none of
# those that docs/costs.md reports.
MODELS = {
    "minilm": ({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "num_hidden_layers": 6,
                "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512,
                "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}, ((3, 96), (5, 200))),
    "smollm2": ({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576, "num_hidden_layers": 6,
                 "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536, "vocab_size": 49152,
                 "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 100000, "hidden_act": "silu",
                 "tie_word_embeddings": True}, ((1, 320), (2, 160))),
    "llama": ({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 2,
               "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 1024,
               "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000, "hidden_act": "silu",
               "tie_word_embeddings": False}, ((1, 48), (1, 160))),
}


def checked(command):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"predictions: error: '{' '.join(str(c) for c in command)}' ended with status {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def summary(errors):
    sizes = [abs(e) for e in errors]
    return (f"median {statistics.median(sizes) * 100:.1f} %, largest {max(sizes) * 100:.0f} %, "
            f"{sum(s <= 0.15 for s in sizes)} of {len(sizes)} within 15 %")


def text_of(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def collectives(machine, args):
    for transport in args.transports:
        for ranks in args.ranks:
            rows = {}
            output = checked([BIN / "BraidCollectiveTimes", machine, transport, ranks, args.loads, args.between, "all",
                              *args.bytes])
            for line in output.splitlines():
                row = json.loads(line)
                rows.setdefault(row["kind"], {})[row["bytes"]] = (row["predicted_s"], row["least_median_s"])
            print(f"\n{transport}, {ranks} ranks: measured us (error), load average {os.getloadavg()[0]:.1f}\n")
            print("| collective | " + " | ".join(text_of(size) for size in args.bytes) + " |")
            print("| --- |" + " ---: |" * len(args.bytes))
            errors = []
            for kind, sizes in rows.items():
                cells = []
                for size in args.bytes:
                    predicted, measured = sizes[size]
                    errors.append(predicted / measured - 1)
                    cells.append(f"{measured * 1e6:.4g} ({errors[-1] * 100:+.0f} %)")
                print(f"| {kind} | " + " | ".join(cells) + " |")
            print(f"\nerrors: {summary(errors)}", flush=True)


def layers(machine, args, folder):
    print("\nLayers, of the least times, two ranks of one thread\n")
    print("| model | batch x tokens | transport | layers, median (largest) | collectives, median | load average |")
    print("| --- | ---: | --- | ---: | ---: | ---: |")
    for name in args.models:
        config, shapes = MODELS[name]
        path = folder / f"{name}.json"
        path.write_text(json.dumps(config))
        for batch, tokens in shapes:
            checked([BIN / "braid", "import", path, "--batch", batch, "--seq", tokens, "-o", folder / "model.mlir"])
            checked([BIN / "braid", "compile", folder / "model.mlir", "--mesh", "tp=2", "--isa", "host",
                     "-o", folder / "model.braid"])
            for transport in args.transports:
                checked([BIN / "braid", "run", folder / "model.braid", "--random-weights", 1, "--random-inputs", 1,
                         "--warmup", 2, "--repeat", 15, "--pin", "--transport", transport, "--machine", machine,
                         "--report", folder / "report.json"])
                prediction = json.loads((folder / "report.json").read_text())["prediction"]
                if "missing" in prediction:
                    sys.exit(f"predictions: error: {name}: {prediction['missing']}")
                calls = [c["error_of_least"] for c in prediction["calls"]]
                sums = [c["error_of_least"] for c in prediction["collectives"]]
                largest = max(calls, key=abs)
                print(f"| {name} | {batch} x {tokens} | {transport} | {statistics.median(calls) * 100:+.1f} % "
                      f"({largest * 100:+.1f} %) | {statistics.median(sums) * 100:+.1f} % | {os.getloadavg()[0]:.1f} |",
                      flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="a file of `braid calibrate` (default: calibrates now)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--transports", nargs="+", default=["threads", "shm"], choices=["threads", "shm"])
    parser.add_argument("--loads", type=int, default=6, help="loads of each program, in turn (default: 6)")
    parser.add_argument("--between", type=int, default=0, help="bytes that a rank uses between two collectives (default: 0)")
    parser.add_argument("--bytes", type=int, nargs="*", default=[4096 * 4**i for i in range(8)],
                        help="of the larger of a rank's input and output; none: no collectives (default: 4 KiB to 64 MiB)")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        machine = args.machine
        if not machine:
            machine = folder / "machine.json"
            print(checked([BIN / "braid", "calibrate", "--max-load", 1000, "-o", machine]), end="", flush=True)
        if args.bytes:
            collectives(machine, args)
        if args.models:
            layers(machine, args, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
