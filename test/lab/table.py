# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of collectives over test hosts and on one host: how long each runner of peers.py takes. Prints figures, asserts
nothing about them; results are compared before anything is timed."""
import argparse
import json
import os
import pathlib
import platform
import re
import sys

from keeper import rate_bits
from hosts import LabError
from lab import Lab
from peers import RUNNERS, PeerFailed, measure

OPERATIONS = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}  # times (n - 1) / n of the bytes leave each rank
BUDGET_S = 1.0  # for the measured calls of a case


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


def wire_seconds(operation, size, ranks, rate):
    """How long the bytes that must leave a rank take on its link."""
    return OPERATIONS[operation] * (ranks - 1) / ranks * size * 8 / rate_bits(rate)


def cases(arguments, ranks, rate):
    """OPERATION:BYTES:REPEAT, and how long all of them take at least."""
    words, total = [], 0.0
    for operation in arguments.operations:
        for size in arguments.sizes:
            # Memory moves at some GB/s.
            estimate = max(2e-4, wire_seconds(operation, size, ranks, rate) if rate else size / 2e9)
            repeat = int(min(max(BUDGET_S / estimate, 3), 400))
            words.append(f"{operation}:{size}:{repeat}")
            total += (repeat + 1) * estimate
    return words, total


def limit(total):
    return 60 + 10 * total


def machine():
    lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    found = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    model = f"{found.get('model name', 'unknown processor')} (family {found.get('cpu family', '?')}, model {found.get('model', '?')})"
    control = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="utf-8").strip()
    return (f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, TCP with {control}; load {os.getloadavg()[0]:.1f} "
            "before the run")


def print_table(title, runners, results, ranks, rate, arguments):
    print(f"\n{title}\n")
    fraction = " of the wire," if rate else ""
    print("| operation | size |" + "".join(f" {runner.name}: median |{fraction} one processor |" for runner in runners))
    print("| --- | ---: |" + " ---: | ---: |" * len(runners))
    for operation in arguments.operations:
        for size in arguments.sizes:
            cells = ""
            for runner in runners:
                if runner.short not in results:
                    cells += " failed | |"
                    continue
                seconds, share = results[runner.short][operation, size]
                wire = f"{wire_seconds(operation, size, ranks, rate) / seconds:.2f}, " if rate else ""
                cells += f" {time_text(seconds)} | {wire}{share * 100:.0f}% |"
            print(f"| {operation} | {size_text(size)} |{cells}")
    sys.stdout.flush()


def run_setting(runners, run, words, record, setting):
    results = {}
    for runner in runners:
        try:
            results[runner.short] = measure(runner, words, lambda words, runner=runner: run(runner, words))
        except PeerFailed as error:
            print(f"table: {error}", file=sys.stderr)
            continue
        record += [dict(setting, runner=runner.short, operation=operation, bytes=size, median_s=seconds, processor_share=share)
                   for (operation, size), (seconds, share) in results[runner.short].items()]
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
    for rate in arguments.rates:
        for hosts in arguments.hosts:
            # A tenth of the machine is left for what belongs to no host.
            share = arguments.share if arguments.share is not None else min(0.9, 0.9 * os.cpu_count() / hosts)
            words, total = cases(arguments, hosts, rate)
            with Lab(hosts=hosts, rate=rate, share=share) as lab:
                setting = {"hosts": hosts, "rate_bits_per_s": rate_bits(rate), "processors_per_host": share}
                results = run_setting(runners, lambda runner, words: runner.on_hosts(lab, words, limit(total)), words, record,
                                      setting)
                quota = f"{share:.2f} processors each" if share else "no quota"
                print_table(f"{hosts} hosts at {rate}, bursts of {lab.shape.burst_bytes()} bytes, {quota}:", runners, results,
                            hosts, rate, arguments)
                complete &= len(results) == len(runners)
    for ranks in arguments.ranks:
        words, total = cases(arguments, ranks, None)
        results = run_setting(runners, lambda runner, words: runner.on_this_host(ranks, words, limit(total)), words, record,
                              {"hosts": 1, "ranks": ranks})
        print_table(f"{ranks} ranks on this host:", runners, results, ranks, None, arguments)
        complete &= len(results) == len(runners)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"machine": described, "rows": record}, file, indent=1)
    return 0 if complete else 1


def add_arguments(parser):
    def several(parse):
        def split(text):
            try:
                return [parse(item) for item in text.split(",") if item]
            except LabError as error:
                raise argparse.ArgumentTypeError(str(error)) from None
        return split

    def positive(least):
        def number(text):
            if not re.fullmatch(r"[1-9][0-9]?", text) or not least <= int(text) <= 16:
                raise LabError(f"expects numbers from {least} to 16, got '{text}'")
            return int(text)
        return number

    def rate(text):
        rate_bits(text)
        return text

    def one_of(names):
        def name(text):
            if text not in names:
                raise LabError(f"expects some of {', '.join(names)}, got '{text}'")
            return text
        return name
    parser.add_argument("--hosts", type=several(positive(2)), default=[2, 4], metavar="N,...", help="(default: 2,4)")
    parser.add_argument("--rates", type=several(rate), default=["100mbit", "1gbit"], metavar="RATE,...",
                        help="of the links (default: 100mbit,1gbit)")
    parser.add_argument("--ranks", type=several(positive(2)), default=[2], metavar="N,...",
                        help="on this host, without a lab (default: 2)")
    parser.add_argument("--sizes", type=several(size_bytes), metavar="SIZE,...",
                        default=[1 << shift for shift in (12, 16, 20, 24, 26)], help="(default: 4KiB,64KiB,1MiB,16MiB,64MiB)")
    parser.add_argument("--operations", type=several(one_of(list(OPERATIONS))), default=list(OPERATIONS), metavar="NAME,...",
                        help=f"(default: {','.join(OPERATIONS)})")
    parser.add_argument("--runners", type=several(one_of([runner.short for runner in RUNNERS])), metavar="NAME,...",
                        help=f"some of {','.join(runner.short for runner in RUNNERS)} (default: all)")
    parser.add_argument("--share", type=float, metavar="X",
                        help="each host's quota, in processors; 0: none (default: 0.9 of the machine, by hosts, at most 0.9)")
    parser.add_argument("--json", metavar="FILE", help="also write all figures, with units in their names")
