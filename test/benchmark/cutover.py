# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where encoded collectives begin to be faster: predicted, and measured.

An all_reduce of 1 to 4096 rows of 4096 floats, as it is and encoded, on ranks of this host (shm) or over test hosts with
shaped links (test/lab), a rank each: what `braid compile --quantize --machine` predicts for both and chooses, what both take,
and how fast the chosen plan is beside the plain one. A run is one all_reduce; measured times include the start of a run,
which predictions leave out. Results are compared before anything is timed. Where the chosen plan is not encoded, its program has to be
that of the plain one, to the byte: it is not timed again then.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "lab"))
from keeper import default_congestion  # noqa: E402  pylint: disable=wrong-import-position
from lab import Lab  # noqa: E402  pylint: disable=wrong-import-position

BIN = pathlib.Path(os.environ.get("BRAID_BUILD_DIR", ROOT / "build")) / "bin"
COLUMNS = 4096


def program(rows, ranks):
    shape = f"tensor<1x{rows}x{COLUMNS}xf32>"
    return f"""comm.mesh @mesh <r = {ranks}>
func.func @main(%x: {shape} {{nn.name = "x", comm.global_type = tensor<{ranks}x{rows}x{COLUMNS}xf32>,
                              comm.sharding = #comm.sharding<@mesh, [{{r}}, {{}}, {{}}]>}})
    -> ({shape} {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %y = comm.all_reduce sum(%x) over <@mesh, {{r}}> role "sum" : {shape}
  return %y : {shape}
}}
"""


def checked(command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"cutover: error: '{' '.join(str(c) for c in command)}' ended with status {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done


def seconds(text):
    number, unit = text.split()
    return float(number) * {"ms": 1e-3, "us": 1e-6}[unit]


def members(bundle):
    """What runs of a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "manifest.json"}


class Case:
    """An all_reduce of some rows: bundles of the plain, the encoded and the chosen plan."""

    def __init__(self, folder, rows, args, machine, place):
        self.folder, self.rows = folder, rows
        (folder / "program.mlir").write_text(program(rows, args.ranks))
        x = np.random.default_rng(1).standard_normal((args.ranks, rows, COLUMNS), np.float32)
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", x.sum(0, dtype=np.float64).astype(np.float32)[None])
        for plan, words in (("plain", []), ("encoded", ["--quantize", f"*={args.encoding}"])):
            checked([BIN / "braid", "compile", folder / "program.mlir", *words, "-o", folder / f"{plan}.braid"])
        remarks = checked([BIN / "braid", "compile", folder / "program.mlir", "--quantize", f"*={args.encoding}", "--machine", machine,
                           *place, "--remarks", "communication", "-o", folder / "chosen.braid"]).stderr
        found = re.search(r"([\d.e+-]+ [mu]s) as it is, ([\d.e+-]+ [mu]s) encoded", remarks)
        if not found:
            sys.exit(f"cutover: error: no times in the remarks of braid compile:\n{remarks}")
        self.predicted = {"plain": seconds(found[1]), "encoded": seconds(found[2])}
        self.is_encoded = "not encoded: " not in remarks
        self.times = {"plain": [], "encoded": [], **({"chosen": []} if self.is_encoded else {})}
        if not self.is_encoded and members(folder / "chosen.braid") != members(folder / "plain.braid"):
            sys.exit(f"cutover: error: of {rows} rows nothing is encoded, but the program is not the plain one")

    def run(self, plan, start, repeat, check):
        report = self.folder / "report.json"
        start([self.folder / f"{plan}.braid", "--input", f"x={self.folder / 'x.npy'}", "--warmup", 1, "--repeat", repeat, "--report",
               report, *(["--check", self.folder / "y.npy"] if check else []), "--time-limit", 300])
        return json.loads(report.read_text())["median_run_s"]

    def measure(self, start, rounds):
        for plan in self.times:
            self.run(plan, start, 1, True)
        # About a quarter of a second each.
        repeat = max(2, min(200, int(0.25 / max(self.predicted.values()))))
        for _ in range(rounds):
            for plan, times in self.times.items():
                times.append(self.run(plan, start, repeat, False))


def table(place, cases, encoding):
    print(f"\n{place}, {encoding}, all_reduce of rows of {COLUMNS} floats, load average {os.getloadavg()[0]:.1f}\n")
    print("| rows | as it is, us (predicted) | encoded, us (predicted) | times as fast encoded (predicted) | chosen | chosen, of plain |")
    print("| ---: | ---: | ---: | ---: | --- | ---: |")
    predicted, measured, worst = None, None, None
    for case in cases:
        median = {plan: statistics.median(times) for plan, times in case.times.items()}
        gain = median["plain"] / median["encoded"]
        kept, chosen = 1.0, "plain | the same program"
        if case.is_encoded:
            ratios = [a / b for a, b in zip(case.times["plain"], case.times["chosen"])]
            kept = statistics.median(ratios)
            chosen = f"encoded | {kept:.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
        worst = kept if worst is None else min(worst, kept)
        predicted = predicted or (case.rows if case.is_encoded else None)
        measured = measured or (case.rows if gain > 1 else None)
        print(f"| {case.rows} | {median['plain'] * 1e6:.4g} ({case.predicted['plain'] * 1e6:.4g}) | {median['encoded'] * 1e6:.4g} "
              f"({case.predicted['encoded'] * 1e6:.4g}) | {gain:.2f} ({case.predicted['plain'] / case.predicted['encoded']:.2f}) | "
              f"{chosen} |")
    def of(rows):
        return f"from {rows} rows on" if rows else "for no number of rows"
    print(f"\nencoded is faster {of(measured)}; it is chosen {of(predicted)}. The chosen plan is at least {worst:.3f} times as fast as the "
          "plain one.", flush=True)


def measure(args, folder, machine, place, words, start):
    cases = []
    for rows in args.rows:
        (folder / str(rows)).mkdir()
        cases.append(Case(folder / str(rows), rows, args, machine, words))
        cases[-1].measure(start, args.rounds)
    table(place, cases, args.encoding)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", help="a file of `braid calibrate` (default: calibrates now)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--encoding", default="int8:128")
    parser.add_argument("--rows", type=int, nargs="+", default=[4**i for i in range(7)], help="(default: 1 to 4096)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--transports", nargs="*", default=["shm"], choices=["threads", "shm"])
    parser.add_argument("--rates", nargs="*", default=["1gbit", "10gbit"], help="of the links between as many test hosts as ranks")
    parser.add_argument("--congestion", default=default_congestion(),
                        help="how TCP controls congestion between test hosts (default: cubic, or reno where that is not allowed)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        machine = args.machine
        if not machine:
            machine = folder / "machine.json"
            print(checked([BIN / "braid", "calibrate", "--max-load", 1000, "-o", machine]).stdout, end="", flush=True)
        for transport in args.transports:
            (folder / transport).mkdir()
            measure(args, folder / transport, machine, f"{transport}, {args.ranks} ranks", ["--transport", transport],
                    lambda words, t=transport: checked([BIN / "braid-run", *words, "--pin", "--transport", t]))
        for rate in args.rates:
            (folder / rate).mkdir()
            with Lab(hosts=args.ranks, rate=rate, congestion=args.congestion) as lab:
                hosts = ",".join(lab.addresses)
                def there(words, lab=lab, hosts=hosts):
                    done = lab.run(0, [str(word) for word in [*words, "--hosts", hosts, "--agent", lab.agent]], capture_output=True,
                                   text=True, timeout=600)
                    if done.returncode:
                        sys.exit(f"cutover: error: {words[0]} over hosts ended with status {done.returncode}\n{done.stdout}{done.stderr}")
                links = folder / rate / "machine.json"
                shutil.copy(machine, links)
                there([BIN / "braid", "calibrate", "--links", "-o", links])
                measure(args, folder / rate, links, f"{args.ranks} hosts, {rate}", ["--hosts", hosts],
                        lambda words, there=there: there([BIN / "braid-run", *words]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
