# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of all_reduces that travel as they are and in fewer bits, over test hosts, beside PyTorch with Gloo: what a rank
sends for an element, and how many times as fast that is. Prints figures, asserts nothing about them; each result is checked
against the sum, with what its encoding may lose."""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from hosts import LabError
from keeper import default_congestion, rate_bits
from lab import Lab
from peers import BIN, PIPES, Braid, Gloo, PeerFailed, measure, wait
from table import argument, checked_rate, limit, load, machine, number, several, size_bytes, size_text, time_text, wire_seconds

# A name and what --quantize takes. Low bits to the rank that adds and 8 bits for the sum are the 6 bits of Flash Communication.
NAMED = {"plain": "", "bf16": "bf16", "int8": "int8:128", "int6": "int4:128/int8:128", "int4": "int4:128"}


def encoding(text):
    """(name, what --quantize takes) of a name in NAMED, or of an encoding itself."""
    if not re.fullmatch(r"[a-z0-9:+/-]+", text):
        raise LabError(f"an encoding is one of {', '.join(NAMED)}, or what braid compile --quantize takes, such as fp8e4m3:128; "
                       f"got '{text}'")
    return text, NAMED.get(text, text)


def program(rows, columns, ranks):
    shape = f"tensor<1x{rows}x{columns}xf32>"
    return f"""comm.mesh @mesh <r = {ranks}>
func.func @main(%x: {shape} {{nn.name = "x", comm.global_type = tensor<{ranks}x{rows}x{columns}xf32>,
                              comm.sharding = #comm.sharding<@mesh, [{{r}}, {{}}, {{}}]>}})
    -> ({shape} {{nn.name = "y"}}) attributes {{nn.entry}} {{
  %y = comm.all_reduce sum(%x) over <@mesh, {{r}}> role "sum" : {shape}
  return %y : {shape}
}}
"""


class Case:
    """An all_reduce of one size over one number of ranks: its operands, and a bundle for each encoding."""

    def __init__(self, folder, size, ranks, arguments):
        self.folder, self.ranks, self.limit = folder, ranks, arguments.limit
        self.elements = size // 4
        folder.mkdir()
        (folder / "program.mlir").write_text(program(self.elements // arguments.columns, arguments.columns, ranks))
        random = np.random.default_rng(1)
        given = random.standard_normal((ranks, self.elements // arguments.columns, arguments.columns), np.float32)
        np.save(folder / "x.npy", given)
        np.save(folder / "y.npy", given.sum(0, dtype=np.float64).astype(np.float32)[None])

    def compiled(self, quantize):
        bundle = self.folder / f"{re.sub('[^a-z0-9]', '-', quantize) or 'plain'}.braid"
        if not bundle.exists():
            words = ["--quantize", f"*={quantize}"] if quantize else []
            wait([subprocess.Popen([BIN / "braid", "compile", self.folder / "program.mlir", *words, "-o", bundle],
                                   stdin=subprocess.DEVNULL, **PIPES)], self.limit, "braid compile")
        return bundle

    def run(self, start, quantize, repeat):
        """The report of `repeat` runs, of which each is one all_reduce with its codecs."""
        report = self.folder / "report.json"
        wait([start([BIN / "braid-run", self.compiled(quantize), "--input", f"x={self.folder / 'x.npy'}", "--check",
                     self.folder / "y.npy", "--warmup", 1, "--repeat", repeat, "--report", report, "--time-limit",
                     int(self.limit)])], self.limit, f"{quantize or 'plain'}")
        return json.loads(report.read_text())


def figures(report, case):
    """Bytes of payload for an element: what the ranks of an all_reduce send is 2 (n - 1) / n of them."""
    n = case.ranks
    return {"median_s": report["median_run_s"], "processor_share": report["processor_s"] / (report["median_run_s"] * report["runs"]),
            "payload_bytes_per_element": report["bytes_sent_per_rank"] * n / (2 * (n - 1)) / case.elements,
            "sent_bytes": report["bytes_sent_per_rank"]}


def joined(rounds):
    """The medians of the rounds' figures, and the rounds."""
    return dict({name: statistics.median(one[name] for one in rounds) for name in rounds[0]},
                rounds_s=[one["median_s"] for one in rounds])


def print_table(title, rows, rate):
    print(f"\n{title}\n\n| size | encoding | payload bytes an element | median | of the wire | one processor | times Gloo | times plain "
          "| times bf16 |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        def times(name, row=row):
            other = next((one for one in rows if one["encoding"] == name and one["bytes"] == row["bytes"]), None)
            return f"{other['median_s'] / row['median_s']:.2f}" if other else ""
        payload = row.get("payload_bytes_per_element")
        wire = row["sent_bytes"] * 8 / rate_bits(rate) / row["median_s"]
        print(f"| {size_text(row['bytes'])} | {row['encoding']} | {f'{payload:.3f}' if payload else ''} | "
              f"{time_text(row['median_s'])} | {wire:.3f} | {row['processor_share'] * 100:.0f}% | {times('Gloo, f32')} | "
              f"{times('plain')} | {times('bf16')} |")
    sys.stdout.flush()


def gloo_figures(lab, size, repeat, seconds):
    ranks = lab.shape.hosts
    [(median, share)] = measure(Gloo(), [f"all_reduce:{size}:{repeat}:1"],
                                lambda words: Gloo().on_hosts(lab, 1, words, seconds)).values()
    return {"median_s": median, "processor_share": share, "sent_bytes": 2 * (ranks - 1) * size // ranks}


def of_size(lab, case, size, arguments, gloo):
    """{name: figures}: all of them in turn, a round after another."""
    places = ",".join(f"{address}:1" for address in lab.addresses)

    def start(words):
        return lab.popen(0, [*words, "--hosts", places, "--agent", lab.agent], **PIPES)
    seconds = wire_seconds("all_reduce", size, lab.shape.hosts, lab.shape.rate)
    repeat = int(min(max(1 / seconds, 3), 100))
    found = {}
    for _ in range(arguments.rounds):
        if gloo:
            found.setdefault("Gloo, f32", []).append(gloo_figures(lab, size, repeat, limit(repeat * seconds)))
        for name, quantize in arguments.encodings:
            found.setdefault(name, []).append(figures(case.run(start, quantize, repeat), case))
    return {name: joined(rounds) for name, rounds in found.items()}


def run(arguments):
    reason = Braid().unavailable()
    if reason:
        raise LabError(reason)
    wrong = [size for size in arguments.sizes if size % (4 * arguments.columns)]
    if wrong:
        raise LabError(f"sizes expect whole rows of {arguments.columns} f32, got {size_text(wrong[0])}")
    without = Gloo().unavailable()
    if without:
        print(f"encoded: Gloo is left out: {without}", file=sys.stderr)
    described = machine()
    print(described)
    record, complete = [], not without
    for rate in arguments.rates:
        for hosts in arguments.hosts:
            share = arguments.share if arguments.share is not None else min(0.9, 0.9 * os.cpu_count() / hosts)
            before, rows = load(), []
            setting = {"hosts": hosts, "rate_bits_per_s": rate_bits(rate), "processors_per_host": share,
                       "congestion_control": arguments.congestion, "load_average": os.getloadavg()[0]}
            with Lab(hosts=hosts, rate=rate, share=share, congestion=arguments.congestion) as lab, \
                    tempfile.TemporaryDirectory() as name:
                for size in arguments.sizes:
                    try:
                        case = Case(pathlib.Path(name) / str(size), size, hosts, arguments)
                        found = of_size(lab, case, size, arguments, not without)
                    except PeerFailed as error:
                        print(f"encoded: {error}", file=sys.stderr)
                        complete = False
                        continue
                    rows += [dict(setting, encoding=kind, bytes=size, **found[kind]) for kind in found]
            print_table(f"all_reduce, {hosts} hosts at {rate}, rows of {arguments.columns} elements, TCP with "
                        f"{arguments.congestion}, {share:.2f} processors each; {before}:", rows, rate)
            record += rows
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": described, "rows": record}, file, indent=1)
    return 0 if complete else 1


def add_common(parser):
    """What tables of encodings share."""
    parser.add_argument("--hosts", type=several(number(2)), default=[2, 4], metavar="N,...", help="(default: 2,4)")
    parser.add_argument("--encodings", type=several(encoding), default=[encoding(name) for name in NAMED], metavar="NAME,...",
                        help=f"some of {', '.join(f'{name} ({text})' if text not in ('', name) else name for name, text in NAMED.items())}, "
                             f"or others that --quantize takes (default: {','.join(NAMED)})")
    parser.add_argument("--share", type=float, metavar="X",
                        help="each host's quota, in processors; 0: none (default: 0.9 of the machine, by hosts, at most 0.9)")
    parser.add_argument("--congestion", default=default_congestion(), metavar="NAME",
                        help="how TCP controls congestion (default: cubic, or reno where that is not allowed)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for the runs of an encoding (default: 600)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures, with units in their names")


def add_arguments(parser):
    add_common(parser)
    parser.add_argument("--rates", type=several(checked_rate), default=["1gbit"], metavar="RATE,...",
                        help="of the links (default: 1gbit)")
    parser.add_argument("--sizes", type=several(size_bytes), default=[64 << 20], metavar="SIZE,...",
                        help="of the value in f32 (default: 64MiB)")
    parser.add_argument("--columns", type=argument(number(1, 65536)), default=4096, metavar="N",
                        help="elements of a row of the value (default: 4096)")
    parser.add_argument("--rounds", type=argument(number(1, 1000)), default=3, metavar="N",
                        help="all take turns so often, and the median of each counts (default: 3)")
