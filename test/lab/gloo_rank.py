# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A rank of the table's rows for PyTorch with Gloo: gloo_rank.py OPERATION:BYTES:RUNS:CALLS... with torchrun's variables.
Prints a line of JSON for each case: the median over RUNS of the mean of CALLS, one after another, and the share of a processor that
they took."""
import json
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for case in sys.argv[1:]:
        operation, count = case.split(":")[0], int(case.split(":")[1]) // 4
        runs, calls = map(int, case.split(":")[2:])
        whole, part = torch.empty(count), torch.empty(count // size)
        call, result, expected = {
            "all_reduce": (lambda: dist.all_reduce(whole), whole, size * (size + 1) / 2),
            "all_gather": (lambda: dist.all_gather_into_tensor(whole, part), whole, None),
            "reduce_scatter": (lambda: dist.reduce_scatter_tensor(part, whole), part, size * (size + 1) / 2)}[operation]
        whole.fill_(rank + 1)
        part.fill_(rank + 1)
        call()
        if expected is None:
            expected = torch.arange(1, size + 1).repeat_interleave(count // size).float()
        if not torch.equal(result, torch.as_tensor(expected).expand_as(result)):
            raise RuntimeError(f"{operation} of {count} values is wrong on rank {rank}")
        whole.fill_(1e-30)
        times = []
        begin, processor = time.perf_counter(), time.process_time()
        for _ in range(runs):
            for _ in range(calls):
                call()
            end = time.perf_counter()
            times.append(end - begin)
            begin = end
        processor = time.process_time() - processor
        print(json.dumps({"case": case, "rank": rank, "median_s": sorted(times)[runs // 2] / calls,
                          "processor_share": processor / sum(times)}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
