# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times collectives of torch.distributed by the backends braid and gloo, on ranks of this host, in turn."""
import argparse
import datetime
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "test/Integration"), str(ROOT / "build/lib/python")]

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as multiprocessing  # noqa: E402


def operation(name, count, ranks):
    own = torch.ones(count)
    part = torch.ones(max(1, count // ranks))
    whole = torch.empty(part.numel() * ranks)
    other = torch.ones_like(whole)
    return {"all_reduce": lambda group: dist.all_reduce(own, group=group),
            "broadcast": lambda group: dist.broadcast(own, 0, group=group),
            "all_gather": lambda group: dist.all_gather_into_tensor(whole, part, group=group),
            "reduce_scatter": lambda group: dist.reduce_scatter_tensor(part, whole, group=group),
            "all_to_all": lambda group: dist.all_to_all_single(whole, other, group=group)}[name]


def rank_process(rank, ranks, path, options):
    import braid_c10d  # noqa: F401
    torch.set_num_threads(1)
    limit = datetime.timedelta(seconds=300)
    dist.init_process_group("gloo", init_method="file://" + path, rank=rank, world_size=ranks, timeout=limit)
    groups = {backend: dist.new_group(backend=backend, timeout=limit) for backend in ("braid", "gloo")}
    for name in options.operations:
        for size in options.sizes:
            run = operation(name, size // 4, ranks)
            repeat = max(3, min(300, (16 << 20) // size))
            times = {backend: [] for backend in groups}
            for round_number in range(options.rounds + 1):  # the first one warms up
                for backend, group in groups.items():
                    dist.barrier()
                    begin = time.perf_counter()
                    for _ in range(repeat):
                        run(group)
                    taken = torch.tensor([(time.perf_counter() - begin) / repeat])
                    dist.all_reduce(taken, dist.ReduceOp.MAX)  # of the slowest rank
                    if round_number:
                        times[backend].append(taken.item())
            if rank == 0:
                ours, theirs = (statistics.median(times[backend]) * 1e6 for backend in groups)
                ratios = sorted(b / a for a, b in zip(times["braid"], times["gloo"]))
                print(f"| {name} | {ranks} | {size} | {ours:.0f} | {theirs:.0f} | {statistics.median(ratios):.2f} "
                      f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |", flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--sizes", type=int, nargs="+", default=[4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20], help="bytes of f32 on each rank")
    parser.add_argument("--operations", nargs="+", default=["all_reduce"],
                        choices=["all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all"])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| operation | ranks | bytes | braid, us | gloo, us | times as fast |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            multiprocessing.spawn(rank_process, (ranks, os.path.join(folder, "store"), options), nprocs=ranks)


if __name__ == "__main__":
    main()
