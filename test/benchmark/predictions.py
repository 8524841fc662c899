#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted beside measured times: of the collectives of this host by kind, size, transport and number of ranks, and of the
layers of models at shapes that no calibration measures; with --hosts, the same over test hosts.

Calibrates first, unless a machine file is given; with --calibrations, several times, before a round each, and predicts by the
medians: where other programs have a part in caches and memory, as on a virtual machine, one minute is not like another. A collective's time is the mean over the faster half of several loads of a
program, of each the median over its repetitions, behind a copy that writes its input. A load is repeated, for at most a minute of a transport's
loads together, when cores were not as near to each other as when they were calibrated: the host of a virtual machine moves them. Over test hosts, whose clocks differ, it is
the median time of runs of up to 64 of them, over their number. A layer's time is that of the fastest run, and that of a collective
in a model, too; over hosts it is the median of runs whose ranks came within the time that one spins. Errors are
predicted / measured - 1, medians over the rounds. Before and after each model a program of products of one size tells by how much
cores are faster or slower than when they were calibrated: the error of its products, the mean of both times. A model is run again, up to six times, when cores were not as near to each other as then. How much the times of collectives differ between rounds is told: no prediction
can be better than a measurement that is repeated. Needs build/bin/braid, build/bin/BraidCollectiveTimes and build/bin/BraidCoreDistance
(ninja -C build braid BraidCollectiveTimes BraidCoreDistance).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "lab"))
import core_distance  # noqa: E402
import peers  # noqa: E402
from lab import Lab  # noqa: E402
from table import OPERATIONS  # noqa: E402

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
                 "tie_word_embeddings": True}, ((1, 320), (2, 160), (1, 1))),
    "llama": ({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 2,
               "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 1024,
               "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000, "hidden_act": "silu",
               "tie_word_embeddings": False}, ((1, 48), (1, 160), (1, 1))),
}


# What cores do at the time: products of one size, which the ranks share. Their weights, 192 MiB, come from memory as a calibration's do.
ROWS, COLUMNS, PRODUCTS = 200, 1024, 48


def text_of_products(ranks):
    lines = [f"comm.mesh @mesh <tp = {ranks}>", "func.func @main("]
    lines += [f"    %w{i}: tensor<{COLUMNS}x{COLUMNS}xf32> {{nn.name = \"w{i}\"}}," for i in range(PRODUCTS)]
    lines += [f"    %x0: tensor<{ROWS}x{COLUMNS}xf32> {{nn.name = \"x\"}}) -> (tensor<{ROWS}x{COLUMNS}xf32> {{nn.name = \"y\"}})",
              "    attributes {nn.entry} {"]
    lines += [f"  %x{i + 1} = nn.linear %x{i}, %w{i} : tensor<{ROWS}x{COLUMNS}xf32>, tensor<{COLUMNS}x{COLUMNS}xf32> "
              f"-> tensor<{ROWS}x{COLUMNS}xf32>" for i in range(PRODUCTS)]
    return "\n".join(lines + [f"  return %x{PRODUCTS} : tensor<{ROWS}x{COLUMNS}xf32>", "}", ""])


def checked(command):
    try:
        done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        name = pathlib.Path(command[0]).name
        sys.exit(f"predictions: error: there is no {command[0]}; make it: ninja -C {BIN.parent} {name}")
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


def print_errors(rows, sizes):
    """rows: {kind: {size: (predicted, measured)}}"""
    print("| collective | " + " | ".join(text_of(size) for size in sizes) + " |")
    print("| --- |" + " ---: |" * len(sizes))
    errors = []
    for kind, of_kind in rows.items():
        cells = []
        for size in sizes:
            predicted, measured = of_kind[size]
            errors.append(predicted / measured - 1)
            cells.append(f"{measured * 1e6:.4g} ({errors[-1] * 100:+.0f} %)")
        print(f"| {kind} | " + " | ".join(cells) + " |")
    print(f"\nerrors: {summary(errors)}", flush=True)


def await_cores(machine, ranks, seconds):
    """Until the cores of so many ranks are as near to each other as when they were calibrated, at most so long. Whether they are."""
    usual = [one.get("core_to_core_seconds") for one in json.loads(pathlib.Path(machine).read_text()).get("transports", [])
             if one["ranks"] == ranks]
    if not any(usual):
        return True
    return core_distance.distance(ranks, next(filter(None, usual)), seconds)["is_usual"]


def layers(args, folder, ranks, places, of_collectives, machine):
    """places: name of a place -> a function of a program's path and the report's that runs it there. of_collectives: the field of the
    report with the error of a collective."""
    print(f"\nLayers, medians over {args.rounds} rounds of the least time of 15 runs, {ranks} ranks of one thread\n")
    print("| model | batch x tokens | where | layers, median (largest) | products of one size, meanwhile | layers beside products | "
          "collectives, median | load average |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    (folder / "products.mlir").write_text(text_of_products(ranks))
    products = folder / "products.braid"
    checked([BIN / "braid", "compile", folder / "products.mlir", "--isa", "host", "-o", products])

    def prediction_of(place, bundle, *words):
        places[place]([bundle, "--random-inputs", 1, "--warmup", 2, "--report", folder / "report.json", *words])
        prediction = json.loads((folder / "report.json").read_text())["prediction"]
        if "missing" in prediction:
            sys.exit(f"predictions: error: {bundle.stem}: {prediction['missing']}")
        return prediction

    def error_of_products(place):
        of_run = prediction_of(place, products, "--random-weights", 1, "--repeat", 8)["operations"]
        return statistics.mean(one["error_of_least"] for one in of_run)

    cases = []
    for name in args.models:
        config, shapes = MODELS[name]
        path = folder / f"{name}.json"
        path.write_text(json.dumps(config))
        for batch, tokens in shapes:
            checked([BIN / "braid", "import", path, "--batch", batch, "--seq", tokens, "-o", folder / "model.mlir"])
            bundle = folder / f"{name}-{batch}-{tokens}.braid"
            checked([BIN / "braid", "compile", folder / "model.mlir", "--mesh", f"tp={ranks}", "--isa", "host", "-o", bundle])
            cases += [(name, f"{batch} x {tokens}", place, bundle) for place in places]
    found, elsewhere = {}, 0
    for _ in range(args.rounds):
        for case in cases:
            for _ in range(6):
                await_cores(machine, ranks, 10)
                before = error_of_products(case[2])
                prediction = prediction_of(case[2], case[3], "--random-weights", 1, "--repeat", 15)
                of_products = (before + error_of_products(case[2])) / 2
                if await_cores(machine, ranks, 0):
                    break
            else:
                elsewhere += 1
            found.setdefault((case, "products", 0), []).append(of_products)
            # Where all takes longer than when the host was calibrated, the layers are told beside that.
            for i, one in enumerate(prediction["calls"]):
                if one["error_of_least"] is not None:
                    found.setdefault((case, "beside", i), []).append((1 + one["error_of_least"]) / (1 + of_products) - 1)
            for kind, field in ("calls", "error_of_least"), ("collectives", of_collectives):
                for i, one in enumerate(prediction[kind]):
                    if one[field] is not None:
                        found.setdefault((case, kind, i), []).append(one[field])
    for case in cases:
        calls, beside, sums = ([statistics.median(errors) for key, errors in found.items() if key[:2] == (case, kind)]
                               for kind in ("calls", "beside", "collectives"))
        of_products = statistics.median(found[case, "products", 0])
        of_sums = f"{statistics.median(sums) * 100:+.1f} %" if sums else "ranks slept"
        print(f"| {case[0]} | {case[1]} | {case[2]} | {statistics.median(calls) * 100:+.1f} % "
              f"({max(calls, key=abs) * 100:+.1f} %) | {of_products * 100:+.1f} % | "
              f"{statistics.median(beside) * 100:+.1f} % | {of_sums} | {os.getloadavg()[0]:.1f} |", flush=True)
    if elsewhere:
        print(f"\n{elsewhere} of {len(cases) * args.rounds} runs were measured while cores were not as near to each other as when they were "
              "calibrated")


class Calibrations:
    """Of this run; what predicts is their median."""

    def __init__(self, folder, given):
        self.folder, self.given, self.files = folder, given, []

    def calibrate(self):
        self.files.append(self.folder / f"machine-{len(self.files)}.json")
        print(checked([BIN / "braid", "calibrate", "--max-load", 1000, "-o", self.files[-1]]), end="", flush=True)

    def machine(self):
        if self.given:
            return self.given
        if len(self.files) == 1:
            return self.files[0]
        whole = self.folder / "machine.json"
        print(checked([BIN / "braid", "calibrate", "--median-of", *self.files, "-o", whole]), end="", flush=True)
        return whole


def on_this_host(calibrations, args, folder):
    cases = [(transport, ranks) for transport in args.transports for ranks in args.ranks] if args.bytes else []
    predicted, measured, elsewhere = {}, {}, {}

    def times(machine, loads):
        for transport, ranks in cases:
            output = checked([BIN / "BraidCollectiveTimes", machine, transport, ranks, loads, args.between, "all", *args.bytes])
            for row in map(json.loads, output.splitlines()):
                yield (transport, ranks, row["kind"], row["bytes"]), row

    # In turn, as the host may be slower or faster for minutes.
    for turn in range(max(args.rounds, 0 if args.machine else args.calibrations)):
        if not args.machine and turn < args.calibrations:
            calibrations.calibrate()
        if turn < args.rounds:
            for key, row in times(args.machine or calibrations.files[-1], args.loads):
                predicted[key] = row["predicted_s"]
                measured.setdefault(key, []).append(row["faster_half_s"])
                elsewhere[key[:2]] = elsewhere.get(key[:2], 0) + row["elsewhere"]
    machine = calibrations.machine()
    if len(calibrations.files) > 1:
        predicted = {key: row["predicted_s"] for key, row in times(machine, 1)}
    for case in cases:
        rows, again = {}, []
        for key in predicted:
            if key[:2] == case:
                middle = statistics.median(measured[key])
                rows.setdefault(key[2], {})[key[3]] = (predicted[key], middle)
                again += [one / middle - 1 for one in measured[key] if one != middle]
        print(f"\n{case[0]}, {case[1]} ranks: measured us (error), load average {os.getloadavg()[0]:.1f}\n")
        print_errors(rows, args.bytes)
        if elsewhere[case]:
            print(f"{elsewhere[case]} of {len(rows) * len(args.bytes) * args.loads * args.rounds} loads were measured while cores were "
                  "not as near to each other as when they were calibrated")
        if again:
            print(f"measured again, against the median of {args.rounds} rounds: {summary(again)}", flush=True)
    if args.models:
        layers(args, folder, 2, {
            transport: lambda words, transport=transport: checked(
                [BIN / "braid-run", *words, "--pin", "--transport", transport, "--machine", machine])
            for transport in args.transports}, "error_of_least", machine)


def write_machine_of_hosts(machine, path, hosts):
    """Test hosts have a core each, but one memory and its caches together: what a core of theirs does is what one does here while as
    many are busy as there are hosts."""
    file = json.loads(pathlib.Path(machine).read_text())
    busy = [rates for rates in file["compute"] if rates["busy_cores"] <= hosts]
    file["compute"] = [dict(busy[-1], busy_cores=1)]
    path.write_text(json.dumps(file))


def on_hosts(machine, args, folder, hosts, rate):
    """A rank on each of some test hosts, without quotas: a machine file tells of whole cores."""
    with Lab(hosts=hosts, rate=rate) as lab:
        def there(tool, words):
            done = lab.run(0, [str(word) for word in [BIN / tool, *words, "--hosts", ",".join(lab.addresses), "--agent",
                                                      lab.agent]], capture_output=True, text=True, timeout=600)
            if done.returncode:
                sys.exit(f"predictions: error: {tool} over hosts ended with status {done.returncode}\n{done.stdout}{done.stderr}")
        cases = [(operation, size) for operation in OPERATIONS for size in args.bytes]
        calls_of = {size: max(2, min(64, (16 << 20) // size)) for size in args.bytes}
        for operation, size in cases:
            text, given, _ = peers.collectives(operation, size // 4 // hosts * hosts, hosts, calls_of[size])
            (folder / "program.mlir").write_text(text)
            np.save(folder / f"{operation}-{size}.npy", given)
            checked([BIN / "braid", "compile", folder / "program.mlir", "-o", folder / f"{operation}-{size}.braid"])

        def times(links, operation, size, repeat):
            """Predicted and measured seconds of a collective."""
            command = [folder / f"{operation}-{size}.braid", "--warmup", 1, "--repeat", repeat, "--machine", links, "--report",
                       folder / "report.json", "--time-limit", 300]
            for call in range(calls_of[size]):
                command += ["--input", f"x{call}={folder / f'{operation}-{size}.npy'}"]
            there("braid-run", command)
            prediction = json.loads((folder / "report.json").read_text())["prediction"]
            if "missing" in prediction:
                sys.exit(f"predictions: error: {operation}: {prediction['missing']}")
            return [prediction["run"][field] / calls_of[size] for field in ("predicted_s", "measured_s")]

        # In turn, as the host may be slower or faster for minutes.
        files, predicted, measured = [], {}, {}
        for turn in range(max(args.calibrations, args.rounds if cases else 1)):
            if turn < args.calibrations:
                files.append(folder / f"links-{turn}.json")
                write_machine_of_hosts(machine, files[-1], hosts)
                await_cores(machine, hosts, 10)
                there("braid", ["calibrate", "--links", "-o", files[-1]])
            for case in cases if turn < args.rounds else ():
                # Of few bytes it matters what else a host does; of many only how long they take.
                if turn == 0 or case[1] <= 1 << 20:
                    # A shaped link lets a burst pass at once, so most runs come after far more than one.
                    repeat = max(5, (64 << 20) // (calls_of[case[1]] * case[1]))
                    await_cores(machine, hosts, 10)
                    predicted[case], of_case = times(files[-1], *case, repeat)
                    measured.setdefault(case, []).append(of_case)
        links = files[0]
        if len(files) > 1:
            links = folder / "links.json"
            print(checked([BIN / "braid", "calibrate", "--median-of", *files, "-o", links]), end="", flush=True)
            predicted = {case: times(links, *case, 1)[0] for case in cases}
        rows = {}
        for operation, size in cases:
            rows.setdefault(operation, {})[size] = predicted[operation, size], statistics.median(measured[operation, size])
        if rows:
            print(f"\n{hosts} hosts at {rate}, a rank each: measured us (error), load average {os.getloadavg()[0]:.1f}\n")
            print_errors(rows, args.bytes)
        if args.models:
            # Clocks of hosts differ by more than short collectives do, so that the least is a matter of luck there.
            layers(args, folder, hosts, {f"{hosts} hosts, {rate}": lambda words: there("braid-run", [*words, "--machine", links])},
                   "error_awake", links)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="a file of `braid calibrate` (default: calibrates now)")
    parser.add_argument("--calibrations", type=int, default=1,
                        help="so many, of this host without --machine, and of links with --hosts, in turn with the rounds, and predict "
                             "by their medians (default: 1)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--transports", nargs="+", default=["threads", "shm"], choices=["threads", "shm"])
    parser.add_argument("--loads", type=int, default=6, help="loads of each program, in turn (default: 6)")
    parser.add_argument("--rounds", type=int, default=3, help="measure all so often, in turn (default: 3)")
    parser.add_argument("--between", type=int, default=0, help="bytes that a rank uses between two collectives (default: 0)")
    parser.add_argument("--bytes", type=int, nargs="*", default=[4096 * 4**i for i in range(8)],
                        help="of the larger of a rank's input and output; none: no collectives (default: 4 KiB to 64 MiB)")
    parser.add_argument("--hosts", type=int, nargs="*", default=[], metavar="N",
                        help="instead of this host's transports: over so many test hosts (test/lab)")
    parser.add_argument("--rates", nargs="+", default=["1gbit"], help="of the links between test hosts (default: 1gbit)")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    args = parser.parse_args()
    if min(args.calibrations, args.rounds, args.loads) < 1:
        parser.error("--calibrations, --rounds and --loads expect at least 1")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        calibrations = Calibrations(folder, args.machine)
        if not args.hosts:
            on_this_host(calibrations, args, folder)
            return 0
        for _ in range(0 if args.machine else args.calibrations):
            calibrations.calibrate()
        machine = calibrations.machine()
        for rate in args.rates:
            for hosts in args.hosts:
                on_hosts(machine, args, folder, hosts, rate)
    return 0


if __name__ == "__main__":
    sys.exit(main())
