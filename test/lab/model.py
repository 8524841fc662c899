# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of one model under several plans, over test hosts or on this host: how long a run takes, and how much of it is
communication. Prints figures, asserts nothing about them."""
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile

from hosts import LabError
from keeper import default_congestion, rate_bits
from lab import Lab
from peers import BIN, PIPES, PeerFailed, wait
from table import argument, checked_rate, load, machine, number, several, time_text

TIMES = ("comm_s", "exposed_comm_s", "hidden_comm_s", "peer_wait_s")


def ranks_of(plan):
    """Of "tp=2,dp=2 --strategy tp-sp,dp": the mesh, and what else `braid compile` is told."""
    sizes = [axis.partition("=")[2] for axis in (shlex.split(plan) or [""])[0].split(",")]
    if not all(size.isdigit() and int(size) > 0 for size in sizes):
        raise LabError(f"a plan is a mesh and options of braid compile, such as 'tp=2 --strategy tp-sp', got '{plan}'")
    ranks = 1
    for size in sizes:
        ranks *= int(size)
    return ranks


def compiled(arguments, folder):
    bundles = []
    for index, plan in enumerate(arguments.plan):
        mesh, *options = shlex.split(plan)
        bundles.append(folder / f"{index}.braid")
        wait([subprocess.Popen([BIN / "braid", "compile", arguments.model, "--mesh", mesh, *options, "-o", bundles[-1]],
                               stdin=subprocess.DEVNULL, **PIPES)], arguments.limit, f"braid compile of plan '{plan}'")
    return bundles


def measured(arguments, folder, bundles, start):
    """The reports of every plan, a round after another."""
    reports = [[] for _ in bundles]
    for _ in range(arguments.rounds):
        for index, bundle in enumerate(bundles):
            file = folder / "report.json"
            words = [BIN / "braid-run", bundle, "--random-inputs", 1, "--warmup", arguments.warmup, "--repeat", arguments.repeat,
                     "--report", file, "--time-limit", int(arguments.limit),
                     *(["--weights", arguments.weights] if arguments.weights else ["--random-weights", 1])]
            wait([start(words, ranks_of(arguments.plan[index]))], arguments.limit, f"plan '{arguments.plan[index]}'")
            reports[index].append(json.loads(file.read_text()))
    return reports


def tell(title, arguments, reports, record, setting):
    print(f"\n{title}\n\n| plan | median | least | times as fast | communication | exposed | hidden | waiting for peers | sent "
          "by a rank | one processor |\n| --- |" + " ---: |" * 9)
    base = None
    for plan, of_plan in zip(arguments.plan, reports):
        median = statistics.median(report["median_run_s"] for report in of_plan)
        times = {name: statistics.median(report[name] for report in of_plan) for name in TIMES}
        base = base or median
        known = of_plan[0]["transport"] == "ucx"  # ranks on shm are other processes
        share = statistics.median(report["processor_s"] / (report["median_run_s"] * report["runs"]) for report in of_plan)
        row = {"plan": plan, "transport": of_plan[0]["transport"], "ranks": of_plan[0]["ranks"], "median_run_s": median,
               "least_run_s": min(report["min_run_s"] for report in of_plan),
               "rounds_s": [report["median_run_s"] for report in of_plan], **times,
               "sent_bytes": of_plan[0]["bytes_sent_per_rank"], "processor_share": share if known else None,
               "times_as_fast": base / median}
        record.append(dict(setting, **row))
        print(f"| {plan} | {time_text(median)} | {time_text(row['least_run_s'])} | {row['times_as_fast']:.3f} | "
              + " | ".join(time_text(times[name]) for name in TIMES)
              + f" | {row['sent_bytes'] / 2**20:.3f} MiB | {f'{share * 100:.1f}%' if known else 'unknown'} |")
    sys.stdout.flush()


def run(arguments):
    counts = {plan: ranks_of(plan) for plan in arguments.plan}
    each = arguments.ranks_per_host
    wrong = [(plan, hosts) for plan in counts for hosts in arguments.hosts if counts[plan] != hosts * each]
    if wrong and not arguments.here:
        raise LabError(f"plan '{wrong[0][0]}' has {counts[wrong[0][0]]} ranks, {wrong[0][1]} hosts of {each} ranks have "
                       f"{wrong[0][1] * each}")
    described = machine()
    print(f"{arguments.model}; {described}")
    record, complete = [], True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            bundles = compiled(arguments, folder)
        except PeerFailed as error:
            raise LabError(str(error)) from None

        def row(title, setting, start):
            before = load()
            setting["load_average"] = os.getloadavg()[0]
            try:
                tell(f"{title}; {before}:", arguments, measured(arguments, folder, bundles, start), record, setting)
            except PeerFailed as error:
                print(f"model: {error}", file=sys.stderr)
                return False
            return True
        if arguments.here:
            def start_here(words, ranks):
                pin = ["--pin"] if ranks <= os.cpu_count() else []
                return subprocess.Popen([*map(str, words), "--transport", "shm", *pin], stdin=subprocess.DEVNULL, **PIPES)
            complete = row("Ranks on this host, in shared memory", {"hosts": 1}, start_here)
        else:
            for rate in arguments.rates:
                for hosts in arguments.hosts:
                    share = arguments.share if arguments.share is not None else min(0.9 * each, 0.9 * os.cpu_count() / hosts)
                    with Lab(hosts=hosts, rate=rate, share=share, congestion=arguments.congestion) as lab:
                        places = ",".join(f"{address}:{each}" for address in lab.addresses)
                        complete &= row(
                            f"{hosts} hosts at {rate}, {each} {'rank' if each == 1 else 'ranks'} each, {share:.2f} processors each",
                            {"hosts": hosts, "ranks_per_host": each, "rate_bits_per_s": rate_bits(rate),
                             "processors_per_host": share, "congestion_control": arguments.congestion},
                            lambda words, _, lab=lab, places=places: lab.popen(
                                0, [*words, "--hosts", places, "--agent", lab.agent], **PIPES))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": described, "model": str(arguments.model), "rows": record}, file, indent=1)
    return 0 if complete else 1


def add_arguments(parser):
    parser.add_argument("model", type=pathlib.Path, metavar="MODEL.mlir", help="what braid import or a person wrote")
    parser.add_argument("--plan", action="append", required=True, metavar="'MESH [OPTION...]'",
                        help="a mesh, and other options of braid compile: 'tp=2 --strategy tp-sp'; the first of several is what "
                             "the others are compared with")
    parser.add_argument("--here", action="store_true", help="ranks are processes on this host, a core each, without a lab")
    parser.add_argument("--hosts", type=several(number(1, 64)), default=[2], metavar="N,...", help="(default: 2)")
    parser.add_argument("--ranks-per-host", type=argument(number(1)), default=1, metavar="N", help="(default: 1)")
    parser.add_argument("--rates", type=several(checked_rate), default=["1gbit"], metavar="RATE,...",
                        help="of the links (default: 1gbit)")
    parser.add_argument("--share", type=float, metavar="X",
                        help="each host's quota, in processors; 0: none (default: 0.9 of the machine, by hosts, at most 0.9 a rank)")
    parser.add_argument("--weights", type=pathlib.Path, metavar="DIR", help="of a checkpoint (default: random ones)")
    parser.add_argument("--warmup", type=argument(number(1, 1000)), default=3, metavar="K", help="(default: 3)")
    parser.add_argument("--repeat", type=argument(number(1, 10000)), default=20, metavar="K",
                        help="runs of a plan in a round (default: 20)")
    parser.add_argument("--rounds", type=argument(number(1, 1000)), default=3, metavar="N",
                        help="the plans take turns so often, and the median of each counts (default: 3)")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="for a plan in a round (default: 600)")
    parser.add_argument("--congestion", default=default_congestion(), metavar="NAME",
                        help="how TCP controls congestion (default: cubic, or reno where that is not allowed)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures, with units in their names")
