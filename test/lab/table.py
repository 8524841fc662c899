# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of collectives over test hosts and on one host: how long each runner of peers.py takes. Prints figures, asserts
nothing about them; results are compared."""
import argparse
import json
import os
import pathlib
import platform
import re
import statistics
import sys

from keeper import default_congestion, rate_bits
from hosts import LabError
from lab import Lab
from peers import RUNNERS, PeerFailed, measure

OPERATIONS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}  # times (n - 1) / n of the bytes leave each rank
BUDGET_S = 1.0  # for the measured calls of a case
RUN_BYTES, RUN_CALLS = 16 << 20, 16  # at most, but for one call


def size_bytes(text):
    match = re.fullmatch(r"([1-9][0-9]{0,6})(B|KiB|MiB)", text)
    size = int(match[1]) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}[match[2]] if match else 0
    # 16 ranks each get whole values of the smallest.
    if not 64 <= size <= 1 << 30 or size % 64:
        raise LabError(f"a size is a multiple of 64 bytes from 64B to 1024MiB, such as 64KiB; got '{text}'")
    return size


def size_text(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B"


def time_text(seconds):
    for scale, unit in (1, "s"), (1e3, "ms"):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def wire_seconds(operation, size, hosts, rate):
    """How long the bytes that must leave a host take on its link."""
    return OPERATIONS[operation] * (hosts - 1) / hosts * size * 8 / rate_bits(rate)


def cases(arguments, hosts, rate):
    """OPERATION:BYTES:RUNS:CALLS, and how long all of them take at least."""
    words, total = [], 0.0
    for operation in arguments.operations:
        for size in arguments.sizes:
            # Memory moves at some GB/s.
            estimate = max(2e-4, wire_seconds(operation, size, hosts, rate) if rate else size / 2e9)
            calls = max(1, min(RUN_CALLS, RUN_BYTES // size))
            runs = min(max(round(BUDGET_S / estimate / calls), 3), 400 // calls)
            words.append(f"{operation}:{size}:{runs}:{calls}")
            total += (runs + 1) * calls * estimate
    return words, total


def limit(total):
    return 60 + 10 * total


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    model = f"{found.get('model name', 'unknown processor')} (family {found.get('cpu family', '?')}, model {found.get('model', '?')})"
    return f"{model}, {os.cpu_count()} cores, Linux {platform.release()}; {load()}"


def load():
    return f"load {os.getloadavg()[0]:.1f} before"


def print_table(title, runners, results, hosts, rate, arguments):
    """Beside a runner's time, the first runner's: above 1 the first one is faster."""
    print(f"\n{title}\n")
    fraction = " of the wire," if rate else ""
    print("| operation | size |" + "".join(
        f" {runner.name}: median |{fraction} one processor |" + (f" / {runners[0].name} |" if runner != runners[0] else "")
        for runner in runners))
    print("| --- | ---: |" + " ---: | ---: |" + " ---: | ---: | ---: |" * (len(runners) - 1))
    for operation in arguments.operations:
        for size in arguments.sizes:
            cells = ""
            for runner in runners:
                if runner.short not in results:
                    cells += " failed | |" + (" |" if runner != runners[0] else "")
                    continue
                seconds, share = results[runner.short][operation, size]
                wire = f"{wire_seconds(operation, size, hosts, rate) / seconds:.3f}, " if rate else ""
                cells += f" {time_text(seconds)} | {wire}{'unknown' if share is None else f'{share * 100:.1f}%'} |"
                if runner != runners[0]:
                    first = results.get(runners[0].short)
                    cells += f" {seconds / first[operation, size][0]:.2f} |" if first else " |"
            print(f"| {operation} | {size_text(size)} |{cells}")
    sys.stdout.flush()


def run_setting(runners, run, words, record, setting, rounds):
    """The runners take turns; a figure is the median of those of the rounds."""
    found = {}
    for _ in range(rounds):
        for runner in runners:
            try:
                for case, figures in measure(runner, words, lambda words, runner=runner: run(runner, words)).items():
                    found.setdefault(runner.short, {}).setdefault(case, []).append(figures)
            except PeerFailed as error:
                print(f"table: {error}", file=sys.stderr)
    results = {}
    for name, of_cases in found.items():
        results[name] = {}
        for (operation, size), rows in of_cases.items():
            shares = [share for _, share in rows if share is not None]
            seconds, share = statistics.median(row[0] for row in rows), statistics.median(shares) if shares else None
            results[name][operation, size] = seconds, share
            record.append(dict(setting, runner=name, operation=operation, bytes=size, median_s=seconds, processor_share=share,
                               rounds_s=[row[0] for row in rows]))
    return results


def run(arguments):
    chosen = [runner for runner in RUNNERS if not arguments.runners or runner.short in arguments.runners]
    runners = []
    for runner in chosen:
        reason = runner.unavailable()
        if reason:
            print(f"table: {runner.name} is left out: {reason}", file=sys.stderr)
        else:
            runners.append(runner)
    if not runners:
        raise LabError("none of the runners can run here")
    described = machine()
    print(described)
    record, complete = [], True
    each = arguments.ranks_per_host
    for rate in arguments.rates:
        for hosts in arguments.hosts:
            # A tenth of the machine is left for what belongs to no host.
            share = arguments.share if arguments.share is not None else min(0.9 * each, 0.9 * os.cpu_count() / hosts)
            words, total = cases(arguments, hosts, rate)
            setting = {"hosts": hosts, "ranks_per_host": each, "rate_bits_per_s": rate_bits(rate), "processors_per_host": share,
                       "congestion_control": arguments.congestion,
                       "load_average": os.getloadavg()[0]}
            before = load()
            with Lab(hosts=hosts, rate=rate, share=share, congestion=arguments.congestion) as lab:
                results = run_setting(runners, lambda runner, words: runner.on_hosts(lab, each, words, limit(total)), words,
                                      record, setting, arguments.rounds)
            quota = f"{share:.2f} processors each" if share else "no quota"
            print_table(f"{hosts} hosts at {rate}, {each} {'rank' if each == 1 else 'ranks'} each, bursts of "
                        f"{lab.shape.burst_bytes()} bytes, TCP with {arguments.congestion}, {quota}; {before}:", runners, results, hosts, rate, arguments)
            complete &= len(results) == len(runners)
    for ranks in arguments.ranks:
        words, total = cases(arguments, ranks, None)
        setting, before = {"hosts": 1, "ranks": ranks, "load_average": os.getloadavg()[0]}, load()
        results = run_setting(runners, lambda runner, words: runner.on_this_host(ranks, words, limit(total)), words, record,
                              setting, arguments.rounds)
        print_table(f"{ranks} ranks on this host; {before}:", runners, results, ranks, None, arguments)
        complete &= len(results) == len(runners)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": described, "rows": record}, file, indent=1)
    return 0 if complete else 1


def argument(parse):
    """A parser of one option's text, whose errors argparse shows."""
    def parsed(text):
        try:
            return parse(text)
        except LabError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return parsed


def several(parse):
    return argument(lambda text: [parse(item) for item in text.split(",") if item])


def number(least, most=16):
    def parse(text):
        if not re.fullmatch(r"[1-9][0-9]{0,4}", text) or not least <= int(text) <= most:
            raise LabError(f"expects numbers from {least} to {most}, got '{text}'")
        return int(text)
    return parse


def checked_rate(text):
    rate_bits(text)
    return text


def one_of(names):
    def parse(text):
        if text not in names:
            raise LabError(f"expects some of {', '.join(names)}, got '{text}'")
        return text
    return parse


def add_arguments(parser):
    parser.add_argument("--hosts", type=several(number(2)), default=[2, 4], metavar="N,...", help="(default: 2,4)")
    parser.add_argument("--rates", type=several(checked_rate), default=["100mbit", "1gbit"], metavar="RATE,...",
                        help="of the links (default: 100mbit,1gbit)")
    parser.add_argument("--ranks", type=several(number(2)), default=[2], metavar="N,...",
                        help="on this host, without a lab (default: 2)")
    parser.add_argument("--ranks-per-host", type=argument(number(1)), default=1, metavar="N", help="(default: 1)")
    parser.add_argument("--rounds", type=argument(number(1, 1000)), default=1, metavar="N",
                        help="the runners take turns so often, and the median of each counts (default: 1)")
    parser.add_argument("--sizes", type=several(size_bytes), metavar="SIZE,...",
                        default=[1 << shift for shift in (12, 16, 20, 24, 26)], help="(default: 4KiB,64KiB,1MiB,16MiB,64MiB)")
    parser.add_argument("--operations", type=several(one_of(list(OPERATIONS))), default=list(OPERATIONS), metavar="NAME,...",
                        help=f"(default: {','.join(OPERATIONS)})")
    parser.add_argument("--runners", type=several(one_of([runner.short for runner in RUNNERS])), metavar="NAME,...",
                        help=f"some of {','.join(runner.short for runner in RUNNERS)} (default: all)")
    parser.add_argument("--share", type=float, metavar="X",
                        help="each host's quota, in processors; 0: none (default: 0.9 of the machine, by hosts, at most 0.9)")
    parser.add_argument("--congestion", default=default_congestion(), metavar="NAME",
                        help="how TCP controls congestion (default: cubic, or reno where that is not allowed)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures, with units in their names")
