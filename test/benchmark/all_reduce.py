# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times all_reduces of ranks on this host, by size, beside those of Open MPI.

Each side repeats an all_reduce of f32, out of place, in one run; sides alternate, and the least median of the rounds counts.
The floor is what as many threads take to read and write memory as an all_reduce must, each without waiting for the others: to sum
their parts of all inputs, and to copy the parts of the others from where these wrote them, with stores around the caches and in huge
pages. It is told from 16 MiB on. All sides run while cores are as near to each other as usual (core_distance.py).
Needs build/bin/BraidAllReduceTimes and build/bin/BraidCoreDistance (ninja -C build BraidAllReduceTimes BraidCoreDistance), mpicc and
mpirun.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import core_distance

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Less may stay in the caches, where stores around them are no floor.
FLOOR_BYTES = 16 << 20


def times(command):
    """Median microseconds by bytes."""
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(line.split()[0]): float(line.split()[1]) for line in text.splitlines()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side (default: 5)")
    parser.add_argument("--base", help="another build of BraidAllReduceTimes, measured in the same rounds")
    parser.add_argument("bytes", type=int, nargs="*", default=[4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20])
    args = parser.parse_args()
    ours = os.path.join(ROOT, "build", "bin", "BraidAllReduceTimes")
    sizes = [str(size) for size in args.bytes]
    with tempfile.TemporaryDirectory() as folder:
        theirs = os.path.join(folder, "all_reduce_mpi")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "all_reduce_mpi.c")
        subprocess.run(["mpicc", "-O2", source, "-o", theirs], check=True)
        sides = {"shm": [ours, "shm", str(args.ranks), "5", *sizes]}
        if args.base:
            sides["shm, base"] = [args.base, *sides["shm"][1:]]
        sides["floor"] = [ours, "floor", *sides["shm"][2:]]
        sides["Open MPI"] = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(args.ranks), theirs, "5", *sizes]
        best = {side: {} for side in sides}
        usual = core_distance.Usual(args.ranks)
        for _ in range(args.rounds):
            for side, command in sides.items():
                for size, time in usual.measure(lambda command=command: times(command)).items():
                    best[side][size] = min(time, best[side].get(size, time))
    print(f"| all_reduce, {args.ranks} ranks, us | " + " | ".join(sides) + " | Open MPI / shm | shm / floor |")
    print("| ---: |" + " ---: |" * (len(sides) + 2))
    for size in args.bytes:
        row = {side: best[side][size] for side in sides}
        told = [f"{time:.4g}" if side != "floor" or size >= FLOOR_BYTES else "" for side, time in row.items()]
        of_floor = f"{row['shm'] / row['floor']:.2f}" if size >= FLOOR_BYTES else ""
        print(f"| {size} bytes | " + " | ".join(told) + f" | {row['Open MPI'] / row['shm']:.2f} | {of_floor} |")
    if usual.elsewhere:
        print(f"\n{usual.elsewhere} of {args.rounds * len(sides)} runs were measured while cores were not as near to each other as usual")
    return 0


if __name__ == "__main__":
    sys.exit(main())
