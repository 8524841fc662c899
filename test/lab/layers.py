# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of LLaMA layers whose collectives travel in fewer bits, over links so slow that communication is a given share of the
plain program's time, beside PyTorch with Gloo. Prints figures, asserts nothing about them.

Of a plain program that communicates for the share f of its time, what sends r times less takes (1 - f) + f / r at best: the
inverse is the bound that each row is compared with. f is measured: the exposed part of a plain program's run, on the rank where it
is greatest."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from encoded import add_common
from hosts import LabError
from keeper import rate_bits
from lab import Lab
from peers import BIN, PIPES, Braid, Gloo, PeerFailed, wait
from table import argument, load, machine, number, several, time_text

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = HERE.parents[1] / "examples" / "llama-layer" / "config.json"
FAST = "10gbit"  # at which the plain program hardly communicates
OF_THE_WIRE = 0.955  # what Ethernet's and TCP's headers leave of a link


def compiled(folder, arguments, ranks):
    """A bundle for each encoding."""
    module = folder / "layers.mlir"
    wait([subprocess.Popen([BIN / "braid", "import", arguments.config, "--layers", str(arguments.layers), "--seq",
                            str(arguments.tokens), "--result", "last_hidden_state", "-o", module], stdin=subprocess.DEVNULL,
                           **PIPES)], arguments.limit, "braid import")
    bundles = {}
    for name, quantize in arguments.encodings:
        bundles[name] = folder / f"{name.translate(str.maketrans(':/+', '---'))}.{ranks}.braid"
        words = ["--quantize", f"*={quantize}"] if quantize else []
        wait([subprocess.Popen([BIN / "braid", "compile", module, "--mesh", f"tp={ranks}", *words, "-o", bundles[name]],
                               stdin=subprocess.DEVNULL, **PIPES)], arguments.limit, f"braid compile of {name}")
    return bundles


def run_bundle(lab, bundle, arguments, folder):
    report = folder / "report.json"
    places = ",".join(f"{address}:1" for address in lab.addresses)
    wait([lab.popen(0, [BIN / "braid-run", bundle, "--random-weights", 1, "--random-inputs", 1, "--warmup", 1, "--repeat",
                        arguments.repeat, "--report", report, "--time-limit", int(arguments.limit), "--hosts", places, "--agent",
                        lab.agent], **PIPES)], arguments.limit, bundle.name)
    found = json.loads(report.read_text())
    return {"median_s": found["median_run_s"], "exposed_s": found["exposed_comm_s"], "hidden_s": found["hidden_comm_s"],
            "exposed_share": found["exposed_comm_s"] / found["comm_run_s"], "computing_s": found["comm_run_s"] - found["exposed_comm_s"],
            "peer_wait_s": found["peer_wait_s"], "sent_bytes": found["bytes_sent_per_rank"],
            "processor_share": found["processor_s"] / (found["median_run_s"] * found["runs"])}


def run_gloo(lab, arguments):
    gloo, count = Gloo(), lab.shape.hosts
    words = [sys.executable, HERE / "gloo_layers.py", arguments.config, arguments.layers, arguments.tokens, arguments.repeat]
    lines = wait([lab.popen(rank, words, env=gloo.variables(rank, count, lab.addresses[0], "e0"), **PIPES)
                  for rank in range(count)], arguments.limit, gloo.name)
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    return {"median_s": max(row["median_s"] for row in rows), "processor_share": statistics.mean(row["processor_share"] for row in rows)}


def joined(rounds):
    return dict({name: statistics.median(one[name] for one in rounds) for name in rounds[0]},
                rounds_s=[one["median_s"] for one in rounds])


def rate_for(share, fast):
    """At which the plain program would communicate for this share of its time."""
    bits = fast["sent_bytes"] * 8 / OF_THE_WIRE / (fast["computing_s"] * share / (1 - share))
    return f"{max(100, round(bits / 1000))}kbit"


def print_table(title, rows, base):
    print(f"\n{title}\n\n| encoding | sent by a rank | median | one processor | waiting for peers | r | times plain | bound | of it | times Gloo |\n"
          "| --- |" + " ---: |" * 9)
    gloo = next((row for row in rows if row["encoding"] == "Gloo, f32"), None)
    for row in rows:
        cells = [row["encoding"], f"{row['sent_bytes'] / 2**20:.3f} MiB" if "sent_bytes" in row else "", time_text(row["median_s"]),
                 f"{row['processor_share'] * 100:.0f}%", time_text(row["peer_wait_s"]) if "peer_wait_s" in row else ""]
        if "bound" in row:
            cells += [f"{row['r']:.2f}", f"{row['times_plain']:.2f}", f"{row['bound']:.2f}", f"{row['times_plain'] / row['bound']:.3f}"]
        else:
            cells += ["", f"{base['median_s'] / row['median_s']:.2f}", "", ""]
        cells.append(f"{gloo['median_s'] / row['median_s']:.2f}" if gloo else "")
        print("| " + " | ".join(cells) + " |")
    sys.stdout.flush()


def with_bounds(found):
    """Adds what the plain program's share of communication, which is measured, allows."""
    plain = found["plain"]
    share = plain["exposed_share"]
    for name, row in found.items():
        row["encoding"], row["measured_share"] = name, share
        if "sent_bytes" in row and name != "plain":
            row["r"] = plain["sent_bytes"] / row["sent_bytes"]
            row["bound"] = 1 / ((1 - share) + share / row["r"])
            row["times_plain"] = plain["median_s"] / row["median_s"]
    return list(found.values())


def of_hosts(hosts, arguments, folder, gloo, record):
    share = arguments.share if arguments.share is not None else min(0.9, 0.9 * os.cpu_count() / hosts)
    shape = {"hosts": hosts, "share": share, "congestion": arguments.congestion}
    bundles = compiled(folder, arguments, hosts)
    with Lab(rate=FAST, **shape) as lab:
        fast = run_bundle(lab, bundles["plain"], arguments, folder)
    for wanted in arguments.communication:
        rate, before, found = rate_for(wanted, fast), load(), {}
        with Lab(rate=rate, **shape) as lab:
            for _ in range(arguments.rounds):
                if gloo:
                    found.setdefault("Gloo, f32", []).append(run_gloo(lab, arguments))
                for name, bundle in bundles.items():
                    found.setdefault(name, []).append(run_bundle(lab, bundle, arguments, folder))
        rows = with_bounds({name: joined(rounds) for name, rounds in found.items()})
        plain = next(row for row in rows if row["encoding"] == "plain")
        print_table(f"{arguments.layers} layers of {arguments.config.parent.name}/{arguments.config.name}, {arguments.tokens} tokens, "
                    f"tp={hosts} on {hosts} hosts at {rate}, TCP with {arguments.congestion}, {share:.2f} processors each: communication is "
                    f"{plain['measured_share'] * 100:.0f}% of the plain program ({wanted * 100:.0f}% wanted); {before}:", rows, plain)
        record += [dict(row, hosts=hosts, rate_bits_per_s=rate_bits(rate), wanted_share=wanted, processors_per_host=share) for row in rows]


def run(arguments):
    reason = Braid().unavailable()
    if reason:
        raise LabError(reason)
    if "plain" not in dict(arguments.encodings):
        raise LabError("the other encodings are compared with plain, which is not among them")
    without = Gloo().unavailable()
    if without:
        print(f"layers: Gloo is left out: {without}", file=sys.stderr)
    described = machine()
    print(described)
    record, complete = [], not without
    with tempfile.TemporaryDirectory() as name:
        for hosts in arguments.hosts:
            try:
                of_hosts(hosts, arguments, pathlib.Path(name), not without, record)
            except PeerFailed as error:
                print(f"layers: {error}", file=sys.stderr)
                complete = False
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": described, "rows": record}, file, indent=1)
    return 0 if complete else 1


def fraction(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1:
        raise LabError(f"a share of communication is a number between 0 and 1, got '{text}'")
    return value


def add_arguments(parser):
    add_common(parser)
    parser.add_argument("--config", type=lambda text: pathlib.Path(text).resolve(), default=CONFIG, metavar="FILE",
                        help="a LLaMA's config.json (default: that of LLaMA 3 8B's shapes in examples/llama-layer)")
    parser.add_argument("--layers", type=argument(number(1, 1000)), default=1, metavar="N", help="(default: 1)")
    parser.add_argument("--tokens", type=argument(number(1, 65536)), default=256, metavar="N", help="of the prefill (default: 256)")
    parser.add_argument("--communication", type=several(fraction), default=[0.5, 0.65, 0.8], metavar="F,...",
                        help="shares of the plain program's time, which give the rates (default: 0.5,0.65,0.8)")
    parser.add_argument("--repeat", type=argument(number(1, 1000)), default=3, metavar="K",
                        help="runs of a program in a round, after one that is not counted (default: 3)")
    parser.add_argument("--rounds", type=argument(number(1, 1000)), default=1, metavar="N",
                        help="all take turns so often, and the median of each counts (default: 1)")
